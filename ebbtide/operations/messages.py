"""Messages about a stack to be destroyed."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from ebbtide.invocation import command_line
from ebbtide.operations.state import State
from ebbtide.operations.volumes import Volume
from ebbtide.operations.work import Work
from ebbtide.wording import several

_SHOWN: Final = 20
_DAY, _HOUR, _MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)


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
    return f"{work.kind} {work.name} in {work.namespace}: {status}, for {age(now - work.since)}"


def age(lasted: timedelta) -> str:
    """Format a duration in its largest unit."""
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if lasted >= unit:
            return several(lasted // unit, name)
    return "less than a minute"


def time(moment: datetime) -> str:
    """Format a time of expiry, as `2026-11-22 20:00 UTC`."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def question(stack: str, state: State, work: Sequence[Work]) -> str:
    """Return the confirmation prompt."""
    ends = f", and end {several(len(work), 'piece')} of work" if work else ""
    return f"Destroy {several(state.resources, 'resource')} of stack {stack}{ends}?"


def protected(stack: str, config_file: str, state: State, refusals: Sequence[str]) -> str:
    """Return the message for protected resources: reason and fix."""
    if state.protected:
        resources = ", ".join(state.protected)
        return (
            f"Nothing was changed: {resources} of stack {stack} is protected, since the cluster has no "
            f"lifetime. Write a `lifetime` in {config_file}, such as `lifetime: {{hours: 1}}`, "
            f"run `pulumi up --stack {stack}`, then destroy it."
        )
    return "\n".join((f"Nothing was changed: the engine refuses to destroy stack {stack}.", *refusals))


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
