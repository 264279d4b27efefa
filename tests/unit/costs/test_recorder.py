"""The cost recorder, on a cluster in memory."""

import io
import json
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import cast

import pytest

from components.addons.costs import objects
from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.addons import Costs
from ebbtide.declaration.model.declare import declare
from ebbtide.in_pods import cost_recorder as recorder
from ebbtide.in_pods.cost_recorder import Recorder
from ebbtide.operations.ledger import find_record
from tests.declarations import GKE, changed
from tests.unit.costs.cluster import SETTINGS, START, Cluster, Object, Reader, done, node, pod, when

_DISRUPTED = {"type": "DisruptionTarget", "status": "True"}


def _run(cluster: Cluster, after: float) -> int:
    return Recorder(cluster, SETTINGS, START + after).run()


def _open(cluster: Cluster) -> set[str]:
    record = find_record(cast("Api", Reader(cluster.maps)), START, START)
    assert record is not None
    return {line.uid for line in record.lines if line.is_open}


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


def test_the_program_needs_no_package(tmp_path: Path) -> None:
    """The files of its ConfigMap, where its volume has them, run with Python's standard library alone."""
    made = list(objects(declare(changed(GKE, addons={"costs": {}}))))
    config_map = next(item for item in made if item["kind"] == "ConfigMap")
    assert config_map["metadata"]["name"] == recorder.PROGRAM
    data = config_map["data"]
    job = next(item for item in made if item["kind"] == "CronJob")["spec"]["jobTemplate"]["spec"]
    (volume,) = job["template"]["spec"]["volumes"]
    for item in volume["configMap"]["items"]:
        file = tmp_path / item["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(data[item["key"]])
    command = [sys.executable, "-S", str(tmp_path / "recorder.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={}, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {item["key"] for item in volume["configMap"]["items"]} == data.keys()


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


def test_a_queue_is_that_of_the_job_or_of_its_pod(cluster: Cluster) -> None:
    """A Job whose labels do not have them is in the queue, and has the priority, of its pod's."""
    labels = {"kueue.x-k8s.io/local-queue-name": "cpu", "kueue.x-k8s.io/priority-class": "high"}
    (ended,) = cluster.pods = [done("train-0", "one", START - 300, START + 60)]
    ended["metadata"]["labels"] |= labels
    ended["metadata"]["ownerReferences"] = [{"uid": "job", "name": "train", "controller": True}]
    metadata = {"uid": "job", "namespace": "vision", "creationTimestamp": when(START - 900)}
    cluster.jobs = [{"metadata": {**metadata, "labels": {"kueue.x-k8s.io/priority-class": "low"}}}]
    assert _run(cluster, 300) == 1
    line = cluster.lines()["pod-train-0"]
    assert (line["submitted"], line["queue"], line["priority"]) == (START - 900, "cpu", "low")


def test_the_last_container_ends_an_attempt(cluster: Cluster) -> None:
    """An attempt is charged until the last of its containers has ended."""
    ends = [{"state": {"terminated": {"finishedAt": when(START + after)}}} for after in (-100, 90, 60)]
    status = {"initContainerStatuses": ends[:1], "containerStatuses": ends[1:]}
    cluster.pods = [done("train-0", "one", START - 300, START, **status)]
    assert _run(cluster, 300) == 1
    (line,) = cluster.lines().values()
    assert line["end"] == START + 90


def test_an_attempt_that_failed_without_an_end(cluster: Cluster) -> None:
    """A pod that was evicted before any container ran has ended between the two runs, and is charged no
    longer."""
    cluster.pods = [pod("train-0", "one", START - 300, phase="Failed", reason="Evicted")]
    assert _run(cluster, 300) == 1
    (line,) = cluster.lines().values()
    assert (line["end"], line["uncertain"]) == (START + 150, 150)
    assert _run(cluster, 600) == 0


def test_an_attempt_that_failed_before_its_containers(cluster: Cluster) -> None:
    """The end of an init container is that of its pod, whose containers have not run."""
    ended = done("train-0", "one", START - 300, START + 60, phase="Failed")
    status = ended["status"]
    status["initContainerStatuses"] = status["containerStatuses"]
    status["containerStatuses"] = [{"state": {"waiting": {"reason": "PodInitializing"}}}]
    cluster.pods = [ended]
    assert _run(cluster, 300) == 1
    (line,) = cluster.lines().values()
    assert (line["seconds"], line["uncertain"]) == (360, 0)


def test_a_node_that_left_with_its_attempt(cluster: Cluster) -> None:
    """Without events, both end halfway between the runs, with the error; with events, when these say."""
    cluster.nodes, cluster.pods = [], []
    assert _run(cluster, 300) == 2
    for line in cluster.lines().values():
        assert (line["end"], line["uncertain"]) == (START + 150, 150)


def test_pods_on_other_nodes(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """A pod on a node of another stack is passed over in silence; one whose node has left has ended."""
    cluster.pods.append(pod("other", "elsewhere", START))
    assert _run(cluster, 300) == 0
    assert (_open(cluster), capsys.readouterr().out) == ({"node-one", "pod-train-0"}, "")
    cluster.nodes = []
    assert _run(cluster, 600) == 2
    assert (cluster.lines().keys(), _open(cluster)) == ({"node-one", "pod-train-0"}, set())


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


def test_an_event_before_the_start_is_of_an_earlier_object(cluster: Cluster) -> None:
    """Events are found by name: one of an earlier pod or node of that name says nothing."""
    cluster.events = [
        {"involvedObject": {"kind": kind, "name": name}, "reason": reason, "lastTimestamp": when(START - 900)}
        for kind, name, reason in (("Pod", "train-0", "Killing"), ("Node", "one", "RemovingNode"))
    ]
    cluster.nodes, cluster.pods = [], []
    assert _run(cluster, 300) == 2
    for line in cluster.lines().values():
        assert (line["end"], line["uncertain"]) == (START + 150, 150)


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


def test_a_removed_team(cluster: Cluster) -> None:
    """The attempts of a team that was removed while they ran end between the runs, though its events may no
    longer be read, and other teams' attempts are recorded."""
    cluster.pods += [done("other", "one", START, START + 60)]
    cluster.pods[-1]["metadata"]["namespace"] = "speech"
    cluster.broken = "GET /api/v1/namespaces/vision/"
    assert Recorder(cluster, SETTINGS | {"teams": {"speech": "speech"}}, START + 300).run() == 2
    assert cluster.lines()["pod-train-0"]["uncertain"] == 150
    assert cluster.lines()["pod-other"]["end"] == START + 60
    assert Recorder(cluster, SETTINGS | {"teams": {"speech": "speech"}}, START + 600).run() == 0


@pytest.mark.parametrize("fault", ["cut off", "malformed"])
def test_a_pod_that_cannot_be_read_stops_nothing_else(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    """An attempt stays open while its pod, or the list with it, cannot be read, and others are recorded."""
    (good,) = cluster.pods
    bad = json.loads(json.dumps(good))
    if fault == "malformed":
        bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    else:
        cluster.cut = "/pods"
    other = done("other", "one", START, START + 60)
    other["metadata"]["namespace"] = "speech"
    cluster.pods = [bad, other, done("train-1", "one", START, START + 90)]
    assert _run(cluster, 300) == (2 if fault == "malformed" else 0)
    assert "vision" in capsys.readouterr().out
    assert "pod-train-0" in _open(cluster)
    cluster.cut = ""
    cluster.pods = [done("train-0", "one", START - 300, START + 100), *cluster.pods[1:]]
    assert _run(cluster, 600) == (1 if fault == "malformed" else 3)
    assert cluster.lines()["pod-train-0"]["seconds"] == 400


@pytest.mark.parametrize("size", [1, 1 << 15, 1 << 16, 300_000])
@pytest.mark.parametrize("spaces", [None, 1])
def test_lists_are_read_object_by_object(size: int, spaces: int | None) -> None:
    """Objects of any size are found where they end, with the list's own fields before or after them; a list
    that is cut off is an error."""
    items = [{"name": f"é]}}{{[{index}", "text": "ü" * size} for index in range(5)]
    metadata = {"continue": "x"}
    for document in ({"metadata": metadata, "items": items}, {"items": items, "metadata": metadata}):
        text = json.dumps(document, indent=spaces, ensure_ascii=False).encode()
        read = recorder.objects(io.BytesIO(text))
        assert [next(read) for _ in items] == items
        with pytest.raises(StopIteration) as ended:
            next(read)
        assert ended.value.value["metadata"] == metadata
        with pytest.raises((json.JSONDecodeError, UnicodeDecodeError)):
            list(recorder.objects(io.BytesIO(text[: len(text) * 9 // 10])))
    assert list(recorder.objects(io.BytesIO(b'{"metadata":{},"items":null}'))) == []


def test_the_state_of_many_attempts(cluster: Cluster) -> None:
    """The state is in as many ConfigMaps as it needs, and one that was not written whole is not used."""
    cluster.pods = [pod(f"train-{index}", "one", START) for index in range(3000)]
    assert _run(cluster, 300) == 0
    assert {"state-b-1", "state-b-2"} <= cluster.maps.keys()
    assert len(_open(cluster)) == 3001
    cluster.pods = []
    cluster.broken = "PATCH .*/state$"
    with pytest.raises(OSError, match="refused"):
        _run(cluster, 600)
    lines = cluster.lines()
    assert {(line["end"], line["uncertain"]) for line in lines.values()} == {(START + 450, 150)}
    cluster.maps = {name: item for name, item in cluster.maps.items() if name.startswith("state")}
    cluster.broken = ""
    assert _run(cluster, 600) == 3000
    assert cluster.lines() == lines


def test_lines_of_two_months(cluster: Cluster) -> None:
    """A line is in the ConfigMap of the month in which it ended, and large months have several."""
    text = "x" * 200
    cluster.pods = [done(f"{text}-{index}", "one", START, START + index * 600) for index in range(3000)]
    end = 31 * 24 * 3600
    assert _run(cluster, end) == 3001
    assert {name for name in cluster.maps if not name.startswith("state")} == {
        f"costs-2026-{part}" for part in ("09-1", "09-2", "10-1", "10-2")
    }
    for item in cluster.maps.values():
        assert sum(len(key) + len(line) for key, line in item["data"].items()) < 1 << 20


@pytest.mark.parametrize(
    ("spec", "share"),
    [
        ({}, (0.5 / 8 + 4 / 32) / 2),
        ({"resources": {"requests": {"cpu": "7"}}}, (7 / 8 + 4 / 32) / 2),
        ({"initContainers": [{"resources": {"requests": {"cpu": "6"}}}]}, (6 / 8 + 4 / 32) / 2),
        (
            {"initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "6"}}}]},
            (6.5 / 8 + 4 / 32) / 2,
        ),
        ({"overhead": {"memory": "4Gi"}}, (0.5 / 8 + 8 / 32) / 2),
    ],
)
def test_shares_of_cpu(spec: Object, share: float) -> None:
    """Without accelerators, the share is the mean of CPU and memory, as the scheduler counts them."""
    cluster = Cluster()
    cluster.nodes = [node("one", START, pool="cpu")]
    cluster.pods = [done("train-0", "one", START, START + 10)]
    cluster.pods[0]["spec"] |= spec
    assert _run(cluster, 300) == 1
    (line,) = cluster.lines().values()
    assert line["share"] == pytest.approx(share, abs=1e-6)
    assert line["price"] is None


def test_a_pod_that_runs_has_not_finished() -> None:
    """The end of an init container is none of the pod."""
    ended = {"state": {"terminated": {"finishedAt": "2026-11-21T12:00:00Z"}}}
    status: Object = {"phase": "Running", "initContainerStatuses": [ended]}
    assert recorder.finished({"status": status}) is None
    assert recorder.finished({"status": {**status, "phase": "Succeeded"}}) is not None


@pytest.mark.parametrize(
    ("method", "kind"), [("PATCH", "merge-patch+json"), ("GET", "json"), ("POST", "json")]
)
def test_a_change_is_a_merge_patch(
    method: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server takes the kind of a patch from its content type."""
    token = tmp_path / "token"
    token.write_text("secret\n")
    sent: list[urllib.request.Request] = []

    def opened(request: urllib.request.Request, **_: object) -> io.BytesIO:
        sent.append(request)
        return io.BytesIO()

    def context(**_: object) -> None:
        return None

    monkeypatch.setattr(ssl, "create_default_context", context)
    monkeypatch.setattr(urllib.request, "urlopen", opened)
    recorder.Api("https://server", "ca", str(token)).send(method, "/path", {})
    (request,) = sent
    assert request.get_header("Content-type") == f"application/{kind}"
    assert request.get_header("Authorization") == "Bearer secret"
