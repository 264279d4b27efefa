"""Lifetimes of stacks: their extension; expired stacks and cloud resources, found and destroyed one by one.

The expiry follows from the first `up` and the declared hours, so that an extension changes the hours alone.
Expired resources are also those in no state of the backend, for example after a state was lost. The expiry is
read from each stack's state; the stack's file and passphrase are not needed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, cast

from rich.console import Console

from ebbtide.analysis.policy.pools import LONGEST_LIFETIME
from ebbtide.analysis.policy.settings import Level, Policy
from ebbtide.clients.clouds.interfaces import Account, CloudApiError, CloudResource, Inventory
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.declaration.model import expiry
from ebbtide.errors import EbbtideError
from ebbtide.operations import access
from ebbtide.operations.ending.destroy import Options, destroy
from ebbtide.operations.engine import state
from ebbtide.operations.engine.backend import Backend
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.state import State
from ebbtide.operations.leftovers import cloud
from ebbtide.operations.leftovers.cloud import cost_of, idle_cost
from ebbtide.values import clock, durations
from ebbtide.values.documents import DocumentPart

_NO_ACCOUNT: Final = (
    "Unmanaged resources were not searched: no state names a project or subscription. Name one with "
    "--google-project or --azure-subscription."
)
VERSION: Final = "ebbtide.dev/reap/v1"
_CLOCKS_AGREE: Final = timedelta(minutes=5)
"""Maximum difference to a server's clock: a few minutes more or less of a lifetime do not matter."""
PATH: Final = "ebbtide:cluster.lifetime.hours"
"""Path of the lifetime in the stack's configuration."""


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """Resources of a project or subscription.

    Attributes:
        account: the project or subscription.
        resources: its expired resources that are in no state, in order of deletion.
    """

    account: Account
    inventory: Inventory
    resources: Sequence[CloudResource]


def find_unmanaged(
    backend: Backend, accounts: Iterable[Account], now: datetime
) -> tuple[list[Unmanaged], list[str]]:
    """Find expired resources that are in no state of the backend, for all of its projects.

    Args:
        accounts: projects and subscriptions to search besides those of the project's stacks.

    Returns:
        The resources, and messages about sources that could not be queried.
    """
    try:
        deployments: list[dict[str, Any]] = [exported["deployment"] for exported in backend.exported_by_all()]
        contents = [state.read(backend.exported(name)["deployment"]) for name in backend.stacks]
    except EbbtideError as error:
        return [], [f"Unmanaged resources were not searched, because a state is unreadable: {error}"]
    known = {identity.lower() for deployment in deployments for identity in _ids(deployment) if identity}
    listed = dict.fromkeys([*accounts, *(account for stack in contents for account in stack.accounts)])
    if not listed:
        return [], [_NO_ACCOUNT]
    unmanaged: list[Unmanaged] = []
    notes: list[str] = []
    for account in listed:
        try:
            reached = access.reach([account])
            reason = reached.reasons.get(account, "")
            if not reason:
                inventory = reached.inventories[account]
                expired = [item for item in inventory.expiring() if _is_expired(item, now)]
                unmanaged.append(Unmanaged(account, inventory, _unknown(expired, known)))
        except (OperationError, CloudApiError) as error:
            reason = str(error).removeprefix("Nothing was changed: ")
        if reason:
            notes.append(f"Unmanaged resources were not searched in {account}: {reason}")
    return unmanaged, notes


