"""A stack of a project on disk, through the Automation API, with the user's own `pulumi`, backend and
login.

Only an update runs the program. A destroy uses the engine's state, and needs neither the language plugin nor
the program's packages (pulumi 3.259, `pulumi destroy` without `--run-program`).
"""

import json
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, NamedTuple, cast

from pulumi import Output, RunError, automation, export

from ebbtide.analysis.drift.differences import ReadResource
from ebbtide.operations.engine import state
from ebbtide.operations.engine.events import Events, Reads, Step, unwatched
from ebbtide.operations.engine.failures import OperationError, explained
from ebbtide.operations.engine.state import GKE_CLUSTER
from ebbtide.placement.profile_sources import PREVIEW_KUBECONFIG

_STEP: Final = "ebbtide: a step of an update"
"""Message in the stack's history of a run after which the stack is not yet as declared."""

_MANIFEST: Final = "manifest"
"""Key of a deployment with the time at which the engine wrote it."""

_UNREACHABLE: Final = "PULUMI_K8S_DELETE_UNREACHABLE"


class Completed(NamedTuple):
    """Ends of a stack's last runs that were no step of an update, to the second; None if there is none."""

    update: datetime | None = None
    """Of the last update that succeeded."""
    refresh: datetime | None = None
    """Of the last `pulumi refresh`, which writes the cloud's changes into the state."""


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

    @contextmanager
    def _engine(self, errors: list[str], variables: Mapping[str, str] | None = None) -> Generator[None]:
        """Explain a failure of the engine, and set environment variables for it."""
        environment = cast("dict[str, str]", self._stack.workspace.env_vars)
        before = dict(environment)
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
        self._config("set", path, "--plaintext", "--", str(value))

    def remove_setting(self, path: str) -> None:
        """Remove a value from the stack's file, and keep its comments (`pulumi config rm`); path and errors
        as for `configure`."""
        self._config("rm", path)

    def _config(self, command: str, path: str, *more: str) -> None:
        file = ["--config-file", self._config_file] if self._config_file else []
        self.run("config", command, "--path", path, *file, *more)

    def refusals(self) -> list[str]:
        """Return the reasons why the engine would reject a destroy; empty if there are none.

        The preview checks `protect` (pulumi 3.259, pkg/resource/deploy/step_generator.go) and changes
        nothing.

        Raises:
            OperationError: another update of the stack is in progress.
        """
        events = Events(unwatched)
        with self._engine(events.errors):
            self._stack.preview_destroy(on_event=events.take, config_file=self._config_file)
        return events.errors

    def preview(
        self,
        watch: Callable[[Step], None] = unwatched,
        config_file: Path | None = None,
        targets: list[str] | None = None,
    ) -> Preview:
        """Preview an update. Arguments as for `up`.

        Raises:
            OperationError: another update of the stack is in progress.
        """
        events = Events(watch)
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
        events = Events(watch)
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
        events = Events(watch)
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
        return self._step(self._stack.refresh, urns, unwatched)

    def read(self, urns: list[str] | None = None) -> tuple[list[ReadResource], list[str]]:
        """Read resources from their clouds, and write nothing (`pulumi refresh --preview-only`).

        Args:
            urns: their URNs; None for all of the state.

        Returns:
            The resources, with secrets as `[secret]`, and the errors.

        Raises:
            OperationError: another update of the stack is in progress.
        """
        reads = Reads(unwatched)
        with self._engine(reads.errors):
            self._stack.preview_refresh(
                on_event=reads.take, target=urns, config_file=self._config_file, show_secrets=False
            )
        return reads.resources, reads.errors

    def remove(self, urns: list[str], watch: Callable[[Step], None]) -> list[str]:
        """Destroy some of the stack's resources; arguments, result and errors as for `destroy`."""
        return self._step(self._stack.destroy, urns, watch)

    def _step(self, run: Callable[..., object], urns: list[str], watch: Callable[[Step], None]) -> list[str]:
        events = Events(watch)
        with self._engine(events.errors):
            run(
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

    def completed(self) -> Completed:
        """Return when the stack was last as declared, and when a user last refreshed it.

        Raises:
            OperationError: the engine cannot read the history.
        """
        runs = [run for run in self._history() if run.get("message") != _STEP]

        def last(kind: str, *results: str) -> datetime | None:
            own = (run for run in runs if run["kind"] == kind and run["result"] in results)
            return max((datetime.fromisoformat(run["endTime"]) for run in own), default=None)

        return Completed(last("update", "succeeded"), last("refresh", "succeeded", "failed"))

    def last_start(self) -> str:
        """Return the start of the last run that has ended; empty if there is none.

        Raises:
            OperationError: the engine cannot read the history.
        """
        return max(
            (run["startTime"] for run in self._history() if run["result"] != "in-progress"), default=""
        )

    def _history(self) -> list[dict[str, Any]]:
        """Return the last runs: more than the ten of a page, which steps and refreshes could fill."""
        return json.loads(self.run("stack", "history", "--json", "--page-size", "100"))

    def unlock(self) -> None:
        """Remove the stack's locks (`pulumi cancel`)."""
        self.run("cancel", "--yes")

    @property
    def directory(self) -> Path:
        """Directory of the project."""
        return Path(self._stack.workspace.work_dir)

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
        line = [command[0], "--stack", name, *command[1:]]
        return workspace.pulumi_command.run(line, workspace.work_dir, workspace.env_vars).stdout
