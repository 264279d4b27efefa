"""Requirements of the add-ons: cloud, system pool and namespaces."""

import re
from collections.abc import Iterator

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.addons import ReleasedAddOn
from ebbtide.declaration.model.capacity import Preemptible, Spot
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Pool, TaintEffect
from ebbtide.declaration.model.rules.cluster import is_earlier
from ebbtide.declaration.model.rules.rule import PoolIn, Severity, cluster_rule, pools_of
from ebbtide.text import and_list
from ebbtide.values.cloud_kind import CloudKind, by_cloud

_PIPELINES = "kubeflow/pipelines 2.17.0"
_KATIB = "kubeflow/katib 0.19.0"
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_CHART_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def _hard_taints(pool: Pool) -> list[int]:
    """Return the indexes of a pool's declared taints that repel pods."""
    soft = TaintEffect.PREFER_NO_SCHEDULE
    return [index for index, taint in enumerate(pool.taints or ()) if taint.effect is not soft]


@cluster_rule(
    "untainted pool for add-ons", f"{_PIPELINES}, argocompiler/container.go; {_KATIB}, SuggestionConfig"
)
def _somewhere_untainted(cluster: Cluster) -> Iterator[Fault]:
    makers = [add_on.spec.untolerating for add_on in cluster.installed if add_on.spec.untolerating]
    if not makers or cluster.cloud.existing is not None:
        return
    if any(pool.taints is not None and not _hard_taints(pool) for pool in cluster.work_pools):
        return
    for pool in _system(cluster):
        if hard := _hard_taints(pool.pool):
            yield Fault(
                pool.at(f"taints[{hard[0]}]"),
                f"The pods of {and_list(makers)} tolerate no taint, and every pool has one.",
                "They would stay pending.",
                "Remove taints here, or write the effect PreferNoSchedule for all taints of a work pool.",
            )


@cluster_rule(
    "pipeline bucket only on GKE", f"{_PIPELINES}, backend/src/v2/objectstore/config.go", CloudKind.AKS
)
def _bucket(cluster: Cluster) -> Iterator[Fault]:
    pipelines = cluster.addons.installed_pipelines
    if pipelines is not None and pipelines.artifacts == "bucket":
        yield Fault(
            "addons.pipelines.artifacts",
            f"Kubeflow Pipelines {PINS['pipelines'].version} cannot write to Azure storage: it supports gs, "
            "s3 and minio.",
            "Every step with an artifact would fail.",
            "Omit artifacts to keep them on a disk in the cluster.",
        )


@cluster_rule(
    "existing add-on needs existing cluster", "Kubernetes docs, custom resources (2026): kinds are installed"
)
def _existing_add_ons(cluster: Cluster) -> Iterator[Fault]:
    if cluster.cloud.existing is not None or cluster.adopt is not None:
        return
    for add_on in cluster.addons.declared:
        if isinstance(add_on, ReleasedAddOn) and add_on.existing:
            yield Fault(
                f"addons.{add_on.spec.name}.existing",
                f"The cluster is created by this stack, and {add_on.spec.title} cannot be installed on it "
                "yet.",
                "Its objects would be refused.",
                f"Omit existing to install {add_on.spec.title}, or declare the cluster as cloud.existing.",
            )


@cluster_rule(
    "replicas of existing Kueue", "Kueue 0.19.2, charts/kueue/values.yaml: controllerManager.replicas"
)
def _existing_replicas(cluster: Cluster) -> Iterator[Fault]:
    kueue = cluster.addons.kueue
    if kueue is not None and not kueue.is_installed and kueue.replicas != 1:
        yield Fault(
            "addons.kueue.replicas",
            f"{'The managed' if kueue.is_managed else 'The existing'} Kueue has its own replicas.",
            "The setting would have no effect.",
            "Omit replicas.",
        )


@cluster_rule("managed Kueue on AKS", "azure-aks-docs, kueue-overview (2026-11)")
def _managed_kueue(cluster: Cluster) -> Iterator[Fault]:
    kueue = cluster.addons.kueue
    if kueue is None or not kueue.is_managed:
        return
    if cluster.site.cloud is not CloudKind.AKS:
        yield Fault(
            "addons.kueue.install",
            "GKE has no managed Kueue.",
            "Nothing would install it, and the queues could not be created.",
            "Omit install.",
        )
    if kueue.existing:
        yield Fault(
            "addons.kueue.existing",
            "The Kueue that exists cannot be installed as AKS' extension as well.",
            "Two controllers would admit the same work, and their definitions would conflict.",
            "Omit existing to install the extension, or install to use what exists.",
        )


