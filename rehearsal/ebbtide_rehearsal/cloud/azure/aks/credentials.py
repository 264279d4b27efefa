"""Kubeconfigs of clusters, as returned by AKS."""

from collections.abc import Mapping
from typing import Any

from ebbtide.recording.answers_azure import RESOURCES, credentials
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER
from ebbtide_rehearsal.cloud.azure.arm import TENANT, Arm
from ebbtide_rehearsal.cloud.azure.errors import not_found, refused
from ebbtide_rehearsal.cloud.azure.values import inner
from ebbtide_rehearsal.cloud.provider import RefusedError
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
