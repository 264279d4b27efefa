"""Expired cloud resources that are in no state of the backend, for example after a state was lost."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ebbtide.clients.clouds.errors import CloudApiError
from ebbtide.clients.clouds.interfaces import Account, CloudResource, Inventory
from ebbtide.clients.kubernetes.parts import parts, text
from ebbtide.declaration.model import expiry
from ebbtide.errors import EbbtideError
from ebbtide.operations import clouds, orphans, state
from ebbtide.operations.backend import Backend
from ebbtide.operations.errors import OperationError
from ebbtide.values import clock

_NO_ACCOUNT: Final = (
    "Unmanaged resources were not searched: no state names a project or subscription. Name one with "
    "--google-project or --azure-subscription."
)


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """Resources of a project or subscription.

    Attributes:
        account: the project or subscription.
        inventory: access to it.
        resources: its expired resources that are in no state, in order of deletion.
    """

    account: Account
    inventory: Inventory
    resources: Sequence[CloudResource]


def find(backend: Backend, accounts: Iterable[Account], now: datetime) -> tuple[list[Unmanaged], list[str]]:
    """Find expired resources that are in no state of the backend, for all of its projects.

    Args:
        backend: the backend.
        accounts: projects and subscriptions to search besides those of the project's stacks.
        now: the time.

    Returns:
        The resources, and messages about sources that could not be queried.
    """
    try:
        deployments: list[dict[str, Any]] = [exported["deployment"] for exported in backend.exported_by_all()]
        contents = [state.read(backend.exported(name)["deployment"]) for name in backend.stacks]
    except EbbtideError as error:
        return [], [f"Unmanaged resources were not searched, because a state is unreadable: {error}"]
    known = {identity.lower() for deployment in deployments for identity in _ids(deployment)}
    listed = dict.fromkeys([*accounts, *(account for stack in contents for account in stack.accounts)])
    if not listed:
        return [], [_NO_ACCOUNT]
    unmanaged: list[Unmanaged] = []
    notes: list[str] = []
    for account in listed:
        try:
            access = clouds.reach([account])
            reason = access.reasons.get(account, "")
            if not reason:
                inventory = access.inventories[account]
                expired = [item for item in inventory.expiring() if _is_expired(item, now)]
                unmanaged.append(Unmanaged(account, inventory, _unknown(expired, known)))
        except (OperationError, CloudApiError) as error:
            reason = str(error).removeprefix("Nothing was changed: ")
        if reason:
            notes.append(f"Unmanaged resources were not searched in {account}: {reason}")
    return unmanaged, notes


def delete(
    unmanaged: Unmanaged, log: Callable[[str], None], *, deletes_data: bool
) -> Iterator[tuple[CloudResource, str | None]]:
    """Delete resources; a failure does not stop the others. The expiry of each is read again before.

    Args:
        unmanaged: the resources.
        log: called with a line for each resource.
        deletes_data: True to delete resources that hold data, too.

    Returns:
        Each resource with its error: empty if it is deleted, None if it is kept because it holds data or no
        longer expires.
    """
    inventory = unmanaged.inventory
    kept = {item.id for item in unmanaged.resources if item.holds_data and not deletes_data}

    def is_doomed(resource: CloudResource) -> bool:
        expired = {item.id for item in inventory.expiring() if _is_expired(item, clock.now())}
        if resource.id not in expired:
            kept.add(resource.id)
            log(f"{resource.kind} {resource.name} is kept: it has been extended, or is gone.")
        return resource.id in expired

    chosen = [item for item in unmanaged.resources if item.id not in kept]
    errors = orphans.delete(inventory, chosen, log, is_doomed)
    for item in unmanaged.resources:
        is_kept = item.id in kept or item.group in kept
        yield item, None if is_kept else (errors.get(item.id) or errors.get(item.group, ""))


def _unknown(resources: Iterable[CloudResource], known: set[str]) -> list[CloudResource]:
    """Return resources that are in no state, and not part of one that is.

    A node pool may belong to another stack than its cluster.
    """
    return [
        item
        for item in resources
        if not any(scope in known for scope in _scopes(item.id.lower()))
        and (item.kind == "node pool" or item.cluster.lower() not in known)
    ]


def _scopes(identity: str) -> Iterator[str]:
    """Yield an id, and on Azure the id of its resource group."""
    yield identity
    if identity.startswith("/subscriptions/"):
        yield "/".join(identity.split("/")[:5])


def _is_expired(resource: CloudResource, now: datetime) -> bool:
    moment = expiry.of_label(resource.expires)
    return moment is not None and moment <= now


def _ids(deployment: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of a state's resources, and of clusters whose creation was interrupted."""
    for resource in parts(deployment, "resources"):
        yield text(resource, "id")
    for cluster in state.read(deployment).identities:
        yield cluster.id
