"""Running a Pulumi program without an engine, and keeping what it would create.

The program runs as the engine would run it for a preview, on the SDK's own machinery: same stack resource,
same waiting for what is outstanding. Only the other end of its calls is ours. Nothing is contacted and
nothing is printed.
"""

import asyncio
import contextlib
import gc
import inspect
import io
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pulumi.runtime import config as pulumi_config
from pulumi.runtime import resource as pulumi_resource
from pulumi.runtime import settings
from pulumi.runtime import stack as pulumi_stack
from pulumi.runtime.proto import source_pb2
from pulumi.runtime.settings import (
    _get_rpc_manager as _rpc_manager,  # pyright: ignore[reportPrivateUsage] - the public one has no type
)

from ebbtide.recording import program as programs
from ebbtide.recording.asking import Assumptions
from ebbtide.recording.assumptions import ASSUMPTIONS
from ebbtide.recording.callbacks import Callbacks
from ebbtide.recording.event_loop import InlineLoop
from ebbtide.recording.failures import ProgramEndedError, ProgramError, explained
from ebbtide.recording.monitor import RecordingMonitor
from ebbtide.recording.notes import Notes, RecordingEngine
from ebbtide.recording.recording import Recording

__all__ = ["ProgramError", "record"]

Program = Callable[[], Any]

_GC_THRESHOLD: Final = 100_000
"""A program makes tens of thousands of futures that live to its end. Python's default looks for garbage among
them every 700 objects and finds none."""


def record(
    program: Program | Path | str,
    *,
    project: str,
    stack: str,
    config: Mapping[str, str] | None = None,
    secret_keys: Iterable[str] = (),
    organization: str = "organization",
    root: Path | None = None,
    assumptions: Assumptions = ASSUMPTIONS,
) -> Recording:
    """Run a program as a preview of a stack would, offline.

    Args:
        program: a callable that creates resources (it may be `async`), or a directory with a `__main__.py`,
            or a file.
        project: the project's name, as `pulumi.get_project()` gives it.
        stack: the stack's name.
        config: full keys (`ebbtide:cluster`) and the strings that the engine would hand over; objects as
            JSON.
        secret_keys: the keys among them whose values are secret.
        organization: what the engine says where there is no Pulumi Cloud, unless given.
        root: the project's directory, as `pulumi.get_root_directory()` gives it; left out, the program's.
        assumptions: what clouds would answer.

    Returns:
        The resources, outputs, calls and messages of the run.

    Raises:
        ProgramError: when the program fails, in a sentence for its author; the exception is its cause.
    """
    config, secret_keys = dict(config or {}), list(secret_keys)
    notes = Notes(config[key] for key in secret_keys if key in config)
    monitor = RecordingMonitor(project, stack, assumptions=assumptions, notes=notes, config=config)
    home = None if callable(program) else Path(program).resolve()

    def configure() -> None:
        pulumi_config.set_all_config(config, secret_keys)
        settings.configure(
            settings.Settings(
                project=project,
                stack=stack,
                monitor=monitor,
                engine=RecordingEngine(notes),
                dry_run=True,
                organization=organization,
                root_directory=str((root or home or Path()).resolve()),
            )
        )
        settings.SETTINGS.callbacks = Callbacks(monitor)  # pyright: ignore[reportAttributeAccessIssue]
        settings.ROOT.set(None)

    try:
        with contextlib.ExitStack() as around:
            if callable(program):
                func = program
            else:
                main = programs.main_file(Path(program).resolve())
                around.enter_context(programs.at_home(main.parent))
                func = lambda: programs.run(main)  # noqa: E731 - one of two ways to the same function
            around.enter_context(_process_settings_kept())
            around.enter_context(_collecting_rarely())
            around.enter_context(_no_stack_traces())
            around.enter_context(contextlib.redirect_stdout(printed := _Printed(notes)))
            around.callback(printed.end)
            loop = InlineLoop()
            # What is left of a failed program complains of errors that nobody awaits; the first is raised.
            loop.set_exception_handler(lambda _loop, _context: None)
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(_run(configure, func, loop))
    except Exception as error:
        raise explained(error, clean=notes.clean, home=home) from error
    return monitor.recording()


async def _run(configure: Callable[[], None], func: Program, loop: InlineLoop) -> None:
    """Run a program inside a stack resource, in a task whose context has the run's settings.

    The settings are context variables: they are gone with the task.
    """
    configure()
    raised: list[Exception] = []

    async def watched() -> None:
        try:
            result = func()
            if inspect.isawaitable(result):
                await result
        except SystemExit as end:
            if end.code not in (None, 0):
                raised.append(ProgramEndedError(end.code))
                raise raised[-1] from None
        except Exception as error:
            raised.append(error)
            raise
        # The SDK waits for what is outstanding one result at a time, looking at all of it each time. When
        # nothing can run any more, all that it finds is done.
        await loop.idle()

    try:
        await pulumi_stack.run_in_stack(watched)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the program's
        # The program's own failure says more than that of a call left half done; of calls, the first.
        first = raised[0] if raised else _rpc_manager().unhandled_exception or error
        if first.__cause__ is first:
            first.__cause__ = None
        raise first  # noqa: B904 - what it came from was raised by it
    await _logged()


async def _logged() -> None:
    """Wait for messages about a resource, which the SDK sends when its URN is known and does not keep track
    of.
    """
    pending = {task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__name__", "") == "do_log"}
    if pending:
        await asyncio.wait(pending)


class _Printed(io.TextIOBase):
    """What a program prints; to the engine, each line is a message."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._rest = ""

    def write(self, text: str, /) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line.strip():
                self._notes.say("info", line.rstrip())
        return len(text)

    def writable(self) -> bool:
        return True

    def end(self) -> None:
        """Take the last line, which may have no end."""
        self.write("\n")


@contextlib.contextmanager
def _process_settings_kept() -> Generator[None]:
    """Undo what the SDK keeps for the process besides context variables: the first value set becomes the
    default.

    A thread that starts after a run would find its monitor there, and write into a recording that is
    finished.
    """
    name = "_ContextProperty__default"
    kept = [(item, getattr(item, name)) for item in vars(settings.Settings).values() if hasattr(item, name)]
    try:
        yield
    finally:
        for item, value in kept:
            setattr(item, name, value)


@contextlib.contextmanager
def _collecting_rarely() -> Generator[None]:
    kept = gc.get_threshold()
    gc.set_threshold(max(_GC_THRESHOLD, kept[0]), *kept[1:])
    try:
        yield
    finally:
        gc.set_threshold(*kept)


@contextlib.contextmanager
def _no_stack_traces() -> Generator[None]:
    """Spare the SDK the stack trace that it takes of every resource for the engine's use.

    A tenth of a flat program's time, more the deeper the calls. Where a later SDK has no such function,
    nothing is spared.
    """
    name = "_get_stack_trace"
    taken = getattr(pulumi_resource, name, None)
    if taken is None:
        yield
        return
    nothing = source_pb2.StackTrace()
    setattr(pulumi_resource, name, lambda: nothing)
    try:
        yield
    finally:
        setattr(pulumi_resource, name, taken)
