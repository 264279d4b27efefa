"""Projects and sites on which commands of the engine run."""

from collections.abc import Generator
from pathlib import Path

import pytest

from rehearsal.tests.engine.cloud_commands import Commands, commands
from rehearsal.tests.engine.projects import Project, project_in
from rehearsal.tests.engine.sites import Site, site_on
from rehearsal.tests.unit.rest_clouds import rest_clouds


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """One without a stack."""
    return project_in(tmp_path)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Commands]:
    """A project without a stack, and the fake clouds."""
    with rest_clouds(tmp_path, monkeypatch) as clouds:
        yield commands(project_in(tmp_path), clouds, monkeypatch)


@pytest.fixture
def gke(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Site]:
    """A cluster with a system pool and a pool of spot machines, not yet created."""
    yield from site_on("gke", tmp_path, request)
