"""The real Pulumi engine on the project's own program, through the Automation API or in a shell.

The program runs in this process, as an inline program of the Automation API: the engine needs no language
plugin. State and passphrase belong to the rehearsal; the user's Pulumi settings are neither read nor
written.

In a shell, the language host is the one beside the `pulumi` on PATH, where that is used; else the newest
that can be built, which is older than the engine (`pulumi-language-python` in the table of tools). It
takes the Python of the project's virtual environment, or the first on PATH, and creates no environment.
"""

import gc
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pulumi import automation
from pulumi.automation.errors import CommandError
from pulumi.automation.events import EngineEvent, OpType
from pulumi.runtime._grpc_settings import (
    _GRPC_CHANNEL_OPTIONS,  # pyright: ignore[reportPrivateUsage] - no public form
)

from ebbtide.analysis.preview.stack_files import StackFiles, record_stack
from ebbtide.analysis.recording import program
from ebbtide.analysis.recording.recording import STACK_TYPE, Recording, urn_name
from ebbtide.operations.engine.interrupts import deferred_interrupts
from ebbtide_rehearsal.tools import find
from ebbtide_rehearsal.tools.find import Origin, ensure
from ebbtide_rehearsal.tools.items import OnStep

HOST: Final = "pulumi-language-python"
PASSPHRASE: Final = "rehearsal"  # noqa: S105 - of a state that holds no secret but this machine's own
_KUBERNETES: Final = "pulumi-resource-kubernetes"
_UNSET: Final = (
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "GOOGLE_PROJECT",
    "GOOGLE_CLOUD_PROJECT",
    "GCLOUD_PROJECT",
    "CLOUDSDK_CORE_PROJECT",
    "ARM_SUBSCRIPTION_ID",
)
"""Variables of a user's own clouds and state."""
_QUIET: Final = frozenset({OpType.SAME, OpType.READ, OpType.READ_REPLACEMENT})


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell's environment.

    Attributes:
        path: directories before the user's PATH.
        variables: other variables.
        versions: versions and origins of the programs that stand in PATH.
    """

    path: tuple[Path, ...]
    variables: Mapping[str, str]
    versions: Mapping[str, str]

    def having(self, **variables: str) -> "Shell":
        """Return this environment with more variables."""
        return replace(self, variables={**self.variables, **variables})

    def environment(self) -> dict[str, str]:
        """Return the environment of a process: this process's with the shell's."""
        own = {name: value for name, value in os.environ.items() if name not in _UNSET}
        path = os.pathsep.join((*map(str, self.path), os.environ.get("PATH", "")))
        return {**own, **self.variables, "PATH": path}

    def exports(self) -> Iterator[str]:
        """Yield the lines that give a POSIX shell this environment."""
        yield f"unset {' '.join(_UNSET)}"
        yield f'export PATH={shlex.quote(os.pathsep.join(map(str, self.path)))}:"$PATH"'
        for name, value in self.variables.items():
            yield f"export {name}={shlex.quote(value)}"


def shell(directory: Path, providers: str, on_step: OnStep) -> Shell:
    """Install the programs and return the environment.

    Args:
        directory: directory of programs, state and settings.
        providers: addresses of the fake clouds' providers, as `PULUMI_DEBUG_PROVIDERS` has them.
        on_step: as for `ensure`.

    Raises:
        ToolError: a program can be neither found nor built.
    """
    tools = ensure(["pulumi", _KUBERNETES], on_step=on_step)
    pulumi, kubernetes = tools.by_name["pulumi"], tools.by_name[_KUBERNETES]
    programs, home, state = directory / "bin", directory / ".pulumi", directory / "state"
    for created in (programs, state):
        created.mkdir(exist_ok=True)
    find.install(home, "kubernetes", kubernetes.path)
    own = pulumi.path.with_name(HOST)
    path = [programs, Path(sys.executable).parent]
    if pulumi.origin is Origin.PATH and own.is_file():
        path.insert(1, own.parent)
        host = f"the user's own, {own}"
    else:
        # The host requires this script beside itself.
        script = f"{HOST}-exec"
        tools = ensure([HOST, script], on_step=on_step)
        (programs / "pulumi").symlink_to(pulumi.path)
        shutil.copy(tools.path(HOST), programs)
        shutil.copy(tools.path(script) / script, programs)
        (programs / script).chmod(0o755)
        host = f"{tools.by_name[HOST].version}, {tools.by_name[HOST].origin}"
    return Shell(
        tuple(path),
        {
            # `pulumi` takes `~` from the system's list of users, not from HOME.
            "PULUMI_BACKEND_URL": state.as_uri(),
            "PULUMI_HOME": str(home),
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_DEBUG_PROVIDERS": providers,
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        },
        {"language host": host, "Kubernetes provider": f"{kubernetes.version}, {kubernetes.origin}"},
    )


# The SDK never closes a channel, and gRPC's channels to one address share a connection. If an engine got the
# port of an earlier one, its program would be refused, as the earlier one's was, for up to two minutes.
# Source: pulumi 3.259, sdk/python/lib/pulumi/runtime/settings.py; gRPC, doc/connection-backoff.md.
_GRPC_CHANNEL_OPTIONS.append(("grpc.use_local_subchannel_pool", 1))


@dataclass(frozen=True, slots=True)
class EngineStep:
    """An operation of the engine on a resource; in a preview, a planned one.

    Attributes:
        operation: in the engine's terms: `create`, `update`, `delete`, `replace`, `create-replacement`, …
        type: the resource's type token.
        name: its logical name.
        changed: the properties that caused the operation.
    """

    operation: str
    type: str
    name: str
    changed: tuple[str, ...] = ()

    def __str__(self) -> str:
        keys = f" ({', '.join(self.changed)})" if self.changed else ""
        return f"{self.operation} {self.type} {self.name}{keys}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an engine run.

    Attributes:
        operation: `preview`, `up`, `refresh` or `destroy`.
        errors: the engine's errors; empty on success.
        steps: its operations, in order, without unchanged resources.
        unchanged: the number of unchanged resources.
        seconds: its duration by the wall clock.
    """

    operation: str
    errors: tuple[str, ...]
    steps: tuple[EngineStep, ...]
    unchanged: int
    seconds: float

    @property
    def done(self) -> bool:
        """True on success."""
        return not self.errors


