"""Destroy a stack: list running work, delete users' objects, destroy with the engine, report leftovers.

Source of the order: docs/decisions/0008.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from ebbtide.analysis.reading.state import StateError
from ebbtide.clients.clouds.interfaces import ClusterIdentity, StoredData
from ebbtide.clients.kubernetes import ApiError
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.declaration.project.adopt_file import default_file, read_adopt_file
from ebbtide.operations import access, inspection
from ebbtide.operations.access import Clouds
from ebbtide.operations.engine import state as states
from ebbtide.operations.engine.events import narration
from ebbtide.operations.engine.failures import OperationError, causes, explanation, unlocking
from ebbtide.operations.engine.interrupts import deferred_interrupts
from ebbtide.operations.engine.stack import Stack
from ebbtide.operations.engine.state import DeletedClusters, State
from ebbtide.operations.inspection import Inspection, Volume
from ebbtide.operations.leftovers import cloud, users
from ebbtide.operations.leftovers.cloud import idle_cost
from ebbtide.operations.work import Work, drain_and_report, queues
from ebbtide.text import and_list, bound, several
from ebbtide.values import clock
from ebbtide.values.clock import in_utc
from ebbtide.values.given_command import given_command

_BILLED = (
    "billed until {end}, used or not, unless Google Cloud accepts `gcloud compute future-reservations cancel "
    "{name}`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A user's options.

    Attributes:
        config_file: name of the stack's file.
        confirm: asks the user to confirm.
        ask_name: prompts for the name that confirms the deletion of a permanent stack; None rejects such a
            stack.
        ask_orphans: shows lines about leftovers in the cloud, and asks the user to confirm their deletion.
        config: the stack's configuration, by full key.
        declaration: its declared cluster; empty without one.
        keep_volumes: True to keep the disks of users' volumes.
        check: raises an `OperationError` if the stack, with a state, must not be destroyed. Called before
            anything is changed, and again under the stack's lock. None for no check.
    """

    config_file: str
    confirm: Callable[[str], bool]
    ask_name: Callable[[str], str | None] = lambda _: None
    ask_orphans: Callable[[str, Iterable[str]], bool] = lambda _question, _lines: False
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    declaration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keep_volumes: bool = False
    check: Callable[[State], None] | None = None


@dataclass(frozen=True, slots=True)
class DestroyOutcome:
    """Result of a destroy.

    Attributes:
        done: True if the whole stack is destroyed.
        interrupted: True if Ctrl-C ended it.
        leftovers: True if billable resources remain.
        error: first error of the engine; empty if there was none.
    """

    done: bool
    interrupted: bool = False
    leftovers: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Run:
    """A destroy in progress."""

    stack: Stack
    options: Options
    state: State
    clouds: Clouds
    console: Console
    cost: Amount | None = None
    data: tuple[StoredData, ...] = ()

    def print(self, line: str) -> None:
        """Print a line."""
        self.console.print(line, markup=False, soft_wrap=True)

    @property
    def continuation(self) -> str:
        """The line with the command that continues; empty if another command has called this one."""
        again = given_command().on_stack("destroy", self.stack.name)
        return "" if self.options.check else f"Continue with: {again}"

    def print_unfinished(self, objects: Sequence[str]) -> None:
        """Explain why only users' objects were deleted."""
        self.print("The stack was not destroyed: controllers are still deleting objects that users created.")
        for line in filter(None, (*(f"  {item}" for item in objects), self.continuation)):
            self.print(line)


