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
        """The resource of an id, in whatever case it is written."""
        found = self.store.get(CLOUD, identity)
        if found is not None:
            return found
        return next((one for one in self.store.resources(CLOUD) if ids.same(one.id, identity)), None)

    def below(self, scope: str, kind: str | None = None) -> list[Resource]:
        """What is in a scope, without what has its id itself."""
        found = self.store.resources(CLOUD, kind)
        return [one for one in found if ids.within(one.id, scope) and not ids.same(one.id, scope)]

    def lacks(self, identity: str) -> bool:
        """Whether Azure would know that something is not there: this cloud has its resource group, and not
        it. Of other groups nothing is known here, as of the network that a program is told to use.
        """
        group = ids.group_of(identity)
        return bool(group) and self.find(group) is not None and self.find(identity) is None
