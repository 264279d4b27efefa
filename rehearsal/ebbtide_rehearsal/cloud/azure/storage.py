"""Storage accounts, and the containers and shares in them."""

import base64
from collections.abc import Mapping
from hashlib import sha512
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import CLOUD, Arm
from ebbtide_rehearsal.cloud.azure.errors import CONFLICT, invalid, refused
from ebbtide_rehearsal.cloud.azure.kind import Kind, Limit, Refusal, Wish
from ebbtide_rehearsal.cloud.azure.values import inner, items
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import Resource

ACCOUNT: Final = "azure-native:storage:StorageAccount"

_PATH: Final = f"{ids.GROUP}/providers/Microsoft.Storage/storageAccounts/{{accountName}}"
_DOCS: Final = "learn.microsoft.com, azure/storage"
_TYPES: Final = f"{_DOCS}/common/storage-account-overview (2026), types of storage accounts"
_ENDPOINTS: Final = {
    "BlobStorage": ("blob", "dfs", "table"),
    "BlockBlobStorage": ("blob", "dfs", "web"),
    "FileStorage": ("file",),
}
_ALL_ENDPOINTS: Final = ("blob", "dfs", "file", "queue", "table", "web")
_SHARED: Final = "[a-z0-9](?:[a-z0-9]|-(?=[a-z0-9]))+"
_PREMIUM_LEAST_GIB: Final = 100
_SERVICES: Final = ("Microsoft.Storage", "Microsoft.Storage.Global")


def _name_is_free(arm: Arm, wish: Wish) -> RefusedError | None:
    name = ids.last(wish.id)
    for other in arm.store.resources(CLOUD, ACCOUNT):
        if ids.last(other.id) == name and not ids.same(other.id, wish.id):
            message = f"The storage account named {name} is already taken."
            return refused("StorageAccountAlreadyTaken", message, status=CONFLICT, target=name)
    return None


def _premium_files(_arm: Arm, wish: Wish) -> RefusedError | None:
    sku = str(wish.inputs["sku"].get("name", ""))
    if wish.inputs["kind"] != "FileStorage" or sku.startswith(("Premium", "StandardV2")):
        return None
    return refused(
        "InvalidValuesForRequestParameters",
        f"Values for request parameters are invalid: sku. FileStorage accounts have no {sku}.",
    )


def _reached_from_subnets(arm: Arm, wish: Wish) -> RefusedError | None:
    for rule in items(inner(wish.inputs, "networkRuleSet"), "virtualNetworkRules"):
        subnet = arm.find(str(rule.get("virtualNetworkResourceId") or ""))
        endpoints = items(subnet.state, "serviceEndpoints") if subnet else []
        if all(one.get("service") not in _SERVICES for one in endpoints):
            named = rule.get("virtualNetworkResourceId")
            return refused(
                "NetworkAclsValidationFailure",
                "Validation of network acls failure: SubnetsHaveNoServiceEndpointsConfigured:Subnets "
                f"{ids.last(str(named))} do not have ServiceEndpoints for Microsoft.Storage resources "
                "configured.",
            )
    return None


def _account_answers(arm: Arm, wish: Wish) -> Mapping[str, Any]:
    del arm
    name, kind = ids.last(wish.id), str(wish.inputs["kind"])
    services = _ENDPOINTS.get(kind, _ALL_ENDPOINTS)
    return {
        "primaryEndpoints": {one: f"https://{name}.{one}.core.windows.net/" for one in services},
        "primaryLocation": wish.inputs["location"],
        "provisioningState": "Succeeded",
        "statusOfPrimary": "available",
        "sku": {**wish.inputs["sku"], "tier": str(wish.inputs["sku"]["name"]).partition("_")[0]},
    }


def _account(arm: Arm, wish: Wish) -> Resource:
    found = arm.find(wish.id.partition("/blobServices/")[0].partition("/fileServices/")[0])
    if found is None:
        raise LookupError(wish.id)  # its parent was looked for before
    return found


def _takes_blobs(arm: Arm, wish: Wish) -> RefusedError | None:
    return _takes(arm, wish, "blob")


def _takes_files(arm: Arm, wish: Wish) -> RefusedError | None:
    return _takes(arm, wish, "file")


def _takes(arm: Arm, wish: Wish, service: str) -> RefusedError | None:
    if service in _account(arm, wish).state["primaryEndpoints"]:
        return None
    message = f"{service.capitalize()} is not supported for the account."
    return refused("FeatureNotSupportedForAccount", message, status=CONFLICT)


def _premium_share_is_large(arm: Arm, wish: Wish) -> RefusedError | None:
    quota = wish.inputs.get("shareQuota")
    sku = str(_account(arm, wish).state["sku"]["name"])
    if not sku.startswith("Premium_") or quota is None or float(quota) >= _PREMIUM_LEAST_GIB:
        return None
    return invalid("shareQuota", f"a premium share has at least {_PREMIUM_LEAST_GIB} GiB")


def keys(account: Resource) -> Mapping[str, Any]:
    """An account's keys. Azure lists them whether it lets anyone in with them or not."""
    made = {name: sha512(f"{account.id}/{name}".encode()).digest() for name in ("key1", "key2")}
    return {
        "keys": [
            {"keyName": name, "permissions": "FULL", "value": base64.b64encode(key).decode()}
            for name, key in made.items()
        ]
    }


KINDS: Final = (
    Kind(
        token=ACCOUNT,
        api_version="2024-01-01",
        path=_PATH,
        replaces=frozenset({"isHnsEnabled", "location"}),
        limits={"accountName": Limit(r"^[a-z0-9]+$", shortest=3, longest=24)},
        needed=("location",),
        refusals=(
            Refusal(
                "a name that nobody in the world has",
                "hashicorp/terraform#11485; OfficeDev/microsoft-teams-apps-timetally#50",
                _name_is_free,
            ),
            Refusal(
                "subnets with a service endpoint",
                "hashicorp/terraform-provider-azurerm#16547; Azure/azure-cli#32434",
                _reached_from_subnets,
            ),
            Refusal(
                "files on a premium account", f"{_DOCS}/common/storage-account-create (2026)", _premium_files
            ),
        ),
        outputs=_account_answers,
    ),
    Kind(
        token="azure-native:storage:BlobContainer",  # noqa: S106 - a type's name
        api_version="2024-01-01",
        path=f"{_PATH}/blobServices/default/containers/{{containerName}}",
        parent=ACCOUNT,
        limits={"containerName": Limit(rf"^(\$root|\$web|{_SHARED})$", shortest=3, longest=63)},
        defaults={"publicAccess": "None"},
        refusals=(Refusal("an account for blobs", _TYPES, _takes_blobs),),
    ),
    Kind(
        token="azure-native:storage:FileShare",  # noqa: S106 - a type's name
        api_version="2024-01-01",
        path=f"{_PATH}/fileServices/default/shares/{{shareName}}",
        parent=ACCOUNT,
        limits={
            "shareName": Limit(rf"^{_SHARED}$", shortest=3, longest=63),
            "shareQuota": Limit(least=1, most=102400),
        },
        defaults={"enabledProtocols": "SMB"},
        refusals=(
            Refusal("an account for files", _TYPES, _takes_files),
            Refusal(
                "a premium share of 100 GiB",
                f"{_DOCS}/files/storage-files-scale-targets (2026), provisioned v1",
                _premium_share_is_large,
            ),
        ),
    ),
)