def destroy(stack: Stack, options: Options, console: Console) -> DestroyOutcome | None:
    """Destroy a stack.

    Returns:
        The result; None if the user declined and nothing was changed.

    Raises:
        OperationError: the stack was made in another project or subscription, the engine or the check
            rejects the destroy, or the stack does not exist; nothing was changed.
    """
    exported = stack.exported()
    state = states.read(exported["deployment"])
    if not state.resources and not state.pending:
        console.print(f"Stack {stack.name} has no resources to destroy.", markup=False, soft_wrap=True)
        return DestroyOutcome(done=True)
    access.check_accounts(stack.name, state.accounts, options.config, options.declaration, os.environ)
    try:
        cost = idle_cost(exported) if state.resources else None
    except StateError:
        cost = None
    data = tuple(inspection.of_state(exported["deployment"]))
    run = _Run(stack, options, state, access.reach(state.accounts), console, cost, data)
    cluster = _inspected(run)
    for line in inspection.findings(cluster, clock.now(), keeps_volumes=options.keep_volumes):
        run.print(line)
    for line in inspection.stored_lines(data, run.clouds):
        run.print(line)
    for reservation, end in _billed(state):
        run.print(f"Reservation {reservation} stays, {_BILLED.format(name=reservation, end=in_utc(end))}.")
    if cluster.is_unanswered and state.may_be_stopped:
        run.print(access.asleep(stack.name))
    if not _confirmed(run, cluster):
        return None
    known = states.merged_clusters(state.identities, state.deleted.identities)
    identities = cloud.identify(run.clouds, known, cluster.names)
    if options.check:
        return _checked(run, cluster, identities, options.check)
    return _unchecked(run, cluster, identities)


def _unchecked(run: _Run, cluster: Inspection, identities: Iterable[ClusterIdentity]) -> DestroyOutcome:
    """Destroy a stack after what people have on the cluster."""
    _drain(run, cluster)
    cluster, unfinished = _without_users_objects(run, cluster)
    if unfinished:
        run.print_unfinished(unfinished)
        return DestroyOutcome(done=False, error=unfinished[0])
    _record(run, cluster, identities)
    outcome = _destroyed(run, cluster)
    if not (outcome.done or outcome.interrupted) and _freed(run, cluster, identities):
        outcome = _destroyed(run, cluster)
    return _reported(run, cluster, identities) if outcome.done else outcome


class _UnfinishedError(OperationError):
    """Controllers are still deleting users' objects."""


def _checked(
    run: _Run,
    cluster: Inspection,
    identities: Iterable[ClusterIdentity],
    check: Callable[[State], None],
) -> DestroyOutcome:
    """Destroy a stack if a check passes while the engine holds its lock, when no update can change it.

    What people have on the cluster is deleted under the lock, too.
    """
    before = run.stack.last_start()

    def first() -> None:
        nonlocal cluster
        check(run.stack.state())
        if run.stack.last_start() != before:  # and its state may be that before it, with the record
            name = run.stack.name
            raise OperationError(
                f"Nothing was destroyed: stack {name} was updated at the same time. If it is to stay, update "
                f"it again with: {given_command().on_stack('up', name)}"
            )
        _drain(run, cluster)
        cluster, unfinished = _without_users_objects(run, cluster)
        if unfinished:
            run.print_unfinished(unfinished)
            raise _UnfinishedError(unfinished[0])

    _record(run, cluster, identities)
    try:
        outcome = _destroyed(run, cluster, first)
    except _UnfinishedError as error:
        return DestroyOutcome(done=False, error=str(error))
    if outcome.done:
        return _reported(run, cluster, identities)
    if not outcome.interrupted:
        _freed(run, cluster, identities)
    return outcome


def _inspected(run: _Run) -> Inspection:
    """Inspect the cluster, unless an earlier destroy has deleted it."""
    state = run.state
    if state.deleted.identities and not state.owns_cluster:
        names = ", ".join(cluster.name for cluster in state.deleted.identities)
        run.print(f"An earlier destroy has deleted cluster {names}; this one continues.")
        cluster = Inspection()
    else:
        cluster = inspection.inspect(run.stack.outputs(), state)
    retained = cluster.names.retained | state.deleted.retained
    return replace(cluster, names=replace(cluster.names, retained=retained))


def _record(run: _Run, cluster: Inspection, identities: Iterable[ClusterIdentity]) -> None:
    """Record the clusters in the state: after a failure, the next destroy queries the cloud for leftovers."""
    record = DeletedClusters(tuple(identities), cluster.names.retained)
    # `pulumi stack import` drops pending operations, which the report needs.
    if record.identities and record != run.state.deleted and not run.state.pending:
        document = run.stack.exported()
        if run.options.check:
            run.options.check(states.read(document["deployment"]))
        changed = {**document, "deployment": states.with_clusters(document["deployment"], record)}
        if changed != document:
            given_command().happens("the stack's state notes its clusters")
            unlocking(lambda: run.stack.replace_state(changed), run.stack.unlock, run.print)


