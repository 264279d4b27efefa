"""Messages about a stack to be destroyed."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from ebbtide.operations.inspection import Inspection
from ebbtide.operations.state import State
from ebbtide.operations.status_report import WaitingWork
from ebbtide.operations.user_objects import UserObject
from ebbtide.operations.volumes import Volume
from ebbtide.operations.work import Work
from ebbtide.text import command_line, several
from ebbtide.values import durations

_SHOWN: Final = 20


def running(work: Sequence[Work], now: datetime) -> Iterator[str]:
    """List the running work, one line each; empty if none."""
    if not work:
        return
    pods = sum(workload.pods for workload in work)
    yield f"Unfinished work: {several(len(work), 'piece')}, {several(pods, 'pod')}."
    for workload in work[:_SHOWN]:
        yield f"  {_line(workload, now)}"
    if len(work) > _SHOWN:
        yield f"  … and {len(work) - _SHOWN} more, created later."


def _line(work: Work, now: datetime) -> str:
    if work.queue:
        status = f"pending in queue {work.queue}"
    elif work.pools:
        status = f"{several(work.pods, 'pod')} on {', '.join(work.pools)}"
    elif work.pods:
        status = f"{several(work.pods, 'pod')}, on none of its pools"
    else:
        status = "no pod"
    return f"{work.kind} {work.name} in {work.namespace}: {status}, for {durations.rounded(now - work.since)}"


def never(queue: str, work: WaitingWork) -> str:
    """Return the message about waiting work that no pool of its queue can run."""
    return (
        f"{work.kind} {work.name} in {work.namespace} cannot run in queue {queue}: {work.never}. Delete it "
        "and submit it again with smaller requests, or declare a pool for it in the queue."
    )


def existing_namespace(name: str, *, of_team: bool) -> str:
    """Return the message about a namespace that an update would create and that exists."""
    fix = (
        f"Write `namespace: {{name: {name}, create: false}}` in the team to use it as it is, or another name"
        if of_team
        else "Remove its add-on from the declaration, or from the cluster"
    )
    return (
        f"Nothing was changed: namespace {name} exists, and not from this stack. If the stack took it over, "
        f"its contents would be deleted with it. {fix}."
    )


def time(moment: datetime) -> str:
    """Format a time of expiry, such as `2026-11-22 20:00 UTC`."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def asleep(stack: str) -> str:
    """Return the message about a stack that sleeps."""
    return f"Stack {stack} is asleep. Wake it with: {command_line('wake', stack)}"


def question(stack: str, state: State, work: Sequence[Work], data: str = "") -> str:
    """Return the confirmation prompt.

    Args:
        stack: the stack's name.
        state: its state.
        work: the work that ends.
        data: names of the data that is deleted; empty for none.
    """
    return f"Destroy {several(state.resources, 'resource')} of stack {stack}{_ends(work, data)}?"


def question_of_name(name: str, state: State, work: Sequence[Work], data: str = "") -> str:
    """Return the confirmation prompt for a permanent stack, which requires its name; arguments as for
    `question`."""
    return (
        f"Stack {name} is permanent. This would destroy {several(state.resources, 'resource')}"
        f"{_ends(work, data)}. Type {name} to destroy it"
    )


def _ends(work: Sequence[Work], data: str) -> str:
    ends = f", and end {several(len(work), 'piece')} of work" if work else ""
    return (f", with {data}" if data else "") + ends


def protected(name: str, config_file: str, state: State) -> str:
    """Return the message for protected resources: reason and fix."""
    resources = ", ".join(state.protected)
    again = command_line("destroy", name, "--confirm-name", name)
    return (
        f"Nothing was changed: {resources} of stack {name} is protected, since the cluster has no lifetime. "
        f"Confirm with its name: {again}. Or write a `lifetime` in {config_file}, such as "
        f"`lifetime: {{hours: 1}}`, run `pulumi up --stack {name}`, then destroy it."
    )


def refused(stack: str, refusals: Sequence[str]) -> str:
    """Return the message for a destroy that the engine rejects."""
    return "\n".join((f"Nothing was changed: the engine refuses to destroy stack {stack}.", *refusals))


