"""Record a Pulumi program without an engine.

The program runs as in a preview, with the SDK's own code: the same stack resource, the same wait for pending
work. Only the monitor and the engine are replaced. There are no network requests, and standard output is
recorded.
"""

import asyncio
import contextlib
import gc
import inspect
import io
import selectors
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message as Response
from pulumi import ResourceHook, ResourceTransform
from pulumi.runtime import config as pulumi_config
from pulumi.runtime import resource as pulumi_resource
from pulumi.runtime import settings
from pulumi.runtime import stack as pulumi_stack
from pulumi.runtime._callbacks import _CallbackServicer  # pyright: ignore[reportPrivateUsage] - no public form
from pulumi.runtime.proto import callback_pb2, resource_pb2, source_pb2
from pulumi.runtime.settings import (
    _get_rpc_manager as _rpc_manager,  # pyright: ignore[reportPrivateUsage] - the public one has no type
)

from ebbtide.analysis.recording import assumed_azure, assumed_gcp
from ebbtide.analysis.recording import program as programs
from ebbtide.analysis.recording.assumption_tables import (
    WORD,
    Answer,
    Assumptions,
    Question,
    uuid_for,
)
from ebbtide.analysis.recording.monitor import (
    NEEDS_STATE,
    Frames,
    MessageLog,
    RecordingEngine,
    RecordingMonitor,
)
from ebbtide.analysis.recording.program import ProgramEndedError, explained
from ebbtide.analysis.recording.recording import Message, Recording, Resource, Updates
from ebbtide.analysis.recording.values import fill_struct, revealed
from ebbtide.lazy_packages import collect_rarely

_STASH: Final = "pulumi:index:Stash"
"""A resource whose first value the engine keeps in the state (pulumi 3.259, deploy/builtins.go)."""
Hook: TypeAlias = Callable[[bytes], Awaitable[Response]]
Program = Callable[[], Any]


def _object(question: Question) -> Answer:
    """Return the id of a Kubernetes object: `namespace/name`, or its name if it is cluster-scoped.

    An object without a name gets the logical name and eight random letters (pulumi-kubernetes 4.34).
    """
    metadata = revealed(question.inputs.get("metadata"))
    declared = metadata if isinstance(metadata, dict) else {}
    name, namespace = declared.get("name"), declared.get("namespace")
    if not isinstance(name, str):
        name = question.id.rpartition("/")[2] if question.id else f"{question.name}-{WORD}"
    return Answer(f"{namespace}/{name}" if isinstance(namespace, str) else name, {"metadata": {"name": name}})


def _own(question: Question) -> Answer:
    """Return the id of a resource of the engine, a random UUID, which references to a provider contain; a
    stash's output is its input, of which the program ignores changes."""
    output = {"output": question.inputs.get("input")} if question.token == _STASH else {}
    return Answer(uuid_for(f"{question.token} {question.name}"), output)


ASSUMPTIONS: Final = (
    assumed_gcp.TABLES | assumed_azure.TABLES | Assumptions(packages={"kubernetes": _object, "pulumi": _own})
)
"""The combined tables of Google Cloud, Azure and Kubernetes."""


class Callbacks(_CallbackServicer):
    """The SDK's registry of hooks and transforms, without its gRPC server: a preview opens no port.

    Transforms are never called.
    """

    def __init__(self, monitor: RecordingMonitor) -> None:
        # Skips the base class's constructor, which starts the server.
        self._callbacks = {}
        self._transforms = {}
        self._state_migrations = {}
        self._monitor = monitor  # pyright: ignore[reportAttributeAccessIssue] - a mock monitor stands for the stub
        self._target = "none"
        self.hooks: dict[str, Hook] = {}
        """The hooks that run in previews, by name."""

    def register_transform(self, transform: ResourceTransform) -> callback_pb2.Callback:
        """Register a transform. One with the attribute `needs_state` has no effect without a state."""
        callback = super().register_transform(transform)
        if getattr(transform, "needs_state", False):
            callback.target = NEEDS_STATE
        return callback

    def register_resource_hook(self, hook: ResourceHook) -> None:
        """Register a hook."""
        request = self.do_register_resource_hook(hook)
        if request.on_dry_run:
            self.hooks[hook.name] = self._callbacks[request.callback.token]  # pyright: ignore[reportUnknownMemberType] # no stubs of another file's messages

    async def serve(self) -> None:
        """Start no server."""


