"""The real Pulumi engine on the project's own program, through the Automation API.

The program runs in this process, as the Automation API has it: the engine then needs no language plugin.
State and passphrase are the rehearsal's own; nothing of the user's Pulumi is read or written.
"""

import gc
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pulumi import automation
from pulumi.automation.errors import CommandError
from pulumi.automation.events import EngineEvent, OpType

from ebbtide.interrupting import patience
from ebbtide.preview.stack_files import StackFiles
from ebbtide.recording import program

_PASSPHRASE: Final = "rehearsal"  # noqa: S105 - of a state that holds no secret but this machine's own
_QUIET: Final = frozenset({OpType.SAME, OpType.READ, OpType.READ_REPLACEMENT})


@dataclass(frozen=True, slots=True)
class Step:
    """What the engine did to a resource, or in a preview would do.

    Attributes:
        operation: in the engine's words: `create`, `update`, `delete`, `replace`, `create-replacement`, …
        type: the resource's type token.
        name: its name in the program.
        changed: the properties that made it do so.
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
    """How a run of the engine ended.

    Attributes:
        operation: `preview`, `up`, `refresh` or `destroy`.
        errors: what the engine says went wrong; empty when all went well.
        steps: what it did, in order, without what stayed as it was.
        unchanged: how many resources stayed as they were.
        seconds: how long it took by the wall clock.
    """

    operation: str
    errors: tuple[str, ...]
    steps: tuple[Step, ...]
    unchanged: int
    seconds: float

    @property
    def done(self) -> bool:
        """Whether it ended well."""
        return not self.errors

    @property
    def counts(self) -> Mapping[str, int]:
        """How many resources each operation was done to."""
        return Counter(step.operation for step in self.steps)


@dataclass(slots=True)
class _Seen:
    """What the engine says while it runs."""

    steps: list[Step] = field(default_factory=list[Step])
    errors: list[str] = field(default_factory=list[str])
    unchanged: int = 0

    def take(self, event: EngineEvent) -> None:
        if event.diagnostic_event and event.diagnostic_event.severity == "error":
            self.errors.append(event.diagnostic_event.message.strip())
        started = event.resource_pre_event
        if started is None or started.metadata.type == "pulumi:pulumi:Stack":
            return
        metadata = started.metadata
        if metadata.op in _QUIET:
            self.unchanged += metadata.op is OpType.SAME
        else:
            name = metadata.urn.split("::", 3)[-1]
            self.steps.append(Step(metadata.op.value, metadata.type, name, tuple(metadata.diffs or ())))


def workspace(
    directory: Path, pulumi: Path, project: str, environment: Mapping[str, str]
) -> automation.LocalWorkspaceOptions:
    """Where the engine works: with a state, settings and a home of its own, and nothing of the user's.

    Args:
        directory: where all of that goes.
        pulumi: the engine; it is linked to where the Automation API looks for it.
        project: the project's name.
        environment: for the engine, beside what this process has: where the providers listen.
    """
    state, home, work, programs = (directory / name for name in ("state", "home", "project", "bin"))
    for made in (state, home, work, programs):
        made.mkdir(parents=True, exist_ok=True)
    (programs / "pulumi").symlink_to(pulumi)
    # The engine keeps a compressed log of all that passes between it and the providers: half of its time
    # where definitions are large. Nothing turns it off; where it cannot write one it goes without.
    (home / "logs").touch()
    return automation.LocalWorkspaceOptions(
        work_dir=str(work),
        pulumi_home=str(home),
        pulumi_command=automation.PulumiCommand(str(directory)),
        project_settings=automation.ProjectSettings(project, "python"),
        env_vars={
            "PULUMI_HOME": str(home),
            "PULUMI_BACKEND_URL": state.as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": _PASSPHRASE,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            **environment,
        },
    )


def forget_earlier_programs() -> None:
    """Have done with programs that ran in this process before; to be called as the next one begins.

    The Automation API leaves one behind unfinished when the engine fails under it. Found by the garbage
    collector while a later program runs, it stops that one's callbacks on its way out; found now, there are
    none yet. Source: pulumi 3.259, sdk/python/lib/pulumi/runtime (`run_pulumi_func`, `_CallbackServicer`).
    """
    gc.collect()


class Engine:
    """A stack of the project on the real engine.

    Attributes:
        name: the stack's.
        project: the directory with the project's and the stack's file.
        environment: in which the `pulumi` command has the same backend, settings and providers.
    """

    def __init__(
        self,
        files: StackFiles,
        *,
        pulumi: Path,
        directory: Path,
        environment: Mapping[str, str],
        end: Callable[[], None],
    ) -> None:
        """Make the stack.

        Args:
            files: the project and the stack; `declare` changes what it declares.
            pulumi: the engine.
            directory: where state and settings go.
            environment: for the engine, beside what this process has: where the providers listen.
            end: ends the providers, at Ctrl-C; the engine then ends by itself.
        """
        self._end = end
        self.name = files.stack
        self._files = files
        options = workspace(directory, pulumi, files.project, environment)
        self.project = Path(str(options.work_dir))
        self.environment: Mapping[str, str] = options.env_vars or {}
        self._outputs: Mapping[str, Any] | None = None
        self._stack = automation.create_or_select_stack(files.stack, files.project, self._run, opts=options)

    @property
    def declaration(self) -> Any:
        """What the stack declares now."""
        return self._files.declaration()

    def declare(self, declaration: Mapping[str, Any]) -> None:
        """Let the stack declare something else from now on."""
        self._files = self._files.declaring(declaration)

    def outputs(self) -> Mapping[str, Any]:
        """The stack's outputs, secret ones in plain."""
        if self._outputs is None:  # asking is a process of its own, and they change with a run alone
            self._outputs = {name: output.value for name, output in self._stack.outputs().items()}
        return self._outputs

    def preview(self) -> Outcome:
        """What `pulumi preview` says."""
        return self._do("preview", lambda take: self._stack.preview(on_event=take))

    def up(self) -> Outcome:
        """`pulumi up`."""
        return self._do("up", lambda take: self._stack.up(on_event=take))

    def refresh(self) -> Outcome:
        """`pulumi refresh`: what of the state is no longer so."""
        return self._do("refresh", lambda take: self._stack.refresh(on_event=take))

    def destroy(self) -> Outcome:
        """`pulumi destroy`, its preview first: that is where a protected resource is refused, and the
        Automation API leaves it out. Source: pulumi 3.259, pkg/resource/deploy/step_generator.go.
        """
        planned = self._do("destroy", lambda take: self._stack.destroy(on_event=take, preview_only=True))
        if not planned.done:
            return planned
        return self._do("destroy", lambda take: self._stack.destroy(on_event=take))

    def _do(self, operation: str, run: Callable[[Callable[[EngineEvent], None]], object]) -> Outcome:
        seen = _Seen()
        self._outputs = None
        started = time.monotonic()
        with patience(self._end) as interrupts:
            try:
                self._configure()
                run(seen.take)
            except CommandError as error:
                if not seen.errors:
                    seen.errors.append(str(error))
        if interrupts.seen:
            raise KeyboardInterrupt
        seconds = time.monotonic() - started
        return Outcome(operation, tuple(seen.errors), tuple(seen.steps), seen.unchanged, seconds)

    def _configure(self) -> None:
        settings = self._stack.workspace.stack_settings(self._stack.name)
        settings.config = dict(self._files.config)
        self._stack.workspace.save_stack_settings(self._stack.name, settings)

    def _run(self) -> None:
        forget_earlier_programs()
        with program.entered(self._files.program if self._files.program.is_dir() else self._files.root):
            program.run(program.main_file(self._files.program))
