"""A stack with its engine, cluster and cloud in memory, which can be interrupted at each effect."""

import copy
import json
import re
import signal
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import pytest

from ebbtide.analysis.drift.differences import ReadResource
from ebbtide.analysis.preview.stack_files import StackFiles, read_stack, record_stack
from ebbtide.analysis.reading.state import recording_of
from ebbtide.analysis.recording.recording import STACK_TYPE, Recording, Updates, urn_name
from ebbtide.clients.clouds.interfaces import Account, CloudGrant, CloudResource, ClusterIdentity, Inventory
from ebbtide.clients.kubernetes import JSON, JSON_PATCH, MERGE_PATCH, Api, ApiError
from ebbtide.clients.kubernetes.objects import part, text
from ebbtide.declaration.model import expiry
from ebbtide.operations import access
from ebbtide.operations.access import Clouds
from ebbtide.operations.adopting import steps
from ebbtide.operations.engine.backend import Backend
from ebbtide.operations.engine.events import Step, unwatched
from ebbtide.operations.engine.stack import Completed, Preview
from ebbtide.operations.engine.state import TENANT, State, read
from ebbtide.operations.update import pool_replacement, up
from ebbtide.placement import Profile
from ebbtide.values.cloud_kind import CloudKind
from tests.unit.operations.objects import PROFILE, Object, made, node, pod

ACCOUNT: Final = Account(CloudKind.GKE, "acme-ml")
QUEUES: Final = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
_URN = "urn:pulumi:prod::shop::{}::{}"
_CLUSTER_TYPE = "gcp:container/cluster:Cluster"
_FIRST_UP = "2026-11-21T09:00Z"
_COMPLETED = datetime(2026, 11, 20, 10, tzinfo=UTC)


def resource(type_: str, name: str, parent: str = "", **more: Any) -> dict[str, Any]:
    """A resource of the state."""
    return {"urn": _URN.format(parent + type_, name), "type": type_, **more}


