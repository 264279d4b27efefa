"""Metadata of a pool's field: the provider inputs that it becomes, and the only cloud that has it.

Rules, the comparison of existing pools and the documentation of overrides follow from it (`pool_fields`).
"""

from dataclasses import dataclass
from typing import Final

from ebbtide.declaration.catalog import CloudKind

_AGENT_POOL: Final = "azure-native 3.29.0, AgentPool"


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a cloud's node pool that a field becomes, under the provider's names.

    Attributes:
        cloud: the cloud.
        paths: their paths; each includes everything below it.
        fixed: true if they are fixed when the pool is created: `ebbtide up` then replaces the pool.
    """

    cloud: CloudKind
    paths: tuple[str, ...]
    fixed: bool = False


def gke(*paths: str) -> Inputs:
    """Return inputs of `gcp.container.NodePool` that change on an existing pool."""
    return Inputs(CloudKind.GKE, paths)


def gke_fixed(*paths: str) -> Inputs:
    """Return inputs of `gcp.container.NodePool` that are fixed when the pool is created."""
    return Inputs(CloudKind.GKE, paths, fixed=True)


def aks(*paths: str) -> Inputs:
    """Return inputs of `azure-native.containerservice.AgentPool` that change on an existing pool."""
    return Inputs(CloudKind.AKS, paths)


def aks_fixed(*paths: str) -> Inputs:
    """Return inputs of `azure-native.containerservice.AgentPool` that are fixed when the pool is created."""
    return Inputs(CloudKind.AKS, paths, fixed=True)


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
