"""What exists in a stack's cluster and is in no state."""

from typing import Any, cast

import pytest

from ebbtide.analysis.drift.differences import ReadResource
from ebbtide.clients.clouds.interfaces import Account, CloudGrant, CloudResource, ClusterIdentity, Inventory
from ebbtide.clients.kubernetes import Object
from ebbtide.operations.access import Clouds
from ebbtide.operations.engine.state import ObjectReference, State
from ebbtide.operations.leftovers.cloud import (
    OUTSIDE,
    Leftovers,
    delete,
    identify,
    lines,
    principals_of,
    unowned_grants,
    unowned_objects,
    unowned_pools,
)
from ebbtide.operations.leftovers.users import CloudNames
from ebbtide.values.cloud_kind import CloudKind
from tests.unit.operations.world import World

_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings"
_CLUSTER = "projects/acme/locations/us/clusters/train"


def _item(name: str, namespace: str = "", **content: Any) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, **content}


def _state(*objects: ObjectReference) -> State:
    return State(0, (), False, (), (), frozenset(objects), frozenset({"vision"}))  # noqa: FBT003 - no cluster


def test_objects_that_refer_to_the_stacks_queues() -> None:
    """Queues in the stack's cohort, queues that lead to its own, and rights in a team's namespace are found;
    its own, those of controllers and those of others are not."""
    state = _state(
        ObjectReference("ResourceFlavor", "", "cpu"),
        ObjectReference("Cohort", "", "train"),
        ObjectReference("ClusterQueue", "", "vision.cpu"),
        ObjectReference("LocalQueue", "vision", "cpu"),
        ObjectReference("RoleBinding", "vision", "members"),
    )

    def groups(flavor: str) -> dict[str, Any]:
        return {"resourceGroups": [{"flavors": [{"name": flavor}]}]}

    mine = {"clusterQueue": "vision.cpu"}
    owned = {"name": "owned", "namespace": "vision", "ownerReferences": [{"name": "controller"}]}
    role = {"kind": "ClusterRole", "name": "admin"}
    lists: dict[str, list[Any]] = {
        f"{_KUEUE}/clusterqueues": [
            _item("vision.cpu", spec={"cohortName": "train"}),
            _item("theirs", spec={"cohortName": "train", **groups("cpu")}),
            _item("apart", spec={"cohortName": "train", **groups("gpu")}),
            _item("elsewhere", spec={"cohortName": "other", **groups("cpu")}),
        ],
        f"{_KUEUE}/localqueues": [
            _item("cpu", "vision", spec=mine),
            _item("extra", "lab", spec=mine),
            _item("far", "lab", spec={"clusterQueue": "elsewhere"}),
        ],
        _BINDINGS: [
            _item("members", "vision", roleRef=role, subjects=[{"name": "ann"}]),
            _item("extra", "vision", roleRef=role, subjects=[{"name": "eve"}, {"name": "bob"}]),
            {"metadata": owned, "roleRef": role, "subjects": [{"name": "x"}]},
        ],
    }
    world = World(
        [], {f"{path}/{item['metadata']['name']}": item for path, items in lists.items() for item in items}
    )
    found = [(item.kind, item.name, item.id, item.effect) for item in unowned_objects(world, state)]
    assert found == [
        (
            "ClusterQueue",
            "theirs",
            f"{_KUEUE}/clusterqueues/theirs",
            "It borrows from cohort train, whose quota is that of the stack's pools.",
        ),
        (
            "ClusterQueue",
            "elsewhere",
            f"{_KUEUE}/clusterqueues/elsewhere",
            OUTSIDE.format("cpu"),
        ),
        (
            "LocalQueue",
            "lab/extra",
            f"{_KUEUE}/namespaces/lab/localqueues/extra",
            "Work in it uses the quota of ClusterQueue vision.cpu.",
        ),
        (
            "RoleBinding",
            "vision/extra",
            f"{_BINDINGS}/extra",
            "It gives bob and eve the rights of ClusterRole admin.",
        ),
    ]


