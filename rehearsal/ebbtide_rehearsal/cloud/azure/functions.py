"""Functions with which the program queries Azure."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids, storage
from ebbtide_rehearsal.cloud.azure.aks.credentials import admin_credentials, user_credentials
from ebbtide_rehearsal.cloud.azure.arm import DEPLOYER, DEPLOYER_CLIENT, TENANT, Arm
from ebbtide_rehearsal.cloud.azure.check import API_VERSION
from ebbtide_rehearsal.cloud.azure.errors import not_found
from ebbtide_rehearsal.cloud.azure.kinds import KINDS
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.provider import Properties, RefusedError
from ebbtide_rehearsal.cloud.store import Resource

_GETTER: Final = re.compile(r"(azure-native:\w+:)get(\w+)")


def _client_config(arm: Arm, _arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "clientId": DEPLOYER_CLIENT,
        "objectId": DEPLOYER,
        "subscriptionId": arm.subscription,
        "tenantId": TENANT,
    }


def _account_keys(arm: Arm, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return storage.keys(_resource(arm, KINDS[storage.ACCOUNT], arguments))


FUNCTIONS: Final[Mapping[str, Callable[[Arm, Mapping[str, Any]], Mapping[str, Any]]]] = {
    "azure-native:authorization:getClientConfig": _client_config,
    "azure-native:containerservice:listManagedClusterAdminCredentials": admin_credentials,
    "azure-native:containerservice:listManagedClusterUserCredentials": user_credentials,
    "azure-native:storage:listStorageAccountKeys": _account_keys,
}
"""Functions other than the `get` of a type in `KINDS`."""


def result_of(arm: Arm, token: str, arguments: Properties) -> Properties:
    """Return the result of a function.

    Raises:
        RefusedError: the function fails, or the fake does not have it.
    """
    function = FUNCTIONS.get(token)
    if function is not None:
        return function(arm, arguments)
    getter = _GETTER.fullmatch(token)
    kind = KINDS.get("".join(getter.groups())) if getter else None
    if kind is None:
        raise RefusedError(f"The fake cloud does not implement the function {token}.")
    resource = _resource(arm, kind, arguments)
    return {"id": resource.id, **resource.state, **kind.current(arm, resource), API_VERSION: kind.api_version}


def _resource(arm: Arm, kind: ResourceKind, arguments: Mapping[str, Any]) -> Resource:
    identity = ids.identity(kind.path, arm.subscription, arguments)
    resource = arm.find(identity)
    if resource is None:
        raise RefusedError(not_found(identity))
    return resource
