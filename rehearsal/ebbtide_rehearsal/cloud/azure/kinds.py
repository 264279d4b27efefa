"""All types of Azure's resources that are here."""

from typing import Final

from ebbtide_rehearsal.cloud.azure import groups, identities, logs, network, registries, roles, storage
from ebbtide_rehearsal.cloud.azure.aks import agent_pools, clusters, maintenance
from ebbtide_rehearsal.cloud.azure.kind import Kind
from ebbtide_rehearsal.cloud.provider import RefusedError

_ALL: Final = (
    *groups.KINDS,
    *network.KINDS,
    *identities.KINDS,
    *roles.KINDS,
    *clusters.KINDS,
    *agent_pools.KINDS,
    *maintenance.KINDS,
    *storage.KINDS,
    *registries.KINDS,
    *logs.KINDS,
)

KINDS: Final = {kind.token: kind for kind in _ALL}


def kind_of(token: str) -> Kind:
    """The type of a token.

    Raises:
        RefusedError: there is none here.
    """
    kind = KINDS.get(token)
    if kind is None:
        raise RefusedError(f"The rehearsal has no stand-in for resources of type {token}.")
    return kind
