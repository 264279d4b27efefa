"""`ebbtide up` on the real engine, with the real language host and fake clouds."""

import json
import os
import re
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ebbtide.cli.consoles import ExitStatus
from ebbtide_rehearsal.cloud.store import API_ERROR, InjectedFault
from rehearsal.tests.engine.sites import Site, kill, site_on, until, with_work
from tests.declarations import pool

pytestmark = pytest.mark.engine


@pytest.fixture(params=["gke", pytest.param("aks", marks=pytest.mark.long)])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Site]:
    """A cluster with a system pool and a pool of spot machines, not yet created."""
    yield from site_on(request.param, tmp_path, request)


def _changed(site: Site, **fields: Any) -> None:
    """Change the pool `cpu` in the declaration."""
    declared = site.declared()
    pool(declared, "cpu").update(fields)
    site.declare(declared)


def test_a_stack_is_created_and_stays(gke: Site) -> None:
    """Nothing happens against the policy or without confirmation; the first update names what it creates, has
    a line per resource, and ends with numbers, time and cost; the second changes nothing."""
    declared = gke.declared()
    gke.declare(declared, lifetimeHours=1)
    status, out = gke.up()
    assert (status, "Policy violation: " in out, gke.pools()) == (1, True, set()), out
    gke.declare(declared)
    with gke.start(confirmed=False) as process:
        out, _ = process.communicate(timeout=900)
    assert (process.returncode, gke.pools()) == (1, set())
    assert "Update stack dev? There is no terminal to confirm" in out
    assert "  create pool system, cpu" in out.splitlines()
    assert "  create Network train-network-vpc" in out.splitlines()
    status, out = gke.up()
    assert status == 0, out
    assert "created: gcp:container/nodePool:NodePool train-cpu" in out
    *_, matches, summary, cost, monthly = out.splitlines()
    assert matches == "Stack dev matches its declaration."
    assert re.fullmatch(rf"{out.count('created: ')} created, in (\d+ min )?\d+ s\.", summary)
    assert re.fullmatch(r"Cost per hour: idle (about )?\$[\d.]+, maximum (about )?\$[\d.]+\.", cost)
    assert monthly.startswith("Cost per month: idle ")
    status, out = gke.up()
    assert status == 0, out
    assert "Stack dev: no change." in out
    assert "created:" not in out
    assert out.splitlines()[-1] == "Stack dev matches its declaration."


def test_a_pool_is_replaced_beside_the_old_one(site: Site) -> None:
    """A Job on it ends by itself, a service moves, and the old pool does not grow meanwhile; in the end the
    state has the same URNs, and nothing to change."""
    with_work(site)
    before = {item["urn"] for item in site.state()}
    _changed(site, capacity="on-demand")
    with site.start() as process:
        out = until(process, "research/train")
        assert "Pool cpu is replaced by a new one beside it: its work has 1 day" in out
        assert site.api.nodes["n1"]["spec"] == {"unschedulable": True}
        assert site.autoscaled() == {"cpu": False, **dict.fromkeys(site.pools() - {"cpu", "system"}, True)}
        del site.api.pods["train"]
        rest, _ = process.communicate(timeout=900)
    assert process.returncode == 0, rest
    assert (site.api.evicted, list(site.api.pods)) == (["web"], ["agent"])
    assert {item["urn"] for item in site.state()} == before
    assert len(site.pools()) == 2
    assert "cpu" not in site.pools()
    assert "Stack dev: no change." in site.up()[1]


def test_a_drain_timeout_of_one_update(gke: Site) -> None:
    """Work that does not end within the timeout of the command is evicted, whatever the pool declares."""
    with_work(gke)
    _changed(gke, capacity="on-demand")
    status, out = gke.run("up", "--drain-timeout", "1s")
    assert status == 0, out
    assert "its work has less than a minute to finish" in " ".join(out.split())
    assert sorted(gke.api.evicted) == ["train", "web"]
    assert "cpu" not in gke.pools()


def test_an_interrupted_update_continues(gke: Site) -> None:
    """Ctrl-C lets the engine finish what it does; the next update counts that, creates the rest, and shows
    the cost that the first one has shown."""
    process = gke.start()
    begun = until(process, "created: ")
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=900)
    assert process.returncode == ExitStatus.INTERRUPTED, out
    assert "The engine finishes its current operations; this takes a while." in out
    assert "Continue with: " in out
    assert "Traceback" not in out
    made = sum(bool(item.get("custom")) and not item["type"].startswith("pulumi:") for item in gke.state())
    status, out = gke.up()
    assert status == 0, out
    assert f"Already done since the last update that succeeded: {made} created." in " ".join(out.split())
    assert _cost(out) == _cost(begun)
    assert gke.pools() == {"system", "cpu"}
    _, out = gke.up()
    assert "Stack dev: no change." in out
    assert "interrupted" not in out


def _cost(out: str) -> str:
    """The line with the cost, and its change."""
    return next(line for line in out.splitlines() if line.startswith("Cost per hour: ") and "(+" in line)


