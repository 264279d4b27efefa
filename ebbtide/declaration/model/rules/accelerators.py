"""GPUs and TPUs: types and counts of a machine, TPU slices, sharing, and drivers."""

from collections.abc import Iterator

from ebbtide.declaration.catalog.accelerators import (
    AMD,
    NVIDIA,
    chips_of,
    is_tpu,
    one_host_topology,
    partitions,
    resource_name,
    short_for,
    tpu_topologies,
    vendor,
)
from ebbtide.declaration.catalog.machine_offers import accelerator_types
from ebbtide.declaration.catalog.machines import (
    Machine,
    attachable_counts,
    attachable_types,
    find_machine,
    machine_names,
    retired_names,
)
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Accelerator
from ebbtide.declaration.model.resolved_pool import NO_PLUGIN_LABEL
from ebbtide.declaration.model.rules.rule import (
    NO_GKE_POOL,
    NO_POOL,
    PoolIn,
    Severity,
    cluster_rule,
    confined_teams,
    pool_rule,
    pools_of,
    privileged,
    service_name,
)
from ebbtide.text import and_list, did_you_mean, or_list, several
from ebbtide.values.cloud_kind import CloudKind, by_cloud

_SOME = 3
_GPUS = "Compute docs, gpus (cloud.google.com/compute/docs/gpus, 2026-11); catalog/data/attachable.csv"
_VENDORS = by_cloud(gke=(NVIDIA,), aks=(NVIDIA, AMD))
_TPU_DOCS = "GKE docs, plan-tpus and tpus (2026)"
_CHIPS_OF_SEVERAL = 4
"""Chips of a node that can be one of several in a slice; 1 and 8 chips are slices of their own."""
_MIG_DOCS = (
    "GoogleCloudPlatform/cluster-autoscaler@7d250507, machinetypes/deprecated_machine_types_gpu_config.go; "
    "azure-aks-docs gpu-multi-instance.md (2026-05-22); catalog/data/partitions.csv"
)
_SHARING_DOCS = "GKE docs, timesharing-gpus and nvidia-mps-gpus (2026)"
_GKE_DRIVERS = "GKE docs, gpus and gpu-operator (2026)"
_AKS_DRIVERS = "azure-aks-docs, use-nvidia-gpu and nvidia-gpu-operator (2026); Azure/AKS#4925"
_NO_DRIVER = "Pods that request a GPU would stay pending, because the nodes would have no driver."
_AMD_DOCS = "azure-aks-docs use-amd-gpus.md (2025-06)"


def _carriers(cloud: CloudKind, accelerator: str) -> str:
    """List machine types that support an accelerator type, shortened if there are many."""
    machines = (find_machine(cloud, name) for name in machine_names(cloud))
    own = [machine.name for machine in machines if machine and machine.accelerator == accelerator]
    if own:
        return or_list(own) if len(own) <= _SOME else f"one of {', '.join(own[:_SOME])} and so on"
    return "one of the n1 series, such as n1-standard-8"


def _attached(pool: PoolIn) -> Iterator[tuple[Accelerator, Machine]]:
    """Yield the accelerator as written with the machine, if both are known."""
    accelerator, machine = pool.pool.accelerator, pool.machine
    if accelerator is not None and machine is not None and not _unknown(accelerator, pool):
        yield accelerator, machine


def _unknown(accelerator: Accelerator, pool: PoolIn) -> bool:
    machine = pool.machine
    own = machine.accelerator if machine else ""
    return accelerator.type != own and accelerator.type not in accelerator_types(pool.site.cloud)


