"""The order of the tests, and the programs that those of the `pulumi` command line ran."""

from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """For `--dist loadgroup`: begin with the longest, and keep together what shares a control plane."""
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
    for item in items:
        if hasattr(config, "workerinput") and isinstance(item, pytest.Function) and (group := _group(item)):
            # pytest-xdist 3.8 adds the mark `xdist_group` to an attribute that pytest 9.2 no longer has.
            known: Any = item
            known._id = known._id.parse(f"{item.nodeid}@{group}")  # noqa: SLF001


def _group(item: pytest.Function) -> str:
    if item.path.parent.name == "adversarial":
        return f"adversarial-{item.callspec.params['cloud']}"
    fixtures = item._fixtureinfo.name2fixturedefs.values()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    shares = any(fixture.scope == "module" for definitions in fixtures for fixture in definitions)
    return item.location[0] if shares else ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List them, in any of the processes of the run."""
    reports = [report for name in ("passed", "failed") for report in terminalreporter.stats.get(name, [])]
    for name, value in sorted({pair for report in reports for pair in report.user_properties}):
        terminalreporter.write_line(f"{name}: {value}")
