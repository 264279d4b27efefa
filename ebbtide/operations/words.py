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


def running(found: Sequence[Work], now: datetime) -> Iterator[str]:
    """List the running work, one line each; empty if none."""
    if not found:
        return
    pods = sum(one.pods for one in found)
    yield f"Work that is not done: {several(len(found), 'piece')}, {several(pods, 'pod')}."
    for one in found[:_SHOWN]:
        yield f"  {_line(one, now)}"
    if len(found) > _SHOWN:
        yield f"  … and {len(found) - _SHOWN} more, made later."


def _line(one: Work, now: datetime) -> str:
    if one.queue:
        doing = f"waits in queue {one.queue}"
    elif one.pools:
        doing = f"{several(one.pods, 'pod')} on {', '.join(one.pools)}"
    elif one.pods:
        doing = f"{several(one.pods, 'pod')}, on none of its pools"
    else:
        doing = "no pod"
    return f"{one.kind} {one.name} in {one.namespace}: {doing}, for {age(now - one.since)}"


def age(lasted: timedelta) -> str:
    """Format a duration in its largest unit."""
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if lasted >= unit:
            return several(lasted // unit, name)
    return "less than a minute"


def question(stack: str, state: State, found: Sequence[Work]) -> str:
    """The confirmation prompt."""
    ends = f", and end {several(len(found), 'piece')} of work" if found else ""
    return f"Destroy {several(state.resources, 'resource')} of stack {stack}{ends}?"


def protected(stack: str, config_file: str, state: State, said: Sequence[str]) -> str:
    """The message for protected resources: reason and fix."""
    if state.protected:
        them = ", ".join(state.protected)
        return (
            f"Nothing was touched: {them} of stack {stack} is guarded against deletion, as what is permanent "
            f"is. Give the cluster a `lifetime` in {config_file}, such as `lifetime: {{hours: 1}}`, run "
            f"`pulumi up --stack {stack}`, and destroy it then."
        )
    return "\n".join((f"Nothing was touched: the engine refuses to destroy stack {stack}.", *said))


def held(stack: str, queues: Iterable[str]) -> str:
    """The advice after work was drained and nothing was destroyed."""
    return (
        f"Interrupted: nothing is destroyed, and the queues {', '.join(sorted(queues))} are held. Go on "
        f"with: {command_line('destroy', stack)}. To let work in again, write `stopPolicy: None` into them "
        "with kubectl edit."
    )


def remains(
    buckets: Sequence[str], volumes: Sequence[Volume], registries: Sequence[str] = ()
) -> Iterator[str]:
    """List leftovers that still cost money; empty if none."""
    if buckets or volumes or registries:
        yield "What is left, and goes on costing:"
    for bucket in buckets:
        yield f"  bucket {bucket}, with what is in it, as declared (`keep`)"
    for registry in registries:
        yield f"  container registry {registry}, with its images, as declared (`keep`)"
    for volume in volumes:
        disk = f", disk {volume.disk}" if volume.disk else ""
        of = f" of claim {volume.claim}" if volume.claim else ""
        yield f"  volume {volume.name}{of}, {volume.size}{disk}"
