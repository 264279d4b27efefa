"""A requested node pool, standalone or inside its cluster, created or updated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ebbtide.declaration.catalog import Machine
from ebbtide_rehearsal.cloud.azure.aks.machines import machine
from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.azure.network import AGENT_POOL
from ebbtide_rehearsal.cloud.core.read_back import defaults_of
from ebbtide_rehearsal.cloud.core.resource_kind import Rule
from ebbtide_rehearsal.cloud.store import Resource

FIXED: Final = (
    "type",
    "osType",
    "osDiskSizeGB",
    "osDiskType",
    "kubeletDiskType",
    "maxPods",
    "scaleSetPriority",
    "scaleSetEvictionPolicy",
    "spotMaxPrice",
    "capacityReservationGroupID",
    "availabilityZones",
    "vnetSubnetID",
    "podSubnetID",
    "proximityPlacementGroupID",
    "hostGroupID",
    "gpuInstanceProfile",
    "gpuProfile",
    "enableNodePublicIP",
    "nodePublicIPPrefixID",
    "enableUltraSSD",
    "kubeletConfig",
    "linuxOSConfig",
    "creationData",
    "workloadRuntime",
)
"""Properties that no update can change (AKS docs and API: see `fixed_rules`)."""

KEPT: Final = (*FIXED, "vmSize", "mode", "osSKU", "count")
"""Properties that an update keeps if it omits them."""


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """A requested node pool.

    Attributes:
        cloud: Azure.
        cluster: id of its cluster.
        cluster_state: current or requested state of the cluster.
        name: name of the pool.
        given: properties in the request.
        old: current state; None if it is to be created.
    """

    cloud: Arm
    cluster: str
    cluster_state: Mapping[str, Any]
    name: str
    given: Mapping[str, Any]
    old: Resource | None

    @property
    def properties(self) -> dict[str, Any]:
        """Properties, with preserved values and AKS's defaults."""
        old: Mapping[str, Any] = self.old.state if self.old is not None else {}
        preserved = {name: old[name] for name in KEPT if name in old}
        return {
            **defaults_of(AGENT_POOL),
            **preserved,
            **{key: value for key, value in self.given.items() if value is not None},
        }

    @property
    def is_system(self) -> bool:
        """True for a system pool."""
        return self.properties["mode"] == "System"

    @property
    def is_spot(self) -> bool:
        """True for spot capacity."""
        return self.properties.get("scaleSetPriority") == "Spot"

    @property
    def is_autoscaled(self) -> bool:
        """True if the autoscaler sizes it."""
        return bool(self.properties["enableAutoScaling"])

    @property
    def nodes(self) -> int:
        """Initial node count."""
        properties = self.properties
        least = int(properties.get("minCount") or 0) if self.is_autoscaled else 1
        count = properties.get("count")
        return least if count is None else int(count)

    @property
    def machine(self) -> Machine:
        """Machine of a node.

        Raises:
            LookupError: the size is unknown; the rules reject it.
        """
        known = machine(self.cloud.store, str(self.properties["vmSize"]))
        if known is None:
            raise LookupError(self.properties["vmSize"])
        return known

    @property
    def location(self) -> str:
        """Region, as in Azure's ids."""
        return str(self.cluster_state["location"]).replace(" ", "").lower()


PoolRule: TypeAlias = Rule[PoolRequest]
