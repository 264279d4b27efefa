"""A stack of a project on disk, through the Automation API, with the user's own `pulumi`, backend and
login; and the progress of its engine.

Only an update runs the program. A destroy uses the engine's state, and needs neither the language plugin nor
the program's packages (pulumi 3.259, `pulumi destroy` without `--run-program`).
"""

import json
import os
import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, cast

from pulumi import Output, RunError, automation, export
from pulumi.automation import OpType
from pulumi.automation.events import EngineEvent, StepEventMetadata
from pulumi.runtime.rpc import UNKNOWN
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from ebbtide.analysis.drift.differences import ReadResource
from ebbtide.analysis.recording.provider_calls import Recorder
from ebbtide.analysis.recording.provider_proxy import proxied
from ebbtide.analysis.recording.recording import STACK_TYPE, urn_name
from ebbtide.operations import provider_plugins, state
from ebbtide.operations.failures import OperationError, explained
from ebbtide.operations.provider_plugins import DEBUG_PROVIDERS
from ebbtide.operations.state import GKE_CLUSTER
from ebbtide.placement.profile_sources import PREVIEW_KUBECONFIG
from ebbtide.values.paths import child_path


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the engine: an operation on a resource.

    Attributes:
        type: type token.
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


_INTERNAL: Final = "__"
"""Prefix of inputs that a provider keeps for itself, such as `__defaults` (pulumi-terraform-bridge)."""
_COLOURS: Final = re.compile(r"<\{%.*?%\}>")
_STEP: Final = "ebbtide: a step of an update"
"""Message in the stack's history of a run after which the stack is not yet as declared."""

_MANIFEST: Final = "manifest"
"""Key of a deployment with the time at which the engine wrote it."""

_UNREACHABLE: Final = "PULUMI_K8S_DELETE_UNREACHABLE"


@dataclass(slots=True)
class _Events:
    """A consumer of engine events."""

    watch: Callable[[Step], None]
    errors: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])

    def take(self, event: EngineEvent) -> None:
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


def _unwatched(_: Step) -> None:
    """Ignore the events of a preview."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The engine's preview of an update.

    Attributes:
        errors: its errors; empty if there are none.
        kubeconfig: the kubeconfig that the program uses; empty if it is unknown before the update.
    """

    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    kubeconfig: str


