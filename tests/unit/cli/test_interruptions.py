"""Commands that are interrupted in each of their phases, over a cluster and an engine in memory."""

import copy
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from ebbtide.analysis.recording.recording import STACK_TYPE
from ebbtide.cli.entry_point import app
from ebbtide.clients.clouds.interfaces import Account, CloudResource, ClusterIdentity, Inventory
from ebbtide.clients.kubernetes import JSON, MERGE_PATCH, Api, ApiError
from ebbtide.clients.kubernetes.objects import text
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.operations import access, queue_stops
from ebbtide.operations.access import Clouds
from ebbtide.operations.engine.backend import Backend
from ebbtide.operations.engine.state import TENANT, State, read
from ebbtide.text import command_line
from ebbtide.values.kueue_api import ASLEEP
from tests.unit.operations.objects import PROFILE, made, node, pod

_ACCOUNT = Account(CloudKind.GKE, "acme-ml")
_QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
_TYPE = "gcp:container/cluster:Cluster"
_CLUSTER: dict[str, Any] = {
    "urn": f"urn:pulumi:prod::shop::{_TYPE}::train",
    "type": _TYPE,
    "custom": True,
    "id": "projects/acme-ml/locations/us-central1-a/clusters/train",
    "inputs": {},
    "outputs": {"name": "train", "project": "acme-ml", "location": "us-central1-a"},
}


def _of_kubernetes(type_: str, name: str, parent: str = "") -> dict[str, Any]:
    return {
        "urn": f"urn:pulumi:prod::shop::{parent}{type_}::{name}",
        "type": type_,
        "outputs": {"metadata": {"name": name}},
    }


_ROOT: dict[str, Any] = {
    "urn": f"urn:pulumi:prod::shop::{STACK_TYPE}::shop-prod",
    "type": STACK_TYPE,
    "outputs": {},
}
_OBJECTS = [
    _of_kubernetes("kubernetes:core/v1:Namespace", "research", TENANT),
    _of_kubernetes("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", "cpu"),
]


_JOB, _CLAIM = made("train"), made("data", spec={"volumeName": "pv"})
_ON_CLUSTER: dict[str, Any] = {
    "/api/v1/nodes/n": node("n", "spot"),
    "/api/v1/pods/train-0": pod("train-0", owner=("Job", _JOB)),
    "/apis/batch/v1/jobs/train": _JOB,
    f"{_QUEUES}/cpu": {"metadata": {"name": "cpu"}, "spec": {}},
    "/api/v1/services/web": made("web", spec={"type": "LoadBalancer"}),
    "/api/v1/persistentvolumeclaims/data": _CLAIM,
    "/api/v1/persistentvolumes/pv": made(
        "pv",
        "",
        spec={
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {key: _CLAIM["metadata"][key] for key in ("namespace", "name", "uid")},
            "csi": {"driver": "pd.csi.storage.gke.io", "volumeHandle": "disk"},
        },
        status={"phase": "Bound"},
    ),
}


_WORDS = {"Hold": "held", "HoldAndDrain": "drained", "None": "released"}


