"""Resource types of the fake: every type that the program creates on Google Cloud."""

from collections.abc import Mapping
from typing import Final

from ebbtide_rehearsal.cloud.gcp import (
    clusters,
    identities,
    networks,
    node_pools,
    registries,
    routers,
    storage,
)
from ebbtide_rehearsal.cloud.gcp.resource_kind import ResourceKind

_MODULES: Final = (clusters, identities, networks, node_pools, registries, routers, storage)

KINDS: Final[Mapping[str, ResourceKind]] = {kind.type: kind for module in _MODULES for kind in module.KINDS}
"""Resource types by token."""
