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


def _name_is_free(request: Request) -> str | None:
    name = ids.last(request.id).lower()
    for other in request.cloud.store.resources(CLOUD, REGISTRY):
        if ids.last(other.id).lower() == name and not ids.same(other.id, request.id):
            message = f"The registry DNS name {name}.azurecr.io is already in use."
            return refused("AlreadyInUse", message, status=CONFLICT, target=name)
    return None


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
        rules=(Rule("unique name", "MicrosoftDocs/azure-dev-docs#1303", _name_is_free),),
        outputs=_answers,
        events="registry",
    ),
)
