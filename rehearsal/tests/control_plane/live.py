"""A project with a stack on a fake cloud whose clusters are real, for commands that a user types."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from ebbtide_rehearsal.cloud.running import RunningCloud
from ebbtide_rehearsal.cloud.settings import CloudSettings
from ebbtide_rehearsal.sources import link_charts
from ebbtide_rehearsal.tools import ensure, narration, needed
from rehearsal.tests.engine.sites import Checkout, checkout_in
from rehearsal.tests.engine.terminal import Terminal, terminal_in
from tests.declarations import Declaration


@contextmanager
def live(
    directory: Path, declared: Declaration, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Generator[Checkout]:
    """A copy of the checkout with a declared stack that has no resources yet."""
    root = checkout_in(directory)
    with narration(Console(stderr=True)) as say:
        tools = ensure(needed(()), on_step=say)
    link_charts(root, tools, [])
    trusted = directory / "trusted.crt"
    trusted.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    settings = CloudSettings(speed=60, tools={name: str(tool.path) for name, tool in tools.by_name.items()})
    with RunningCloud(directory, settings) as cloud:
        terminal = terminal_in(directory, root, cloud.providers, request.node)
        # The fake cloud's credential plugins.
        path = os.pathsep.join((str(directory / "bin"), terminal.environment["PATH"]))
        site = Checkout(Terminal(root, terminal.environment | {"PATH": path}), cloud.store)
        site.declare(declared)
        site.terminal.run("pulumi stack init dev")
        yield site
