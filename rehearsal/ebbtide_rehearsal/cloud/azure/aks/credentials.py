"""A cluster's kubeconfig, as AKS gives it."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks.agent_pools import CLUSTER_PATH
from ebbtide_rehearsal.cloud.azure.arm import TENANT, Arm
from ebbtide_rehearsal.cloud.azure.errors import not_found, refused
from ebbtide_rehearsal.cloud.azure.values import inner
from ebbtide_rehearsal.cloud.store import Resource

# Microsoft's own applications, the same in every tenant (azure-aks-docs, kubelogin-authentication, 2026).
_SERVER: Final = "6dae42f8-4368-4678-94ff-3960e28e3630"
_CLIENT: Final = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"


def user_credentials(arm: Arm, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a user gets. Without Entra that would be a local account
    (hashicorp/terraform-provider-azurerm#15489).

    Raises:
        RefusedError: there is no such cluster, or none that lets a user in.
    """
    cluster = _cluster(arm, arguments)
    if not inner(cluster.state, "aadProfile").get("managed"):
        _refuse_without_accounts(cluster)
    return _credentials(arm, cluster, "clusterUser")


def admin_credentials(arm: Arm, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What an administrator gets: a local account (Azure/bicep#11601).

    Raises:
        RefusedError: there is no such cluster, or it has no local accounts.
    """
    cluster = _cluster(arm, arguments)
    _refuse_without_accounts(cluster)
    return _credentials(arm, cluster, "clusterAdmin")


def _cluster(arm: Arm, arguments: Mapping[str, Any]) -> Resource:
    identity = ids.identity(CLUSTER_PATH, arm.subscription, arguments)
    found = arm.find(identity)
    if found is None:
        raise not_found(identity)
    return found


def _refuse_without_accounts(cluster: Resource) -> None:
    if cluster.state.get("disableLocalAccounts"):
        raise refused(
            "BadRequest",
            "Getting static credential is not allowed because this cluster is set to disable local accounts.",
        )


def _credentials(arm: Arm, cluster: Resource, kind: str) -> dict[str, Any]:
    """A kubeconfig whose user signs in through kubelogin; the control planes here have no other way in."""
    endpoint = arm.clusters.endpoint(cluster.id)
    name, group = ids.last(cluster.id), ids.last(ids.group_of(cluster.id))
    user = f"{kind}_{group}_{name}"
    signs_in: dict[str, Any] = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "kubelogin",
        "args": [
            "get-token",
            *("--environment", "AzurePublicCloud"),
            *("--server-id", _SERVER),
            *("--client-id", _CLIENT),
            *("--tenant-id", TENANT),
            *("--login", "devicecode"),
        ],
        "env": None,
        "provideClusterInfo": False,
    }
    there = {
        "server": f"https://{endpoint.host}",
        "certificate-authority-data": endpoint.certificate_authority,
    }
    kubeconfig: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": there}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
        "preferences": {},
        "users": [{"name": user, "user": {"exec": signs_in}}],
    }
    # JSON is YAML, and every reader of kubeconfigs takes it.
    text = json.dumps(kubeconfig, indent=2)
    return {"kubeconfigs": [{"name": kind, "value": base64.b64encode(text.encode()).decode()}]}
