"""What keeps the namespace of a removed team from ending is named, with the command that frees it."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ebbtide.clients.kubernetes import Api, ApiError, Object
from ebbtide.operations import access
from ebbtide.operations.engine.state import ObjectReference
from ebbtide.operations.leftovers import users
from ebbtide.values import clock
from ebbtide.values.cloud_kind import CloudKind
from tests.unit.operations.objects import STATE, made, pod
from tests.unit.operations.world import World

_LABELS = {"ebbtide.dev/team": "vision"}
_TIMED_OUT = "kubernetes:core/v1:Namespace (vision): timed out waiting for the condition"


def _cluster(message: str, objects: dict[str, list[Object]]) -> World:
    """Return a cluster with one terminating namespace."""
    condition = {"type": "NamespaceContentRemaining", "status": "True", "message": message}
    namespace = {"metadata": {"name": "vision", "labels": _LABELS}, "status": {"conditions": [condition]}}
    group = {"preferredVersion": {"groupVersion": "batch/v1", "version": "v1"}}
    listed = {f"{path}/{item['metadata']['name']}": item for path, items in objects.items() for item in items}
    return World([], {"/api/v1/namespaces/vision": namespace, "/apis/batch": group, **listed})


def _object(name: str, *finalizers: str) -> Object:
    return {"metadata": {"name": name, "finalizers": list(finalizers)}}


_MESSAGE = (
    "Some resources are remaining: configmaps. has 2 resource instances, jobs.batch has 1 resource instances"
)
_OBJECTS = {
    "/api/v1/namespaces/vision/configmaps": [_object("held", "acme.example/stays"), _object("ends")],
    "/apis/batch/v1/namespaces/vision/jobs": [_object("train", "orphan", "acme.example/stays")],
}


def _connect(monkeypatch: pytest.MonkeyPatch, cluster: Api) -> None:
    def connected(_outputs: object, _consequence: str) -> tuple[Api, None]:
        return cluster, None

    monkeypatch.setattr(access, "connected", connected)


def test_the_objects_and_their_finalizers_are_named() -> None:
    """Each kind that remains is listed: the objects with finalizers, with the command that removes them."""
    held, train = users.blocking(_cluster(_MESSAGE, _OBJECTS))
    assert held == (
        "Namespace vision cannot end: configmaps/held has the finalizer acme.example/stays. If no controller "
        "removes it any more: kubectl patch configmaps held -n vision --type merge -p "
        """'{"metadata": {"finalizers": null}}'"""
    )
    assert "jobs.batch/train has the finalizer orphan and acme.example/stays." in train
    assert "kubectl patch jobs.batch train -n vision " in train


def test_many_objects_are_counted() -> None:
    """Ten are named, and the others counted."""
    maps = {next(iter(_OBJECTS)): [_object(f"held-{number}", "a/b") for number in range(14)]}
    *named, last = users.blocking(_cluster(_MESSAGE, maps))
    assert len(named) == 10
    assert last == "And 4 more in the namespace vision."


@pytest.mark.parametrize(("error", "count"), [(_TIMED_OUT, 2), ("Error 403: forbidden", 0)])
def test_only_a_deletion_that_takes_too_long_is_looked_into(
    monkeypatch: pytest.MonkeyPatch, error: str, count: int
) -> None:
    """The cluster is read only if the engine has waited in vain."""
    _connect(monkeypatch, _cluster(_MESSAGE, _OBJECTS))
    assert len(list(users.advice(dict[str, Any], [error]))) == count


def test_a_cluster_that_does_not_answer_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own errors stay the message."""
    cluster = _cluster(_MESSAGE, _OBJECTS)
    monkeypatch.setattr(cluster, "get", _unanswered)
    _connect(monkeypatch, cluster)
    assert list(users.advice(dict[str, Any], [_TIMED_OUT])) == []
    monkeypatch.undo()
    assert list(users.advice(dict[str, Any], [_TIMED_OUT])) == []  # without a kubeconfig