class Stack:
    """An existing stack.

    Attributes:
        name: name as requested.
    """

    def __init__(self, name: str, stack: automation.Stack, config_file: Path | None) -> None:
        """See `Backend.opened`."""
        self.name, self._stack = name, stack
        self._config_file = str(config_file.resolve()) if config_file else None
        self._proxied: Callable[[], AbstractContextManager[str]] = lambda: nullcontext("")

    def record(self, recorder: Recorder, types: Iterable[str] = ()) -> None:
        """Record the calls of the clouds' providers in each later run of the engine.

        Args:
            recorder: the writer of the calls.
            types: types of the program's resources, besides those of the state.

        Raises:
            OperationError: a provider's plugin cannot be installed.
        """
        upstreams = provider_plugins.upstreams(self, types)
        self._proxied = lambda: proxied(upstreams, recorder)

    @contextmanager
    def _engine(self, errors: list[str], variables: Mapping[str, str] | None = None) -> Generator[None]:
        """Explain a failure of the engine, and set environment variables for it."""
        environment = cast("dict[str, str]", self._stack.workspace.env_vars)
        before = dict(environment)
        with self._proxied() as providers:
            if providers:  # the engine takes the first of a package
                environment[DEBUG_PROVIDERS] = f"{providers},{os.environ.get(DEBUG_PROVIDERS, '')}"
            environment.update(variables or {})
            try:
                with explained(self.name, errors):
                    yield
            finally:
                environment.clear()
                environment.update(before)

    def outputs(self) -> Mapping[str, Any]:
        """Return the stack's outputs, with secrets in plain text.

        Raises:
            OperationError: the engine cannot read them.
        """
        return json.loads(self.run("stack", "output", "--json", "--show-secrets"))

    def state(self) -> state.State:
        """Return the stack's state.

        Raises:
            OperationError: the engine cannot read it.
        """
        return state.read(self.exported()["deployment"])

    def unprotect(self) -> None:
        """Remove the protection of all resources, both the engine's and that of GKE's provider.

        The provider refuses to delete a cluster whose state has `deletionProtection`, which `pulumi state
        unprotect` does not change (terraform-provider-google, resourceContainerClusterDelete).

        Raises:
            OperationError: the engine cannot write the state.
        """
        exported = self.exported()
        for resource in exported["deployment"].get("resources") or ():
            resource.pop("protect", None)
            for properties in (resource.get("inputs"), resource.get("outputs")):
                if resource["type"] == GKE_CLUSTER and properties and "deletionProtection" in properties:
                    properties["deletionProtection"] = False
        self.replace_state(exported)

    def forget_pending(self) -> None:
        """Remove interrupted operations from the state: `pulumi stack import` keeps none (pulumi 3.259).

        Raises:
            OperationError: the engine cannot write the state.
        """
        self.replace_state(self.exported())

    def configure(self, path: str, value: object) -> None:
        """Write a value to the stack's file, and keep its comments (`pulumi config set`).

        Args:
            path: key and path of the value, such as `ebbtide:cluster.lifetime.hours`.

        Raises:
            OperationError: the engine cannot write it.
        """
        workspace = self._stack.workspace
        file = ["--config-file", self._config_file] if self._config_file else []
        command = ["config", "set", "--path", path, "--plaintext", "--stack", self.name, *file]
        with explained(self.name):
            workspace.pulumi_command.run([*command, "--", str(value)], workspace.work_dir, workspace.env_vars)

    def remove_setting(self, path: str) -> None:
        """Remove a value from the stack's file, and keep its comments (`pulumi config rm`); path and errors
        as for `configure`."""
        file = ["--config-file", self._config_file] if self._config_file else []
        self.run("config", "rm", "--path", path, *file)

    def refusals(self) -> list[str]:
        """Return the reasons why the engine would reject a destroy; empty if there are none.

        The preview checks `protect` (pulumi 3.259, pkg/resource/deploy/step_generator.go) and changes
        nothing.

        Raises:
            OperationError: another update of the stack is in progress.
        """
        events = _Events(_unwatched)
        with self._engine(events.errors):
            self._stack.preview_destroy(on_event=events.take, config_file=self._config_file)
        return events.errors

    def preview(
        self,
        watch: Callable[[Step], None] = _unwatched,
        config_file: Path | None = None,
        targets: list[str] | None = None,
    ) -> Preview:
        """Preview an update. Arguments as for `up`.

        Raises:
            OperationError: another update of the stack is in progress.
        """
        events = _Events(watch)
        file = str(config_file) if config_file else self._config_file
        with NamedTemporaryFile("r", prefix="ebbtide-", suffix=".kubeconfig", encoding="utf-8") as kubeconfig:
            with self._engine(events.errors, {PREVIEW_KUBECONFIG: kubeconfig.name}):
                self._stack.preview(on_event=events.take, config_file=file, target=targets)
            return Preview(tuple(events.errors), tuple(events.warnings), kubeconfig.read())

    def destroy(
        self,
        watch: Callable[[Step], None],
        *,
        without_cluster: bool = False,
        first: Callable[[], None] | None = None,
    ) -> list[str]:
        """Destroy the stack.

        Args:
            watch: called for each resource when its removal begins and ends, from another thread.
            without_cluster: True to drop Kubernetes objects of a cluster that does not answer from the state
                (pulumi-kubernetes 4.34, `deleteUnreachable`).
            first: called from another thread while the engine holds the stack's lock and has removed
                nothing yet. What it raises ends the destroy.

        Returns:
            The errors; empty if everything was removed.

        Raises:
            OperationError: another update of the stack is in progress; nothing was changed.
            Exception: what `first` raised; the engine has removed nothing.
        """
        events = _Events(watch)
        failures: list[Exception] = []

        def program() -> None:
            # The engine runs a program under the lock, and removes everything after its end (`pulumi destroy
            # --run-program`; pulumi 3.259, deployment_executor.go).
            try:
                if first:
                    first()
                with explained(self.name):
                    outputs = self._stack.outputs()
            except Exception as error:
                failures.append(error)
                raise RunError(str(error)) from error
            # Until the last resource is removed, the stack keeps the outputs of this program.
            for name, output in outputs.items():
                export(name, Output.secret(output.value) if output.secret else output.value)

        with self._engine(events.errors, {_UNREACHABLE: "true"} if without_cluster else {}):
            self._stack.destroy(
                on_event=events.take,
                config_file=self._config_file,
                show_secrets=False,
                program=program if first else None,
                run_program=True if first else None,
            )
        if failures:
            raise failures[0]
        return events.errors

    def up(
        self,
        watch: Callable[[Step], None],
        config_file: Path | None = None,
        targets: list[str] | None = None,
    ) -> list[str]:
        """Run the program and update the stack.

        Args:
            watch: as for `destroy`.
            config_file: stack file for this run only; by default the stack's own.
            targets: URNs of the resources to update; None for all.

        Returns:
            The errors; empty if the stack matches its declaration.

        Raises:
            OperationError: another update of the stack is in progress; nothing was changed.
        """
        events = _Events(watch)
        file = str(config_file) if config_file else self._config_file
        with self._engine(events.errors):
            self._stack.up(
                on_event=events.take,
                config_file=file,
                target=targets,
                message=_STEP if config_file else None,
                show_secrets=False,
            )
        return events.errors

    def refresh(self, urns: list[str]) -> list[str]:
        """Compare some of the stack's resources with the cloud; result and errors as for `destroy`."""
        events = _Events(_unwatched)
        with self._engine(events.errors):
            self._stack.refresh(
                on_event=events.take,
                target=urns,
                config_file=self._config_file,
                message=_STEP,
                show_secrets=False,
            )
        return events.errors

    def read(self, urns: list[str] | None = None) -> tuple[list[ReadResource], list[str]]:
        """Read resources from their clouds, and write nothing (`pulumi refresh --preview-only`).

        Args:
            urns: their URNs; None for all of the state.

        Returns:
            The resources, with secrets as `[secret]`, and the errors.

        Raises:
            OperationError: another update of the stack is in progress.
        """
        reads = _Reads(_unwatched)
        with self._engine(reads.errors):
            self._stack.preview_refresh(
                on_event=reads.take, target=urns, config_file=self._config_file, show_secrets=False
            )
        return reads.resources, reads.errors

    def remove(self, urns: list[str], watch: Callable[[Step], None]) -> list[str]:
        """Destroy some of the stack's resources; arguments, result and errors as for `destroy`."""
        events = _Events(watch)
        with self._engine(events.errors):
            self._stack.destroy(
                on_event=events.take,
                target=urns,
                config_file=self._config_file,
                message=_STEP,
                show_secrets=False,
            )
        return events.errors

    def exported(self) -> dict[str, Any]:
        """Return the output of `pulumi stack export`, with encrypted secrets and a `deployment`.

        Raises:
            OperationError: the state is unreadable.
        """
        return exported(self._stack.workspace, self.name)

    def replace_state(self, document: Mapping[str, Any]) -> None:
        """Write the stack's state (`pulumi stack import`, which locks the stack only while it writes).

        Args:
            document: a changed one from `exported`.

        Raises:
            OperationError: the engine has written the state since that was exported, or rejects the document.
        """
        if self.exported()["deployment"].get(_MANIFEST) != document["deployment"].get(_MANIFEST):
            raise OperationError(
                f"The state of stack {self.name} was not changed: another command updated the stack at the "
                "same time. Wait for its end, then run this command again."
            )
        with tempfile.TemporaryDirectory(prefix="ebbtide-") as directory:
            file = Path(directory, "state.json")
            file.write_text(json.dumps(document), encoding="utf-8")
            self.run("stack", "import", "--file", str(file))

    def completed(self) -> datetime | None:
        """Return the end of the last run that succeeded and was not a step of an update, to the second;
        None if there is none.

        Raises:
            OperationError: the engine cannot read the history.
        """
        ends = (
            datetime.fromisoformat(run["endTime"])
            for run in self._history()
            if run["result"] == "succeeded" and run.get("message") != _STEP
        )
        return max(ends, default=None)

    def last_start(self) -> str:
        """Return the start of the last run that has ended; empty if there is none.

        Raises:
            OperationError: the engine cannot read the history.
        """
        return max(
            (run["startTime"] for run in self._history() if run["result"] != "in-progress"), default=""
        )

    def _history(self) -> list[dict[str, Any]]:
        """Return the last runs."""
        return json.loads(self.run("stack", "history", "--json"))

    def unlock(self) -> None:
        """Remove the stack's locks (`pulumi cancel`)."""
        self.run("cancel", "--yes")

    @property
    def directory(self) -> Path:
        """Directory of the project."""
        return Path(self._stack.workspace.work_dir)

    def run_globally(self, *command: str) -> str:
        """Return the output of a `pulumi` command that is about no stack.

        Raises:
            OperationError: the command fails.
        """
        workspace = self._stack.workspace
        with explained(self.name):
            return workspace.pulumi_command.run([*command], workspace.work_dir, workspace.env_vars).stdout

    def run(self, *command: str) -> str:
        """Return the output of a `pulumi` command on the stack.

        Raises:
            OperationError: the command fails.
        """
        return _run(self._stack.workspace, self.name, *command)


def exported(workspace: automation.Workspace, name: str) -> dict[str, Any]:
    """Return the output of `pulumi stack export`; see `Stack.exported`."""
    document: dict[str, Any] = json.loads(_run(workspace, name, "stack", "export"))
    return {**document, "deployment": document.get("deployment") or {}}


def _run(workspace: automation.Workspace, name: str, *command: str) -> str:
    with explained(name):
        line = [*command, "--stack", name]
        return workspace.pulumi_command.run(line, workspace.work_dir, workspace.env_vars).stdout


@dataclass(slots=True)
class _Reads(_Events):
    """A consumer of the events of a refresh."""

    resources: list[ReadResource] = field(default_factory=list[ReadResource])

    def take(self, event: EngineEvent) -> None:
        super(_Reads, self).take(event)
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
                read_inputs=read and (read.inputs or {}),
                read_outputs=read and (read.outputs or {}),
            )
        )