def findings(cluster: Inspection, now: datetime, *, keeps_volumes: bool) -> Iterator[str]:
    """List what ends with a stack: running work, and users' objects that own cloud resources."""
    if cluster.error:
        yield cluster.error
    yield from running(cluster.work, now)
    yield from users_objects(cluster.objects, keeps_volumes=keeps_volumes)


def users_objects(objects: Sequence[UserObject], *, keeps_volumes: bool) -> Iterator[str]:
    """List users' objects that own cloud resources, one line each; empty if there are none."""
    deleted = [item for item in objects if not (keeps_volumes and item.is_volume)]
    kept = [item for item in objects if keeps_volumes and item.is_volume]
    for heading, listed in (
        ("Deleted first, with the load balancers and disks that they own:", deleted),
        ("Kept, with the disks that they own:", kept),
    ):
        if listed:
            yield heading
        for item in listed[:_SHOWN]:
            yield f"  {item}"
        if len(listed) > _SHOWN:
            yield f"  … and {len(listed) - _SHOWN} more."


def unfinished(stack: str, objects: Sequence[str]) -> Iterator[str]:
    """Explain why only users' objects were deleted."""
    yield "The stack was not destroyed: controllers are still deleting objects that users created."
    for item in objects:
        yield f"  {item}"
    yield f"Continue with: {command_line('destroy', stack)}"


def without_cluster() -> str:
    """Return the notice that Kubernetes objects are not deleted one by one."""
    return (
        "The cluster is unreachable, and is deleted without them: its objects are removed from the state "
        "(PULUMI_K8S_DELETE_UNREACHABLE)."
    )


def ways_through(stack: str, errors: Sequence[str]) -> Iterator[str]:
    """Return advice about errors that another attempt does not fix."""
    text = "\n".join(errors)
    if "unreachable" in text or "connection refused" in text.lower():
        yield (
            "If the cluster is gone, remove its objects from the state with: "
            f"PULUMI_K8S_DELETE_UNREACHABLE=true {command_line('destroy', stack)}"
        )
    if errors:
        yield (
            "A resource that no longer exists is removed from the state with: pulumi state delete URN "
            f"--stack {stack}. `pulumi stack --show-urns --stack {stack}` lists them."
        )


def pending(stack: str, names: Sequence[str], *, is_gone: bool) -> Iterator[str]:
    """Return a notice about resources whose creation was interrupted."""
    yield f"The creation of {', '.join(names)} was interrupted: the engine does not know what exists."
    if is_gone:
        yield "Nothing of their cluster exists in the cloud, so they are removed from the state."
    else:
        yield (
            "Look for them in the cloud, then remove them from the state with: pulumi refresh "
            f"--clear-pending-creates --stack {stack}"
        )


def updated(stack: str) -> str:
    """Return the message about an update between the decision to destroy a stack and its lock."""
    return (
        f"Nothing was destroyed: stack {stack} was updated at the same time. If it is to stay, update it "
        f"again with: {command_line('up', stack)}"
    )


def drained(stack: str, queues: Iterable[str]) -> str:
    """Return the advice after work was drained and nothing was destroyed."""
    return (
        f"Interrupted: nothing was destroyed, and the queues {', '.join(sorted(queues))} are drained. "
        f"Continue with: {command_line('destroy', stack)}. To admit work again, set `stopPolicy: None` with "
        "kubectl edit."
    )


def remains(
    buckets: Sequence[str], volumes: Sequence[Volume], registries: Sequence[str] = ()
) -> Iterator[str]:
    """List leftovers that still cost money; empty if none."""
    if buckets or volumes or registries:
        yield "Remaining resources that cost money:"
    for bucket in buckets:
        yield f"  bucket {bucket}, with its contents, as declared (`keep`)"
    for registry in registries:
        yield f"  container registry {registry}, with its images, as declared (`keep`)"
    for volume in volumes:
        disk = f", disk {volume.disk}" if volume.disk else ""
        of = f" of claim {volume.claim}" if volume.claim else ""
        yield f"  volume {volume.name}{of}, {volume.size}{disk}"
