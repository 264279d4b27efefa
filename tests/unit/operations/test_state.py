"""Contents of a stack from its state, and disks that outlive it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ebbtide.analysis.reading.gke import FUTURE_RESERVATION
from ebbtide.analysis.recording.recording import STACK_TYPE
from ebbtide.clients.clouds.interfaces import Account, ClusterIdentity
from ebbtide.operations import inspection
from ebbtide.operations.engine.state import (
    DELETED_CLUSTERS,
    DeletedClusters,
    ObjectReference,
    State,
    merged_clusters,
    read,
    with_clusters,
)
from ebbtide.operations.inspection import Inspection, Volume
from ebbtide.values.cloud_kind import CloudKind
from tests.unit.operations.objects import STATE, made
from tests.unit.operations.world import World, resource

_REPOSITORY = "gcp:artifactregistry/repository:Repository"
_REQUEST = {
    "reservationMode": "CALENDAR",
    "reservationName": "train-gpu",
    "timeWindow": {"startTime": "2026-12-01T08:00:00Z", "endTime": "2026-12-05T08:00:00Z"},
}


def _object(kind: str, name: str, namespace: str = "", parents: str = "") -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return resource(kind, name, parents, outputs={"metadata": metadata})


def test_a_state() -> None:
    """Protected and retained resources are listed separately, and so are the stack's objects and
    namespaces."""
    tenant = "ebbtide:addons:Addons$ebbtide:addons:Tenant$"
    state = read(
        {
            "resources": [
                resource("pulumi:pulumi:Stack", "p-dev"),
                resource("gcp:container/cluster:Cluster", "train", protect=True),
                resource("gcp:storage/bucket:Bucket", "b", retainOnDelete=True, outputs={"name": "acme-b"}),
                resource("gcp:storage/bucket:Bucket", "c", outputs={"name": "acme-c"}),
                resource(_REPOSITORY, "r", retainOnDelete=True, outputs={"name": "images"}),
                resource(_REPOSITORY, "s", outputs={"name": "others"}),
                resource(FUTURE_RESERVATION, "f", retainOnDelete=True, inputs=_REQUEST),
                _object("kubernetes:core/v1:Namespace", "research", parents=tenant),
                _object("kubernetes:core/v1:NamespacePatch", "default", parents=tenant),
                _object("kubernetes:core/v1:ConfigMap", "profile", "default", parents=tenant),
                _object("kubernetes:apps/v1:Deployment", "kueue", "kueue-system"),
            ]
        }
    )
    assert state == State(
        resources=10,
        protected=("train",),
        owns_cluster=True,
        buckets=("acme-b",),
        registries=("images",),
        objects=frozenset(
            {
                ObjectReference("Namespace", "", "research"),
                ObjectReference("ConfigMap", "default", "profile"),
                ObjectReference("Deployment", "kueue-system", "kueue"),
            }
        ),
        teams=frozenset({"research", "default"}),
        clusters=("train",),
        reservations=(("train-gpu", datetime(2026, 12, 5, 8, tzinfo=UTC)),),
    )
    assert state.namespaces == {"research"}


def test_a_volume() -> None:
    """The disk is called as the cloud calls it."""
    spec = {
        "capacity": {"storage": "10Gi"},
        "claimRef": {"namespace": "research", "name": "data"},
        "csi": {"volumeHandle": "projects/acme/zones/us-central1-a/disks/pvc-1"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    assert inspection.read_volume({"metadata": {"name": "pvc-1"}, "spec": spec}) == _volume(
        "pvc-1", retained=True
    )


def _volume(name: str, place: str = "research", *, retained: bool = False) -> Volume:
    return Volume(name=name, disk=name, size="10Gi", claim=f"{place}/data", retained=retained)


@pytest.mark.parametrize(
    ("owns", "after", "left"),
    [
        (False, ["there", "theirs"], ["there"]),  # read from the cluster
        (False, [], []),
        (False, None, ["kept"]),  # the cluster is unreachable: retained volumes alone
        (True, None, ["kept", "theirs"]),  # a cloud deletes no disk with a cluster
    ],
)
def test_disks_that_stay(owns: bool, after: list[str] | None, left: list[str]) -> None:  # noqa: FBT001 - a case
    """On a cluster that stays those of the namespaces that went, of a cluster that went all others."""
    before = [_volume("gone"), _volume("there"), _volume("kept", retained=True), _volume("theirs", "default")]
    listed = {f"/api/v1/persistentvolumes/{name}": made(name, "") for name in after or ()}
    cluster = Inspection(volumes=tuple(before), api=None if after is None else World([], listed))
    state = replace(STATE, owns_cluster=owns)
    assert [volume.name for volume in inspection.remaining_volumes(cluster, state)] == left


def test_the_expiry_in_a_state() -> None:
    """The expiry is that of the saved lifetime, and the latest of several clusters; that of labels is the
    earliest, without replaced and existing resources."""
    component, stash = "ebbtide:stack:Lifetime", "pulumi:index:Stash"
    first = resource(stash, "l-first-up", f"{component}$", outputs={"output": "2026-11-22T12:00Z"})
    lives = [
        resource(component, name, "ebbtide:gke:Topology$", outputs={"expires": expires})
        for name, expires in (("a", "2026-11-22T20:00Z"), ("b", "2026-11-22T21:00Z"))
    ]
    labels = [
        resource(type_, "r", inputs={key: {"ebbtide-expires": value}}) | fields
        for type_, key, value, fields in (
            ("gcp:container/cluster:Cluster", "resourceLabels", "2026-11-22t20-30z", {}),
            ("azure-native:resources:ResourceGroup", "tags", "2026-11-22T20:45Z", {}),
            ("gcp:storage/bucket:Bucket", "labels", "2026-11-22t01-00z", {"delete": True}),
            ("gcp:storage/bucket:Bucket", "labels", "2026-11-22t01-00z", {"external": True}),
        )
    ]
    own = resource(stash, "own", outputs={"output": "x"})
    state = read({"resources": [first, *lives, own, *labels]})
    assert state.labelled == datetime(2026, 11, 22, 20, 30, tzinfo=UTC)
    pool = {"nodeConfig": {"resourceLabels": {"ebbtide-expires": "2026-11-22t20-15z"}}}
    pools = [resource("gcp:container/nodePool:NodePool", "p", inputs=pool)]
    assert read({"resources": [*labels, *pools]}).labelled == datetime(2026, 11, 22, 20, 15, tzinfo=UTC)
    assert state.first_up == datetime(2026, 11, 22, 12, tzinfo=UTC)
    assert state.expires == datetime(2026, 11, 22, 21, tzinfo=UTC)
    begun = read({"resources": [resource(component, "a")]})
    assert (begun.first_up, begun.expires) == (None, None)


def test_clusters_that_an_earlier_destroy_has_deleted() -> None:
    """Recorded in the outputs of the stack, with its expiry: the cluster's own resources are gone by then."""
    account = Account(CloudKind.GKE, "acme-ml")
    cluster = ClusterIdentity(
        account=account, location="us-central1-a", name="train", uid="f" * 64, handles=frozenset({"disk"})
    )
    record = DeletedClusters((cluster,), frozenset({"disk"}))
    network = resource("gcp:compute/network:Network", "train")
    root = resource(STACK_TYPE, "p-dev", outputs={"expires": "2026-11-22T20:00Z"})
    state = read(with_clusters({"resources": [root, network]}, record))
    assert (state.deleted, state.accounts, state.identities) == (record, (account,), ())
    assert state.expires == datetime(2026, 11, 22, 20, tzinfo=UTC)
    (merged_cluster,) = merged_clusters([replace(cluster, uid="", handles=frozenset())], record.identities)
    assert merged_cluster == cluster


@pytest.mark.parametrize("output", ["no record", {"identities": [{"name": "train"}]}, {"others": 1}])
def test_another_record_is_none(output: Any) -> None:
    """An output written by a user or a later version is not a record."""
    assert (
        read({"resources": [resource(STACK_TYPE, "p-dev", outputs={DELETED_CLUSTERS: output})]}).deleted
        == DeletedClusters()
    )