class _Roles:
    """A project with some grants."""

    def grants(self, principals: list[str]) -> list[CloudGrant]:
        """Return the roles of the principals."""
        return [
            CloudGrant(id=f"acme/{role}/{member}", role=role, principal=member)
            for role in ("roles/viewer", "roles/editor", "roles/owner")
            for member in ("serviceAccount:nodes", "user:ann")
            if member in principals
        ]


def test_roles_of_the_stacks_principals() -> None:
    """A role that neither this stack nor another of the backend has given is found."""
    account = {
        "type": "gcp:serviceaccount/account:Account",
        "urn": "urn::nodes",
        "outputs": {"member": "serviceAccount:nodes"},
    }
    granted = {"project": "acme", "role": "roles/viewer", "member": "serviceAccount:nodes"}
    member = {"type": "gcp:projects/iAMMember:IAMMember", "urn": "urn::viewer", "outputs": granted}
    other = {**member, "outputs": {**granted, "role": "roles/editor"}}
    own = [account, member]
    inventory: Any = _Roles()
    found = unowned_grants(
        [inventory], principals_of(own), own, lambda: [{"deployment": {"resources": [other]}}]
    )
    assert [(item.name, item.effect) for item in found] == [
        ("nodes", "It gives nodes the role roles/owner, which no update takes away.")
    ]


def test_pools_of_other_stacks_are_owned() -> None:
    """A pool that the cluster lists is in no state only if no stack of the backend has it; other states are
    read for a candidate alone."""
    pools = [{"name": name} for name in ("cpu", "other", "hand")]
    read = {"nodePools": pools}
    cluster = ReadResource("urn::train", "gcp:container/cluster:Cluster", _CLUSTER, {}, {}, {}, read)
    own = [f"{_CLUSTER}/nodePools/cpu"]
    others = [{"deployment": {"resources": [{"id": f"{_CLUSTER}/nodePools/OTHER"}]}}]
    assert [item.name for item in unowned_pools([cluster], own, lambda: others)] == ["hand"]

    def unread() -> list[dict[str, Any]]:
        raise AssertionError

    every = [f"{_CLUSTER}/nodePools/{pool['name']}" for pool in pools]
    assert list(unowned_pools([cluster], every, unread)) == []


def test_what_is_deleted_with_its_group_is_not_deleted_before() -> None:
    """A resource in a group of the list goes with the group; one in another is deleted by itself."""
    world = World([])
    group, inside, outside = (
        CloudResource(kind="disk", id=name, name=name, location="eastus", group=of)
        for name, of in (("g", ""), ("inside", "g"), ("outside", "other"))
    )
    world.cloud = [group, inside, outside]
    assert delete(cast("Inventory", world), [group, inside, outside], lambda _: None) == {}
    assert world.cloud == [inside]


def test_the_cluster_that_exists_is_identified_by_what_it_has_now() -> None:
    """Disks and load balancers are added to the recorded ones, but not to those of an earlier cluster."""
    own: Any = {"account": Account(CloudKind.GKE, "acme"), "location": "l", "name": "train"}
    names = CloudNames("now", frozenset({"new"}), frozenset({"new"}))
    recorded = [
        ClusterIdentity(**own, namespace_uid=uid, handles=frozenset({"old"})) for uid in ("", "now", "x")
    ]
    found = identify(Clouds(), recorded, names)
    assert [(item.namespace_uid, sorted(item.handles), sorted(item.load_balancers)) for item in found] == [
        ("now", ["new", "old"], ["new"]),
        ("now", ["new", "old"], ["new"]),
        ("x", ["old"], []),
    ]


@pytest.mark.parametrize(("cloud", "uid", "said"), [("gke", "", 1), ("gke", "u", 0), ("aks", "", 0)])
def test_a_cluster_of_gke_that_was_gone_is_told_from_no_other(cloud: str, uid: str, said: int) -> None:
    """Names of firewall rules have a hash of the id of a GKE cluster, which is unknown once it is deleted."""
    account = Account(CloudKind(cloud), "acme")
    cluster = ClusterIdentity(account=account, location="l", name="train", uid=uid)
    text = " ".join(lines(Leftovers(cluster), frozenset()))
    assert ("could not be distinguished" in text) == said
