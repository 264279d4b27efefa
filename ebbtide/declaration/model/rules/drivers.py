"""Rules for drivers of GPU nodes: every pool has exactly one installer."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind, resource_name
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.resolved_pool import NO_PLUGIN_LABEL
from ebbtide.declaration.model.rules.rule import PoolIn, Severity, cluster_rule, pool_rule, pools_of

_GKE_DOCS = "GKE docs, gpus and gpu-operator (2026)"
_AKS_DOCS = "azure-aks-docs, use-nvidia-gpu and nvidia-gpu-operator (2026); Azure/AKS#4925"
_NO_DRIVER = "Pods that request a GPU would stay pending, because the nodes would have no driver."


def _left(cluster: Cluster) -> Iterator[PoolIn]:
    """Return the pools of NVIDIA's GPUs, as written, whose driver the cloud does not install."""
    for pool in pools_of(cluster):
        resolved = pool.resolved
        if resolved.has_gpus and not resolved.has_amd_gpus and not resolved.has_cloud_driver:
            yield pool


@cluster_rule("GPU pool has driver", _GKE_DOCS)
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


@cluster_rule("unused driver installer", _GKE_DOCS)
def _something_to_install_on(cluster: Cluster) -> Iterator[Fault]:
    mode = cluster.addons.drivers
    if mode in ("managed", "none") or any(_left(cluster)):
        return
    why = (
        "every GPU pool has the cloud's driver"
        if cluster.gpu_pools
        else "the cluster has no pool with NVIDIA's GPUs"
    )
    yield Fault(
        "addons.drivers",
        f"There is no pool on which {mode} would install a driver: {why}.",
        "The setting would have no effect.",
        "Omit drivers, or omit driver in the pools that need it.",
    )


@cluster_rule("Google driver installers only on GKE", _AKS_DOCS, CloudKind.AKS)
def _no_installer_for_aks(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.drivers == "daemonset":
        yield Fault(
            "addons.drivers",
            "Google's driver installers support GKE's node images only.",
            _NO_DRIVER,
            "Omit drivers for AKS' own driver, or write drivers: gpu-operator.",
        )


@cluster_rule("GPU operator needs Ubuntu", _AKS_DOCS, CloudKind.AKS)
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


@cluster_rule("GPU operator needs one image", _GKE_DOCS, CloudKind.GKE)
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


@cluster_rule("GPU pool has device plugin", _GKE_DOCS, CloudKind.GKE)
def _label_takes_the_plugin(cluster: Cluster) -> Iterator[Fault]:
    """Report a label that keeps GKE's device plugin off nodes, regardless of the driver's installer."""
    for pool in pools_of(cluster):
        if pool.pool.labels.get(NO_PLUGIN_LABEL) != "true" or not pool.resolved.has_gpus:
            continue
        if cluster.addons.drivers in ("gpu-operator", "none") and not pool.resolved.has_cloud_driver:
            continue
        yield Fault(
            pool.at(f"labels.{NO_PLUGIN_LABEL}"),
            "The label keeps GKE's device plugin off the nodes, and no add-on installs another.",
            "Pods that request a GPU would stay pending, because the nodes would have none allocatable.",
            "Remove the label; with addons: {drivers: gpu-operator} it is derived.",
        )


@pool_rule("no driver for TPUs", "GKE docs, tpus (2026)", CloudKind.GKE)
def _tpus_have_none(pool: PoolIn) -> Iterator[Fault]:
    if (
        pool.resolved.has_tpus
        and pool.pool.accelerator is not None
        and pool.pool.accelerator.driver is not None
    ):
        yield Fault(
            pool.at("accelerator.driver"),
            "A TPU has no driver to install.",
            "The field would have no effect.",
            "Remove driver.",
        )


@cluster_rule("drivers not installed", _GKE_DOCS, severity=Severity.WARNED)
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


_AMD_DOCS = "azure-aks-docs use-amd-gpus.md (2025-06)"


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
            "The node pool could not be created.",
            "Remove driver, and install AMD's GPU operator.",
        )


@pool_rule("AMD GPUs need Ubuntu", _AMD_DOCS, CloudKind.AKS)
def _amd_image(pool: PoolIn) -> Iterator[Fault]:
    if pool.resolved.has_amd_gpus and pool.pool.image == "azure-linux":
        yield Fault(
            pool.at("image"),
            "AKS does not support Azure Linux on machines with AMD's GPUs.",
            "The node pool could not be created.",
            "Write image: ubuntu, or omit it.",
        )
