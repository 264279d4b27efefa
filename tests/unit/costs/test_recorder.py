"""The cost recorder, on a cluster in memory."""

import ast
import sys
from pathlib import Path

import pytest

from ebbtide.costs import recorder
from ebbtide.costs.recorder import Recorder, quantity
from ebbtide.model.addons import Costs
from tests.unit.costs.cluster import SETTINGS, START, Cluster, done, node, pod, when

_DISRUPTED = {"type": "DisruptionTarget", "status": "True"}


def _run(cluster: Cluster, after: float) -> int:
    return Recorder(cluster, SETTINGS, START + after).run()


@pytest.fixture
def cluster() -> Cluster:
    """A node with a running attempt, which the recorder has seen."""
    cluster = Cluster()
    cluster.nodes = [node("one", START - 600)]
    cluster.pods = [pod("train-0", "one", START - 300)]
    assert _run(cluster, 0) == 0
    return cluster


def test_the_namespace_is_that_of_the_add_on() -> None:
    """The program, which imports nothing of Ebbtide, writes to the namespace that the add-on creates."""
    assert Costs.spec.namespace == recorder.NAMESPACE


def test_only_the_standard_library_is_imported() -> None:
    """The program needs no package besides Python."""
    tree = ast.parse(Path(recorder.__file__).read_text())
    names = {
        alias.name.partition(".")[0]
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Import)
        for alias in statement.names
    }
    names |= {
        str(item.module).partition(".")[0] for item in ast.walk(tree) if isinstance(item, ast.ImportFrom)
    }
    assert names <= sys.stdlib_module_names


def test_a_finished_attempt(cluster: Cluster) -> None:
    """The line of a finished pod has its exact time, its share of the node's GPUs, and who ran it."""
    cluster.pods = [done("train-0", "one", START - 300, START + 60)]
    assert _run(cluster, 300) == 1
    assert cluster.lines()["pod-train-0"] == {
        "kind": "attempt",
        "team": "vision",
        "user": "ada",
        "job": "train",
        "namespace": "vision",
        "name": "train-0",
        "node": "one",
        "start": START - 300,
        "share": 0.25,
        "cpu": 0.5,
        "memory": 4 * 2**30,
        "gpus": 1,
        "submitted": START - 360,
        "queue": "",
        "priority": "",
        "disruptions": 0,
        "pool": "t4-spot",
        "option": "spot",
        "price": 1.2,
        "currency": "USD",
        "estimated": False,
        "end": START + 60,
        "seconds": 360.0,
        "uncertain": 0.0,
    }
    assert _run(cluster, 600) == 0
    assert len(cluster.lines()) == 1


def test_a_node_that_left_with_its_attempt(cluster: Cluster) -> None:
    """Without events, both end halfway between the runs, with the error; with events, when these say."""
    cluster.nodes, cluster.pods = [], []
    assert _run(cluster, 300) == 2
    for line in cluster.lines().values():
        assert (line["end"], line["uncertain"]) == (START + 150, 150)


@pytest.mark.parametrize("reason", ["RemovingNode", "DeletingNode"])
def test_an_event_has_the_end_of_a_node(cluster: Cluster, reason: str) -> None:
    """A node that left ends with the event, and so do the attempts on it."""
    involved = {"kind": "Node", "name": "one"}
    cluster.events = [{"involvedObject": involved, "reason": reason, "lastTimestamp": when(START + 30)}]
    cluster.nodes, cluster.pods = [], []
    assert _run(cluster, 300) == 2
    for line in cluster.lines().values():
        assert (line["end"], line["uncertain"]) == (START + 30, 0)


def test_an_event_has_the_end_of_a_deleted_pod(cluster: Cluster) -> None:
    """A pod that was deleted from a node that stays ends with the kubelet's event."""
    involved = {"kind": "Pod", "name": "train-0"}
    cluster.events = [{"involvedObject": involved, "reason": "Killing", "eventTime": when(START + 20)}]
    cluster.pods = []
    assert _run(cluster, 300) == 1
    assert cluster.lines()["pod-train-0"]["end"] == START + 20


def test_a_disruption(cluster: Cluster) -> None:
    """A disrupted attempt is counted as such, once, on its line and on its node's."""
    ended = done("train-0", "one", START - 300, START + 60, phase="Failed", conditions=[_DISRUPTED])
    cluster.pods = [ended]
    assert _run(cluster, 300) == 1
    assert _run(cluster, 600) == 0
    cluster.nodes = []
    assert _run(cluster, 900) == 1
    assert {key: line["disruptions"] for key, line in cluster.lines().items()} == {
        "pod-train-0": 1,
        "node-one": 1,
    }


@pytest.mark.parametrize("broken", ["PATCH /api/v1/namespaces/ebbtide-costs/configmaps/state", "POST"])
def test_an_interrupted_run_writes_no_line_twice(cluster: Cluster, broken: str) -> None:
    """A run that fails before its lines or its state are written is completed by the next."""
    cluster.nodes, cluster.pods = [], []
    cluster.broken = broken
    with pytest.raises(OSError, match="refused"):
        _run(cluster, 300)
    before = cluster.lines()
    cluster.broken = ""
    assert _run(cluster, 600) == 2 - len(before)
    after = cluster.lines()
    assert before.items() <= after.items()
    assert set(after) == {"pod-train-0", "node-one"}


def test_a_namespace_that_cannot_be_read(cluster: Cluster) -> None:
    """Attempts in a namespace whose pods cannot be listed stay as they were, until they can be."""
    cluster.broken = "GET /api/v1/namespaces/vision/pods"
    assert _run(cluster, 300) == 0
    cluster.broken = ""
    cluster.pods = [done("train-0", "one", START - 300, START + 100)]
    assert _run(cluster, 600) == 1
    assert cluster.lines()["pod-train-0"]["seconds"] == 400


def test_lines_of_two_months(cluster: Cluster) -> None:
    """A line is in the ConfigMap of the month in which it ended, and large months have several."""
    text = "x" * 200
    cluster.pods = [done(f"{text}-{index}", "one", START, START + index * 600) for index in range(3000)]
    end = 31 * 24 * 3600
    assert _run(cluster, end) == 3001
    assert set(cluster.maps) == {"state"} | {
        f"costs-2026-{part}" for part in ("09-1", "09-2", "10-1", "10-2")
    }
    for item in cluster.maps.values():
        assert sum(len(key) + len(line) for key, line in item["data"].items()) < 1 << 20


def test_shares_of_cpu() -> None:
    """On a node without accelerators, the share is the mean of CPU and memory."""
    cluster = Cluster()
    cluster.nodes = [node("one", START, pool="cpu")]
    cluster.pods = [done("train-0", "one", START, START + 10)]
    assert _run(cluster, 300) == 1
    (line,) = cluster.lines().values()
    assert line["share"] == pytest.approx((0.5 / 8 + 4 / 32) / 2, abs=1e-6)
    assert line["price"] is None


@pytest.mark.parametrize(
    ("text", "expected"), [("500m", 0.5), ("4", 4), ("4Gi", 4 << 30), ("1k", 1000), (None, 0), ("1.5", 1.5)]
)
def test_quantities(text: object, expected: float) -> None:
    """Kubernetes' quantities are read with their suffixes."""
    assert quantity(text) == expected
