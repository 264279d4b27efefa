"""Commands in this process, so that their clients reach the fake clouds' REST APIs."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide.clients.clouds import azure_inventory, google_inventory
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.engine.projects import Project
from rehearsal.tests.engine.sites import Site, site_on
from rehearsal.tests.unit.rest_clouds import RestClouds, rest_clouds


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands on a project's stacks.

    Attributes:
        project: the project.
        clouds: the fake clouds.
    """

    project: Project
    clouds: RestClouds

    def run(self, *args: str, typed: str | None = None) -> tuple[int, str, str]:
        """Exit status, standard output and standard error.

        Args:
            args: the command line.
            typed: what a user types, at a terminal; None without one.
        """
        done = CliRunner().invoke(app, [*args, "--cwd", str(self.project.root)], input=typed)
        assert "Traceback" not in done.stderr, done.stderr
        return done.exit_code, done.stdout, done.stderr


def commands(project: Project, clouds: RestClouds, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Return commands that run `pulumi` as the project's user does, and find the fake clouds."""
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("ARM_SUBSCRIPTION_ID", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    for module in (google_inventory, azure_inventory):
        monkeypatch.setattr(module, "_POLL", 0.0)
    return Commands(project, clouds)


@contextmanager
def commands_on(
    cloud: str, directory: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Generator[tuple[Site, Commands]]:
    """A site, and commands in this process on its stack, which find its cloud's REST APIs."""
    with (
        rest_clouds(directory, monkeypatch, store=Store(directory / "cloud.sqlite")) as clouds,
        contextmanager(site_on)(cloud, directory, request) as site,
    ):
        project = Project(site.terminal.root, directory / "state", site.terminal.environment)
        yield site, commands(project, clouds, monkeypatch)
