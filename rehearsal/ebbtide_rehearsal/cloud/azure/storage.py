"""Storage accounts with containers and shares, and container registries."""

import base64
from collections.abc import Mapping
from hashlib import sha512
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import (
    CLOUD,
    CONFLICT,
    Request,
    ResourceKind,
    Rule,
    inner,
    items,
    outputs_of,
    refused,
)
from ebbtide_rehearsal.cloud.azure.identities import assigned, missing_identity
from ebbtide_rehearsal.cloud.store import Resource

ACCOUNT: Final = "azure-native:storage:StorageAccount"

_TYPES: Final = (
    "learn.microsoft.com, azure/storage/common/storage-account-overview (2026), types of storage accounts"
)
_ENDPOINTS: Final = {
    "BlobStorage": ("blob", "dfs", "table"),
    "BlockBlobStorage": ("blob", "dfs", "web"),
    "FileStorage": ("file",),
}
_ALL_ENDPOINTS: Final = ("blob", "dfs", "file", "queue", "table", "web")
_SERVICES: Final = ("Microsoft.Storage", "Microsoft.Storage.Global")


def _name_is_free(request: Request) -> str | None:
    name = ids.last(request.id)
    for other in request.cloud.store.resources(CLOUD, ACCOUNT):
        if ids.last(other.id) == name and not ids.same(other.id, request.id):
            message = f"The storage account named {name} is already taken."
            return refused("StorageAccountAlreadyTaken", message, status=CONFLICT, target=name)
    return None


def _reached_from_subnets(request: Request) -> str | None:
    for rule in items(inner(request.inputs, "networkRuleSet"), "virtualNetworkRules"):
        subnet = request.cloud.find(str(rule.get("virtualNetworkResourceId") or ""))
        endpoints = items(subnet.state, "serviceEndpoints") if subnet else []
        if all(endpoint.get("service") not in _SERVICES for endpoint in endpoints):
            named = rule.get("virtualNetworkResourceId")
            return refused(
                "NetworkAclsValidationFailure",
                "Validation of network acls failure: SubnetsHaveNoServiceEndpointsConfigured:Subnets "
                f"{ids.last(str(named))} do not have ServiceEndpoints for Microsoft.Storage resources "
                "configured.",
            )
    return None


def _account_answers(request: Request) -> Mapping[str, Any]:
    name, kind = ids.last(request.id), str(request.inputs["kind"])
    services = _ENDPOINTS.get(kind, _ALL_ENDPOINTS)
    return {
        "primaryEndpoints": {service: f"https://{name}.{service}.core.windows.net/" for service in services},
        "primaryLocation": request.inputs["location"],
        "provisioningState": "Succeeded",
        "statusOfPrimary": "available",
        "sku": {**request.inputs["sku"], "tier": str(request.inputs["sku"]["name"]).partition("_")[0]},
        **_acting_as(request),
    }


def _acting_as(request: Request) -> Mapping[str, Any]:
    identity = assigned(request)
    return {"identity": identity} if identity else {}


def _account(request: Request) -> Resource:
    group, accounts, path = request.id.partition("/storageAccounts/")
    account = request.cloud.find(f"{group}{accounts}{path.partition('/')[0]}")
    if account is None:
        raise LookupError(request.id)  # the parent was looked up before
    return account


def _takes_blobs(request: Request) -> str | None:
    return _takes(request, "blob")


def _takes_files(request: Request) -> str | None:
    return _takes(request, "file")


def _takes(request: Request, service: str) -> str | None:
    if service in _account(request).state["primaryEndpoints"]:
        return None
    message = f"{service.capitalize()} is not supported for the account."
    return refused("FeatureNotSupportedForAccount", message, status=CONFLICT)


def keys(account: Resource) -> Mapping[str, Any]:
    """Return an account's keys. Azure lists them even if access by key is disabled."""
    account_keys = {name: sha512(f"{account.id}/{name}".encode()).digest() for name in ("key1", "key2")}
    return {
        "keys": [
            {"keyName": name, "permissions": "FULL", "value": base64.b64encode(key).decode()}
            for name, key in account_keys.items()
        ]
    }


REGISTRY: Final = "azure-native:containerregistry:Registry"


def _registry_name_is_free(request: Request) -> str | None:
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
        **_acting_as(request),
    }


_IDENTITY: Final = Rule(
    "existing identity",
    "azure-docs customer-managed-keys-configure-new-account.md (2026)",
    missing_identity,
)

KINDS: Final = (
    ResourceKind(
        type=ACCOUNT,
        api_version="2024-01-01",
        rules=(
            Rule(
                "unique name",
                "hashicorp/terraform#11485; OfficeDev/microsoft-teams-apps-timetally#50",
                _name_is_free,
            ),
            Rule(
                "subnets with a service endpoint",
                "hashicorp/terraform-provider-azurerm#16547; Azure/azure-cli#32434",
                _reached_from_subnets,
            ),
            _IDENTITY,
        ),
        outputs=_account_answers,
    ),
    *(
        ResourceKind(
            type=f"azure-native:storage:{kind}",
            api_version="2024-01-01",
            parent=ACCOUNT,
            rules=(Rule("account with blobs", _TYPES, _takes_blobs),),
        )
        for kind in ("BlobContainer", "BlobServiceProperties", "ManagementPolicy")
    ),
    ResourceKind(
        type="azure-native:storage:FileShare",
        api_version="2024-01-01",
        parent=ACCOUNT,
        rules=(Rule("account with files", _TYPES, _takes_files),),
    ),
    ResourceKind(
        type=REGISTRY,
        api_version="2023-01-01-preview",
        rules=(Rule("unique name", "MicrosoftDocs/azure-dev-docs#1303", _registry_name_is_free), _IDENTITY),
        outputs=_answers,
        events="registry",
    ),
)
