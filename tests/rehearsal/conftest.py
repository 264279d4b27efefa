"""The tools, found or built once, and control planes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from ebbtide.rehearsal.control_plane import NAMES, ControlPlane, Settings, Tools
from ebbtide.rehearsal.tools import ensure, narration


@pytest.fixture(scope="session")
def tools() -> Tools:
    """Everything that these tests run."""
    with narration(Console(stderr=True)) as say:
        return ensure([*NAMES, "kubectl", "helm", "kueue-chart"], say=say)


@pytest.fixture(scope="module")
def control_plane(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane for the tests of a file."""
    directory: Path = tmp_path_factory.mktemp("control-plane")
    with ControlPlane.start(directory, tools, Settings(name="tried", cloud="gke")) as started:
        yield started
