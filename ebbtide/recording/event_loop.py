"""The event loop that a program runs on: nothing on it goes through a thread, and it knows when it has
nothing to do.

The SDK hands each call to a worker thread because a real engine is a process away. Ours is a method that
returns in microseconds: the hop costs more than the call, and the workers leave unclosed event loops behind.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any


class _IdleSelector(selectors.DefaultSelector):
    """Says when the loop is about to wait: it asks for a timeout of 0 as long as anything is ready to run."""

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
    """Runs what the SDK would hand to a thread right here; whatever else asks for a thread still gets one."""

    def __init__(self) -> None:
        self._idle = _IdleSelector()
        super().__init__(self._idle)

    def run_in_executor(  # pyright: ignore[reportIncompatibleMethodOverride] - typeshed's has variadic types
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """The result of the call as a future, already done when the SDK made it (`wrap_with_context`)."""
        if executor is not None or func.__module__ != "pulumi.runtime._context":
            return super().run_in_executor(executor, func, *args)
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - what the call raised belongs to whoever awaits it
            future.set_exception(error)
        return future

    async def idle(self) -> None:
        """Return when everything that can run has run, and only time, threads or the network could bring
        more.
        """
        nothing_left: asyncio.Future[None] = self.create_future()

        def say() -> None:
            if not nothing_left.done():
                nothing_left.set_result(None)

        self._idle.when_idle.append(say)
        await nothing_left
