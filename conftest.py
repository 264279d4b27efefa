"""Settings of all tests, and the deselection of those that read released manifests."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import date
from typing import Any, Final

import pytest
from google.rpc import status_pb2  # pyright: ignore[reportMissingTypeStubs]
from hypothesis import settings

from ebbtide import lazy_packages

# The collection of tests imports much that stays: without either it takes half as long again.
gc.disable()
lazy_packages.install()

# The SDK's provider has a copy of this module, and a process can load one of them. kfp and the fake clouds
# load googleapis', and some tests load both in one process.
sys.modules.setdefault("pulumi.runtime.proto.status_pb2", status_pb2)

# Time is measured in benchmarks/, and no test asserts it: a busy machine would fail it.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

_DESELECTED: Final = pytest.StashKey[int]()


@pytest.fixture(scope="session", autouse=True)
def day_of_rules() -> Iterator[None]:
    """Check declarations on the day that they were written: AKS ends the versions that they pin, and the
    clouds retire their machines."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("cluster", "machines"):
            patch.setattr(f"ebbtide.declaration.model.rules.{module}.today", lambda: date(2026, 11, 27))
        yield


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Restore the handling of SIGINT: processes in the background of a shell ignore it, and so do their
    children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=["minimal", pytest.param("released", marks=pytest.mark.released)])
def minimal_and_released(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the test on minimal manifests of Kubeflow Pipelines and Katib, and on the released ones."""
    from tests.manifests import reading_minimal  # noqa: PLC0415 - imported already, by the tests' modules

    with reading_minimal() if request.param == "minimal" else nullcontext():
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of released manifests that are not on this machine."""
    released = [item for item in items if item.get_closest_marker("released")]
    if not released:
        return
    from tests.manifests import KUBEFLOW, path_of  # noqa: PLC0415 - imported already, by the tests' modules

    deselected = {
        item
        for item in released
        for mark in item.iter_markers("released")
        if not all(map(path_of, mark.args or KUBEFLOW))
    }
    items[:] = [item for item in items if item not in deselected]
    config.hook.pytest_deselected(items=list(deselected))
    config.stash[_DESELECTED] = len(deselected)
    output: dict[str, int] | None = getattr(config, "workeroutput", None)  # of a process of `-n`
    if output is not None:
        output["released"] = len(deselected)


def pytest_collection_finish() -> None:
    """Spare the garbage collector the modules, which remain, and most of its runs over young objects."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Have one process more than cores: some tests wait, such as for the end of an idle time."""
    return (os.cpu_count() or 1) + 1


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
