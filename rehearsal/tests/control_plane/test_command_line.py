"""A stack with objects on its cluster, through the real `pulumi` command line: engine, language host,
Kubernetes provider and control plane are real.
"""

from collections.abc import Generator
from pathlib import Path

import pytest

from rehearsal.tests.control_plane.live import live
from rehearsal.tests.engine.terminal import Terminal
from tests.declarations import Declaration

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

DECLARED: Declaration = {
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
def terminal(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Terminal]:
    """A copy of the checkout with a stack that has a queue and a team, and a fake cloud."""
    with live(tmp_path, DECLARED, request) as site:
        yield site.terminal


def test_a_stack_comes_up_stays_the_same_and_goes(terminal: Terminal) -> None:
    """After `up`, neither `refresh` nor `up` has anything to change."""
    terminal.run("pulumi preview --stack dev")
    terminal.run("pulumi up --stack dev")
    assert "lined" in terminal.run("pulumi stack output clusterName --stack dev")
    terminal.run("pulumi up --stack dev --expect-no-changes")
    terminal.run("pulumi refresh --stack dev --expect-no-changes")
    terminal.run("pulumi up --stack dev --expect-no-changes")
    terminal.run("pulumi destroy --stack dev")
    terminal.run("pulumi stack rm dev --yes")