@dataclass(slots=True)
class _EngineEvents:
    """A consumer of engine events."""

    on_progress: Callable[[str], None]
    steps: list[EngineStep] = field(default_factory=list[EngineStep])
    errors: list[str] = field(default_factory=list[str])
    unchanged: int = 0

    def take(self, event: EngineEvent) -> None:
        if event.diagnostic_event and event.diagnostic_event.severity == "error":
            self.errors.append(event.diagnostic_event.message.strip())
        started = event.resource_pre_event
        if started is None or started.metadata.type == STACK_TYPE:
            return
        metadata = started.metadata
        if metadata.op in _QUIET:
            self.unchanged += metadata.op is OpType.SAME
        else:
            name = urn_name(metadata.urn)
            self.steps.append(EngineStep(metadata.op.value, metadata.type, name, tuple(metadata.diffs or ())))
            self.on_progress(f"{len(self.steps)} operations: {self.steps[-1]}")


def workspace(
    directory: Path, pulumi: Path, kubernetes: Path, project: str, environment: Mapping[str, str]
) -> automation.LocalWorkspaceOptions:
    """Create the engine's workspace, with its own state, settings and home directory.

    Args:
        pulumi: the engine; it is linked to the path that the Automation API expects.
        kubernetes: the Kubernetes provider; it is linked as the plugin that the Python SDK requests.
        environment: environment variables for the engine, in addition to this process's: the fake providers'
            addresses.
    """
    state, home, work, programs = (directory / name for name in ("state", "home", "project", "bin"))
    for created in (state, home, work, programs):
        created.mkdir(parents=True, exist_ok=True)
    (programs / "pulumi").symlink_to(pulumi)
    find.install(home, "kubernetes", kubernetes)
    # The engine keeps a compressed log of all provider traffic, which takes half of its time with large CRDs.
    # No option disables it; without a writable directory the engine skips it.
    (home / "logs").touch()
    return automation.LocalWorkspaceOptions(
        work_dir=str(work),
        pulumi_home=str(home),
        pulumi_command=automation.PulumiCommand(str(directory)),
        # The working directory of plugins, where charts are linked; else this process's.
        project_settings=automation.ProjectSettings(project, "python", main=str(work)),
        env_vars={
            "PULUMI_HOME": str(home),
            "PULUMI_BACKEND_URL": state.as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            # One on PATH would be preferred, in whatever version.
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
            **environment,
        },
    )


def _silent(line: str) -> None:
    """Ignore progress."""
    del line


def forget_earlier_programs() -> None:
    """Clean up earlier programs of this process; call at the start of the next.

    The Automation API leaves a program unfinished when the engine fails. If the garbage collector finds it
    during a later program, its cleanup stops the later program's callbacks; at this point there are none yet.
    Source: pulumi 3.259, sdk/python/lib/pulumi/runtime (`run_pulumi_func`, `_CallbackServicer`).
    """
    gc.collect()


