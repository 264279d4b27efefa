"""AKS rules for changes of existing node pools.

azure-native replaces a pool only if its machine type changes (`provider/pkg/gen/replacement.go`, 3.29); AKS
rejects the other changes here. An omitted property is unchanged.
"""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure.aks.pool_request import FIXED, PoolRequest, PoolRule
from ebbtide_rehearsal.cloud.azure.errors import fixed, refused
from ebbtide_rehearsal.cloud.azure.network import AGENT_POOL


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(str(item) for item in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] # JSON
    return value.lower() if isinstance(value, str) else value


def _same_properties(pool: PoolRequest) -> str | None:
    old: Mapping[str, Any] = pool.old.state if pool.old is not None else {}
    implied: Mapping[str, Any] = {"scaleSetPriority": "Regular", "gpuProfile": {"driver": "Install"}}
    for name in FIXED if pool.old is not None else ():
        new = pool.given.get(name)
        if new is not None and _comparable(old.get(name, implied.get(name))) != _comparable(new):
            return fixed(f"properties.{name}")
    return None


def _same_machine(pool: PoolRequest) -> str | None:
    new = pool.given.get("vmSize")
    if pool.old is None or new is None or new == pool.old.state["vmSize"]:
        return None
    return refused(
        "PropertyChangeNotAllowed",
        "Changing property 'agentPoolProfile.vmSize' is not allowed in an api-version before "
        "'2026-01-02-preview'.",
        target="agentPoolProfile.vmSize",
    )


def _a_system_pool_remains(pool: PoolRequest) -> str | None:
    was_system = pool.old is not None and pool.old.state["mode"] == "System"
    if not was_system or pool.is_system:
        return None
    others = pool.cloud.below(pool.cluster, AGENT_POOL)
    if any(other.state["mode"] == "System" and other.state["name"] != pool.name for other in others):
        return None
    return refused("MustDefineAtLeastOneSystemPool", "Must define at least one system pool.")


RULES: Final = (
    PoolRule(
        "what is fixed stays",
        "pulumi/pulumi-azure-native#959; azure-aks-docs, create-node-pools (2026) and spot-node-pool "
        "(2025-04)",
        _same_properties,
    ),
    PoolRule("the machine stays", "Azure/bicep-registry-modules#7130", _same_machine),
    PoolRule("a system pool remains", "Azure/AKS#1568", _a_system_pool_remains),
)
