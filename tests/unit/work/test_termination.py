import os
import signal
import subprocess
import sys
import threading
from types import FrameType

import pytest

from ebbtide.in_pods.termination import Termination
from tests.repository import ROOT


def _tell(number: signal.Signals = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


def test_the_flag_goes_up_and_the_handler_before_is_called() -> None:
    """The earlier handler is still called, and is alone again afterwards."""
    called: list[int] = []

    def before(number: int, _: FrameType | None) -> None:
        called.append(number)

    original = signal.signal(signal.SIGTERM, before)
    try:
        with Termination() as termination:
            assert not termination.announced
            _tell()
            assert termination.announced
        assert called == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGTERM, original)


def test_other_signals() -> None:
    """Any signal can be the announcement, and only the given ones are handled."""
    before = signal.getsignal(signal.SIGTERM)
    with Termination(signal.SIGUSR1, signal.SIGUSR2) as termination:
        assert signal.getsignal(signal.SIGTERM) is before
        _tell(signal.SIGUSR2)
        assert termination.announced


def test_the_flag_goes_up_before_a_handler_that_raises() -> None:
    """A handler of before that ends the loop by an exception finds the flag up."""

    def before(*_: object) -> None:
        raise InterruptedError

    original = signal.signal(signal.SIGTERM, before)
    try:
        with Termination() as termination:
            with pytest.raises(InterruptedError):
                _tell()
            assert termination.announced
    finally:
        signal.signal(signal.SIGTERM, original)


def test_only_the_main_thread_may_ask() -> None:
    """Elsewhere Python itself refuses, and says why."""
    raised: list[str] = []

    def ask() -> None:
        try:
            Termination()
        except ValueError as error:
            raised.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert "main thread" in raised[0]


def test_a_process_that_is_told_saves_and_leaves() -> None:
    """Without a handler before, the signal no longer ends the process: the loop does."""
    code = (
        "import time\nfrom ebbtide.in_pods.termination import Termination\n"
        "end = Termination()\nprint('ready', flush=True)\n"
        "while not end.announced: time.sleep(0.001)\nprint('saved')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.communicate(timeout=600)[0] == "saved\n"
        assert process.returncode == 0
