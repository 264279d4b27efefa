"""Ctrl-C, deferred and repeated."""

import signal
import sys
import time
import weakref
from collections.abc import Iterator

import pytest

from ebbtide.operations.engine.interrupts import deferred_interrupts, repeated_interrupts
from tests.repository import ran


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Enable SIGINT, which a shell's background processes ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_interruption_is_acted_on_and_nothing_is_cut_short() -> None:
    """Two of them: one call, what runs goes on to its end, and after it Ctrl-C is what it was."""
    calls: list[str] = []
    with deferred_interrupts(lambda: calls.append("first")) as interrupts:
        assert not interrupts.received
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        calls.append("ran to its end")
    assert interrupts.received
    assert calls == ["first", "ran to its end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ignored_interruptions_stay_ignored() -> None:
    """In the background of a shell nothing is changed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred_interrupts(lambda: pytest.fail("It was noted.")) as interrupts:
        signal.raise_signal(signal.SIGINT)
    assert not interrupts.received
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_lost_interruption_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exception of a callback is lost; another one follows, and none once the block has ended."""
    lost: list[str] = []

    def record(error: "sys.UnraisableHookArgs") -> None:
        lost.append(type(error.exc_value).__name__)

    monkeypatch.setattr(sys, "unraisablehook", record)
    with pytest.raises(KeyboardInterrupt), repeated_interrupts():
        _interrupt_within_a_callback()
    assert lost == ["KeyboardInterrupt"]
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interruption_within_a_class_is_no_error() -> None:
    """The RuntimeError that Python 3.11 raises for one within a `__set_name__` counts as one; other errors
    stay."""
    with pytest.raises(KeyboardInterrupt), repeated_interrupts():
        _interrupt_within_a_class()
    with pytest.raises(ValueError, match="own"), repeated_interrupts():
        raise ValueError("own")
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def _interrupt_within_a_class() -> None:
    class Field:
        def __set_name__(self, _owner: type, _name: str) -> None:
            signal.raise_signal(signal.SIGINT)

    type("Owner", (), {"field": Field()})


def _interrupt_within_a_callback() -> None:
    referent = type("Referent", (), {})()
    reference = weakref.ref(referent, lambda _: signal.raise_signal(signal.SIGINT))
    del referent
    assert reference() is None
    time.sleep(30)


_PROGRAM = """
import os, signal, sys, threading, time, weakref
from ebbtide.cli import consoles
from ebbtide.operations.engine.interrupts import keep_interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
consoles.prepare_streams()
keep_interrupts()
def read():
    raise ValueError("I/O operation on closed file")
thread = threading.Thread(target=read)
thread.start()
thread.join()
class Referent: pass
referent = Referent()
reference = weakref.ref(referent, lambda _: signal.raise_signal(signal.SIGINT))
print("begun")
try:
    del referent
    time.sleep(10)
except KeyboardInterrupt:
    os._exit(130)
"""


def test_an_interrupt_leaves_no_traceback() -> None:
    """One that Python loses within a callback comes again, a reader of a closed file ends in silence, and
    what was printed into a file is there although the process ends at once."""
    done = ran(sys.executable, "-c", _PROGRAM, status=130)
    assert (done.stdout, done.stderr) == ("begun\n", "")


_STARTING = """
import sys
class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == "ebbtide.cli.status":
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as error:
                {}
sys.meta_path.insert(0, Interrupted())
from ebbtide.cli import main
"""


@pytest.mark.parametrize("raised", ["raise", "raise RuntimeError('__set_name__') from error"])
def test_an_interrupt_of_a_starting_command_leaves_no_traceback(raised: str) -> None:
    """The modules of the command line are loaded before it can end an interrupt itself."""
    done = ran(sys.executable, "-c", _STARTING.format(raised), status=130)
    assert (done.stdout, done.stderr) == ("", "")
