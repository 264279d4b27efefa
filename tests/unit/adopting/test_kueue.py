"""Queues of a declaration from Kueue's objects: those of Ebbtide, and those of others."""

import copy
from collections.abc import Collection, Mapping
from typing import Any, Final

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.operations.adopting.found import AdoptionError
from ebbtide.operations.adopting.kueue import AdoptedQueues, adopt_queues, adopted_objects
from ebbtide.operations.adopting.kueue_objects import kueue_objects
from ebbtide.placement.queue_objects import fallback_objects, layers
from ebbtide.placement.queueing import queueing
from tests.declarations import GKE, Declaration, changed
from tests.synth import synth
from tests.unit.placement.test_queueing import queued

generated = settings(max_examples=25, deadline=None)
EXISTING = changed(
    GKE, cloud={**GKE["cloud"], "existing": {"name": "theirs"}}, pools=copy.deepcopy(GKE["pools"][1:])
)


def _listed(cluster: Cluster) -> list[dict[str, Any]]:
    """The objects of a declaration as kubectl lists them: by kind and name."""
    objects = [dict(item) for layer in layers(queueing(cluster)) for item in layer]
    objects += [dict(item) for item in fallback_objects(cluster)]
    return sorted(
        objects, key=lambda item: (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"])
    )


def _without_queues(declaration: Declaration) -> Declaration:
    """A declaration of the pools alone, with the labels that their nodes have."""
    cluster = declare(declaration)
    key = CLOUD_SPECS[cluster.site.cloud].fallback_key
    plain = copy.deepcopy(declaration)
    for field in ("queues", "teams", "cohort"):
        plain.pop(field, None)
    for pool in plain["pools"]:
        pool.pop("resourceFlavor", None)
        if fallback := cluster.fallback_of(pool["name"]):
            pool["labels"] = {**pool.get("labels", {}), key: fallback}
    return _on_existing(plain)


def _on_existing(declaration: Declaration) -> Declaration:
    existing = {**declaration["cloud"], "existing": {"name": declaration["name"]}}
    work = [pool for pool in declaration["pools"] if pool.get("role") != "system"]
    return {**declaration, "cloud": existing, "pools": work}


def _adopted(objects: list[dict[str, Any]], declaration: Declaration, **more: Any) -> AdoptedQueues:
    found = kueue_objects({"kind": "List", "items": objects}, "kueue.json")
    return adopt_queues(found, declaration, **more)


_ALTERNATIVES = changed(
    GKE,
    pools=[
        *GKE["pools"][:1],
        *({"name": name, "machine": "e2-standard-8", "nodes": {"max": 1}} for name in ("a", "b")),
    ],
    queues=[{"name": "f", "pools": ["a", "b"], "fallback": True}],
    teams=[{"name": "x", "guarantee": {"b": 1}}, {"name": "y", "guarantee": {"a": 1}}],
)
"""Teams with guarantees of alternative pools, each of which has nodes for one of the teams alone."""


_OF_TWO_SHAPES = changed(
    GKE,
    pools=[
        *GKE["pools"][:1],
        *(
            {"name": name, "machine": machine, "nodes": {"max": most}}
            for name, machine, most in (
                ("a", "e2-standard-8", 1),
                ("b", "e2-standard-8", 6),
                ("c", "e2-standard-8", 27),
                ("d", "e2-standard-8", 11),
                ("e", "n2d-standard-16", 42),
            )
        ),
    ],
    queues=[{"name": "f", "pools": ["a", "b", "e", "c", "d"], "fallback": True}],
    teams=[{"name": "x", "borrowingLimit": {"e": 1}}],
)
"""More combinations of alternative pools than are tried, but few of their machines."""


@generated
@example(_ALTERNATIVES)
@example(_OF_TWO_SHAPES)
@given(queued())
def test_queues_of_ebbtide_are_adopted_as_declared(declaration: Declaration) -> None:
    """Objects that a declaration derives give its queues and shares again, and the same objects."""
    fallbacks = [queue["name"] for queue in declaration.get("queues", ()) if queue.get("fallback")]
    on_gke = declaration["cloud"]["kind"] == "gke"
    # On AKS, a fallback needs the cluster's own autoscaler.
    assume(declaration.get("queues") and (on_gke or not fallbacks))
    declaration = _on_existing(declaration)
    cluster = declare(declaration)
    assume(len(_used(cluster)) == len(cluster.resolved_queues))
    created = {team.namespace_name for team in cluster.teams}
    plain = _without_queues(declaration)
    adopted = _adopted(_listed(cluster), plain, created=created)
    again = declare({**plain, **adopted.fields})
    assert (adopted.differences, adopted.left) == ((), ())
    assert _listed(again) == _listed(cluster)
    assert _used(again) == _used(cluster)
    assert _shares(again, fallbacks) == _shares(cluster, fallbacks)


def _used(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """The pools of each queue that a tenant uses."""
    queues = cluster.resolved_queues
    return {
        queue.name: queue.pools
        for queue in queues
        if any(team.queues_used(queue.name) for team in cluster.tenants)
    }


def _shares(cluster: Cluster, fallbacks: list[str]) -> dict[str, tuple[dict[str, int], int]]:
    """Guarantees and weight of each team; nodes of alternative pools may be exchanged."""
    alternatives = {pool for queue in cluster.queues if queue.name in fallbacks for pool in queue.pools}
    return {
        team.name: (
            {pool: nodes for pool, nodes in team.guarantee.items() if nodes and pool not in alternatives},
            team.weight,
        )
        for team in cluster.teams
    }


KUEUE = "kueue.x-k8s.io/v1beta2"


def _object(kind: str, name: str, spec: Any, *, version: str = KUEUE, **metadata: str) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "uid": "1", **metadata},
        "spec": spec,
        "status": {},
    }


