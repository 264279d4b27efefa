"""A project with a stack on a fake cloud whose clusters are real, for commands that a user types."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide_rehearsal.cloud.existing import tools_of
from ebbtide_rehearsal.stay import stay
from ebbtide_rehearsal.tools.find import ensure
from ebbtide_rehearsal.tools.progress import narration
from ebbtide_rehearsal.tools.table import needed
from rehearsal.tests.engine.sites import Checkout, checkout_in
from rehearsal.tests.engine.terminal import Terminal
from tests.declarations import Declaration


@contextmanager
def live(directory: Path, declared: Declaration, request: pytest.FixtureRequest) -> Generator[Checkout]:
    """A copy of the checkout with a declared stack that has no resources yet."""
    root = checkout_in(directory)
    tools = (*needed(()), *tools_of(declared))
    (root / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {"ebbtide:cluster": declared}}))
    with (
        narration(Console(stderr=True)) as say,
        stay(read_stack(root, "dev"), ensure(tools, on_step=say), say, keep=directory / "stay") as up,
    ):
        request.node.user_properties.extend(up.shell.versions.items())
        own = up.shell.having(HOME=str(directory), PULUMI_SKIP_CONFIRMATIONS="true")
        site = Checkout(Terminal(up.project, own.environment()), up.cloud.store)
        site.terminal.run("pulumi stack init dev")
        yield site
