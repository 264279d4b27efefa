"""Functions with which the program queries Azure."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ebbtide.analysis.recording.assumed_azure import RESOURCES, credentials
from ebbtide_rehearsal.cloud.azure import ids, storage
from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER
from ebbtide_rehearsal.cloud.azure.arm import DEPLOYER, DEPLOYER_CLIENT, TENANT, Arm
from ebbtide_rehearsal.cloud.azure.check import API_VERSION
from ebbtide_rehearsal.cloud.azure.errors import not_found, refused
from ebbtide_rehearsal.cloud.azure.kinds import KINDS
from ebbtide_rehearsal.cloud.azure.resource_kind import ResourceKind
from ebbtide_rehearsal.cloud.azure.values import inner
from ebbtide_rehearsal.cloud.provider import Properties, RefusedError
from ebbtide_rehearsal.cloud.store import Resource


def user_credentials(arm: Arm, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a user's credentials. Without Entra that would be a local account
    (hashicorp/terraform-provider-azurerm#15489).

    Raises:
        RefusedError: there is no such cluster, or it admits no users.
    """
    cluster = _cluster(arm, arguments)
    if not inner(cluster.state, "aadProfile").get("managed"):
        _refuse_without_accounts(cluster)
    return _credentials(arm, cluster, "clusterUser")


def admin_credentials(arm: Arm, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return an administrator's credentials: a local account (Azure/bicep#11601).

    Raises:
        RefusedError: there is no such cluster, or it has no local accounts.
    """
    cluster = _cluster(arm, arguments)
    _refuse_without_accounts(cluster)
    return _credentials(arm, cluster, "clusterAdmin")


def _cluster(arm: Arm, arguments: Mapping[str, Any]) -> Resource:
    identity = ids.identity(RESOURCES[CLUSTER].id, arm.subscription, arguments)
    cluster = arm.find(identity)
    if cluster is None:
        raise RefusedError(not_found(identity))
    return cluster


def _refuse_without_accounts(cluster: Resource) -> None:
    if cluster.state.get("disableLocalAccounts"):
        message = (
            "Getting static credential is not allowed because this cluster is set to disable local accounts."
        )
        raise RefusedError(refused("BadRequest", message))


def _credentials(arm: Arm, cluster: Resource, kind: str) -> dict[str, Any]:
    endpoint = arm.clusters.endpoint(cluster.id)
    return credentials(
        kind,
        ids.last(cluster.id),
        ids.last(ids.group_of(cluster.id)),
        tenant=TENANT,
        server=f"https://{endpoint.host}",
        certificate=endpoint.certificate_authority,
    )


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
