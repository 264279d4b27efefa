"""A shell with the real `pulumi`, its Python language host and its Kubernetes provider."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.protocol import serving
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.engine import shell
from rehearsal.tests.control_planes import FakeControlPlanes


@dataclass(frozen=True, slots=True)
class Terminal:
    """A shell in a project's directory, where `pulumi` has a home and a backend of its own.

    Attributes:
        root: the directory.
        environment: the shell's.
    """

    root: Path
    environment: dict[str, str]

    def run(self, command: str) -> str:
        """Standard output of a command that succeeds; nothing can be answered, and nothing has to be."""
        done = self.ended(command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ended(self, command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return subprocess.run(
            ["bash", "-c", command],  # noqa: S607 - the one that is first on PATH
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def terminal_in(directory: Path, root: Path, providers: str, test: pytest.Item) -> Terminal:
    """A shell.

    Args:
        directory: for state and settings.
        root: the project's directory.
        providers: addresses of the fake clouds' providers, as `PULUMI_DEBUG_PROVIDERS` has them.
        test: the test, whose report names the language host and the provider.
    """
    made = shell(directory, providers, lambda _: None)
    test.user_properties.extend(made.versions.items())
    return Terminal(root, made.having(HOME=str(directory), PULUMI_SKIP_CONFIRMATIONS="true").environment())


@contextmanager
def terminal_on_gke(directory: Path, root: Path, test: pytest.Item) -> Generator[Terminal]:
    """A shell in a project's directory with a fake cloud, as `terminal_in`."""
    store = Store(directory / "cloud.sqlite")
    with serving(store, FakeProvider("gcp", store, FakeControlPlanes())) as providers:
        yield terminal_in(directory, root, providers, test)