def test_an_update_during_another(gke: Site) -> None:
    """The plan is made when the other one has ended: nothing was interrupted, and nothing is left to do."""
    first = gke.start()
    until(first, "created: gcp:container/cluster:Cluster")
    os.killpg(first.pid, signal.SIGSTOP)
    second = gke.start()
    begun = until(second, "Waiting for another update of the stack, by ")
    os.killpg(first.pid, signal.SIGCONT)
    outputs = [process.communicate(timeout=900)[0] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], outputs
    assert len(begun.splitlines()) == 1
    assert outputs[1].splitlines() == [
        "Stack dev: no change.",
        *outputs[0].splitlines()[-2:],
        "Stack dev matches its declaration.",
    ]


def test_a_state_that_is_not_whole(gke: Site) -> None:
    """Attributes that a killed engine left empty are removed; a state that is no JSON is named, with its
    backup."""
    (file,) = gke.terminal.root.parent.glob("state/.pulumi/stacks/*/dev.json")
    file.with_name(f"{file.name}.attrs").write_bytes(b"")
    status, out = gke.run(confirmed=False)
    assert (status, "EOF" in out) == (1, False), out
    text = file.read_bytes()
    file.write_bytes(text[:40])
    status, out = gke.run(confirmed=False)
    assert status == 2, out
    out = " ".join(out.split())
    assert f"The state of stack dev, {file}, is no JSON: " in out
    assert f"Its backup from before the last change is {file}.bak: " in out
    file.with_name(f"{file.name}.bak").unlink()
    assert "It has no readable backup beside it" in " ".join(gke.run(confirmed=False)[1].split())


@pytest.mark.long
def test_a_declaration_that_changes_meanwhile(gke: Site) -> None:
    """Taken back, the replacement is drained in turn and the old pool stays; changed again, the pool becomes
    what is declared last."""
    with_work(gke)
    _changed(gke, capacity="on-demand")
    process = gke.start()
    until(process, "research/train")
    kill(process)
    (new,) = gke.pools() - {"system", "cpu"}

    _changed(gke, capacity="spot")
    gke.api.nodes["n1"]["spec"] = {}
    gke.api.nodes["n2"] = {
        "metadata": {"name": "n2", "labels": {"cloud.google.com/gke-nodepool": new}},
        "spec": {},
    }
    gke.api.add_pod("web-again", "n2", restart="Always", owner="ReplicaSet")
    status, out = gke.up()
    assert status == 0, out
    assert gke.api.evicted == ["web", "web-again"]
    assert gke.autoscaled() == {"cpu": True}

    gke.api.pods.clear()
    gke.api.add_pod("train", "n1")
    _changed(gke, capacity="on-demand")
    process = gke.start()
    until(process, "research/train")
    kill(process)
    del gke.api.pods["train"]
    _changed(gke, capacity="preemptible")
    status, out = gke.up()
    assert status == 0, out
    assert "Stack dev: no change." in gke.up()[1]
    (last,) = gke.pools() - {"system"}
    assert last not in ("cpu", new)


@pytest.mark.long
def test_a_pool_that_cannot_be_created(gke: Site) -> None:
    """The cloud's message, the cause and the next command; the work stays where it is, and the next update
    continues."""
    with_work(gke)
    message = (
        "googleapi: Error 403: Insufficient regional quota to satisfy request: resource CPUS., forbidden"
    )
    target = "create gcp:container/nodePool:NodePool train-cpu.next"
    fault = gke.store.inject(InjectedFault(API_ERROR, target, details={"message": message}))
    _changed(gke, capacity="on-demand")
    status, out = gke.up()
    assert status == 1, out
    assert message in out
    assert "A quota is too low. `" in out
    assert "Continue with: " in out
    assert gke.api.nodes["n1"]["spec"] == {}
    gke.store.remove_fault(fault)
    gke.api.pods.clear()
    status, out = gke.up()
    assert status == 0, out
    assert "cpu" not in gke.pools()


@pytest.mark.long
def test_a_creation_that_was_not_recorded(gke: Site) -> None:
    """A resource that the cloud has is imported, and any other is created."""
    assert gke.up()[0] == 0
    (file,) = gke.terminal.root.parent.glob("state/.pulumi/stacks/*/dev.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    latest = document["checkpoint"]["latest"]
    (created,) = [item for item in latest["resources"] if item["urn"].endswith("NodePool::train-cpu")][1:]
    latest["resources"].remove(created)
    del created["id"], created["outputs"]
    absent = {**created, "urn": f"{created['urn']}-2", "inputs": {**created["inputs"], "name": "cpu-2"}}
    latest["pending_operations"] = [
        {"resource": resource, "type": "creating"} for resource in (created, absent)
    ]
    file.write_text(json.dumps(document), encoding="utf-8")
    status, out = gke.up()
    assert status == 0, out
    assert "interrupted while it created train-cpu; it exists in the cloud." in out
    assert "interrupted before it created train-cpu-2." in out
    assert "created: " not in out
    assert "pending_operations" not in gke.terminal.run("pulumi stack export --stack dev")
    assert "Stack dev: no change." in gke.up()[1]
