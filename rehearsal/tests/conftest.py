"""The programs that tests of the `pulumi` command line ran, in the summary; and Ctrl-C."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Restore the handling of SIGINT: processes in the background of a shell ignore it, and so do their
    children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List them, in any of the processes of the run."""
    reports = [report for name in ("passed", "failed") for report in terminalreporter.stats.get(name, [])]
    for name, value in sorted({pair for report in reports for pair in report.user_properties}):
        terminalreporter.write_line(f"{name}: {value}")