STACK: Final = resource(STACK_TYPE, "shop-prod", outputs={})
CLUSTER: Final = resource(
    _CLUSTER_TYPE,
    "train",
    custom=True,
    id="projects/acme-ml/locations/us-central1-a/clusters/train",
    inputs={},
    outputs={"name": "train", "project": "acme-ml", "location": "us-central1-a"},
)
OBJECTS: Final = tuple(
    resource(f"kubernetes:{kind}", name, parent, outputs={"metadata": {"name": name}})
    for kind, name, parent in (
        ("core/v1:Namespace", "research", TENANT),
        ("kueue.x-k8s.io/v1beta2:ClusterQueue", "cpu", ""),
    )
)
_JOB, _CLAIM = made("train"), made("data", spec={"volumeName": "pv"})
ON_CLUSTER: Final[Mapping[str, Any]] = {
    "/api/v1/nodes/n": node("n", "spot"),
    "/api/v1/pods/train-0": pod("train-0", owner=("Job", _JOB)),
    "/apis/batch/v1/jobs/train": _JOB,
    f"{QUEUES}/cpu": {"metadata": {"name": "cpu"}, "spec": {}},
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
LEFTOVERS: Final = tuple(
    CloudResource(kind="disk", id=name, name=name, location="us-central1-a") for name in ("left", "over")
)
_WORDS: Final = {"Hold": "held", "HoldAndDrain": "drained", "None": "released"}


class World(Api):
    """A stack, its cluster and its cloud: each effect is interrupted before or after it, if its turn comes.

    Attributes:
        deployment: the state.
        objects: the cluster's objects, by path without namespaces.
        cloud: what the cloud has beside the stack.
        done: the effects so far, as messages name them; empty texts for those that they name differently.
        turns: the number of turns before the interruption.
        fails: whether the engine fails to destroy.
        stopped: whether the machines are stopped.
        asked: the clusters whose leftovers were looked for.
    """

    name = "prod"
    stopped, fails = False, False
    runs_engine, interrupted = False, False

    def __init__(
        self,
        resources: Sequence[Mapping[str, Any]],
        objects: Mapping[str, Any] | None = None,
        cloud: Sequence[CloudResource] = (),
        root: Path | None = None,
    ) -> None:
        super().__init__(None)
        self.root = root or Path()
        self.deployment: dict[str, Any] = copy.deepcopy({"resources": list(resources)})
        self.objects: dict[str, Any] = copy.deepcopy(dict(objects or {}))
        self.cloud = list(cloud)
        self.done: list[str] = []
        self.turns = -1
        self.asked: list[ClusterIdentity] = []

    @property
    def reached(self) -> tuple[Any, ...]:
        """The objects, resources and files that exist, without their history."""
        files = {path.name: path.read_text("utf-8") for path in self.root.glob("*.*")} if self.done else {}
        return copy.deepcopy((self.objects, self.deployment, self.stopped, self.cloud, files))

    def serve(self, patch: pytest.MonkeyPatch) -> None:
        """Be what the commands find instead of Pulumi's backend, the cluster and the cloud."""

        def itself(*_: object, **__: object) -> World:
            return self

        def exported(*_: object) -> dict[str, Any]:
            return self.exported()

        def exported_by_all(*_: object) -> list[dict[str, Any]]:
            return [self.exported()] if self.stacks else []

        def reach(accounts: Iterable[Account]) -> Clouds:
            return Clouds(dict.fromkeys(accounts, cast("Inventory", self)))

        def connected(*_: object) -> tuple[Api, Profile]:
            return self, PROFILE

        def stacks(_: object) -> tuple[str, ...]:
            return self.stacks

        def opened(*_: object) -> None:
            return None

        patch.setattr(Backend, "__init__", opened)
        patch.setattr(Backend, "opened", itself)
        patch.setattr(Backend, "exported", exported)
        patch.setattr(Backend, "exported_by_all", exported_by_all)
        patch.setattr(Backend, "stacks", property(stacks), raising=False)
        patch.setattr(access, "reach", reach)
        patch.setattr(access, "connected", connected)
        patch.setattr(access, "client", itself)
        for module in (steps, up):
            patch.setattr(module, "record_stack", recorded)
        patch.setattr("ebbtide.clients.clouds.connect.cluster_power", itself)
        patch.setattr("ebbtide.operations.sleep._WEBHOOKS_STEP", 0.0)
        patch.setattr(pool_replacement, "_STEP", 0.0)

    def turn(self) -> None:
        """Interrupt if it is time."""
        self.turns -= 1
        if self.turns == -1:
            self.interrupted = self.runs_engine
            if not self.runs_engine:
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGINT)

    def effect(self, fact: str, change: Callable[[], object]) -> None:
        """Make a change, with an interruption before or after it."""
        self.turn()
        change()
        self.done.append(fact)
        self.turn()

    def runs(self, fact: str, *changes: Callable[[], object]) -> list[str]:
        """Run the engine, which finishes what it does after a Ctrl-C, and starts nothing else."""
        self.done.append(fact)
        self.runs_engine = True
        for change in changes:
            self.turn()
            if self.interrupted:
                break
            change()
        self.runs_engine = self.interrupted = False
        return []

    # The API server.

    def get(self, path: str, *, accept: str = JSON, **query: str) -> Any:  # noqa: ARG002 - as its base
        """Return an object or a list."""
        path = path.replace("/namespaces/research", "")
        if path in self.objects:
            return self.objects[path]
        key, _, value = query.get("labelSelector", "").partition("=")
        items = [
            item
            for name, item in self.objects.items()
            if name.rpartition("/")[0] == path and (not key or _has_label(item, key, value))
        ]
        if not items and path.rpartition("/")[2] not in ("jobs", "nodes", "pods", "workloads"):
            raise ApiError(404, "not found")
        return {"items": items}

    def patch(self, path: str, body: Any, kind: str = MERGE_PATCH, **query: str) -> Any:  # noqa: ARG002
        """Change a queue, a volume or a node."""
        path = path.replace("/namespaces/research", "")
        before = self.objects[path]
        if kind == JSON_PATCH:
            change = {**before, **{item["path"][1:]: item["value"] for item in body}}
            fact = f"{before['kind']} {path.rpartition('/')[2]} is restored"
        else:
            change = _merged(before, body)
            fact = {
                "persistentvolumes": "policy Retain",
                "clusterqueues": f"queue cpu is {_WORDS.get(text(body, 'spec', 'stopPolicy'))}",
                "nodes": "pool cpu is being drained",
            }[path.split("/")[-2]]
        self.effect(fact, lambda: self.objects.update({path: change}))
        return change

    def create(self, path: str, body: Any, **query: str) -> Any:
        """Evict a pod."""
        del body, query
        self.effect(
            "pool cpu is being drained", lambda: self.objects.pop(f"/api/v1/pods/{path.split('/')[-2]}")
        )

    def delete(self, path: str, *, uid: str = "", **options: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Delete an object, and the disk of a claim with it; or a resource of the cloud."""
        del options, uid
        if isinstance(path, CloudResource):
            self.effect(f"{path.kind} {path.name} is deleted", lambda: self.cloud.remove(path))
            return
        path = path.replace("/namespaces/research", "")
        if path not in self.objects:
            return
        kind, name = path.split("/")[-2:]
        singular = {"services": "Service ", "persistentvolumeclaims": "PersistentVolumeClaim "}.get(kind, "")
        self.effect(f"{singular}{name} in research is deleted", lambda: self._delete(path))

    def _delete(self, path: str) -> None:
        item = self.objects.pop(path)
        volume: Object = self.objects.get("/api/v1/persistentvolumes/pv", {})
        policy = text(volume, "spec", "persistentVolumeReclaimPolicy")
        if item["metadata"]["name"] == "data" and policy == "Delete":
            del self.objects["/api/v1/persistentvolumes/pv"]

    # The backend and the engine.

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks that have resources."""
        return (self.name,) if self.deployment["resources"] else ()

    def exported(self) -> dict[str, Any]:
        """Return the state."""
        return {"version": 3, "deployment": copy.deepcopy(self.deployment)}

    def replace_state(self, document: Mapping[str, Any]) -> None:
        """Write the state."""
        changed = copy.deepcopy(document["deployment"])
        self.effect("", lambda: self.deployment.update(changed))

    def state(self) -> State:
        """Return the state's contents."""
        return read(self.deployment)

    def outputs(self) -> dict[str, Any]:
        """Return the output that a connection needs."""
        return {"kubeconfig": "{}"}

    def completed(self) -> Completed:
        """Return the end of the last update that succeeded."""
        return Completed(_COMPLETED)

    def last_start(self) -> str:
        """Return the start of the last run."""
        return ""

    @property
    def directory(self) -> Path:
        """The project's directory."""
        return self.root

    def refusals(self) -> list[str]:
        """Refuse nothing."""
        return []

    def unlock(self) -> None:
        """Remove no lock."""

    def configure(self, path: str, value: object) -> None:
        """Write a field of the declaration to the stack's file."""
        file = self.root / "other stack.yaml"
        document = json.loads(file.read_text("utf-8"))
        *above, last = path.removeprefix("ebbtide:cluster.").split(".")
        within = document["config"]["ebbtide:cluster"]
        for key in above:
            within = within[key]
        if value is None:
            del within[last]
        else:
            within[last] = value
        self.effect("", lambda: file.write_text(json.dumps(document), encoding="utf-8"))

    def remove_setting(self, path: str) -> None:
        """Remove a field of the declaration from the stack's file."""
        self.configure(path, None)

    def destroy(self, *_: object, first: Callable[[], None] | None = None, **__: object) -> list[str]:
        """Destroy everything, or fail."""
        if self.fails:
            return ["Error 503"]
        rest = self.deployment["resources"][:2]
        changes = (first or (lambda: None), lambda: self._keep(rest), lambda: self._keep([]))
        return self.runs("destruction of stack prod has begun", *changes)

    def _keep(self, resources: Sequence[Mapping[str, Any]]) -> None:
        self.deployment = {**self.deployment, "resources": list(resources)}

    def preview(self, watch: Callable[[Step], None] = unwatched, *_: object, **__: object) -> Preview:
        """Preview an update that removes an input of what was imported."""
        for item in self.deployment["resources"]:
            if part(item, "inputs").get("zone"):
                name, urn = urn_name(item["urn"]), item["urn"]
                watch(Step(item["type"], name, False, "update", urn, removed=("zone",)))  # noqa: FBT003
        return Preview((), (), "")

    def up(
        self, _watch: object, config_file: Path | None = None, targets: Collection[str] | None = None
    ) -> list[str]:
        """Update the state to what the program creates: first half of it, or only its targets."""
        file = config_file or self.root / "other stack.yaml"
        deployed = recording_of(json.dumps(self.exported()), project="shop", stack="prod", file="The state")
        config = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in json.loads(file.read_text("utf-8"))["config"].items()
        }
        files = read_stack(self.root, "prod", config_file=self.root / "other stack.yaml")
        after = resources_of(recorded(replace(files, config=config), deployed=deployed))
        if targets is not None:
            after = [item for item in after if item["urn"] in targets]
        before = {item["urn"]: item for item in self.deployment["resources"]}
        new = [item for item in after if item["urn"] not in before]
        half = [*before.values(), *new[: len(new) // 2]]
        return self.runs(
            "the update of stack prod has begun",
            lambda: self._keep(half),
            lambda: self._keep([STACK, *after]),
        )

    def remove(self, urns: Collection[str], _watch: object) -> list[str]:
        """Remove resources from the state."""
        kept = [item for item in self.deployment["resources"] if item["urn"] not in urns]
        return self.runs("the update of stack prod has begun", lambda: self._keep(kept))

    def refresh(self, urns: Collection[str]) -> list[str]:
        """Read resources, which exist."""
        for item in self.deployment["resources"]:
            if item["urn"] in urns:
                item.pop("initErrors", None)
        return []

    def read(self, *_: object) -> tuple[list[ReadResource], list[str]]:
        """Read nothing that a person has changed."""
        return [], []

    # The cloud.

    def check(self) -> None:
        """Have access."""

    def identify(self, cluster: ClusterIdentity) -> ClusterIdentity:
        """Return a cluster of the cloud as it is."""
        return cluster

    def of_cluster(self, cluster: ClusterIdentity) -> Collection[CloudResource]:
        """Return what is left of a cluster."""
        self.turn()
        self.asked.append(cluster)
        return [item for item in self.cloud if not item.expires]

    def expiring(self) -> list[CloudResource]:
        """Return the resources with a label of expiry."""
        return [item for item in self.cloud if item.expires]

    def existing(self, ids: Collection[str]) -> dict[str, dict[str, str]]:
        """Return no labels of resources of teams, of which none exist."""
        del ids
        return {}

    def grants(self, principals: Collection[str]) -> list[CloudGrant]:
        """Return no roles."""
        del principals
        return []

    def refusal(self) -> str:
        """Return no reason against a stop."""
        return ""

    def is_stopped(self) -> bool:
        """Return whether the machines are stopped."""
        return self.stopped

    def stop(self, on_step: object) -> None:  # noqa: ARG002 - as its protocol
        """Stop the machines."""
        self.effect("are being stopped", lambda: setattr(self, "stopped", True))

    def start(self, on_step: object) -> None:  # noqa: ARG002 - as its protocol
        """Start the machines."""
        self.effect("are being started", lambda: setattr(self, "stopped", False))


def resources_of(recording: Recording) -> list[dict[str, Any]]:
    """Return the resources of a recording as a state has them, created before the last update."""
    time = {"created": _COMPLETED.isoformat(), "modified": _COMPLETED.isoformat()}
    listed: list[dict[str, Any]] = [
        {
            "urn": item.urn,
            "type": item.type,
            "custom": item.custom,
            "external": item.read,
            "parent": item.parent or STACK["urn"],
            "inputs": json.loads(json.dumps({**item.inputs, **imported}, default=str)),
            "outputs": json.loads(json.dumps(dict(item.outputs), default=str)),
            **({"id": str(item.id)} if item.custom else {}),
            **({"importID": item.import_id} if item.import_id else {}),
            **time,
        }
        for item in recording
        for imported in [{"zone": "z"} if item.import_id else {}]
    ]
    for item in listed:
        if item["type"] == "pulumi:index:Stash":
            item["outputs"]["output"] = _FIRST_UP

    def expires(match: re.Match[str]) -> str:
        return expiry.expiry(_FIRST_UP, int(match[1]))

    return json.loads(re.sub(rf"(\d+)h-after-{expiry.FIRST_UP}", expires, json.dumps(listed)))


class _Run:
    """A recording's arguments, compared by a text."""

    def __init__(self, files: StackFiles, updates: Updates | None, deployed: Recording | None) -> None:
        self.files, self.updates, self.deployed = files, updates, deployed
        adopted = [path.read_text("utf-8") for path in files.root.glob("adopt.*.json")]
        self._text = f"{files.root} {files.config} {deployed} {adopted}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Run) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@cache
def _recorded(run: _Run) -> Recording:
    return record_stack(run.files, run.updates, deployed=run.deployed)


def recorded(
    files: StackFiles, updates: Updates | None = None, *, deployed: Recording | None = None
) -> Recording:
    """Record a program once."""
    return _recorded(_Run(files, updates, deployed))


def _has_label(item: Object, key: str, value: str) -> bool:
    labels = part(item, "metadata", "labels")
    return labels.get(key) == value if value else key in labels


def _merged(before: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object after a merge patch."""
    merged = dict(before)
    for key, value in change.items():
        if isinstance(value, dict):
            merged[key] = _merged(merged.get(key) or {}, cast("Mapping[str, Any]", value))
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged
