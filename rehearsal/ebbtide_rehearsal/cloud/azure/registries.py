"""Container registries."""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.answers import outputs_of
from ebbtide_rehearsal.cloud.azure.arm import CLOUD
from ebbtide_rehearsal.cloud.azure.errors import CONFLICT, refused
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, ResourceKind, Rule
from ebbtide_rehearsal.cloud.azure.values import inner

REGISTRY: Final = "azure-native:containerregistry:Registry"

_DOCS: Final = "azure-container-registry docs, container-registry-skus.md (2026)"
_TIERS: Final = ("Basic", "Standard", "Premium")
_PREMIUM: Final = ("networkRuleSet", "encryption", "dataEndpointEnabled")


def _name_is_free(request: Request) -> str | None:
    name = ids.last(request.id).lower()
    for other in request.cloud.store.resources(CLOUD, REGISTRY):
        if ids.last(other.id).lower() == name and not ids.same(other.id, request.id):
            message = f"The registry DNS name {name}.azurecr.io is already in use."
            return refused("AlreadyInUse", message, status=CONFLICT, target=name)
    return None


def _tier_is_sold(request: Request) -> str | None:
    tier = str(inner(request.inputs, "sku").get("name", ""))
    if tier in _TIERS:
        return None
    return refused("UnsupportedSku", f"The SKU '{tier}' is not supported. Supported: {', '.join(_TIERS)}.")


def _tier_has_it(request: Request) -> str | None:
    tier = str(inner(request.inputs, "sku").get("name", ""))
    retention = inner(inner(request.inputs, "policies"), "retentionPolicy")
    premium = [name for name in _PREMIUM if request.inputs.get(name)]
    if retention.get("status") == "enabled":
        premium.append("policies.retentionPolicy")
    if tier == "Premium" or not premium:
        return None
    return refused(
        "InvalidSku", f"{', '.join(premium)} cannot be used with the SKU {tier}: it requires Premium."
    )


def _answers(request: Request) -> Mapping[str, Any]:
    tier = str(inner(request.inputs, "sku").get("name", ""))
    return {
        **outputs_of(request),
        "provisioningState": "Succeeded",
        "sku": {"name": tier, "tier": tier},
    }


KINDS: Final = (
    ResourceKind(
        type=REGISTRY,
        api_version="2023-01-01-preview",
        rules=(
            Rule("a name that is free in all of Azure", "MicrosoftDocs/azure-dev-docs#1303", _name_is_free),
            Rule("a tier that is sold", _DOCS, _tier_is_sold),
            Rule("features of the tier", _DOCS, _tier_has_it),
        ),
        outputs=_answers,
        events="registry",
    ),
)