def _quota(flavor: str, **amounts: Any) -> dict[str, Any]:
    """One resource group of a flavor, with limits beside the nominal quota."""
    limits = {key: amounts.pop(key) for key in ("borrowingLimit", "lendingLimit") if key in amounts}
    names = {"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"}
    resources = [
        {"name": names[key], "nominalQuota": value} | {limit: own[key] for limit, own in limits.items()}
        for key, value in amounts.items()
    ]
    return {
        "coveredResources": [item["name"] for item in resources],
        "flavors": [{"name": flavor, "resources": resources}],
    }


def _theirs(version: str = KUEUE) -> list[dict[str, Any]]:
    """Queues of two teams and of shared namespaces, as an administrator writes them."""
    cohort = "cohortName" if version == KUEUE else "cohort"
    stop = "MayStopSearch" if version == KUEUE else "Borrow"
    gpus = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4", "cloud.google.com/gke-spot": "true"}
    return [
        _object("ResourceFlavor", "spot-t4", {"nodeLabels": gpus}, version=version),
        _object(
            "ResourceFlavor",
            "cpus",
            {"nodeLabels": {"cloud.google.com/gke-nodepool": "cpu"}},
            version=version,
        ),
        _object("ResourceFlavor", "default-flavor", {}, version=version),
        _object("ResourceFlavor", "aks-cpu", {"nodeLabels": {"agentpool": "cpu"}}, version=version),
        _object(
            "ClusterQueue",
            "research-cq",
            {
                cohort: "ml",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "research"}},
                "resourceGroups": [_quota("spot-t4", gpu="8", lendingLimit={"gpu": "4"})],
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
                "fairSharing": {"weight": "2"},
                "stopPolicy": "None",
            },
            version=version,
        ),
        _object(
            "ClusterQueue",
            "vision-cq",
            {
                cohort: "ml",
                "namespaceSelector": {},
                "queueingStrategy": "StrictFIFO",
                "resourceGroups": [_quota("spot-t4", gpu="6", borrowingLimit={"gpu": "4"})],
                "flavorFungibility": {"whenCanBorrow": stop},
            },
            version=version,
        ),
        _object(
            "ClusterQueue",
            "batch",
            {"resourceGroups": [_quota("cpus", cpu="20", memory="90Gi")]},
            version=version,
        ),
        _object("ClusterQueue", "unused", {"resourceGroups": []}, version=version),
        _object("LocalQueue", "gpu", {"clusterQueue": "research-cq"}, version=version, namespace="research"),
        _object("LocalQueue", "gpu", {"clusterQueue": "vision-cq"}, version=version, namespace="vision"),
        _object("LocalQueue", "batch", {"clusterQueue": "batch"}, version=version, namespace="etl"),
        _object("LocalQueue", "cpu", {"clusterQueue": "batch"}, version=version, namespace="reports"),
        {
            "apiVersion": version,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": "urgent"},
            "value": 100,
        },
    ]