@pool_rule("known accelerator", "catalog/data/machines.csv and attachable.csv")
def _is_known(pool: PoolIn) -> Iterator[Fault]:
    accelerator, cloud = pool.pool.accelerator, pool.site.cloud
    if accelerator is None or not _unknown(accelerator, pool):
        return
    if short_for(accelerator.type, retired_names(cloud)):
        return
    own = [pool.machine.accelerator] if pool.machine and pool.machine.accelerator else []
    known = accelerator_types(cloud)
    near = did_you_mean(accelerator.type, known)
    fix = "Write a known type, or declare the accelerators with the machine."
    if meant := short_for(accelerator.type, own) or short_for(accelerator.type, known):
        near, fix = f"; did you mean {or_list(meant)}?", f"Write type: {or_list(meant)}."
    problem = f"No accelerator {accelerator.type} is known on {service_name(cloud)}{near}"
    yield Fault(pool.at("accelerator.type"), problem, NO_POOL, fix)


@pool_rule(
    "accelerator has known resource",
    "GKE docs, gpus and tpus (2026); azure-aks-docs use-nvidia-gpu.md and use-amd-gpus.md (2025-06)",
)
def _has_resource(pool: PoolIn) -> Iterator[Fault]:
    """Require a known vendor of the accelerators of a declared machine, since the resource of pods follows
    from it."""
    shape, cloud = pool.pool.machine, pool.site.cloud
    declared = shape.accelerators if shape else None
    if declared is None or vendor(declared.type) in _VENDORS[cloud]:
        return
    if cloud is CloudKind.GKE and is_tpu(declared.type):
        return
    prefixes = or_list([f"{name}-" for name in _VENDORS[cloud]])
    yield Fault(
        pool.at("machine.accelerators.type"),
        f"No resource is known for the accelerators {declared.type} on {service_name(cloud)}.",
        "Pods would request a resource that no device plugin offers, and stay pending.",
        f"Write a type that begins with {prefixes}, such as nvidia-l4.",
    )


@pool_rule("accelerators match machine type", "catalog/data/machines.csv, a source in each row")
def _is_the_machines_own(pool: PoolIn) -> Iterator[Fault]:
    for accelerator, machine in _attached(pool):
        own = {"type": machine.accelerator, "count": machine.accelerator_count} if machine.accelerator else {}
        for field, known in own.items():
            if (declared := getattr(accelerator, field)) != known:
                yield Fault(
                    pool.at(f"accelerator.{field}"),
                    f"{machine.name} has {machine.accelerator_count} x {machine.accelerator}, and {field} is "
                    f"{declared}.",
                    NO_POOL,
                    f"Write {field}: {known}, or omit accelerator.",
                )


@pool_rule("machine supports accelerators", _GPUS)
def _can_be_attached(pool: PoolIn) -> Iterator[Fault]:
    for accelerator, machine in _attached(pool):
        kind = accelerator.type
        if not machine.accelerator and not (machine.attachable and kind in attachable_types()):
            yield Fault(
                pool.at("accelerator"),
                f"{machine.name} can carry no {kind if machine.attachable else 'accelerators'}.",
                NO_POOL,
                f"Write machine: {_carriers(pool.site.cloud, kind)}.",
            )


@pool_rule("supported accelerator count", _GPUS, CloudKind.GKE)
def _count_fits(pool: PoolIn) -> Iterator[Fault]:
    for accelerator, machine in _attached(pool):
        kind, count = accelerator.type, accelerator.count
        if machine.accelerator or not machine.attachable or kind not in attachable_types():
            continue
        counts = attachable_counts(machine, kind)
        if counts and count not in counts:
            yield Fault(
                pool.at("accelerator.count"),
                f"{machine.name} can carry {or_list(counts)} of {kind}, not {count}.",
                NO_POOL,
                f"Write count: {or_list(counts)}.",
            )
        elif not counts:
            yield Fault(
                pool.at("accelerator"),
                f"{machine.name} is too large for any number of {kind}.",
                NO_POOL,
                "Write a smaller machine of the n1 series.",
            )