def record(  # noqa: PLR0913 - all but the first have names
    program: Program | Path | str,
    *,
    project: str,
    stack: str,
    config: Mapping[str, str] | None = None,
    secret_keys: Iterable[str] = (),
    organization: str = "organization",
    root: Path | None = None,
    assumptions: Assumptions = ASSUMPTIONS,
    updates: Updates | None = None,
    deployed: Recording | None = None,
) -> Recording:
    """Run a program offline, as a preview of a stack would.

    Args:
        program: a callable that creates resources (it may be `async`), a directory with a `__main__.py`, or a
            file.
        project: the project's name, as `pulumi.get_project()` returns it.
        stack: the stack's name.
        config: configuration by full key (`ebbtide:cluster`), as strings like the engine's; objects as JSON.
        secret_keys: the keys whose values are secret.
        organization: the organization's name. Default: the engine's name for it without Pulumi Cloud.
        root: the project's directory, as `pulumi.get_root_directory()` returns it. Default: the program's
            directory.
        assumptions: the clouds' assumed responses.
        updates: the updates for which the program's hooks are called. Default: none.
        deployed: the deployed stack, whose inputs are kept if their changes are ignored.

    Returns:
        The resources, outputs, calls and messages of the run.

    Raises:
        ProgramError: the program failed; the exception is its cause.
    """
    config, secret_keys = dict(config or {}), list(secret_keys)
    log = MessageLog(config[key] for key in secret_keys if key in config)
    monitor = RecordingMonitor(
        project, stack, assumptions=assumptions, log=log, config=config, deployed=deployed
    )
    callbacks = Callbacks(monitor)
    path = None if callable(program) else Path(program).resolve()

    def configure() -> None:
        pulumi_config.set_all_config(config, secret_keys)
        settings.configure(
            settings.Settings(
                project=project,
                stack=stack,
                monitor=monitor,
                engine=RecordingEngine(log),
                dry_run=True,
                organization=organization,
                root_directory=str((root or path or Path()).resolve()),
            )
        )
        settings.SETTINGS.callbacks = callbacks  # pyright: ignore[reportAttributeAccessIssue]
        settings.ROOT.set(None)

    async def run_program() -> tuple[Message, ...]:
        await _run(configure, func, loop)
        return await _refusals(updates(monitor.recording()), callbacks.hooks, log) if updates else ()

    try:
        with contextlib.ExitStack() as context:
            if callable(program):
                func = program
            else:
                main = programs.main_file(Path(program).resolve())
                context.enter_context(programs.entered(main.parent))
                func = lambda: programs.run(main)  # noqa: E731 - one of two ways to the same function
            context.enter_context(_restored_settings())
            context.callback(gc.set_threshold, *gc.get_threshold())
            collect_rarely()
            context.enter_context(_short_stack_traces(path, monitor.traces))
            context.enter_context(contextlib.redirect_stdout(stdout := _Stdout(log)))
            context.callback(stdout.end)
            loop = InlineLoop()
            # Pending tasks of a failed program report errors that are never awaited; only the first is
            # raised.
            loop.set_exception_handler(lambda _loop, _context: None)
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                refused = runner.run(run_program())
    except Exception as error:
        raise explained(error, clean=log.clean, program=path) from error
    return replace(monitor.recording(), refusals=refused)


async def _refusals(
    updates: Iterable[tuple[Resource, Resource]], hooks: Mapping[str, Hook], log: MessageLog
) -> tuple[Message, ...]:
    """Return the exceptions of a program's hooks before updates, as messages, as in the engine's preview.

    Only hooks that run in previews (`on_dry_run`) are called.
    """
    result: list[Message] = []
    for old, new in updates:
        for hook in (hooks[name] for name in new.hooks.get("before_update", ()) if name in hooks):
            request = resource_pb2.ResourceHookRequest(
                urn=new.urn, id=old.id or "", name=new.name, type=new.type
            )
            fill_struct(request.old_inputs, old.inputs)
            fill_struct(request.new_inputs, new.inputs)
            response = await hook(request.SerializeToString())
            if error := getattr(response, "error", ""):
                result.append(Message(severity="error", text=log.clean(error), urn=new.urn))
    return tuple(result)


@contextlib.contextmanager
def _restored_settings() -> Generator[None]:
    """Restore the SDK's process-wide settings: the first value set becomes the default.

    A thread started after a run would otherwise use its monitor, and write into a finished recording.
    """
    name = "_ContextProperty__default"
    defaults = [
        (item, getattr(item, name)) for item in vars(settings.Settings).values() if hasattr(item, name)
    ]
    try:
        yield
    finally:
        for item, value in defaults:
            setattr(item, name, value)