DECLARED = {
    "pools": [
        {**pool, "resourceFlavor": {"t4": "spot-t4", "cpu": "cpus"}[pool["name"]]}
        if pool["name"] in ("t4", "cpu")
        else pool
        for pool in EXISTING["pools"]
    ],
    "queues": [
        {
            "name": "batch",
            "pools": ["cpu"],
            "localQueues": [{"namespace": "etl"}, {"namespace": "reports", "name": "cpu"}],
            "preemption": {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"},
            "borrowingLimit": {"cpu": 2},
        },
        {"name": "research-cq", "pools": ["t4"]},
        {
            "name": "vision-cq",
            "pools": ["t4"],
            "preemption": {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"},
            "queueingStrategy": "StrictFIFO",
            "borrowingLimit": {"t4": 1},
        },
    ],
    "teams": [
        {
            "name": "research",
            "namespace": {"name": "research", "create": False},
            "queues": [{"queue": "research-cq", "as": "gpu", "clusterQueue": "research-cq"}],
            "guarantee": {"t4": 2},
            "lendingLimit": {"t4": 1},
            "weight": 2,
        },
        {
            "name": "vision",
            "namespace": {"name": "vision", "create": False},
            "queues": [{"queue": "vision-cq", "as": "gpu", "clusterQueue": "vision-cq"}],
            "guarantee": {"t4": 1},
        },
    ],
    "cohort": {"name": "ml"},
    "addons": {"kueue": {"existing": True}},
}


@pytest.mark.parametrize("version", [KUEUE, "kueue.x-k8s.io/v1beta1"])
def test_queues_of_others_are_declared(version: str) -> None:
    """Every ClusterQueue keeps its name, and quota becomes nodes of the pools that its flavors select."""
    fields = dict(_adopted(_theirs(version), EXISTING).fields)
    fields["queues"] = sorted(fields["queues"], key=lambda queue: queue["name"])
    assert fields == DECLARED


def test_every_field_of_others_is_kept_or_listed() -> None:
    """Each field is the same, or is a difference with its reason; each other object is left with one."""
    adopted = _adopted(_theirs(), EXISTING)
    vision = {item.path: item for item in adopted.differences if item.name == "ClusterQueue vision-cq"}
    assert vision.keys() == {
        "spec.namespaceSelector.matchLabels.kubernetes.io/metadata.name",
        "spec.resourceGroups[0].coveredResources",
        "spec.resourceGroups[0].flavors[spot-t4].resources[]",
        "spec.resourceGroups[0].flavors[spot-t4].resources[nvidia.com/gpu].nominalQuota",
    }
    assert all(item.reason for item in adopted.differences)
    assert not any(item.declared is None for item in vision.values())
    assert {item.name for item in adopted.left} == {
        *(f"ResourceFlavor {name}" for name in ("default-flavor", "aks-cpu")),
        "ClusterQueue unused",
        "WorkloadPriorityClass urgent",
    }
    added = {item.name for item in adopted.differences if not item.path and "Priority" not in item.name}
    assert added == {"Cohort ml"}


_POOL: Final = "cloud.google.com/gke-nodepool"
_SPOT: Final = {"cloud.google.com/gke-spot": "true"}
_CLASS: Final = {"cloud.google.com/compute-class": "f"}
_FLAVORS: Final = {
    "one": {_POOL: "cpu"},
    "two": {_POOL: "cpu"},
    "cpu": {_POOL: "cpu"},
    "t4": {_POOL: "a"},
    "gpus": {_POOL: "t4"},
    "aks-one": {_POOL: "cpu"},
    "spot": _SPOT,
    "f.pools": _CLASS,
    "class": _CLASS,
    "system": {_POOL: "default-pool"},
    "none": {},
}
"""Node labels of flavors."""
_CLUSTER: Final = changed(
    EXISTING,
    pools=[
        *EXISTING["pools"][:2],
        *(
            {"name": name, "machine": "e2-standard-8", "nodes": {"max": 2}, "labels": _CLASS}
            for name in ("a", "b")
        ),
    ],
)


def _queue(name: str, *flavors: str, cohort: str = "", namespaces: Collection[str] = ("n",)) -> list[Any]:
    """A ClusterQueue with its flavors and its LocalQueues."""
    groups = [_quota(flavor, cpu="1") for flavor in flavors]
    spec = {"resourceGroups": groups, **({"cohortName": cohort} if cohort else {})}
    return [
        *(_object("ResourceFlavor", flavor, {"nodeLabels": _FLAVORS[flavor]}) for flavor in flavors),
        _object("ClusterQueue", name, spec),
        *(
            _object("LocalQueue", name.replace(".", "-"), {"clusterQueue": name}, namespace=namespace)
            for namespace in namespaces
        ),
    ]


@pytest.mark.parametrize(
    ("flavors", "reason"),
    [
        (["one"], ""),
        (["cpu"], ""),
        (["f.pools"], ""),
        (["one", "gpus"], ""),
        (
            ["one", "two"],
            "flavor one, to which Workloads refer, cannot be declared: two selects nodes of cpu",
        ),
        (["spot"], "it selects the nodes of cpu and t4, and a pool has a flavor of its own."),
        (["aks-one"], "AKS reserves the name."),
        (["class"], "it is of the ComputeClass f."),
        (["f.pools", "one"], "it is of the ComputeClass f."),
        (["t4"], "it is that of another pool."),
        (["gpus", "system"], "Its flavor system selects the nodes of no declared pool."),
    ],
)
def test_a_queue_keeps_the_names_of_its_flavors_or_its_owner(flavors: list[str], reason: str) -> None:
    """A ClusterQueue whose flavor would be renamed is left, and the reason names the flavor."""
    adopted = _adopted(_queue("q", *flavors), _CLUSTER)
    left = {item.name: item.reason for item in adopted.left}
    assert reason in left.get("ClusterQueue q", "")
    assert [queue["name"] for queue in adopted.fields.get("queues", ())] == (
        [] if reason else ["f" if "f.pools" in flavors else "q"]
    )
    assert (left.keys() >= {f"ResourceFlavor {name}" for name in flavors}) == bool(reason)


@pytest.mark.parametrize(("cpus", "nodes"), [("1", 1), ("0", 0), ("9", 1), ("17", 2)])
def test_quota_of_less_than_a_node_admits_work(cpus: str, nodes: int) -> None:
    """A queue whose quota is less than a node of the pool has one node, unless it has none."""
    objects = _queue("q", "one")
    (flavor,) = objects[1]["spec"]["resourceGroups"][0]["flavors"]
    flavor["resources"][0]["nominalQuota"] = cpus
    (queue,) = _adopted(objects, _CLUSTER).fields["queues"]
    assert queue["borrowingLimit"] == {"cpu": nodes}


def test_a_queue_beside_one_that_is_left_is_left() -> None:
    """Quota of the same nodes, and that of a Cohort object, stays with one owner; a cohort without an object
    has none."""
    mate = _queue("other", "gpus", cohort="ml", namespaces=("m",))
    left = _queue("q", "gpus", "system")
    pools = {item.name: item.reason for item in _adopted([*left, *mate], _CLUSTER).left}
    assert "the nodes of t4 with ClusterQueue q, which is left." in pools["ClusterQueue other"]
    left = _queue("q", "system", cohort="below")
    assert [queue["name"] for queue in _adopted([*left, *mate], _CLUSTER).fields["queues"]] == ["other"]
    tree = _object("Cohort", "below", {"parentName": "ml"})
    cohorts = {item.name: item.reason for item in _adopted([*left, *mate, tree], _CLUSTER).left}
    assert "the quota of Cohort ml with ClusterQueue q, which is left." in cohorts["ClusterQueue other"]
    assert cohorts["Cohort below"]


@st.composite
def _owners(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Queues of an owner, with any flavors, in any cohorts."""
    cohorts = ["", "ml", "org", EXISTING["name"]]
    flavors = st.sampled_from(["one"]) | st.sampled_from(["gpus", "f.pools"]) | st.sampled_from([*_FLAVORS])
    objects = [
        item
        for name in draw(st.lists(st.sampled_from(["p", "q", "f", "a.q", "a.p"]), min_size=1, unique=True))
        for item in _queue(
            name,
            *draw(st.lists(flavors, min_size=1, max_size=2, unique=True)),
            cohort=draw(st.sampled_from(cohorts)),
            namespaces=draw(st.lists(st.sampled_from("abc"), max_size=2, unique=True)),
        )
    ]
    for name in draw(st.lists(st.sampled_from(cohorts[1:]), unique=True)):
        parent = draw(st.sampled_from([{}, {"parentName": "org"}]))
        objects.append(_object("Cohort", name, {} if name == "org" else parent))
    return list({(item["kind"], *item["metadata"].values()): item for item in objects}.values())


@settings(max_examples=40, deadline=None)
@given(_owners())
def test_an_adoption_renames_no_flavor(objects: list[dict[str, Any]]) -> None:
    """Every adopted ClusterQueue has its flavors under their names, every derived object but a new cohort is
    one of an adopted queue, and no Cohort of a queue that is left becomes the stack's."""
    adopted = _adopted(objects, _CLUSTER)
    derived = [item for layer in layers(queueing(declare({**_CLUSTER, **adopted.fields}))) for item in layer]
    made = {(item["kind"], item["metadata"]["name"]): item for item in derived}
    existing = {(item["kind"], item["metadata"]["name"]): item for item in objects}
    new = {kind for kind, _ in made.keys() - existing.keys()}
    assert new <= {"Cohort", "WorkloadPriorityClass"}
    used = {item["spec"]["clusterQueue"] for item in objects if item["kind"] == "LocalQueue"}
    for (kind, name), item in existing.items():
        if kind == "ClusterQueue" and (kind, name) in made:
            assert {*_names(item)} == {*_names(made[kind, name])}
            assert name in used
        elif kind == "ClusterQueue" and name in used:
            assert ("Cohort", item["spec"].get("cohortName")) not in made.keys() & existing.keys()
            assert any(left.name == f"ClusterQueue {name}" and left.reason for left in adopted.left)


def _names(queue: Mapping[str, Any]) -> list[str]:
    return [flavor["name"] for group in queue["spec"]["resourceGroups"] for flavor in group["flavors"]]


def test_the_compute_class_of_a_queue_with_fallback_is_adopted() -> None:
    """A ComputeClass has its queue's name, so that the stack could not create one beside it."""
    objects = _listed(declare(_ALTERNATIVES))
    (adopted,) = (
        item for item in adopted_objects(objects, synth(_ALTERNATIVES)) if "ComputeClass" in item["type"]
    )
    assert (adopted["id"], adopted["found"].keys()) == ("f", {"spec"})


def test_a_document_without_objects_of_kueue_is_none() -> None:
    """A List of other kinds, and what is not an object, are another module's."""
    pods = {"kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]}
    documents: list[object] = [pods, [], {"items": 3}, None]
    assert [kueue_objects(document, "a.json") for document in documents] == [()] * 4


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"apiVersion": KUEUE, "kind": "ClusterQueue"}, "has no kind, name or namespace"),
        (_object("LocalQueue", "a", {}), "has no kind, name or namespace"),
        (_object("ClusterQueue", "a", {}, version="kueue.x-k8s.io/v1"), "is of kueue.x-k8s.io/v1, which"),
    ],
)
def test_an_object_that_cannot_be_read_is_refused(item: dict[str, Any], message: str) -> None:
    """One message names the file and the object."""
    with pytest.raises(AdoptionError, match=message) as refused:
        kueue_objects({"kind": "List", "items": [item]}, "kueue.json")
    assert str(refused.value).startswith("kueue.json: ")


def test_queues_that_break_a_rule_are_refused() -> None:
    """Guarantees beyond a pool's maximum are said with the rule's own message."""
    objects = _theirs()
    for item in objects:
        if item["metadata"]["name"] in ("research-cq", "vision-cq"):
            (group,) = item["spec"]["resourceGroups"]
            group["flavors"][0]["resources"][0]["nominalQuota"] = "16"
    with pytest.raises(AdoptionError, match="8 nodes of t4 are guaranteed, and it has at most 4"):
        _adopted(objects, EXISTING)
