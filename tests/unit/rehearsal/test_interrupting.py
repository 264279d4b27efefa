"""Ctrl-C while the engine runs."""

import signal
from collections.abc import Iterator

import pytest

from ebbtide.rehearsal import interrupting


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """What a shell runs in the background ignores interruptions."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_what_runs_is_made_to_end_once_and_the_interruption_comes_after() -> None:
    """Two interruptions: one end, nothing is cut short, and only then KeyboardInterrupt."""
    said: list[str] = []

    def run() -> None:
        with interrupting.in_order(lambda: said.append("end")):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            said.append("ran to its end")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert said == ["end", "ran to its end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interruption_counts_more_than_the_failure_that_it_makes() -> None:
    """The engine fails because its providers have ended; that is no news."""

    def run() -> None:
        with interrupting.in_order(lambda: None):
            signal.raise_signal(signal.SIGINT)
            raise ValueError

    with pytest.raises(KeyboardInterrupt):
        run()


def test_ignored_interruptions_stay_ignored() -> None:
    """In the background of a shell nothing is changed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupting.in_order(lambda: pytest.fail("It was ended.")):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