class _World(Api):
    """A stack, its cluster and cloud: each effect is interrupted before or after it, if its turn has come.

    Attributes:
        done: the effects so far, as messages name them.
        turns: the number of turns before the interruption.
    """

    name = "prod"

    def __init__(self, directory: Path, *, owns_cluster: bool) -> None:
        super().__init__(None)
        self.directory = directory
        self.done: list[str] = []
        self.turns = -1
        self.deployment: dict[str, Any] = {
            "resources": [_ROOT, *_OBJECTS, *([_CLUSTER] if owns_cluster else [])]
        }
        self.asked: list[ClusterIdentity] = []
        self.objects: dict[str, Any] = copy.deepcopy(_ON_CLUSTER)

    @property
    def reached(self) -> tuple[Any, ...]:
        """What a user would find, whose order and history are of no matter."""
        return copy.deepcopy((self.objects, self.deployment["resources"], self.stopped))

    stopped = False

    def turn(self) -> None:
        """Interrupt if it is time."""
        self.turns -= 1
        if self.turns == -1:
            raise KeyboardInterrupt

    def effect(self, fact: str, change: Callable[[], object]) -> None:
        """Make a change, with an interruption before or after it."""
        self.turn()
        change()
        self.done.append(fact)
        self.turn()

    def get(self, path: str, *, accept: str = JSON, **query: str) -> Any:  # noqa: ARG002 - as its base
        path = path.replace("/namespaces/research", "")
        if path in self.objects:
            return self.objects[path]
        items = [item for key, item in self.objects.items() if key.rpartition("/")[0] == path]
        if not items:
            raise ApiError(404, "not found")
        return {"items": items}

    def patch(self, path: str, body: Any, kind: str = MERGE_PATCH, **query: str) -> Any:  # noqa: ARG002
        before = self.objects[path]
        annotations = {
            **before["metadata"].get("annotations", {}),
            **body.get("metadata", {}).get("annotations", {}),
        }
        annotations = {key: value for key, value in annotations.items() if value is not None}
        after = {
            "metadata": {**before["metadata"], "annotations": annotations},
            "spec": {**before["spec"], **body["spec"]},
        }
        spec: dict[str, Any] = body["spec"]
        policy: str | None = spec.get("stopPolicy")
        change = {**before, **after}
        self.effect(
            f"queue cpu is {_WORDS[policy]}" if policy else "policy Retain",
            lambda: self.objects.update({path: change}),
        )
        return change

    def delete(self, path: str, *, uid: str = "", **options: Any) -> None:
        """Delete an object, and the disk of a claim with it."""
        del options, uid
        path = path.replace("/namespaces/research", "")
        if path not in self.objects:
            return
        kind, name = path.split("/")[-2:]
        singular = {"services": "Service ", "persistentvolumeclaims": "PersistentVolumeClaim "}.get(kind, "")
        self.effect(f"{singular}{name} in research is deleted", lambda: self._delete(path))

    def _delete(self, path: str) -> None:
        item = self.objects.pop(path)
        volume = cast("dict[str, Any]", self.objects.get("/api/v1/persistentvolumes/pv", {}))
        policy = text(volume, "spec", "persistentVolumeReclaimPolicy")
        if item["metadata"]["name"] == "data" and policy == "Delete":
            del self.objects["/api/v1/persistentvolumes/pv"]

    def exported(self, _name: str = "") -> dict[str, Any]:
        """Return the state."""
        return {"version": 3, "deployment": copy.deepcopy(self.deployment)}

    def replace_state(self, document: Mapping[str, Any]) -> None:
        """Write the state."""
        changed = copy.deepcopy(document["deployment"])
        self.effect("notes its clusters", lambda: self.deployment.update(changed))

    def state(self) -> State:
        """Return the state's contents."""
        return read(self.deployment)

    def outputs(self) -> dict[str, Any]:
        """Return no outputs."""
        return {}

    def refusals(self) -> list[str]:
        """Refuse nothing."""
        return []

    def unlock(self) -> None:
        """Do nothing."""

    def destroy(self, *_: object, **__: object) -> list[str]:
        """Destroy everything: the engine defers an interruption itself."""
        self.deployment = {"resources": []}
        self.done.append("stack prod is destroyed")
        return []

    def identify(self, cluster: ClusterIdentity) -> ClusterIdentity:
        """Return a cluster of the cloud as it is."""
        return cluster

    def of_cluster(self, cluster: ClusterIdentity) -> Collection[CloudResource]:
        """Return nothing that is left of a cluster."""
        self.turn()
        self.asked.append(cluster)
        return ()

    def refusal(self) -> str:
        """Return no reason against a stop."""
        return ""

    def is_stopped(self) -> bool:
        """Return whether the machines are stopped."""
        return self.stopped

    def stop(self, _: object) -> None:
        """Stop the machines."""
        self.effect("are being stopped", lambda: setattr(self, "stopped", True))

    def start(self, _: object) -> None:
        """Start the machines."""
        self.effect("are being started", lambda: setattr(self, "stopped", False))


