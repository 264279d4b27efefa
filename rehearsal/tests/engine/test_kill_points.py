"""SIGKILL at every step of `ebbtide up`, a pool's replacement, `ebbtide adopt` and `ebbtide destroy`.

A step is a line of progress or a call of the cloud's API, which the cloud completes although its caller is
dead. A tenth of the calls fail meanwhile. Every command continues where the killed one was, and in the end
nothing is left.
"""

import os
import random
import re
import signal
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import grpc
import pytest

from ebbtide_rehearsal.cloud.protocol import Servicer, refuse
from ebbtide_rehearsal.cloud.provider import Call
from rehearsal.tests.engine.sites import Site, as_of_others, site_on, with_work
from tests.declarations import pool

pytestmark = [pytest.mark.engine, pytest.mark.first, pytest.mark.timeout(7200)]

_STEP = re.compile(r"(created|updated|adopted|gone|created again|replaced): |Beside |The drained pool |pool ")
_NUMBERS = re.compile(r"\d+")
_FAILING = 0.1
_MOST = 40
"""Runs of a command without a new step."""


class _Unreliable(Servicer):
    """A provider whose cloud fails a share of the calls."""

    reach: ClassVar[Callable[[str], None] | None] = None
    """Called with each call, before the cloud starts it; without it, every call succeeds."""
    _random = random.Random(1)  # noqa: S311 - for a test

    def _strike(self, operation: str, call: Call, context: grpc.ServicerContext) -> None:
        reach = type(self).reach
        if reach and not call.preview:
            reach(f"{operation} {call.urn}")
            if self._random.random() < _FAILING:
                refuse(context, f"googleapi: Error 503: {operation}: unavailable., backendError")
        super()._strike(operation, call, context)


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Site]:
    """A cluster with a system pool and a pool of spot machines, not yet created."""
    yield from site_on(request.param, tmp_path, request, _Unreliable)


def _on(*clouds: str) -> pytest.MarkDecorator:
    """Every thirty-second step on some clouds, and in the long run every one on both."""
    every = [pytest.param(name, 1, marks=pytest.mark.long) for name in ("gke", "aks")]
    some = [(name, 32) for name in clouds]
    return pytest.mark.parametrize(("site", "stride"), [*some, *every], indirect=["site"])


def _ended(
    site: Site, command: str, stride: int, reach: Callable[[str], object] = lambda _: None, option: str = ""
) -> Counter[str]:
    """Run a command until it succeeds, killed at every step that earlier runs did not reach; count its ends.

    Args:
        site: the stack.
        command: `up` or `destroy`.
        stride: 1 to kill at every step, 2 at every second one.
        reach: called with each line of a step.
        option: option of the command.
    """
    ends: Counter[str] = Counter()
    lines: list[str] = []
    reached: set[str] = set()

    def kill_at(step: str) -> None:
        if step not in reached:
            reached.add(step)
            if (len(reached) - 1) % stride == 0:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    barren = 0
    while barren < _MOST:
        process = site.start(command, *filter(None, [option]))
        _Unreliable.reach = kill_at
        assert process.stdout is not None
        before, lines = len(reached), []
        for line in process.stdout:
            lines.append(line)
            if _STEP.match(line):
                reach(line)
                kill_at(_NUMBERS.sub("", line))
        with process:
            status = process.wait()
        _Unreliable.reach = None
        if status == 0:
            return ends
        ends["killed" if status == -signal.SIGKILL else "failed"] += 1
        assert "Traceback" not in "".join(lines), "".join(lines)
        barren = 0 if len(reached) > before else barren + 1
    raise AssertionError(f"{command} does not end: {ends}\n{''.join(lines)}")


@_on("aks")
def test_every_step_may_be_the_last(site: Site, stride: int, request: pytest.FixtureRequest) -> None:
    """The cloud is empty after the destroy, and no lock or pending operation needs a person."""
    declared = site.declared()
    declared["pools"] += [{**pool(declared, "cpu"), "name": name} for name in ("cpu2", "cpu3")]
    site.declare(declared)
    ends = {"up": _ended(site, "up", stride)}
    with_work(site)
    pool(declared, "cpu").update(capacity="on-demand")
    site.declare(declared)
    ends["replacement"] = _ended(
        site, "up", stride, lambda line: site.api.pods.clear() if line.startswith("pool ") else None
    )
    assert "cpu" not in site.pools()
    ends["destroy"] = _ended(site, "destroy", stride)
    assert [resource for resource in site.store.resources() if resource.urn] == []
    assert "pending_operations" not in site.terminal.run("pulumi stack export --stack dev")
    for phase, counts in ends.items():
        summary = f"{counts['killed']} kills, {counts['failed']} failures"
        request.node.user_properties.append((f"{request.node.callspec.id}, {phase}", summary))
    assert all(counts["killed"] for counts in ends.values())


@_on()  # tests/unit/cli/test_interruptions.py interrupts one at every effect
def test_a_reaper_may_be_killed_at_every_step(
    site: Site, stride: int, request: pytest.FixtureRequest
) -> None:
    """The next one completes, since the stack remains expired; a stack that has not expired is as it was."""
    assert site.up()[0] == 0
    before = {"resources": site.state(), "cloud": len(site.store.resources())}
    assert "No stack has expired." in site.run("reap")[1]
    assert before == {"resources": site.state(), "cloud": len(site.store.resources())}
    text = site.terminal.run("pulumi stack export --stack dev")
    expired = re.sub(r'("expires": )"[^"]+"', r'\1"2026-11-22T20:00Z"', text)
    (site.terminal.root / "state.json").write_text(expired)
    site.terminal.run("pulumi stack import --stack dev --file state.json")
    ends = _ended(site, "reap", stride)
    assert [resource for resource in site.store.resources() if resource.urn] == []
    assert "No stack has expired." in site.run("reap")[1]
    summary = f"{ends['killed']} kills, {ends['failed']} failures"
    request.node.user_properties.append((f"{request.node.callspec.id}, reap", summary))
    assert ends["killed"]


@_on()  # test_adopt.py kills one
def test_an_adoption_may_be_killed_at_every_step(
    site: Site, stride: int, request: pytest.FixtureRequest
) -> None:
    """The next run completes it, and so does that of the undo; the cloud is as it was all the time, and what
    is left can be adopted."""
    assert site.up()[0] == 0
    count = as_of_others(site)
    before = {item.id: item.inputs for item in site.store.resources()}
    ends: Counter[str] = Counter()
    for option, left in (("--into-state", count), ("--undo", 0)):
        ends += _ended(site, "adopt", stride, option=option)
        assert sum("importID" in item for item in site.state()) == left
        assert {item.id: item.inputs for item in site.store.resources()} == before
        assert "pending_operations" not in site.terminal.run("pulumi stack export --stack dev")
    for command in (("adopt", "--into-state"), ("up",)):
        status, out = site.run(*command)
        assert status == 0, out
    summary = f"{ends['killed']} kills, {ends['failed']} failures"
    request.node.user_properties.append((f"{request.node.callspec.id}, adopt", summary))
    assert ends["killed"]
