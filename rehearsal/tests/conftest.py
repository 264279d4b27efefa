"""The programs that tests of the `pulumi` command line ran, in the summary."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List them, in any of the processes of the run."""
    reports = [report for name in ("passed", "failed") for report in terminalreporter.stats.get(name, [])]
    for name, value in sorted({pair for report in reports for pair in report.user_properties}):
        terminalreporter.write_line(f"{name}: {value}")