def _project(directory: Path) -> None:
    (directory / "Pulumi.yaml").write_text("name: shop\nruntime: python\n", encoding="utf-8")
    (directory / "other stack.yaml").write_text("config: {}\n", encoding="utf-8")


def _world(directory: Path, monkeypatch: pytest.MonkeyPatch, *, owns_cluster: bool) -> _World:
    world = _World(directory, owns_cluster=owns_cluster)

    def opened(*_: object) -> _World:
        return world

    def reach(_: object) -> Clouds:
        return Clouds({_ACCOUNT: cast("Inventory", world)})

    def connected(*_: object) -> tuple[Api, Any]:
        return world, PROFILE

    def backend(*_: object) -> None:
        return None

    monkeypatch.setattr(Backend, "__init__", backend)
    monkeypatch.setattr(Backend, "opened", opened)
    monkeypatch.setattr(access, "reach", reach)
    monkeypatch.setattr(access, "connected", connected)
    monkeypatch.setattr(queue_stops, "_STEP", 0.0)
    monkeypatch.setattr("ebbtide.clients.clouds.connect.cluster_power", opened)
    return world


def _run(words: list[str]) -> str:
    return CliRunner().invoke(app, words).output


def _continuation(output: str) -> list[str]:
    """Return the words of the printed command; none if there is nothing to continue."""
    lines = re.findall(r"Continue with: (.*)$", output, re.MULTILINE)
    start = len(shlex.split(command_line()))
    return shlex.split(lines[-1])[start:] if lines else []


_LOCATED = ["--config-file", "other stack.yaml", "--cwd", "."]
_CASES = [
    (["destroy", "prod", "--yes", *_LOCATED], False),
    (["destroy", "--stack", "prod", "--yes", "--keep-volumes", *_LOCATED], False),
    (["destroy", "prod", "-y", *_LOCATED], True),
    (["destroy", "prod", "--keep-volumes", "--delete-orphans", "--yes", *_LOCATED], True),
    (["sleep", "prod", "--now", *_LOCATED], True),
    (["wake", "prod", *_LOCATED], True),
]


@pytest.mark.parametrize(("words", "owns_cluster"), _CASES)
def test_what_is_said_has_happened_and_its_command_continues(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, owns_cluster: bool
) -> None:
    """Interrupted before and after each effect, a command names the effects, and what it prints ends where it
    would have ended."""
    _project(tmp_path)
    monkeypatch.chdir(tmp_path)
    if words[0] == "wake":
        asleep = {
            "metadata": {"name": "cpu", "annotations": {ASLEEP: "None"}},
            "spec": {"stopPolicy": "Hold"},
        }
        monkeypatch.setattr(_World, "stopped", True)
        monkeypatch.setitem(_ON_CLUSTER, f"{_QUEUES}/cpu", asleep)
    whole = _world(tmp_path, monkeypatch, owns_cluster=owns_cluster)
    _run(words)
    possible, turns = {*whole.done}, -whole.turns - 1
    assert possible
    for turn in range(turns):
        world = _world(tmp_path, monkeypatch, owns_cluster=owns_cluster)
        world.turns = turn
        before = world.reached
        output = _run(words)
        message = output[output.rindex("Interrupted: ") :]
        unnamed = [fact for fact in world.done if fact not in message]
        if "Continue with: " in message:
            assert unnamed in ([], ["stack prod is destroyed"]), "which has begun"
        named = [fact for fact in possible if fact in message]
        assert len(named) <= len(world.done) + 1, "only the interrupted effect may not have happened"
        if "nothing was changed" in message:
            assert world.reached == before
        if continuation := _continuation(output):
            _run(continuation)
        assert world.reached == whole.reached, message
