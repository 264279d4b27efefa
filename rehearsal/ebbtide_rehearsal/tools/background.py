"""Calls in daemon threads, which do not keep the process alive."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def in_background(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
    """Call a function in a daemon thread: a name server that does not answer cannot be interrupted."""
    future: Future[_T] = Future()

    def call() -> None:
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - raised by future.result()
            future.set_exception(error)

    Thread(target=call, daemon=True).start()
    return future
