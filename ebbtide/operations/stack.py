"""A stack of a project on disk, through the Automation API, with the user's own `pulumi`, backend and
login.

The program is not run: a destroy uses the engine's state alone, and needs neither language plugin nor the
program's packages (pulumi 3.259, `pulumi destroy` without `--run-program`).
"""

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pulumi import automation
from pulumi.automation import errors
from pulumi.automation.events import EngineEvent, StepEventMetadata

from ebbtide.operations import state
from ebbtide.operations.errors import OperationError

_COLOURS: Final = re.compile(r"<\{%.*?%\}>")
_STACK: Final = "pulumi:pulumi:Stack"


@dataclass(frozen=True, slots=True)
class Removal:
    """A resource that the engine is removing or has removed.

    Attributes:
        type: its type token.
        name: its logical name.
        done: true once it is removed.
    """

    type: str
    name: str
    done: bool


@dataclass(slots=True)
class _Events:
    """A consumer of engine events."""

    watch: Callable[[Removal], None]
    errors: list[str] = field(default_factory=list[str])

    def take(self, event: EngineEvent) -> None:
        diagnostic = event.diagnostic_event
        if diagnostic and diagnostic.severity == "error":
            name = f"{_name(diagnostic.urn)}: " if diagnostic.urn else ""
            self.errors.append(name + _COLOURS.sub("", diagnostic.message).strip())
        if event.resource_pre_event:
            self._step(event.resource_pre_event.metadata, done=False)
        if event.res_outputs_event:
            self._step(event.res_outputs_event.metadata, done=True)

    def _step(self, metadata: StepEventMetadata, *, done: bool) -> None:
        if metadata.type != _STACK:
            self.watch(Removal(metadata.type, _name(metadata.urn), done))


class Stack:
    """An existing stack.

    Attributes:
        name: as requested.
    """

    def __init__(self, name: str, stack: automation.Stack, config_file: Path | None) -> None:
        """See `opened`."""
        self.name, self._stack = name, stack
        self._config_file = str(config_file.resolve()) if config_file else None

    def outputs(self) -> Mapping[str, Any]:
        """Return the stack's outputs, with secrets in plain text.

        Raises:
            OperationError: the engine cannot read them.
        """
        with _sentences(self.name):
            return {name: output.value for name, output in self._stack.outputs().items()}

    def state(self) -> state.State:
        """Return the stack's state.

        Raises:
            OperationError: the engine cannot read it.
        """
        with _sentences(self.name):
            return state.read(self._stack.export_stack().deployment or {})

    def refusals(self) -> list[str]:
        """Return the reasons that the engine would refuse a destroy; none if it would not.

        The preview checks `protect` (pulumi 3.259, pkg/resource/deploy/step_generator.go) and changes
        nothing.

        Raises:
            OperationError: another update of the stack is in progress.
        """
        events = _Events(_unwatched)
        with _sentences(self.name, events):
            self._stack.preview_destroy(on_event=events.take, config_file=self._config_file)
        return events.errors

    def destroy(self, watch: Callable[[Removal], None]) -> list[str]:
        """Destroy the stack.

        Args:
            watch: called for each resource when its removal begins and ends, from another thread.

        Returns:
            The errors; empty if everything was removed.

        Raises:
            OperationError: another update of the stack is in progress; nothing was changed.
        """
        events = _Events(watch)
        with _sentences(self.name, events):
            self._stack.destroy(on_event=events.take, config_file=self._config_file, show_secrets=False)
        return events.errors


def opened(root: Path, name: str, config_file: Path | None) -> Stack:
    """Open a stack of a project.

    Args:
        root: the project's directory.
        name: the stack's name, with its organization if the backend has organizations.
        config_file: the stack's file, if it is not beside the project's.

    Raises:
        OperationError: `pulumi` is missing, too old or not logged in, or the stack does not exist.
    """
    try:
        with _sentences(name):
            workspace = automation.LocalWorkspace(work_dir=str(root))
            before = workspace.stack()
            stack = automation.Stack.select(name, workspace)
            # Selecting a stack would change the target of the user's next `pulumi up`.
            if before is not None and before.name != name:
                workspace.select_stack(before.name)
            return Stack(name, stack, config_file)
    except FileNotFoundError:
        raise OperationError(
            "`pulumi` is not installed, and it destroys the stack: install it "
            "(https://www.pulumi.com/docs/install), or put it on PATH."
        ) from None
    except errors.InvalidVersionError as error:
        raise OperationError(str(error)) from None


@contextmanager
def _sentences(stack: str, events: _Events | None = None) -> Generator[None]:
    """Extract the engine's diagnostics of a failure; with an event stream they are in the events."""
    try:
        yield
    except errors.StackNotFoundError:
        raise OperationError(
            f"There is no stack {stack} in the backend that `pulumi` is logged in to: `pulumi stack ls "
            "--all` lists the existing ones."
        ) from None
    except errors.ConcurrentUpdateError:
        raise OperationError(
            f"Another update of stack {stack} is in progress. Wait for its end; if it no longer runs, "
            f"unlock the stack with `pulumi cancel --stack {stack}`."
        ) from None
    except errors.CommandError as error:
        if events is None:
            raise OperationError(f"`pulumi` failed: {_output(error)}") from None
        if not events.errors:
            events.errors.append(_output(error))


def _output(error: errors.CommandError) -> str:
    """Return the standard error of `pulumi`, or else its standard output."""
    code, _, rest = str(error).partition("\n stdout: ")
    stdout, _, stderr = rest.partition("\n stderr: ")
    return (stderr.strip() or stdout.strip() or code.strip()).removeprefix("error: ")


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _unwatched(_: Removal) -> None:
    """Ignore the events of a preview."""
