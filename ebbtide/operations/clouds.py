"""Access to the clouds of a stack, and reasons for missing access."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.errors import CloudApiError
from ebbtide.clients.clouds.interfaces import Account, ClusterIdentity, Inventory
from ebbtide.declaration.catalog import CloudKind
from ebbtide.operations.errors import OperationError
from ebbtide.text import install_command

_DENIED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
_LOGINS: Final = {CloudKind.GKE: "gcloud auth application-default login", CloudKind.AKS: "az login"}


@dataclass(frozen=True, slots=True)
class Clouds:
    """Projects and subscriptions.

    Attributes:
        inventories: accessible projects and subscriptions.
        reasons: for each other one, the reason and the fix.
    """

    inventories: Mapping[Account, Inventory] = field(default_factory=dict[Account, Inventory])
    reasons: Mapping[Account, str] = field(default_factory=dict[Account, str])


def reach(accounts: Iterable[Account]) -> Clouds:
    """Connect to projects and subscriptions with the user's credentials.

    Raises:
        OperationError: the credentials have no access to one.
    """
    inventories: dict[Account, Inventory] = {}
    reasons: dict[Account, str] = {}
    for account in accounts:
        try:
            inventory = connect.inventory(account)
            inventory.check()
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in {"azure", "google", "requests"}:
                raise
            login = _LOGINS[account.cloud]
            reasons[account] = (
                f"Install its client with: {install_command('clouds')}. Then log in with `{login}`."
            )
        except CloudApiError as error:
            if error.status in _DENIED:
                raise OperationError(
                    f"Nothing was changed: the credentials have no access to {account}: {error}"
                ) from None
            reasons[account] = str(error)
        else:
            inventories[account] = inventory
    return Clouds(inventories, reasons)


def commands(cluster: ClusterIdentity) -> str:
    """Return a command that lists the disks of a cluster, or on Azure all of its remaining resources."""
    if cluster.account.cloud is CloudKind.AKS:
        return (
            f"az resource list --subscription {cluster.account.id} --resource-group "
            f"{cluster.node_resource_group} --output table"
        )
    labels = (
        f"labels.goog-k8s-cluster-name={cluster.name} AND labels.goog-k8s-cluster-location={cluster.location}"
    )
    return f'gcloud compute disks list --project {cluster.account.id} --filter "{labels}"'
