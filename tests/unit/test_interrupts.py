"""Ctrl-C while the engine works."""

import signal
from collections.abc import Iterator

import pytest

from ebbtide.interrupts import deferred_interrupts


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