def _confirmed(run: _Run, cluster: Inspection) -> bool:
    """Ask the user to confirm, for a permanent stack by typing its name.

    Raises:
        OperationError: the engine or the check rejects the destroy, or the name of a permanent stack is not
            given.
    """
    stack, state, options = run.stack, run.state, run.options
    data = inspection.named(run.data)
    if options.check:
        options.check(state)
    refusals = stack.refusals()
    if not state.protected:
        if refusals:
            raise OperationError(refused(stack.name, refusals))
        return options.confirm(question(stack.name, state, cluster.work, data))
    # Others than the engine's refusal of a protected resource (pulumi 3.259, step_generator.go), and its
    # final line.
    others = [text for text in refusals if "protected" not in text and text != "preview failed"]
    if others:
        raise OperationError(refused(stack.name, others))
    name = stack.name.rpartition("/")[2]
    typed = options.ask_name(_question_of_name(name, state, cluster.work, data))
    if typed is None:
        adopted = _adopted(stack.directory / default_file(name), state)
        raise OperationError(protected(name, options.config_file, state, adopted))
    if typed != name:
        raise OperationError(f"Nothing was changed: {typed!r} is not the name of the stack, {name}.")
    return True


def _drain(run: _Run, cluster: Inspection) -> None:
    names = queues(run.state)
    if not names or not cluster.work or cluster.api is None:
        return
    drain_and_report(cluster.api, names, run.print)


def _without_users_objects(run: _Run, cluster: Inspection) -> tuple[Inspection, list[str]]:
    """Delete users' objects, or keep their volumes.

    Returns:
        The cluster afterwards, and the objects that still exist.
    """
    if cluster.api is None or not cluster.objects:
        return cluster, []
    objects = list(cluster.objects)
    try:
        if run.options.keep_volumes:
            given_command().happens("the volumes that are kept have the reclaim policy Retain")
            users.retain(cluster.api, objects)
            objects = [item for item in objects if not item.is_volume]
        unfinished = users.clean_up(cluster.api, objects, run.print)
        retained = users.cloud_names(cluster.api).retained
        volumes = inspection.volumes_of(cluster.api)
    except ApiError as error:
        run.print(
            "Objects that users created could not be deleted, and their resources may remain in the cloud: "
            f"{error}"
        )
        return cluster, []
    names = replace(cluster.names, retained=retained)
    return replace(cluster, names=names, volumes=volumes), unfinished


def _destroyed(run: _Run, cluster: Inspection, first: Callable[[], None] | None = None) -> DestroyOutcome:
    stack, state = run.stack, run.state
    if state.protected:
        given_command().happens("its resources are no longer protected")
        stack.unprotect()
    without_cluster = cluster.is_unanswered and state.owns_cluster
    if without_cluster:
        run.print(
            "The cluster is unreachable, and is deleted without them: its objects are removed from the state "
            "(PULUMI_K8S_DELETE_UNREACHABLE)."
        )
    given_command().happens(f"the destruction of stack {stack.name} has begun")
    with (
        narration(run.console, state.resources) as watch,
        deferred_interrupts(
            lambda: run.print("The engine finishes its current operations; this takes a while.")
        ) as interrupts,
    ):
        errors = unlocking(
            lambda: stack.destroy(watch, without_cluster=without_cluster, first=first),
            stack.unlock,
            run.print,
        )
    # An interrupted engine exits with status 0 (pulumi 3.259); only its state reveals the interruption.
    remaining = stack.state().resources
    if not errors and not remaining:
        # Without the flag the command also deletes the stack's file (pulumi 3.259, stack_remove.go).
        remove = given_command().pulumi("stack", "rm", stack.name, "--preserve-config")
        listed = [
            f"what may remain of cluster {cluster.name} is listed by: {access.commands(cluster)}"
            for cluster in states.merged_clusters(state.identities, state.deleted.identities)
        ]
        given_command().finished(f"stack {stack.name} is destroyed", *listed, of=("destroy",))
        run.print(f"Stack {stack.name} is destroyed. `{remove}` removes its state and keeps its file.")
        return DestroyOutcome(done=True)
    for line in explanation(stack.name, errors) if errors else ():
        run.print(line)
    for line in users.advice(stack.outputs, errors):
        run.print(line)
    so_far = f"{remaining} of {several(state.resources, 'resource')} still exist"
    run.print(f"{so_far}. {run.continuation}".rstrip())
    for line in ways_through(stack.name, errors):
        run.print(line)
    return DestroyOutcome(
        done=False, interrupted=interrupts.received, error=causes(errors)[0] if errors else so_far
    )