def delete_unmanaged(
    unmanaged: Unmanaged, log: Callable[[str], None], *, deletes_data: bool
) -> Iterator[tuple[CloudResource, str | None]]:
    """Delete resources; a failure does not stop the others. The expiry of each is read again before.

    Args:
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
    errors = cloud.delete(inventory, chosen, log, is_doomed)
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


class ReapOutcome(StrEnum):
    """State of an expired stack."""

    EXPIRED = "expired"
    DESTROYED = "destroyed"
    EXTENDED = "extended"
    LEFTOVERS = "leftovers"
    REFUSED = "refused"
    FAILED = "failed"
    UNREADABLE = "unreadable"


class ResourceOutcome(StrEnum):
    """State of an expired resource without a stack."""

    EXPIRED = "expired"
    DESTROYED = "destroyed"
    KEPT = "kept"
    FAILED = "failed"


class ReapedStack(DocumentPart):
    """An expired stack."""

    stack: str
    """Name."""
    expires: datetime | None = None
    """Expiry; null if the state is unreadable."""
    clusters: tuple[str, ...] = ()
    """Clusters that the stack created."""
    idle_usd_per_hour: float | None = None
    """Lower bound of the cost without work, USD per hour; null if no price is known."""
    estimated: bool = False
    """Whether a price of it is an estimate."""
    outcome: ReapOutcome
    """`expired` without --yes; `extended` if it has been since; `leftovers` if buckets, registries or disks
    remain; `refused` if nothing was changed; `failed` if some resources remain; `unreadable` if the state
    is."""
    error: str = ""
    """Reason of the outcome; empty for none."""


class ReapedResource(DocumentPart):
    """An expired cloud resource that is in no state of the backend."""

    account: str
    """Project or subscription."""
    kind: str
    """Kind, such as `cluster` or `disk`."""
    name: str
    """Name."""
    location: str
    """Zone or region, or `global`."""
    id: str
    """Id in the cloud."""
    expires: datetime
    """Expiry."""
    usd_per_hour: float | None = None
    """Cost, USD per hour; null if no price is known."""
    outcome: ResourceOutcome
    """`expired` without --yes; `kept` if it holds data, or no longer expires; `failed` if the cloud rejected
    its deletion."""
    error: str = ""
    """Reason of the outcome; empty for none."""


class Reaping(DocumentPart):
    """The document of `ebbtide reap --format json`."""

    version: str = VERSION
    """Version of the document."""
    stacks: tuple[ReapedStack, ...]
    """Expired and unreadable stacks, longest expired first."""
    resources: tuple[ReapedResource, ...] = ()
    """Expired cloud resources that are in no state of the backend, longest expired first."""
    notes: tuple[str, ...] = ()
    """Sources that could not be queried, with the reasons."""

    @property
    def is_refused(self) -> bool:
        """True if there are expired stacks, and nothing was changed."""
        is_changed = any(resource.outcome is ResourceOutcome.DESTROYED for resource in self.resources)
        refused = bool(self.stacks) and all(stack.outcome is ReapOutcome.REFUSED for stack in self.stacks)
        return refused and not is_changed

    @property
    def is_done(self) -> bool:
        """True if no expired stack or resource remains."""
        return all(
            stack.outcome in {ReapOutcome.DESTROYED, ReapOutcome.EXTENDED} for stack in self.stacks
        ) and all(resource.outcome is ResourceOutcome.DESTROYED for resource in self.resources)


class _ExtendedError(OperationError):
    """A stack no longer expires, or later."""


def check_clock() -> None:
    """Check this machine's clock, which decides what has expired, against that of the server which answered
    last.

    Raises:
        OperationError: they differ by minutes.
    """
    ahead, server = clock.difference()
    if abs(ahead) > _CLOCKS_AGREE:
        side = "ahead of" if ahead > timedelta() else "behind"
        raise OperationError(
            f"Nothing was changed: this machine's clock is {durations.rounded(abs(ahead))} {side} that of "
            f"{server}, and decides what has expired. Set it, for example with NTP, then run this again."
        )


def expired(
    backend: Backend, now: datetime, unmanaged: Iterable[Unmanaged] = (), notes: Iterable[str] = ()
) -> Reaping:
    """Return the expired stacks of a project, those whose state is unreadable, and expired resources.

    Args:
        unmanaged: expired resources that are in no state.
        notes: sources that could not be queried.
    """
    stacks = [stack for name in backend.stacks if (stack := _expired(backend, name, now))]
    return Reaping(
        stacks=tuple(sorted(stacks, key=lambda stack: (stack.expires or now, stack.stack))),
        resources=_listed(
            _resource(group.account, item, now, ResourceOutcome.EXPIRED)
            for group in unmanaged
            for item in group.resources
        ),
        notes=tuple(notes),
    )


def _listed(resources: Iterable[ReapedResource]) -> tuple[ReapedResource, ...]:
    return tuple(sorted(resources, key=lambda item: (item.expires, item.kind, item.name)))


def _resource(
    account: Account, item: CloudResource, now: datetime, outcome: ResourceOutcome, error: str = ""
) -> ReapedResource:
    return ReapedResource(
        account=account.id,
        kind=item.kind,
        name=item.name,
        location=item.location,
        id=item.id,
        expires=expiry.of_label(item.expires) or now,
        usd_per_hour=cost_of(account.cloud, item),
        outcome=outcome,
        error=error,
    )


def _expired(backend: Backend, name: str, now: datetime) -> ReapedStack | None:
    try:
        exported = backend.exported(name)
        contents = state.read(exported["deployment"])
        if contents.expires is None or contents.expires > now:
            return None
        cost = idle_cost(exported)
    except EbbtideError as error:
        return ReapedStack(stack=name, outcome=ReapOutcome.UNREADABLE, error=str(error))
    return ReapedStack(
        stack=name,
        expires=contents.expires,
        clusters=contents.clusters,
        idle_usd_per_hour=round(cost.known, 4) if cost else None,
        estimated=bool(cost and cost.estimated),
        outcome=ReapOutcome.EXPIRED,
    )


def reap(
    backend: Backend,
    report: Reaping,
    unmanaged: Iterable[Unmanaged],
    now: datetime,
    console: Console,
    *,
    only_resources: bool = False,
    deletes_data: bool = False,
) -> Reaping:
    """Destroy stacks one by one as `ebbtide destroy` does, then resources. Failures do not stop the others.

    Args:
        report: the expired stacks.
        unmanaged: expired resources that are in no state.
        now: the time of the report.
        console: the output for progress.
        only_resources: True to keep the stacks.
        deletes_data: True to delete disks and snapshots, too.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; the engine has finished its current operations.
    """
    stacks = report.stacks
    if not only_resources:
        stacks = tuple(_reaped(backend, stack, console) for stack in stacks)
    resources = [
        _resource(group.account, item, now, _outcome(error), error or "")
        for group in unmanaged
        for item, error in delete_unmanaged(
            group, lambda line: console.print(line, markup=False, soft_wrap=True), deletes_data=deletes_data
        )
    ]
    return report.model_copy(update={"stacks": stacks, "resources": _listed(resources)})


def _outcome(error: str | None) -> ResourceOutcome:
    """Return the outcome of a deletion: None means not deleted, an empty error means deleted."""
    if error is None:
        return ResourceOutcome.KEPT
    return ResourceOutcome.FAILED if error else ResourceOutcome.DESTROYED


def _reaped(backend: Backend, stack: ReapedStack, console: Console) -> ReapedStack:
    if stack.outcome is ReapOutcome.UNREADABLE:
        return stack
    console.print(f"Stack {stack.stack}:", markup=False, soft_wrap=True)
    try:
        options = Options(
            config_file=f"Pulumi.{stack.stack}.yaml",
            confirm=lambda _: True,
            check=lambda contents: _check_expired(stack.stack, contents),
        )
        done = destroy(backend.opened(stack.stack), options, console)
    except _ExtendedError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return stack.model_copy(update={"outcome": ReapOutcome.EXTENDED, "error": str(error)})
    except EbbtideError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return stack.model_copy(update={"outcome": ReapOutcome.REFUSED, "error": str(error)})
    assert done is not None  # noqa: S101 - the confirmation is given
    if done.interrupted:
        raise KeyboardInterrupt
    if not done.done:
        return stack.model_copy(update={"outcome": ReapOutcome.FAILED, "error": done.error})
    outcome = ReapOutcome.LEFTOVERS if done.leftovers else ReapOutcome.DESTROYED
    return stack.model_copy(update={"outcome": outcome})


def _check_expired(stack: str, contents: State) -> None:
    """Check that a stack has expired.

    Raises:
        OperationError: it has not (`_ExtendedError`), or the clock is wrong.
    """
    check_clock()
    if contents.expires is None:
        raise _ExtendedError(f"Nothing was changed: stack {stack} no longer expires.")
    if contents.expires > clock.now():
        raise _ExtendedError(
            f"Nothing was changed: stack {stack} was extended until {clock.in_utc(contents.expires)}."
        )


@dataclass(frozen=True, slots=True)
class Extension:
    """A later expiry.

    Attributes:
        before: time of expiry of the deployed stack.
        after: time of expiry with the extended lifetime.
        hours: the extended lifetime.
    """

    before: datetime
    after: datetime
    hours: int


def extension(name: str, declaration: Any, state: State, more: int, now: datetime) -> Extension:
    """Return the extension of a stack's lifetime, from its expiry or, if it has expired, from now.

    The expiry is the deployed one, and the earlier one if an update was interrupted before all labels had
    the new one: the same command then completes it, and adds nothing twice.

    Args:
        more: hours to add.

    Raises:
        OperationError: the cluster is permanent, or does not exist yet.
    """
    hours = part(cast("Mapping[str, Any]", declaration), "lifetime").get("hours")
    if not isinstance(hours, int):
        raise OperationError(
            f"Stack {name} has no lifetime: its cluster is permanent, and there is nothing to extend. "
            "Declare `lifetime: {hours: 8}`, for example, for one that expires."
        )
    if state.first_up is None:
        raise OperationError(
            f"Stack {name} has no cluster that expires yet: its lifetime begins with the first `pulumi up`. "
            f"To have more than {hours} hours from then on, change `lifetime` in its file."
        )
    deployed = min(filter(None, (state.expires, state.labelled)), default=None)
    before = deployed or state.first_up + timedelta(hours=hours)
    expires = max(before, now) + timedelta(hours=more)
    extended = max(hours, -(-(expires - state.first_up) // timedelta(hours=1)))
    return Extension(before, state.first_up + timedelta(hours=extended), extended)


def check_policy(name: str, policy: Policy, hours: int) -> None:
    """Check a lifetime against the limit of the stack's policy.

    Raises:
        OperationError: the lifetime is longer than the limit, and the rule is mandatory.
    """
    limit = policy.limits.lifetime_hours
    level = policy.levels.get(LONGEST_LIFETIME, Level.MANDATORY)
    if limit is not None and hours > limit and level is Level.MANDATORY:
        raise OperationError(
            f"The policy of stack {name} limits the lifetime to {limit} hours (limits.lifetimeHours), and it "
            f"would be {hours}. Ask for fewer hours, or raise the limit."
        )
