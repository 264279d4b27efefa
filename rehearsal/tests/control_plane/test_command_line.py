"""A stack with objects on its cluster, through the real `pulumi` command line: engine, language host,
Kubernetes provider and control plane are real.
"""

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from ebbtide_rehearsal.cloud.running import RunningCloud
from ebbtide_rehearsal.cloud.settings import CloudSettings
from ebbtide_rehearsal.sources import link_charts
from ebbtide_rehearsal.tools import ensure, narration, needed
from rehearsal.tests.engine.terminal import Terminal, terminal_in
from tests.repository import ROOT

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

DECLARED = {
    "name": "lined",
    "owner": "rehearsal",
    "lifetime": {"hours": 8},
    "cloud": {"kind": "gke", "project": "rehearsal", "location": "us-central1-a"},
    "pools": [
        {"name": "system", "role": "system", "machine": "e2-standard-4", "nodes": {"min": 1, "max": 2}},
        {"name": "cpu-spot", "machine": "n2-standard-4", "capacity": "spot", "nodes": {"max": 1}},
    ],
    "queues": [{"name": "cpu", "pools": ["cpu-spot"]}],
    "teams": [{"name": "research", "queues": [{"queue": "cpu"}]}],
}


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Generator[Terminal]:
    """A copy of the checkout with a stack that has a queue and a team, and a fake cloud."""
    root = tmp_path / "checkout"
    for name in ("components", "ebbtide", "stacks"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, root)
    (root / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {"ebbtide:cluster": DECLARED}}))
    with narration(Console(stderr=True)) as say:
        tools = ensure(needed(()), say=say)
    link_charts(root, tools, [])
    trusted = tmp_path / "trusted.crt"
    trusted.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    settings = CloudSettings(speed=60, tools={name: str(tool.path) for name, tool in tools.by_name.items()})
    with RunningCloud(tmp_path, settings) as cloud:
        yield terminal_in(tmp_path, root, cloud.providers, request.node)


def test_a_stack_comes_up_stays_the_same_and_goes(terminal: Terminal) -> None:
    """After `up`, neither `refresh` nor `up` has anything to change."""
    terminal.run("pulumi stack init dev")
    terminal.run("pulumi preview --stack dev")
    terminal.run("pulumi up --stack dev")
    assert "lined" in terminal.run("pulumi stack output clusterName --stack dev")
    terminal.run("pulumi up --stack dev --expect-no-changes")
    terminal.run("pulumi refresh --stack dev --expect-no-changes")
    terminal.run("pulumi up --stack dev --expect-no-changes")
    terminal.run("pulumi destroy --stack dev")
    terminal.run("pulumi stack rm dev --yes")