def _freed(run: _Run, cluster: Inspection, identities: Iterable[ClusterIdentity]) -> bool:
    """Delete what remains of a deleted cluster, if the user confirms: it keeps the network in use.

    Returns:
        True if something was deleted, so that another attempt may succeed.
    """
    existing = {identity.id for identity in run.stack.state().identities}
    freed = False
    for identity in identities:
        if identity.id not in existing:
            leftovers, is_freed = _left(run, identity, cluster.names.retained)
            freed = freed or is_freed
            for line in cloud.lines(leftovers, cluster.names.retained) if leftovers.resources else ():
                run.print(line)
    return freed


def _reported(run: _Run, cluster: Inspection, identities: Iterable[ClusterIdentity]) -> DestroyOutcome:
    """Report what remains, as queried from the cloud if it is accessible."""
    state, kept = run.state, cluster.names.retained
    leftovers = [_left(run, identity, kept)[0] for identity in identities]
    is_known = bool(leftovers) and not any(item.reason for item in leftovers)
    is_gone = is_known and not any(item.resources for item in leftovers)
    for item in leftovers:
        for line in cloud.lines(item, kept):
            run.print(line)
    if state.pending:
        for line in _pending(run.stack.name, state.pending, is_gone=is_gone):
            run.print(line)
        if is_gone:
            run.stack.forget_pending()
    disks = [] if is_known else inspection.remaining_volumes(cluster, state)
    requested = _billed(state)
    for line in remains(state.buckets, disks, state.registries, requested):
        run.print(line)
    if run.cost:
        about = bound((), run.cost.estimated)
        run.print(f"The stack no longer costs at least {about}${run.cost.known:.2f}/h.")
    left = any(item.resources for item in leftovers)
    stays = state.buckets or state.registries or requested
    return DestroyOutcome(done=True, leftovers=bool(stays or disks or left))


def _left(run: _Run, cluster: ClusterIdentity, kept: frozenset[str]) -> tuple[cloud.Leftovers, bool]:
    """Return what remains of a cluster after the confirmed deletion, and whether anything was deleted."""
    leftovers = cloud.left(run.clouds, cluster)
    doomed = [
        resource
        for resource in leftovers.resources
        if resource.id not in kept and not (run.options.keep_volumes and resource.holds_data)
    ]
    question = f"Delete {several(len(doomed), 'resource')} that remain of cluster {cluster.name}?"
    if not doomed or not run.options.ask_orphans(question, cloud.lines(leftovers, kept)):
        return leftovers, False
    errors = cloud.delete(run.clouds.inventories[cluster.account], doomed, run.print)
    return cloud.left(run.clouds, cluster), len(errors) < len(doomed)


def question(stack: str, state: State, work: Sequence[Work], data: str = "") -> str:
    """Return the confirmation prompt.

    Args:
        work: the work that ends.
        data: names of the data that is deleted; empty for none.
    """
    return f"Destroy {several(state.resources, 'resource')} of stack {stack}{_ends(work, data)}?"


def _question_of_name(name: str, state: State, work: Sequence[Work], data: str = "") -> str:
    """Return the confirmation prompt for a permanent stack, which requires its name; arguments as for
    `question`."""
    return (
        f"Stack {name} is permanent. This would destroy {several(state.resources, 'resource')}"
        f"{_ends(work, data)}. Type {name} to destroy it"
    )