class Engine:
    """A stack of the project on the real engine.

    Attributes:
        project: the directory of the project's and the stack's file.
        environment: environment in which the `pulumi` command has the same backend, settings and providers.
    """

    def __init__(
        self,
        files: StackFiles,
        *,
        pulumi: Path,
        kubernetes: Path,
        directory: Path,
        environment: Mapping[str, str],
        end: Callable[[], None],
    ) -> None:
        """Create the stack.

        Args:
            files: the project and the stack; `declare` changes its declaration.
            pulumi: the engine.
            kubernetes: the Kubernetes provider.
            directory: the directory for state and settings.
            environment: environment variables for the engine, in addition to this process's: the fake
                providers' addresses.
            end: stops the providers on Ctrl-C; the engine then exits by itself.
        """
        self._end = end
        self.name = files.stack
        self._files = files
        options = workspace(directory, pulumi, kubernetes, files.project, environment)
        self.project = Path(str(options.work_dir))
        self.environment: Mapping[str, str] = options.env_vars or {}
        self._outputs: Mapping[str, Any] | None = None
        self._stack = automation.create_or_select_stack(files.stack, files.project, self._run, opts=options)

    def recording(self) -> Recording:
        """Record the program with the stack's current declaration.

        Raises:
            ProgramError: the program fails.
        """
        return record_stack(self._files)

    @property
    def declaration(self) -> Any:
        """The stack's current declaration."""
        return self._files.declaration()

    def declare(self, declaration: Mapping[str, Any]) -> None:
        """Replace the stack's declaration."""
        self._files = self._files.declaring(declaration)

    def outputs(self) -> Mapping[str, Any]:
        """Return the stack's outputs, with secrets in plain text."""
        if self._outputs is None:  # a query is a separate process, and only a run changes the outputs
            self._outputs = {name: output.value for name, output in self._stack.outputs().items()}
        return self._outputs

    def retained(self) -> frozenset[str]:
        """Return type and id of each deployed resource that remains when the stack is destroyed."""
        state: Any = self._stack.export_stack().deployment
        resources = (item for item in state.get("resources", ()) if item.get("retainOnDelete"))
        return frozenset(f"{item['type']} {item['id']}" for item in resources)

    def preview(self, on_progress: Callable[[str], None] = _silent) -> Outcome:
        """Run `pulumi preview`."""
        return self._do("preview", on_progress, lambda take: self._stack.preview(on_event=take))

    def up(self, on_progress: Callable[[str], None] = _silent) -> Outcome:
        """Run `pulumi up`."""
        return self._do("up", on_progress, lambda take: self._stack.up(on_event=take))

    def refresh(self, on_progress: Callable[[str], None] = _silent) -> Outcome:
        """Run `pulumi refresh`."""
        return self._do("refresh", on_progress, lambda take: self._stack.refresh(on_event=take))

    def destroy(self, on_progress: Callable[[str], None] = _silent) -> Outcome:
        """Run `pulumi destroy` after its preview: the preview rejects protected resources, and the Automation
        API skips it. Source: pulumi 3.259, pkg/resource/deploy/step_generator.go.
        """
        planned = self._do(
            "destroy", on_progress, lambda take: self._stack.destroy(on_event=take, preview_only=True)
        )
        if not planned.done:
            return planned
        return self._do("destroy", on_progress, lambda take: self._stack.destroy(on_event=take))

    def _do(
        self,
        operation: str,
        on_progress: Callable[[str], None],
        run: Callable[[Callable[[EngineEvent], None]], object],
    ) -> Outcome:
        events = _EngineEvents(on_progress)
        self._outputs = None
        started = time.monotonic()
        with deferred_interrupts(self._end) as interrupts:
            try:
                self._configure()
                run(events.take)
            except CommandError as error:
                if not events.errors:
                    events.errors.append(str(error))
        if interrupts.received:
            raise KeyboardInterrupt
        seconds = time.monotonic() - started
        return Outcome(operation, tuple(events.errors), tuple(events.steps), events.unchanged, seconds)

    def _configure(self) -> None:
        settings = self._stack.workspace.stack_settings(self._stack.name)
        settings.config = dict(self._files.config)
        self._stack.workspace.save_stack_settings(self._stack.name, settings)

    def _run(self) -> None:
        forget_earlier_programs()
        with program.entered(self._files.program if self._files.program.is_dir() else self._files.root):
            program.run(program.main_file(self._files.program))