@cluster_rule("artifacts of existing pipelines", f"{_PIPELINES}, ml-pipeline-apiserver-deployment.yaml")
def _existing_pipelines(cluster: Cluster) -> Iterator[Fault]:
    pipelines = cluster.addons.pipelines
    if pipelines is not None and pipelines.existing and pipelines.artifacts != "cluster":
        yield Fault(
            "addons.pipelines.artifacts",
            "The existing Kubeflow Pipelines keeps its own artifact store.",
            "The setting would have no effect.",
            "Omit artifacts.",
        )


@cluster_rule(
    "existing pipelines retry strategy",
    "Kubernetes docs, declarative-config, how apply calculates differences (2026)",
    severity=Severity.WARNED,
)
def _reset_by_upgrade(cluster: Cluster) -> Iterator[Fault]:
    pipelines = cluster.addons.pipelines
    if pipelines is not None and pipelines.existing:
        yield Fault(
            "addons.pipelines.existing",
            "An upgrade of Kubeflow Pipelines with kubectl resets the retry strategy.",
            "Steps that are preempted would fail again.",
            "Run pulumi up after each upgrade; it applies the strategy again.",
        )


def _released(cluster: Cluster) -> Iterator[tuple[str, ReleasedAddOn]]:
    for add_on in cluster.addons.declared:
        if isinstance(add_on, ReleasedAddOn) and (add_on.version is not None or add_on.digest is not None):
            yield f"addons.{add_on.spec.name}", add_on


@cluster_rule("newer add-on version", "ebbtide/declaration/catalog/versions.py, a date in each pin (2026-11)")
def _newer_than_its_pin(cluster: Cluster) -> Iterator[Fault]:
    for path, add_on in _released(cluster):
        pinned, version, digest = add_on.pin.version, add_on.version or "", add_on.digest or ""
        if not add_on.is_installed:
            which = "existing" if add_on.existing else "managed"
            yield Fault(
                path,
                f"The {which} {add_on.spec.title} has its own version.",
                "The setting would have no effect.",
                "Remove version and digest.",
            )
            continue
        if _VERSION.fullmatch(version) is None or not is_earlier(pinned, version):
            yield Fault(
                f"{path}.version",
                f"{version} is not a version after {pinned}." if version else "The digest has no version.",
                f"What Ebbtide sets in it is for {pinned} or later.",
                "Write a later version as three numbers, or remove version and digest.",
            )
        is_chart = bool(add_on.pin.digest)
        if (_CHART_DIGEST if is_chart else _COMMIT).fullmatch(digest) is None:
            yield Fault(
                f"{path}.digest",
                f"{digest} is not a digest of this release." if digest else "The version has no digest.",
                "A version alone can be another one tomorrow.",
                "Write the digest of the chart, as sha256: and 64 hexadecimal digits."
                if is_chart
                else "Write the commit of the version's tag, 40 hexadecimal digits.",
            )


@cluster_rule(
    "tested add-on version",
    "ebbtide/declaration/catalog/versions.py, a date in each pin (2026-11)",
    severity=Severity.WARNED,
)
def _tested(cluster: Cluster) -> Iterator[Fault]:
    for path, add_on in _released(cluster):
        yield Fault(
            f"{path}.version",
            f"{add_on.spec.title} {add_on.version} was not tested with Ebbtide; {add_on.pin.version} was.",
            "An update may fail, and what Ebbtide patches in it may have moved.",
            "Try it on a cluster that is not needed, and read the changes between the two versions.",
        )


