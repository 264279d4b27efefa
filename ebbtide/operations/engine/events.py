"""A run of the engine as it tells it: steps of resources, errors and warnings, and their progress on a
terminal.
"""

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pulumi.automation import OpType
from pulumi.automation.events import EngineEvent, StepEventMetadata
from pulumi.runtime.rpc import UNKNOWN
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from ebbtide.analysis.drift.differences import ReadResource
from ebbtide.analysis.recording.recording import STACK_TYPE, urn_name
from ebbtide.values.paths import child_path

WORDS: Final = {
    "import": "adopted",
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "create-replacement": "created again",
    "delete-replaced": "deleted",
}
"""Words for completed operations of the engine."""
_BAR: Final = 16
_INTERNAL: Final = "__"
"""Prefix of inputs that a provider keeps for itself, such as `__defaults` (pulumi-terraform-bridge)."""
_COLOURS: Final = re.compile(r"<\{%.*?%\}>")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the engine: an operation on a resource.

    Attributes:
        name: logical name.
        done: True once it is done.
        operation: the engine's operation, such as `create`.
        changed: paths of the properties that caused it.
        is_unknown: True if only values that a preview does not know would replace the resource.
        removed: paths of the inputs that it removes: those at the top, and below others that replace it.
        inputs: its new inputs, with `UNKNOWN` for what a preview does not know.
    """

    type: str
    name: str
    done: bool
    operation: str = "delete"
    urn: str = ""
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_unknown: bool = False
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])


@contextmanager
def narration(
    console: Console, total: int | None, counts: Callable[[Step], bool] = lambda _: True
) -> Generator[Callable[[Step], None]]:
    """Return a callback for steps of the engine.

    Args:
        total: number of resources; None if unknown.
        counts: returns whether a resource is part of the total; by default every one is.
    """
    if not console.is_terminal:
        yield lambda step: _line(console, step)
        return
    whole = Column(no_wrap=True)
    rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    count = (
        TextColumn("{task.completed} done", table_column=whole)
        if total is None
        else MofNCompleteColumn(table_column=whole)
    )
    with Progress(
        BarColumn(bar_width=_BAR, table_column=whole),
        count,
        TimeElapsedColumn(table_column=whole),
        TextColumn("{task.description}", markup=False, table_column=rest),
        console=console,
        transient=True,
        expand=True,
    ) as progress:
        task = progress.add_task("", total=total)
        done: set[tuple[str, str]] = set()

        def show(step: Step) -> None:
            if step.done and counts(step):
                done.add((step.type, step.name))
            kind = step.type.rpartition(":")[2]
            progress.update(task, completed=len(done), description=f"{kind} {step.name}")

        yield show


def _line(console: Console, step: Step) -> None:
    if step.done:
        console.print(
            f"{WORDS.get(step.operation, step.operation)}: {step.type} {step.name}",
            markup=False,
            soft_wrap=True,
        )
        console.file.flush()


@dataclass(slots=True)
class Events:
    """A consumer of engine events."""

    watch: Callable[[Step], None]
    errors: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])

    def take(self, event: EngineEvent) -> None:
        """Keep an error or warning, and report a step."""
        diagnostic = event.diagnostic_event
        if diagnostic and diagnostic.severity == "error":
            name = f"{urn_name(diagnostic.urn)}: " if diagnostic.urn else ""
            self.errors.append(name + _COLOURS.sub("", diagnostic.message).strip())
        if diagnostic and diagnostic.severity == "warning":
            self.warnings.append(_COLOURS.sub("", diagnostic.message).strip())
        if event.resource_pre_event:
            self._step(event.resource_pre_event.metadata, done=False)
        if event.res_outputs_event:
            self._step(event.res_outputs_event.metadata, done=True)

    def _step(self, metadata: StepEventMetadata, *, done: bool) -> None:
        if metadata.type != STACK_TYPE:
            changed = tuple(metadata.detailed_diff or metadata.diffs or ())
            name, operation = urn_name(metadata.urn), metadata.op.value
            inputs = (metadata.new.inputs if metadata.new else None) or {}
            keys = metadata.keys or ()
            unknown = bool(keys) and all(inputs.get(key) == UNKNOWN for key in keys)
            removed = tuple(_removed(metadata))
            self.watch(
                Step(metadata.type, name, done, operation, metadata.urn, changed, removed, unknown, inputs)
            )


def _removed(metadata: StepEventMetadata) -> Iterator[str]:
    """Yield the paths of the inputs that a step removes; see `Step`."""
    if metadata.old is None or metadata.new is None:
        return
    old, new = metadata.old.inputs or {}, metadata.new.inputs or {}
    yield from (key for key in old if key not in new and not key.startswith(_INTERNAL))
    for key in metadata.keys or ():
        if key in old and key in new:
            yield from _missing(old[key], new[key], key)


def _missing(old: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        other = cast("dict[str, Any]", new)
        for key, value in cast("dict[str, Any]", old).items():
            below = child_path(path, key)
            if key in other:
                yield from _missing(value, other[key], below)
            elif not key.startswith(_INTERNAL):
                yield below


def unwatched(_: Step) -> None:
    """Ignore the events of a preview."""


@dataclass(slots=True)
class Reads(Events):
    """A consumer of the events of a refresh."""

    resources: list[ReadResource] = field(default_factory=list[ReadResource])

    def take(self, event: EngineEvent) -> None:
        """Keep a read resource as well."""
        super(Reads, self).take(event)
        metadata = event.res_outputs_event.metadata if event.res_outputs_event else None
        old, new = (metadata.old, metadata.new) if metadata else (None, None)
        if metadata is None or old is None or not old.custom or metadata.type.startswith("pulumi:"):
            return
        read = new if metadata.op is not OpType.DELETE else None
        self.resources.append(
            ReadResource(
                urn=metadata.urn,
                type=metadata.type,
                id=old.id,
                inputs=old.inputs or {},
                outputs=old.outputs or {},
                read_inputs=(read.inputs or {}) if read else None,
                read_outputs=(read.outputs or {}) if read else None,
                has_failed=bool(old.init_errors),
            )
        )
