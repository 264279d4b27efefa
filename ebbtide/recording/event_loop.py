"""The event loop of a program: it uses no threads and detects idleness.

The SDK sends each call to a worker thread because a real engine is a separate process. The recorder is a
method that returns in microseconds: the thread switch costs more than the call, and the workers leave
unclosed event loops behind.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any


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
    """Run the SDK's calls inline; all other calls to an executor still get a thread."""

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
