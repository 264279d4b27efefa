"""Azure Resource Manager, as configured for a provider."""

from dataclasses import dataclass
from typing import Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.operations import Operations
from ebbtide_rehearsal.cloud.clusters import Clusters
from ebbtide_rehearsal.cloud.store import Resource, Store

CLOUD: Final = "azure-native"
"""Cloud of all of its resources in the store."""

TENANT: Final = "11111111-7e4a-4a17-9c5e-000000000001"
DEPLOYER: Final = "11111111-7e4a-4a17-9c5e-000000000002"
"""Object id of the service principal that runs the program."""
DEPLOYER_CLIENT: Final = "11111111-7e4a-4a17-9c5e-000000000003"


@dataclass(frozen=True, slots=True)
class Arm:
    """Azure Resource Manager.

    Attributes:
        store: store of its resources.
        clusters: control planes.
        operations: operations in progress.
        subscription: id of the default subscription; empty if the provider has none.
        location: default region; empty if the provider has none.
    """

    store: Store
    clusters: Clusters
    operations: Operations
    subscription: str = ""
    location: str = ""

    def find(self, identity: str) -> Resource | None:
        """Return the resource of an id, ignoring case."""
        resource = self.store.get(CLOUD, identity)
        if resource is not None:
            return resource
        return next(
            (resource for resource in self.store.resources(CLOUD) if ids.same(resource.id, identity)), None
        )

    def below(self, scope: str, kind: str | None = None) -> list[Resource]:
        """Return the resources below a scope."""
        resource = self.store.resources(CLOUD, kind)
        return [
            resource
            for resource in resource
            if ids.within(resource.id, scope) and not ids.same(resource.id, scope)
        ]

    def lacks(self, identity: str) -> bool:
        """Return whether a resource is known not to exist: the fake has its resource group, but not the
        resource. Nothing is known of other groups, such as that of an existing cluster's network.
        """
        group = ids.group_of(identity)
        return bool(group) and self.find(group) is not None and self.find(identity) is None