@contextlib.contextmanager
def _short_stack_traces(program: Path | None, traces: list[Frames]) -> Generator[None]:
    """Replace the stack trace that the SDK takes of every resource for the engine by a frame whose line is
    the resource's number in the order of construction; add the program's own frames to `traces`.

    The SDK registers resources as their inputs become known, in an order that depends on the addresses of
    objects. A whole stack trace takes a tenth of a flat program's time, and more with deeper calls. An SDK
    without this function is unchanged.
    """
    name = "_get_stack_trace"
    original = getattr(pulumi_resource, name, None)
    if original is None:
        yield
        return
    directory = str(program if program and program.is_dir() else program.parent if program else "")

    def own() -> source_pb2.StackTrace:
        frames: list[tuple[str, int]] = []
        frame = inspect.currentframe() if directory else None
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(directory) and "site-packages" not in file:
                frames.append((file, frame.f_lineno))
            frame = frame.f_back
        place = source_pb2.SourcePosition(line=len(traces))
        traces.append(tuple(frames))
        return source_pb2.StackTrace(frames=[source_pb2.StackFrame(pc=place)])

    setattr(pulumi_resource, name, own)
    try:
        yield
    finally:
        setattr(pulumi_resource, name, original)


class _IdleSelector(selectors.DefaultSelector):
    """Detect that the loop is about to wait: while any callback is ready, the loop passes a timeout of 0."""

    def __init__(self) -> None:
        super().__init__()
        self.when_idle: list[Callable[[], None]] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout != 0 and self.when_idle:
            callbacks, self.when_idle = self.when_idle, []
            for callback in callbacks:
                callback()
            timeout = 0
        return super().select(timeout)


class InlineLoop(asyncio.SelectorEventLoop):
    """Run the SDK's calls inline; all other calls to an executor still get a thread.

    The SDK sends each call to a worker thread because a real engine is a separate process. The recorder is a
    method that returns in microseconds: the thread switch costs more than the call, and the workers leave
    unclosed event loops behind.
    """

    def __init__(self) -> None:
        self._idle = _IdleSelector()
        super().__init__(self._idle)

    def run_in_executor(  # pyright: ignore[reportIncompatibleMethodOverride] - typeshed's has variadic types
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Return the result of the call as a future, already complete for the SDK's own calls
        (`wrap_with_context`)."""
        if executor is not None or func.__module__ != "pulumi.runtime._context":
            return super().run_in_executor(executor, func, *args)
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - what the call raised belongs to the task that awaits it
            future.set_exception(error)
        return future

    async def idle(self) -> None:
        """Return when no task can proceed without time, threads or the network."""
        done: asyncio.Future[None] = self.create_future()

        def finish() -> None:
            if not done.done():
                done.set_result(None)

        self._idle.when_idle.append(finish)
        await done


async def _run(configure: Callable[[], None], func: Program, loop: InlineLoop) -> None:
    """Run a program inside a stack resource, in a task whose context holds the run's settings.

    The settings are context variables and end with the task.
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
        # The SDK waits for pending results one by one, scanning all of them each time. Once the loop is idle,
        # all are done.
        await loop.idle()

    try:
        await pulumi_stack.run_in_stack(watched)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the program's
        # The program's own failure is more informative than that of an unfinished call; of calls, report the
        # first.
        first = raised[0] if raised else _rpc_manager().unhandled_exception or error
        if first.__cause__ is first:
            first.__cause__ = None
        raise first  # noqa: B904 - what it came from was raised by it
    await _logged()


async def _logged() -> None:
    """Wait for messages about a resource: the SDK sends them when its URN is known and does not track
    them.
    """
    pending = {task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__name__", "") == "do_log"}
    if pending:
        await asyncio.wait(pending)


class _Stdout(io.TextIOBase):
    """Standard output of a program, recorded as a message per line, as the engine does."""

    def __init__(self, log: MessageLog) -> None:
        self._log = log
        self._rest = ""

    def write(self, text: str, /) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line.strip():
                self._log.add("info", line.rstrip())
        return len(text)

    def writable(self) -> bool:
        return True

    def end(self) -> None:
        """Record the last line, which may lack a newline."""
        self.write("\n")
