"""What AKS cannot change on a node pool that is there, as a table, and which of it an update would change.

Sources: azure-aks-docs `resize-node-pool` (2025-08), `use-system-pools` (2026-04), `spot-node-pool`,
`use-capacity-reservation-groups` (2026-05); the properties that terraform-provider-azurerm makes a pool
anew for (`kubernetes_cluster_node_pool_resource.go`, 2026-08) and that cluster-api-provider-azure refuses
to change (`azuremanagedmachinepool_webhook.go`); the error is `PropertyChangeNotAllowed`
(pulumi-azure-native#959). Changing the machine, the reservation or the zones in place is in preview for
some pools, with other API versions than azure-native 3.29 speaks. Node image, labels, taints, limits,
version, mode and upgrade settings can change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Fixed:
    """An input of an agent pool that is fixed for its life.

    Attributes:
        wire: the provider's name of it.
        python: the SDK's name of it.
        declared: where a declaration has it, from the pool on; empty where none does.
        unset: what AKS takes it for where it is left out.
    """

    wire: str
    python: str
    declared: str
    unset: Any = None


FIXED: Final = (
    Fixed("vmSize", "vm_size", "machine"),
    Fixed("scaleSetPriority", "scale_set_priority", "capacity", unset="Regular"),
    Fixed("scaleSetEvictionPolicy", "scale_set_eviction_policy", "capacity.evictionPolicy", unset="Delete"),
    Fixed("spotMaxPrice", "spot_max_price", "capacity.maxPrice", unset=-1),
    Fixed("capacityReservationGroupID", "capacity_reservation_group_id", "capacity.name"),
    Fixed("availabilityZones", "availability_zones", "zones"),
    Fixed("osDiskSizeGB", "os_disk_size_gb", "disk.sizeGib"),
    Fixed("osDiskType", "os_disk_type", "disk.type"),
    Fixed("kubeletDiskType", "kubelet_disk_type", "disk.kubeletDiskType", unset="OS"),
    Fixed("maxPods", "max_pods", "maxPodsPerNode"),
    Fixed("gpuProfile", "gpu_profile", "accelerator.driver", unset={"driver": "Install"}),
    Fixed("gpuInstanceProfile", "gpu_instance_profile", "accelerator.gpuInstanceProfile"),
    Fixed("vnetSubnetID", "vnet_subnet_id", "cloud.network"),
    Fixed("osType", "os_type", "", unset="Linux"),
    Fixed("type", "type", "", unset="VirtualMachineScaleSets"),
    Fixed("enableNodePublicIP", "enable_node_public_ip", "", unset=False),
)
"""Every such input that Ebbtide sets."""

_PRIORITY_ONLY: Final = ("scaleSetEvictionPolicy", "spotMaxPrice")
"""What a pool has only while it is on spot: where the priority changes, that says it all."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A change that AKS would refuse, or that the provider would delete the pool for.

    Attributes:
        field: what changes.
        old: the value that the pool has; None for none.
        new: the value that is asked for; None for none.
    """

    field: Fixed
    old: Any
    new: Any

    def __str__(self) -> str:
        name = f"{self.field.declared} ({self.field.wire})" if self.field.declared else self.field.wire
        return f"{name} from {_shown(self.old)} to {_shown(self.new)}"


def fixed_inputs(name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an agent pool's inputs that is fixed for its life, under the provider's names.

    A component registers it as its own inputs, for `refused_changes` to compare when it is updated.

    Args:
        name: name of the pool.
        inputs: its inputs under the SDK's names; values may be outputs.
    """
    kept = {field.wire: inputs[field.python] for field in FIXED if inputs.get(field.python) is not None}
    return {"agentPoolName": name, "mode": inputs.get("mode"), **kept}


def refused_changes(old_inputs: Mapping[str, Any], new_inputs: Mapping[str, Any]) -> tuple[Refused, ...]:
    """Changes of an agent pool that AKS cannot make.

    Args:
        old_inputs: what the pool was made from, under the provider's names.
        new_inputs: what it is to become.

    Returns:
        Nothing where the pool's name changes, since that is another pool. A value that is not known yet is
        taken to stay as it was.
    """
    if old_inputs.get("agentPoolName") != new_inputs.get("agentPoolName"):
        return ()
    changes = [
        Refused(field, old_inputs.get(field.wire, field.unset), new_inputs.get(field.wire, field.unset))
        for field in FIXED
    ]
    found = {change.field.wire: change for change in changes if _differ(change.old, change.new)}
    if "scaleSetPriority" in found:
        for wire in _PRIORITY_ONLY:
            found.pop(wire, None)
    return tuple(found.values())


def _differ(old: Any, new: Any) -> bool:
    if not (_is_known(old) and _is_known(new)):
        return False
    return _comparable(old) != _comparable(new)


def _is_known(value: Any) -> bool:
    """Whether a value is plain: not a preview's stand-in for one that is not known yet, nor a secret."""
    if isinstance(value, Mapping | list):
        items: list[Any] = list(value.values() if isinstance(value, Mapping) else value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] # JSON
        return all(_is_known(item) for item in items)
    return value is None or isinstance(value, str | int | float)


def _comparable(value: Any) -> Any:
    """A value so that equal ones compare equal: the order of zones says nothing, nor does the case of a
    resource id."""
    if isinstance(value, list):
        return sorted(str(item) for item in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] # JSON
    if isinstance(value, str) and value.startswith("/subscriptions/"):
        return value.lower()
    return value


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(map(str, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] # JSON
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"  # pyright: ignore[reportUnknownArgumentType] # JSON
    return f"{value:g}" if isinstance(value, float) else str(value)