@pool_rule("TPU pool has topology", _TPU_DOCS, CloudKind.GKE)
def _tpus_alone(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.tpu_topology is not None and not pool.resolved.has_tpus:
        yield Fault(
            pool.at("tpuTopology"),
            "The machine has no TPUs.",
            NO_GKE_POOL,
            "Remove tpuTopology, or write a machine with TPUs, such as ct6e-standard-4t.",
        )


@pool_rule("supported TPU topology", f"{_TPU_DOCS}; catalog/data/tpu_topologies.csv", CloudKind.GKE)
def _fits_the_machine(pool: PoolIn) -> Iterator[Fault]:
    topology, accelerator = pool.pool.tpu_topology, pool.resolved.accelerator
    if topology is None or accelerator is None or not pool.resolved.has_tpus:
        return
    kind, chips = accelerator.type, accelerator.count
    known, own = tpu_topologies(kind), one_host_topology(kind, chips)
    if known is not None and not known.has(topology):
        others = " or multiples of 4 in every dimension, such as 4x4x8" if known.multiples_of else ""
        problem = f"{kind} has no topology {topology}."
        fix = f"Write {or_list([name for name in known.listed if chips_of(name) > chips])}{others}."
    elif chips_of(topology) % chips:
        problem = f"{topology} has {chips_of(topology)} chips, and a node has {chips}."
        fix = f"Write a topology with a multiple of {chips} chips."
    elif topology != own and (chips_of(topology) == chips or (own and chips != _CHIPS_OF_SEVERAL)):
        problem = f"A slice of this machine is one node, and its topology {own or 'that of the machine'}."
        fix = "Remove tpuTopology, or write a machine of 4 chips, such as ct6e-standard-4t."
    else:
        return
    yield Fault(pool.at("tpuTopology"), problem, NO_GKE_POOL, fix)


@pool_rule(
    "TPU slice node count",
    "GoogleCloudPlatform/cluster-autoscaler@7d250507, machinetypes/machine_config_provider.go",
    CloudKind.GKE,
)
def _as_many_nodes(pool: PoolIn) -> Iterator[Fault]:
    together, nodes = pool.resolved.slice_nodes, pool.pool.nodes
    if together == 1:
        return
    wrong = {"count": nodes.count, "max": nodes.max, "min": nodes.min or None}
    for field, value in wrong.items():
        if value is not None and value != together:
            yield Fault(
                pool.at(f"nodes.{field}"),
                f"The topology {pool.pool.tpu_topology} needs {together} nodes, and {field} is {value}.",
                NO_GKE_POOL,
                f"Remove {field}, or write {field}: {together}.",
            )


@pool_rule("TPU slice in one zone", _TPU_DOCS, CloudKind.GKE)
def _slice_zone(pool: PoolIn) -> Iterator[Fault]:
    if pool.resolved.slice_nodes > 1 and pool.resolved.zone_count > 1:
        yield Fault(
            pool.at("zones"),
            "A TPU slice is in one zone, and this pool spans several.",
            NO_GKE_POOL,
            "Write the one zone under zones.",
        )


def _partition(accelerator: Accelerator) -> tuple[str, str]:
    """Return the field and value that partition a GPU; empty without partitions."""
    if accelerator.gpu_partition_size is not None:
        return "gpuPartitionSize", accelerator.gpu_partition_size
    return "gpuInstanceProfile", accelerator.gpu_instance_profile or ""


@pool_rule("supported GPU partition", _MIG_DOCS)
def _can_be_divided(pool: PoolIn) -> Iterator[Fault]:
    accelerator, cloud = pool.pool.accelerator, pool.site.cloud
    if accelerator is None:
        return
    field, partition = _partition(accelerator)
    known = partitions(cloud, accelerator.type)
    elsewhere = (field == "gpuPartitionSize") is not (cloud is CloudKind.GKE)
    if elsewhere or not partition or partition in known:
        return
    fix = f"Write {or_list(list(known))}." if known else f"Remove {field}."
    into = f"into {partition}" if known else "at all"
    problem = f"{service_name(cloud)} cannot partition {accelerator.type} {into}."
    yield Fault(pool.at(f"accelerator.{field}"), problem, NO_POOL, fix)


@pool_rule("GPU sharing needs GPUs", _SHARING_DOCS, CloudKind.GKE)
def _of_gpus(pool: PoolIn) -> Iterator[Fault]:
    accelerator = pool.pool.accelerator
    if accelerator is not None and accelerator.gpu_sharing_config is not None and is_tpu(accelerator.type):
        yield Fault(
            pool.at("accelerator.gpuSharingConfig"),
            f"{accelerator.type} is a TPU, which containers cannot share.",
            NO_POOL,
            "Remove gpuSharingConfig.",
        )


@cluster_rule(
    "GPU sharing needs cloud driver",
    "GKE docs, gpus-multi and gpu-operator (2026); Azure/AgentBaker, cse_main.sh: ensureMigPartition",
)
def _sharing_driver(cluster: Cluster) -> Iterator[Fault]:
    for pool in pools_of(cluster):
        accelerator = pool.pool.accelerator
        if accelerator is None or pool.resolved.has_cloud_driver:
            continue
        field, partition = _partition(accelerator)
        written = field if partition else "gpuSharingConfig" if accelerator.gpu_sharing_config else ""
        if partition or (written and cluster.addons.drivers == "gpu-operator"):
            cloud = service_name(pool.site.cloud)
            yield Fault(
                pool.at(f"accelerator.{written}"),
                f"{cloud} shares GPUs only if it installs their driver, and this pool has another one.",
                "The GPUs would not be shared, and the queues would have more quota than the nodes have "
                "GPUs.",
                "Write driver: default under accelerator.",
            )


@cluster_rule(
    "MPS needs hostIPC",
    "GKE docs, nvidia-mps-gpus (2026): hostIPC; Kubernetes docs, Pod Security Standards (2026)",
    CloudKind.GKE,
)
def _mps_in_teams(cluster: Cluster) -> Iterator[Fault]:
    sharing = ((pool.name, pool.accelerator.gpu_sharing_config) for pool in cluster.pools if pool.accelerator)
    mps = {name for name, config in sharing if config and config.gpu_sharing_strategy == "mps"}
    for path, team, pools in confined_teams(cluster, mps):
        yield Fault(
            path,
            f"The team {team.name} has a queue for {and_list(pools)}, whose GPUs are shared by MPS, and "
            f"its namespace enforces the Pod Security Standard {team.pod_security}.",
            "MPS needs hostIPC: true, which that standard forbids, so no pod of the team could use such a "
            "GPU.",
            f"Write gpuSharingStrategy: time-sharing on the pool, or {privileged(team)}.",
        )


@cluster_rule(
    "same GPU sharing in queue",
    "GKE docs, timesharing-gpus (2026): every share is one nvidia.com/gpu",
    severity=Severity.WARNED,
)
def _alike_in_a_queue(cluster: Cluster) -> Iterator[Fault]:
    known = {pool.name: pool.shares for pool in cluster.resolved_pools if pool.accelerator is not None}
    for number, queue in enumerate(cluster.queues):
        counts = {known[name]: name for name in queue.pools if name in known}
        if len(counts) > 1:
            least, most = counts[max(counts)], counts[min(counts)]
            yield Fault(
                f"queues[{number}].pools",
                f"One nvidia.com/gpu is 1/{max(counts)} of a GPU on {least} and "
                f"{'a whole one' if min(counts) == 1 else f'1/{min(counts)}'} on {most}.",
                "A job may get the smaller share.",
                "Declare a queue for each, unless jobs can use either.",
            )


@pool_rule(
    "GPU instances not counted by autoscaler",
    "kubernetes/autoscaler, cloudprovider/azure/azure_template.go (2026): GPUs of the machine size",
    CloudKind.AKS,
    Severity.WARNED,
)
def _counted_whole(pool: PoolIn) -> Iterator[Fault]:
    accelerator = pool.pool.accelerator
    if accelerator is None or accelerator.gpu_instance_profile is None or pool.pool.nodes.count is not None:
        return
    count = pool.resolved.shares
    if count > 1:
        yield Fault(
            pool.at("accelerator.gpuInstanceProfile"),
            f"The autoscaler counts {several(accelerator.count, 'GPU')} on an empty node, not "
            f"{accelerator.count * count} instances.",
            "It adds more nodes than many small pods need, and removes them again.",
            "Write a fixed count, such as nodes: {count: 1}, unless that is acceptable.",
        )


@pool_rule("only default driver on AKS", "azure-aks-docs use-nvidia-gpu.md (2026-07-02)", CloudKind.AKS)
def _driver(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.accelerator is not None and pool.pool.accelerator.driver == "latest":
        yield Fault(
            pool.at("accelerator.driver"),
            "AKS has only the default driver.",
            "The nodes would get the default driver, not the latest.",
            "Write driver: default, or driver: none to install one with an add-on.",
        )


@pool_rule("latest driver needs cos", "pulumi-gcp 9.35.0, gpuDriverInstallationConfig", CloudKind.GKE)
def _latest_driver_needs_cos(pool: PoolIn) -> Iterator[Fault]:
    accelerator = pool.pool.accelerator
    if accelerator is not None and accelerator.driver == "latest" and pool.pool.image == "ubuntu":
        yield Fault(
            pool.at("accelerator.driver"),
            "GKE has the latest driver only for the image cos, and the image is ubuntu.",
            NO_POOL,
            "Write driver: default, or image: cos.",
        )


def _left(cluster: Cluster) -> Iterator[PoolIn]:
    """Return the pools of NVIDIA's GPUs, as written, whose driver the cloud does not install."""
    for pool in pools_of(cluster):
        resolved = pool.resolved
        if resolved.has_gpus and not resolved.has_amd_gpus and not resolved.has_cloud_driver:
            yield pool


@cluster_rule("GPU pool has driver", _GKE_DRIVERS)
def _has_installer(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.drivers != "managed":
        return
    for pool in _left(cluster):
        yield Fault(
            pool.at("accelerator.driver"),
            "The pool has driver: none, and no add-on installs one: addons.drivers is managed.",
            _NO_DRIVER,
            "Omit driver, or write addons: {drivers: gpu-operator}, or drivers: none if you install the "
            "driver yourself.",
        )


@cluster_rule("unused driver installer", _GKE_DRIVERS)
def _something_to_install_on(cluster: Cluster) -> Iterator[Fault]:
    mode = cluster.addons.drivers
    if mode in ("managed", "none") or any(_left(cluster)):
        return
    none = "the cluster has no pool with NVIDIA's GPUs"
    why = "every GPU pool has the cloud's driver" if cluster.gpu_pools else none
    yield Fault(
        "addons.drivers",
        f"There is no pool on which {mode} would install a driver: {why}.",
        "The setting would have no effect.",
        "Omit drivers, or omit driver in the pools that need it.",
    )


@cluster_rule("Google driver installers only on GKE", _AKS_DRIVERS, CloudKind.AKS)
def _no_installer_for_aks(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.drivers == "daemonset":
        yield Fault(
            "addons.drivers",
            "Google's driver installers support GKE's node images only.",
            _NO_DRIVER,
            "Omit drivers for AKS' own driver, or write drivers: gpu-operator.",
        )


@cluster_rule("GPU operator needs Ubuntu", _AKS_DRIVERS, CloudKind.AKS)
def _operator_needs_ubuntu(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.drivers != "gpu-operator":
        return
    for pool in _left(cluster):
        if pool.pool.image == "azure-linux":
            yield Fault(
                pool.at("image"),
                "The NVIDIA GPU Operator does not support Azure Linux.",
                _NO_DRIVER,
                "Write image: ubuntu, or driver: default for AKS' own driver.",
            )


@cluster_rule("GPU operator needs one image", _GKE_DRIVERS, CloudKind.GKE)
def _one_image_under_the_operator(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.drivers != "gpu-operator":
        return
    pools = list(_left(cluster))
    ubuntu = [pool for pool in pools if pool.pool.image == "ubuntu"]
    if ubuntu and len(ubuntu) < len(pools):
        yield Fault(
            ubuntu[0].at("image"),
            "GPU pools of the NVIDIA GPU Operator have both images, and it installs a driver on all of "
            "them or on none.",
            "The nodes with one of the images would have no driver, or two.",
            "Write one image for all of them, or driver: default for some.",
        )


@cluster_rule("GPU pool has device plugin", _GKE_DRIVERS, CloudKind.GKE)
def _label_takes_the_plugin(cluster: Cluster) -> Iterator[Fault]:
    """Report a label that keeps GKE's device plugin off nodes, regardless of the driver's installer."""
    for pool in pools_of(cluster):
        others = cluster.addons.drivers in ("gpu-operator", "none") and not pool.resolved.has_cloud_driver
        if pool.pool.labels.get(NO_PLUGIN_LABEL) == "true" and pool.resolved.has_gpus and not others:
            yield Fault(
                pool.at(f"labels.{NO_PLUGIN_LABEL}"),
                "The label keeps GKE's device plugin off the nodes, and no add-on installs another.",
                "Pods that request a GPU would stay pending, because the nodes would have none allocatable.",
                "Remove the label; with addons: {drivers: gpu-operator} it is derived.",
            )


@pool_rule("no driver for TPUs", "GKE docs, tpus (2026)", CloudKind.GKE)
def _tpus_have_none(pool: PoolIn) -> Iterator[Fault]:
    accelerator = pool.pool.accelerator
    if pool.resolved.has_tpus and accelerator is not None and accelerator.driver is not None:
        yield Fault(
            pool.at("accelerator.driver"),
            "A TPU has no driver to install.",
            "The field would have no effect.",
            "Remove driver.",
        )


@cluster_rule("drivers not installed", _GKE_DRIVERS, severity=Severity.WARNED)
def _no_declared_driver(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.drivers != "none":
        return
    for pool in _left(cluster):
        yield Fault(
            pool.at("accelerator"),
            "No GPU driver is installed on this pool: addons.drivers is none.",
            "Until you install a driver and a device plugin, pods that request a GPU stay pending.",
            "No change is needed if you install them yourself.",
        )


@cluster_rule("AMD GPU driver not installed", _AMD_DOCS, CloudKind.AKS, Severity.WARNED)
def _amd_operator(cluster: Cluster) -> Iterator[Fault]:
    for pool in pools_of(cluster):
        if pool.resolved.has_amd_gpus and not pool.resolved.has_cloud_driver:
            kind = pool.resolved.accelerator_type
            yield Fault(
                pool.at("machine"),
                f"Neither AKS nor Ebbtide installs the driver and the device plugin of {kind}.",
                "Until AMD's GPU operator runs on the nodes, pods that request amd.com/gpu stay pending.",
                f"Install AMD's GPU operator, with a toleration for the taint {resource_name(kind)}.",
            )


@pool_rule("no cloud driver for AMD GPUs", _AMD_DOCS, CloudKind.AKS)
def _amd_driver(pool: PoolIn) -> Iterator[Fault]:
    if pool.resolved.has_amd_gpus and pool.resolved.has_cloud_driver:
        yield Fault(
            pool.at("accelerator.driver"),
            "AKS installs no driver for AMD's GPUs.",
            NO_POOL,
            "Remove driver, and install AMD's GPU operator.",
        )


@pool_rule("AMD GPUs need Ubuntu", _AMD_DOCS, CloudKind.AKS)
def _amd_image(pool: PoolIn) -> Iterator[Fault]:
    if pool.resolved.has_amd_gpus and pool.pool.image == "azure-linux":
        yield Fault(
            pool.at("image"),
            "AKS does not support Azure Linux on machines with AMD's GPUs.",
            NO_POOL,
            "Write image: ubuntu, or omit it.",
        )
