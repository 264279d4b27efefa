"""SIGKILL at every step of `ebbtide up`, of a pool's replacement and of `ebbtide destroy`, while API calls
fail: every command continues where the killed one was, and in the end nothing is left.
"""

import random
import re
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from ebbtide_rehearsal.cloud.faults import API_ERROR, InjectedFault
from rehearsal.tests.engine.sites import Site, kill, site_on, with_work
from tests.declarations import pool

pytestmark = [pytest.mark.engine, pytest.mark.long]

_STEP = re.compile(r"^(created|updated|deleted|gone|replaced): ")
_BUSY = "googleapi: Error 503: The service is currently unavailable., backendError"
_SHARE = 0.1
"""Share of the commands' API calls that fail: one call of a command, in this share of its steps."""
_MOST = 60
"""Runs of a command until it must have ended."""


@pytest.fixture(params=["gke", "aks"])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Site]:
    """A cluster with a system pool and a pool of spot machines, not yet created."""
    yield from site_on(request.param, tmp_path, request)


def _ended(site: Site, command: str, chance: random.Random) -> Counter[str]:
    """Run a command again and again, killed after one step each, until it succeeds; count the kills and the
    failures by the resource type of the step."""
    counts: Counter[str] = Counter()
    output = ""
    for _ in range(_MOST):
        fault = None
        if chance.random() < _SHARE:
            fault = site.store.ask(InjectedFault(API_ERROR, "*", 1, {"message": _BUSY}))
        process = site.start(command)
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if _STEP.match(line):
                kill(process)
                counts["killed"] += 1
                break
        else:
            with process:
                status = process.wait()
            if status == 0:
                return counts
            counts["failed"] += 1
        if fault is not None:
            site.store.lift(fault)
        output = "".join(lines)
        assert "Traceback" not in output, output
    raise AssertionError(f"{command} does not end: {counts}, {output}")


def test_every_step_may_be_the_last(site: Site, request: pytest.FixtureRequest) -> None:
    """The store is empty after the destroy, and no lock or pending operation needs a person."""
    chance = random.Random(1)  # noqa: S311 - repeatable
    kills = {"up": _ended(site, "up", chance)}
    with_work(site)
    site.api.pods.clear()
    declared = site.declared()
    pool(declared, "cpu").update(capacity="on-demand")
    site.declare(declared)
    kills["replacement"] = _ended(site, "up", chance)
    assert "cpu" not in site.pools()
    kills["destroy"] = _ended(site, "destroy", chance)
    assert [item for item in site.store.resources() if item.urn] == []
    assert "pending_operations" not in site.terminal.run("pulumi stack export --stack dev")
    for phase, counts in kills.items():
        summary = f"{counts['killed']} kills, {counts['failed']} failures"
        request.node.user_properties.append((f"{request.node.callspec.id}, {phase}", summary))
    assert all(counts["killed"] for counts in kills.values())