def _ends(work: Sequence[Work], data: str) -> str:
    ends = f", and end {several(len(work), 'piece')} of work" if work else ""
    return (f", with {data}" if data else "") + ends


def _adopted(file: Path, state: State) -> list[str]:
    """Return the names of protected resources that existed before the stack, as the file of an adoption has
    them: the state forgets it with the first update.

    Raises:
        AdoptFileError: the file is unreadable or invalid.
    """
    names = [item.name for item in read_adopt_file(file)] if file.is_file() else []
    return [name for name in state.protected if name in names]


def protected(name: str, config_file: str, state: State, adopted: Sequence[str] = ()) -> str:
    """Return the message for protected resources: reason and fix."""
    resources = f"{and_list(state.protected)} of stack {name} {'are' if state.protected[1:] else 'is'}"
    again = given_command().on_stack("destroy", name, "--confirm-name", name)
    if adopted:
        undo = given_command().on_stack("adopt", name, "--undo")
        return (
            f"Nothing was changed: {resources} protected, and {and_list(adopted)} existed before the "
            f"stack. To keep what is adopted, take it out of the state first: {undo}. To delete it, too, "
            f"confirm with the stack's name: {again}."
        )
    return (
        f"Nothing was changed: {resources} protected, since the cluster has no lifetime. "
        f"Confirm with its name: {again}. Or write a `lifetime` in {config_file}, such as "
        f"`lifetime: {{hours: 1}}`, run `{given_command().pulumi('up', '--stack', name)}`, then destroy it."
    )


def refused(stack: str, refusals: Sequence[str]) -> str:
    """Return the message for a destroy that the engine rejects."""
    return "\n".join((f"Nothing was changed: the engine refuses to destroy stack {stack}.", *refusals))


def ways_through(stack: str, errors: Sequence[str]) -> Iterator[str]:
    """Return advice about errors that another attempt does not fix."""
    text = "\n".join(errors)
    if "unreachable" in text or "connection refused" in text.lower():
        yield (
            "If the cluster is gone, remove its objects from the state with: "
            f"PULUMI_K8S_DELETE_UNREACHABLE=true {given_command().on_stack('destroy', stack)}"
        )
    if errors:
        yield (
            "A resource that no longer exists is removed from the state with: "
            f"{given_command().pulumi('state', 'delete', 'URN', '--stack', stack)}. "
            f"`{given_command().pulumi('stack', '--show-urns', '--stack', stack)}` lists them."
        )


def _pending(stack: str, names: Sequence[str], *, is_gone: bool) -> Iterator[str]:
    """Return a notice about resources whose creation was interrupted."""
    yield f"The creation of {', '.join(names)} was interrupted: the engine does not know what exists."
    if is_gone:
        yield "Nothing of their cluster exists in the cloud, so they are removed from the state."
    else:
        yield (
            "Look for them in the cloud, then remove them from the state with: "
            + given_command().pulumi("refresh", "--clear-pending-creates", "--stack", stack)
        )


def _billed(state: State) -> list[tuple[str, datetime]]:
    """Return the requested reservations whose period has not ended."""
    return [(name, end) for name, end in state.reservations if end > clock.now()]


def remains(
    buckets: Sequence[str],
    volumes: Sequence[Volume],
    registries: Sequence[str] = (),
    reservations: Sequence[tuple[str, datetime]] = (),
) -> Iterator[str]:
    """List leftovers that still cost money; empty if none."""
    if buckets or volumes or registries or reservations:
        yield "Remaining resources that cost money:"
    for bucket in buckets:
        yield f"  bucket {bucket}, with its contents, as declared (`keep`)"
    for registry in registries:
        yield f"  container registry {registry}, with its images, as declared (`keep`)"
    for reservation, end in reservations:
        yield f"  reservation {reservation}, {_BILLED.format(name=reservation, end=in_utc(end))}"
    for volume in volumes:
        disk = f", disk {volume.disk}" if volume.disk else ""
        of = f" of claim {volume.claim}" if volume.claim else ""
        yield f"  volume {volume.name}{of}, {volume.size}{disk}"