@cluster_rule("logs only on AKS", "GKE docs, logging (2026)", CloudKind.GKE)
def _cloud_has_logs(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.logs is not None:
        yield Fault(
            "addons.logs",
            "GKE collects the logs of pods in Cloud Logging without an add-on.",
            "The setting would have no effect.",
            "Remove logs.",
        )


@cluster_rule("logs of existing cluster", "azure-native 3.29.0, ManagedCluster.addonProfiles", CloudKind.AKS)
def _logs_of_ours(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.logs is not None and cluster.cloud.existing is not None:
        yield Fault(
            "addons.logs",
            "Logs are collected by an agent that is a setting of the cluster, and this stack does not "
            "create the cluster.",
            "No logs would be collected.",
            "Omit logs, and have the cluster's owner run az aks enable-addons --addons monitoring.",
        )


@cluster_rule(
    "metrics of existing cluster",
    "pulumi-gcp 10.2.0, monitoringConfig; azure-native 3.29.0, azureMonitorProfile",
)
def _metrics_of_another(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.metrics is None or cluster.cloud.existing is None:
        return
    command = by_cloud(
        gke="gcloud container clusters update --enable-managed-prometheus",
        aks="az aks update --enable-azure-monitor-metrics",
    )[cluster.site.cloud]
    yield Fault(
        "addons.metrics",
        "Metrics are collected by an agent that is a setting of the cluster, and this stack does not create "
        "the cluster.",
        "No metric would be collected.",
        f"Omit metrics, and have the cluster's owner run {command}.",
    )


@cluster_rule(
    "GPU utilization not collected",
    "GKE docs, dcgm-metrics (2026); NVIDIA docs, dcgm-exporter (2026)",
    severity=Severity.WARNED,
)
def _unmeasured(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.metrics is None or cluster.cloud.existing is not None:
        return
    measured = {pool.name for pool in cluster.measured_pools}
    for pool in pools_of(cluster):
        if pool.resolved.has_gpus and pool.pool.name not in measured:
            needs = by_cloud(gke="GKE's own driver", aks="whole GPUs and AKS's own driver")[pool.site.cloud]
            yield Fault(
                pool.at("accelerator"),
                f"The DCGM exporter needs {needs}, which this pool does not have.",
                "The utilization of its GPUs is not collected.",
                "Write driver: default and no gpuInstanceProfile, or run a DCGM exporter of your own.",
            )


@cluster_rule("no team in add-on namespace", f"{_PIPELINES}, cluster-scoped-resources/namespace.yaml")
def _own_namespaces(cluster: Cluster) -> Iterator[Fault]:
    taken = {add_on.spec.namespace: add_on.spec for add_on in cluster.add_ons if add_on.spec.runs_work}
    for index, team in enumerate(cluster.teams):
        name = team.namespace_name
        if name not in taken or (team.namespace is not None and not team.namespace.create):
            continue
        spec = taken[name]
        yield Fault(
            f"teams[{index}].namespace.name" if team.namespace else f"teams[{index}].name",
            f"The namespace {name} is created with {spec.title}.",
            "It would be created twice, and deleted with the first of the two.",
            f"Write namespace: {{name: {name}, create: false}}, or a namespace of the team's own.",
        )


@cluster_rule(
    "Kubernetes version for add-ons",
    "the minimum versions of the add-ons' own documents (catalog/versions.py, 2026)",
)
def _recent_enough(cluster: Cluster) -> Iterator[Fault]:
    pinned = cluster.site.kubernetes_version or "latest"
    for add_on in cluster.add_ons:
        spec, least = add_on.spec, add_on.least_kubernetes
        if least is not None and is_earlier(pinned, least):
            yield Fault(
                f"addons.{spec.name}",
                f"{spec.title} needs Kubernetes {least} or later, and kubernetesVersion is {pinned}.",
                "The API server would refuse its custom resources.",
                f"Write kubernetesVersion: {least} or later, or omit it.",
            )


def _keepers(cluster: Cluster) -> list[str]:
    """Return the add-ons with data on a disk, which a node of the system pool mounts."""
    return [add_on.spec.title for add_on in cluster.installed if add_on.spec.footprint.volumes_gib]


def _system(cluster: Cluster) -> Iterator[PoolIn]:
    return (pool for pool in pools_of(cluster) if pool.pool.is_system)


@cluster_rule(
    "databases on spot nodes", "azure-aks-docs spot-node-pool.md (2025-04-06)", severity=Severity.WARNED
)
def _data_on_spot(cluster: Cluster) -> Iterator[Fault]:
    keepers = _keepers(cluster)
    for pool in _system(cluster) if keepers else ():
        if isinstance(pool.pool.capacity, Spot | Preemptible):
            yield Fault(
                pool.at("capacity"),
                f"The databases of {and_list(keepers)} run on nodes that the cloud can reclaim.",
                "After each reclaim, pipelines and experiments stop until another node is ready.",
                "Omit capacity for on-demand, unless the lower price is worth it.",
            )


@cluster_rule(
    "database disks in one zone",
    "GKE docs, persistent-volumes (2026); azure-aks-docs reliability-availability-zones-configure.md "
    "(2026-03-26)",
    severity=Severity.WARNED,
)
def _data_in_one_zone(cluster: Cluster) -> Iterator[Fault]:
    keepers = _keepers(cluster)
    for pool in _system(cluster) if keepers else ():
        if pool.resolved.zone_count > 1:
            yield Fault(
                pool.at("zones"),
                f"The system pool spans zones, and a disk of {and_list(keepers)} is in one of them.",
                "When its node is deleted, the database stays pending until there is another node in that "
                "zone.",
                "Write zones: with a single zone.",
            )
