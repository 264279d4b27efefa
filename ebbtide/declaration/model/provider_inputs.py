"""Metadata of a pool's field: the provider inputs that it becomes, and the only cloud that has it.

Rules, the comparison of existing pools and the documentation of overrides follow from it (`pool_fields`).
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ebbtide.declaration.catalog import CloudKind

_AGENT_POOL: Final = "azure-native 3.29.0, AgentPool"

Change: TypeAlias = Literal["in place", "recreates nodes", "fixed"]
"""Effect of a changed input on an existing pool. `recreates nodes`: an upgrade, a few nodes at a time.
`fixed`: `ebbtide up` replaces the pool."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a cloud's node pool that a field becomes, under the provider's names.

    Attributes:
        cloud: the cloud.
        paths: their paths; each includes everything below it.
        change: effect of a change on an existing pool.
    """

    cloud: CloudKind
    paths: tuple[str, ...]
    change: Change = "in place"


def gke(*paths: str) -> Inputs:
    """Return inputs of `gcp.container.NodePool` that change on an existing pool."""
    return Inputs(CloudKind.GKE, paths)


def gke_recreates(*paths: str) -> Inputs:
    """Return inputs of `gcp.container.NodePool` whose change recreates the nodes of an existing pool.

    Source: googleapis, google/container/v1/cluster_service.proto, UpdateNodePoolRequest, cf6f9ee1.
    """
    return Inputs(CloudKind.GKE, paths, "recreates nodes")


def gke_fixed(*paths: str) -> Inputs:
    """Return inputs of `gcp.container.NodePool` that are fixed when the pool is created."""
    return Inputs(CloudKind.GKE, paths, "fixed")


def aks(*paths: str) -> Inputs:
    """Return inputs of `azure-native.containerservice.AgentPool` that change on an existing pool."""
    return Inputs(CloudKind.AKS, paths)


def aks_fixed(*paths: str) -> Inputs:
    """Return inputs of `azure-native.containerservice.AgentPool` that are fixed when the pool is created."""
    return Inputs(CloudKind.AKS, paths, "fixed")


@dataclass(frozen=True, slots=True)
class OnlyOn:
    """The only cloud that has a field.

    Attributes:
        cloud: the cloud.
        reason: equivalent on the other cloud, or the consequence.
        fix: what to write there. Default: remove the field.
        source: source of the restriction.
        what: name in messages. Default: the field's.
    """

    cloud: CloudKind
    reason: str
    fix: str = ""
    source: str = _AGENT_POOL
    what: str = ""


def only_gke(reason: str, fix: str = "", source: str = _AGENT_POOL, what: str = "") -> OnlyOn:
    """Mark a field that only GKE has."""
    return OnlyOn(CloudKind.GKE, reason, fix, source, what)


def only_aks(reason: str, fix: str, source: str) -> OnlyOn:
    """Mark a field that only AKS has."""
    return OnlyOn(CloudKind.AKS, reason, fix, source)
