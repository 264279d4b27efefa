"""Container registries."""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import CLOUD, Arm
from ebbtide_rehearsal.cloud.azure.errors import CONFLICT, refused
from ebbtide_rehearsal.cloud.azure.kind import Kind, Limit, Refusal, Wish
from ebbtide_rehearsal.cloud.azure.values import inner
from ebbtide_rehearsal.cloud.provider import RefusedError

REGISTRY: Final = "azure-native:containerregistry:Registry"

_DOCS: Final = "azure-container-registry docs, container-registry-skus.md (2026)"
_TIERS: Final = ("Basic", "Standard", "Premium")
_PREMIUM: Final = ("networkRuleSet", "encryption", "dataEndpointEnabled")


def _name_is_free(arm: Arm, wish: Wish) -> RefusedError | None:
    name = ids.last(wish.id).lower()
    for other in arm.store.resources(CLOUD, REGISTRY):
        if ids.last(other.id).lower() == name and not ids.same(other.id, wish.id):
            message = f"The registry DNS name {name}.azurecr.io is already in use."
            return refused("AlreadyInUse", message, status=CONFLICT, target=name)
    return None


def _tier_is_sold(_arm: Arm, wish: Wish) -> RefusedError | None:
    tier = str(inner(wish.inputs, "sku").get("name", ""))
    if tier in _TIERS:
        return None
    return refused("UnsupportedSku", f"The SKU '{tier}' is not supported. Supported: {', '.join(_TIERS)}.")


def _tier_has_it(_arm: Arm, wish: Wish) -> RefusedError | None:
    tier = str(inner(wish.inputs, "sku").get("name", ""))
    retention = inner(inner(wish.inputs, "policies"), "retentionPolicy")
    asked = [name for name in _PREMIUM if wish.inputs.get(name)]
    if retention.get("status") == "enabled":
        asked.append("policies.retentionPolicy")
    if tier == "Premium" or not asked:
        return None
    return refused(
        "InvalidSku", f"{', '.join(asked)} cannot be used with the SKU {tier}: it requires Premium."
    )


def _answers(_arm: Arm, wish: Wish) -> Mapping[str, Any]:
    tier = str(inner(wish.inputs, "sku").get("name", ""))
    return {
        "loginServer": f"{ids.last(wish.id).lower()}.azurecr.io",
        "provisioningState": "Succeeded",
        "sku": {"name": tier, "tier": tier},
    }


KINDS: Final = (
    Kind(
        token=REGISTRY,
        api_version="2023-01-01-preview",
        path=f"{ids.GROUP}/providers/Microsoft.ContainerRegistry/registries/{{registryName}}",
        replaces=frozenset({"location"}),
        limits={"registryName": Limit(r"^[a-zA-Z0-9]*$", shortest=5, longest=50)},
        needed=("location",),
        defaults={"adminUserEnabled": False, "publicNetworkAccess": "Enabled"},
        refusals=(
            Refusal(
                "a name that is free in all of Azure", "MicrosoftDocs/azure-dev-docs#1303", _name_is_free
            ),
            Refusal("a tier that is sold", _DOCS, _tier_is_sold),
            Refusal("features of the tier", _DOCS, _tier_has_it),
        ),
        outputs=_answers,
        events="registry",
    ),
)
