"""Azure Resource Manager as a provider is signed in to it."""

from dataclasses import dataclass
from typing import Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.operations import Operations
from ebbtide_rehearsal.cloud.clusters import Clusters
from ebbtide_rehearsal.cloud.store import Resource, Store

CLOUD: Final = "azure-native"
"""Of everything here in the store."""

TENANT: Final = "11111111-7e4a-4a17-9c5e-000000000001"
DEPLOYER: Final = "11111111-7e4a-4a17-9c5e-000000000002"
"""Object id of the service principal that runs the program."""
DEPLOYER_CLIENT: Final = "11111111-7e4a-4a17-9c5e-000000000003"


@dataclass(frozen=True, slots=True)
class Arm:
    """Azure Resource Manager.

    Attributes:
        store: where its resources are.
        clusters: control planes.
        operations: what is under way.
        subscription: id of the subscription that resources are made in; empty where the provider has none.
        location: region of what does not say where; empty where the provider has none.
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
        """Report if a resource is known not to exist: this cloud has its resource group, and not
        it. Of other groups nothing is known here, such as the network of an existing cluster.
        """
        group = ids.group_of(identity)
        return bool(group) and self.find(group) is not None and self.find(identity) is None
