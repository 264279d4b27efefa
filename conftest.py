"""Settings of all tests, and the deselection of those that read released manifests."""

from typing import Any, Final

import pytest
from hypothesis import settings

# Time is measured in benchmarks/, and no test asserts it: a busy machine would fail it.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

_DESELECTED: Final = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of released manifests that are not on this machine."""
    names = {item: {name for mark in item.iter_markers("released") for name in mark.args} for item in items}
    if not any(names.values()):
        return
    from tests.manifests import path_of  # noqa: PLC0415 - imported already, by the modules of these tests

    missing = {name for name in set[str]().union(*names.values()) if path_of(name) is None}
    deselected = [item for item in items if names[item] & missing]
    items[:] = [item for item in items if not names[item] & missing]
    config.hook.pytest_deselected(items=deselected)
    config.stash[_DESELECTED] = len(deselected)
    output: dict[str, int] | None = getattr(config, "workeroutput", None)  # of a process of `-n`
    if output is not None:
        output["released"] = len(deselected)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the count of one such process: each collects every test."""
    node.config.stash[_DESELECTED] = node.workeroutput.get("released", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Count the deselected tests, and name the command that renders the manifests."""
    if count := config.stash.get(_DESELECTED, 0):
        terminalreporter.write_line(
            f"{count} tests of released manifests (Kubeflow Pipelines, Katib, Kueue) were deselected: "
            "`make manifests` renders these, with Go and git."
        )