def _unanswered(path: str, **_: Any) -> Object:
    raise ApiError(0, re.sub("/", " ", path))


_ON_BATCH = {"resources": [{"kind": "Job", "name": "jobs", "namespaced": True}]}


def _mounting(name: str, claim: str, job: Object) -> Object:
    item = pod(name, owner=("Job", job))
    item["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1"
    item["spec"]["volumes"] = [{"persistentVolumeClaim": {"claimName": claim}}]
    return item


def test_what_keeps_a_claim_ends_with_it_and_nothing_else_does() -> None:
    """A pod that mounts a deleted claim is deleted with its controller, which would create it again; others
    run on."""
    data, train, other = made("data"), made("train"), made("other")
    namesake = _mounting("namesake-0", "data", other)
    namesake["metadata"]["namespace"] = "vision"
    world = World(
        [],
        {
            "/apis/batch/v1": _ON_BATCH,
            "/apis/batch/v1/jobs/train": train,
            "/apis/batch/v1/jobs/other": other,
            "/api/v1/pods/train-0": _mounting("train-0", "data", train),
            "/api/v1/pods/other-0": _mounting("other-0", "kept", other),
            "/api/v1/pods/namesake-0": namesake,
            "/api/v1/namespaces/vision/pods/namesake-0": namesake,
            "/api/v1/persistentvolumeclaims/data": data,
        },
    )
    item = users.UserObject(
        kind="PersistentVolumeClaim", namespace="research", name="data", uid=data["metadata"]["uid"]
    )
    assert users.clean_up(world, [item], lambda _: None) == []
    assert {path for path in world.objects if "/api/v1/" in path or "/jobs/" in path} == {
        "/api/v1/namespaces/vision/pods/namesake-0",
        "/api/v1/pods/namesake-0",
        "/api/v1/pods/other-0",
        "/apis/batch/v1/jobs/other",
    }


_DRIVER = "external-provisioner.volume.kubernetes.io/finalizer"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/pd-csi-storage-gke-io"
_REFUSALS = (None, ApiError(404, "gone"), ApiError(409, "changed", reason="Conflict"), ApiError(403, "no"))


@pytest.mark.parametrize("refusal", _REFUSALS, ids=str)
@pytest.mark.parametrize("runs", [False, True], ids=["no driver", "driver"])
def test_the_disk_of_a_deleted_claim_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, refusal: ApiError | None, *, runs: bool
) -> None:
    """A volume that outlives its claim is what remains; only the finalizer of a driver that no longer runs is
    removed, and one that is gone by then is no error."""
    claim, policy = made("scratch"), {"persistentVolumeReclaimPolicy": "Delete"}
    disk = made("disk", "", spec={**policy, "claimRef": {"uid": claim["metadata"]["uid"]}})
    disk["metadata"] |= {"finalizers": [_DRIVER, "acme/stays"], "deletionTimestamp": "2026-11-21T12:00:00Z"}
    other = made("other", "", spec={**policy, "claimRef": {"uid": "another"}})
    kept = made("kept", "", spec={**disk["spec"], "persistentVolumeReclaimPolicy": "Retain"})
    seconds = 10 if runs else 600
    lease = made("lease", spec={"renewTime": (clock.now() - timedelta(seconds=seconds)).isoformat()})
    lease["metadata"]["name"] = _LEASE.rpartition("/")[2]
    world = World(
        [],
        {
            "/api/v1/persistentvolumeclaims/scratch": claim,
            "/api/v1/persistentvolumes/disk": disk,
            "/api/v1/persistentvolumes/other": other,
            "/api/v1/persistentvolumes/kept": kept,
            _LEASE: lease,
        },
    )
    written: list[Any] = []

    def patch(path: str, body: Any) -> None:
        written.append((path, body["metadata"]["finalizers"]))
        if refusal:
            raise refusal

    monkeypatch.setattr(world, "patch", patch)
    monkeypatch.setattr(users, "_TIMEOUT", 0.0)
    monkeypatch.setattr(users, "_STEP", 0.0)
    item = users.UserObject(
        kind="PersistentVolumeClaim", namespace="research", name="scratch", uid=claim["metadata"]["uid"]
    )
    lines: list[str] = []
    if refusal and refusal.forbidden and not runs:
        with pytest.raises(ApiError):
            users.clean_up(world, [item], lines.append)
        return
    assert users.clean_up(world, [item], lines.append) == [f"PersistentVolume disk: {_DRIVER}, acme/stays"]
    assert written == ([] if runs else [("/api/v1/persistentvolumes/disk", ["acme/stays"])])
    assert [_DRIVER in line for line in lines] == [True] * len(written)


