"""Expired stacks of a project: find them, and destroy them one by one.

The time of expiry is read from each stack's state, so that neither its file nor its passphrase is needed to
find it.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict
from rich.console import Console

from ebbtide.errors import EbbtideError
from ebbtide.operations import state
from ebbtide.operations.backend import Backend
from ebbtide.operations.destroy import destroy
from ebbtide.operations.rates import rates

VERSION: Final = "ebbtide.dev/reap/v1"


class Outcome(StrEnum):
    """State of an expired stack."""

    EXPIRED = "expired"
    DESTROYED = "destroyed"
    LEFTOVERS = "leftovers"
    REFUSED = "refused"
    FAILED = "failed"
    UNREADABLE = "unreadable"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ReapedStack(_Part):
    """An expired stack."""

    stack: str
    """Its name."""
    expires: datetime | None = None
    """Time of expiry; null if its state is unreadable."""
    clusters: tuple[str, ...] = ()
    """Clusters that it created."""
    idle_usd_per_hour: float | None = None
    """Cost without work, USD per hour, at least; null if no price is known."""
    outcome: Outcome
    """`expired` without --yes; `leftovers` if buckets, registries or disks remain; `refused` if nothing was
    changed; `failed` if some of it remains; `unreadable` if its state is."""
    error: str = ""
    """Reason of the outcome; empty for none."""


class Reaping(_Part):
    """The document of `ebbtide reap --format json`."""

    version: str = VERSION
    """Version of the document."""
    stacks: tuple[ReapedStack, ...]
    """Expired and unreadable stacks, longest expired first."""

    @property
    def is_refused(self) -> bool:
        """True if there are expired stacks, and none of them was changed."""
        return bool(self.stacks) and all(stack.outcome is Outcome.REFUSED for stack in self.stacks)

    @property
    def is_done(self) -> bool:
        """True if no expired stack remains."""
        return all(stack.outcome is Outcome.DESTROYED for stack in self.stacks)


def reap_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    schema = Reaping.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def expired(backend: Backend, now: datetime) -> Reaping:
    """Return the expired stacks of a project, and those whose state is unreadable.

    Args:
        backend: the project's backend.
        now: the time.
    """
    stacks = [stack for name in backend.stacks if (stack := _expired(backend, name, now))]
    return Reaping(stacks=tuple(sorted(stacks, key=lambda stack: (stack.expires or now, stack.stack))))


def _expired(backend: Backend, name: str, now: datetime) -> ReapedStack | None:
    try:
        exported = backend.exported(name)
        contents = state.read(exported["deployment"] or {})
        if contents.expires is None or contents.expires > now:
            return None
        cost = rates(exported).idle
    except EbbtideError as error:
        return ReapedStack(stack=name, outcome=Outcome.UNREADABLE, error=str(error))
    return ReapedStack(
        stack=name,
        expires=contents.expires,
        clusters=contents.clusters,
        idle_usd_per_hour=round(cost.known, 4) if cost.prices else None,
        outcome=Outcome.EXPIRED,
    )


def reap(backend: Backend, stacks: Iterable[ReapedStack], console: Console) -> Reaping:
    """Destroy stacks one by one, as `ebbtide destroy` does; a failure does not stop the others.

    Args:
        backend: the project's backend.
        stacks: the expired stacks.
        console: the output for progress.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; the engine has finished its current operations.
    """
    return Reaping(stacks=tuple(_reaped(backend, stack, console) for stack in stacks))


def _reaped(backend: Backend, stack: ReapedStack, console: Console) -> ReapedStack:
    if stack.outcome is Outcome.UNREADABLE:
        return stack
    console.print(f"Stack {stack.stack}:", markup=False, soft_wrap=True)
    try:
        done = destroy(backend.opened(stack.stack), f"Pulumi.{stack.stack}.yaml", console, lambda _: True)
    except EbbtideError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return stack.model_copy(update={"outcome": Outcome.REFUSED, "error": str(error)})
    assert done is not None  # noqa: S101 - the confirmation is given
    if done.interrupted:
        raise KeyboardInterrupt
    if not done.done:
        return stack.model_copy(update={"outcome": Outcome.FAILED, "error": done.error})
    outcome = Outcome.LEFTOVERS if done.leftovers else Outcome.DESTROYED
    return stack.model_copy(update={"outcome": outcome})
