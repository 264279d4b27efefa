"""Conflict of a pinned AKS version with the upgrade channel."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.cloud import Aks
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule

_NEWER_PATCHES = ("patch", "stable", "rapid")
_NEWER_MINORS = ("stable", "rapid")


@cluster_rule(
    "pinned version needs matching upgrade channel",
    "azure-aks-docs auto-upgrade-cluster.md (2026-06-26)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _leaves_the_pin(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.cloud
    if not isinstance(cloud, Aks) or cloud.kubernetes_version is None or cloud.existing is not None:
        return
    pinned, channel = cloud.kubernetes_version, cloud.upgrade_channel
    minor = pinned.rpartition(".")[0]
    is_patch = "." in minor
    if channel not in (_NEWER_PATCHES if is_patch else _NEWER_MINORS):
        return
    fix = f"Write upgradeChannel: none{f', or kubernetesVersion: {minor}' if channel == 'patch' else ''}."
    yield Fault(
        "cloud.kubernetesVersion",
        f"The version is pinned to {pinned}, and the upgrade channel {channel} installs newer "
        f"{'patches' if is_patch else 'versions'}.",
        "After the first upgrade, every preview would downgrade the cluster, which AKS refuses.",
        fix,
    )