def test_objects_of_users_alone_are_listed() -> None:
    """Objects of the stack, of add-ons, of other namespaces and without cloud resources are not."""
    balancer = {"type": "LoadBalancer"}
    services = [
        made("web", spec=balancer),
        made("inner", spec={"type": "ClusterIP"}),
        made("ours", spec=balancer),
        made("webhook", "kueue-system", spec=balancer),
        made("theirs", "default", spec=balancer),
    ]
    volumes = [
        _volume(f"{phase}-{policy}", phase, policy)
        for phase in ("Available", "Bound", "Failed", "Released")
        for policy in ("Delete", "Retain")
    ]
    world = World(
        [],
        {
            f"/api/v1/{kind}/{item['metadata']['name']}": item
            for kind, items in (("services", services), ("persistentvolumes", volumes))
            for item in items
        },
    )
    own = ObjectReference("Service", "research", "ours")
    state = replace(STATE, objects=STATE.objects | {own})
    names = [item.name for item in users.list_objects(world, CloudKind.GKE, state)]
    assert names == ["web", "Failed-Delete", "Released-Delete"]


def _volume(name: str, phase: str, policy: str) -> Object:
    spec = {
        "persistentVolumeReclaimPolicy": policy,
        "claimRef": {"namespace": "research"},
        "csi": {"volumeHandle": f"disk-{name}"},
    }
    return made(name, "", spec=spec, status={"phase": phase})


def test_what_belongs_to_the_cluster_and_what_of_it_stays() -> None:
    """Disks and snapshots are named by their ids, and those with the policy Retain stay."""
    snapshots = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents"
    objects = {
        f"/api/v1/persistentvolumes/{policy}": _volume(policy, "Bound", policy)
        for policy in ("Delete", "Retain")
    } | {
        f"{snapshots}/{policy}": made(
            policy, "", spec={"deletionPolicy": policy}, status={"snapshotHandle": f"snapshot-{policy}"}
        )
        for policy in ("Delete", "Retain")
    }
    names = users.cloud_names(World([], objects))
    assert names.handles == {
        f"{kind}-{policy}" for kind in ("disk", "snapshot") for policy in ("Delete", "Retain")
    }
    assert names.retained == {"disk-Retain", "snapshot-Retain"}


def test_the_volumes_that_are_kept_outlive_their_claims() -> None:
    """Volumes of the claims and volumes that are named get the policy Retain, and no others."""
    owners = {"claimed": "a", "named": "b", "others": "c"}
    volumes = {f"/api/v1/persistentvolumes/{name}": _volume(name, "Bound", "Delete") for name in owners}
    for item, claim in zip(volumes.values(), owners.values(), strict=True):
        item["spec"]["claimRef"] = {"namespace": "research", "name": claim}
    world = World([], volumes)
    kept = {"PersistentVolumeClaim": ("research", "a"), "PersistentVolume": ("", "named")}
    users.retain(
        world,
        [
            users.UserObject(kind=kind, namespace=place, name=name, uid="u")
            for kind, (place, name) in kept.items()
        ],
    )
    policies = [item["spec"]["persistentVolumeReclaimPolicy"] for item in world.objects.values()]
    assert policies == ["Retain", "Retain", "Delete"]
