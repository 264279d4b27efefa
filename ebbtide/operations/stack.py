"""A stack of a project on disk, through the Automation API, with the user's own `pulumi`, backend and
login.

The program is not run: a destroy uses the engine's state alone, and needs neither language plugin nor the
program's packages (pulumi 3.259, `pulumi destroy` without `--run-program`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pulumi import automation
from pulumi.automation.events import EngineEvent, StepEventMetadata

from ebbtide.operations import state
from ebbtide.operations.failures import explained

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
        """See `Backend.opened`."""
        self.name, self._stack = name, stack
        self._config_file = str(config_file.resolve()) if config_file else None

    def outputs(self) -> Mapping[str, Any]:
        """Return the stack's outputs, with secrets in plain text.

        Raises:
            OperationError: the engine cannot read them.
        """
        with explained(self.name):
            return {name: output.value for name, output in self._stack.outputs().items()}

    def exported(self) -> dict[str, Any]:
        """Return the document of `pulumi stack export`, with secrets in plain text.

        Raises:
            OperationError: the engine cannot read the state.
        """
        with explained(self.name):
            exported = self._stack.export_stack()
        return {"version": exported.version, "deployment": exported.deployment or {}}

    def state(self) -> state.State:
        """Return the stack's state.

        Raises:
            OperationError: the engine cannot read it.
        """
        return state.read(self.exported()["deployment"])

    def configure(self, path: str, value: object) -> None:
        """Write a value to the stack's file, whose comments stay (`pulumi config set`).

        Args:
            path: key and path of the value, as `ebbtide:cluster.lifetime.hours`.
            value: the value.

        Raises:
            OperationError: the engine cannot write it.
        """
        workspace = self._stack.workspace
        file = ["--config-file", self._config_file] if self._config_file else []
        command = ["config", "set", "--path", path, "--plaintext", "--stack", self.name, *file]
        with explained(self.name):
            workspace.pulumi_command.run([*command, "--", str(value)], workspace.work_dir, workspace.env_vars)

    def refusals(self) -> list[str]:
        """Return the reasons that the engine would refuse a destroy; none if it would not.

        The preview checks `protect` (pulumi 3.259, pkg/resource/deploy/step_generator.go) and changes
        nothing.

        Raises:
            OperationError: another update of the stack is in progress.
        """
        events = _Events(_unwatched)
        with explained(self.name, events.errors):
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
        with explained(self.name, events.errors):
            self._stack.destroy(on_event=events.take, config_file=self._config_file, show_secrets=False)
        return events.errors


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _unwatched(_: Removal) -> None:
    """Ignore the events of a preview."""
