"""Kueue's objects: what its own schemas take, in an order in which they can be made."""

import re
from functools import cache
from typing import Any, cast

import jsonschema
import pytest
import yaml
from hypothesis import given, settings

from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.labels_and_taints import labels_and_taints
from ebbtide.declaration.model.pool import Pool
from ebbtide.placement.derive import profile
from ebbtide.placement.queue_objects import fallback_objects, layers, priorities, with_names
from ebbtide.placement.queueing import Flavor, largest_node, queueing
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.kueue_api import API_VERSION
from tests.declarations import AKS, GKE, Declaration, changed
from tests.manifests import KUEUE, upstream
from tests.unit.placement.test_queueing import queued

generated = settings(max_examples=40, deadline=None)


T4 = {"type": "nvidia-tesla-t4", "count": 4}
STEADY = {"name": "steady", "machine": "n1-standard-16", "accelerator": T4, "nodes": {"max": 2}}
ON_GKE = changed(
    GKE, pools=[*GKE["pools"], STEADY], queues=[{"name": "gpus", "pools": ["t4", "steady"], "fallback": True}]
)
ON_AKS = changed(AKS, queues=[{"name": "cpus", "pools": ["cpu", "steady"], "fallback": True}])


def objects(declaration: Declaration) -> list[dict[str, Any]]:
    """All of Kueue's objects for a declaration, in the order in which they are made."""
    return [item for layer in layers(queueing(declare(declaration))) for item in layer]


def object_of(declaration: Declaration, kind: str, name: str) -> dict[str, Any]:
    """One of them."""
    (item,) = [
        item for item in objects(declaration) if (item["kind"], item["metadata"]["name"]) == (kind, name)
    ]
    return item


def _strict(schema: Any) -> Any:
    """A schema that takes no field that it does not name, as the API server does under server-side apply."""
    match schema:
        case dict():
            inner = {key: _strict(value) for key, value in cast("dict[str, Any]", schema).items()}
            closed = "properties" in inner and "x-kubernetes-preserve-unknown-fields" not in inner
            if isinstance(pattern := inner.get("pattern"), str):
                inner["pattern"] = pattern.replace("^(?i)", "(?i)^")  # Go takes the flag anywhere
            return {**inner, "additionalProperties": False} if closed else inner
        case list():
            return [_strict(item) for item in cast("list[Any]", schema)]
        case _:
            return schema


@cache
def _validators() -> dict[str, Any]:
    known: dict[str, Any] = {}
    for definition in upstream(KUEUE):
        for version in definition["spec"]["versions"]:
            if version["name"] == API_VERSION.partition("/")[2]:
                schema = _strict(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                kind = definition["spec"]["names"]["kind"]
                known[kind] = jsonschema.Draft202012Validator(schema)
    return known


@pytest.mark.released(KUEUE)
def test_the_schemas_are_strict() -> None:
    """A misspelt field would be seen."""
    wrong = object_of(changed(GKE, queues=[{"name": "gpus", "pools": ["t4"]}]), "ClusterQueue", "gpus")
    wrong["spec"]["cohort"] = wrong["spec"].pop("cohortName")
    with pytest.raises(jsonschema.ValidationError):
        _validators()["ClusterQueue"].validate(wrong)


@pytest.mark.released(KUEUE)
@generated
@given(queued())
def test_every_object_is_valid(declaration: Declaration) -> None:
    """Each object is of the one API version that stays, and as its definition has it."""
    for item in objects(declaration):
        assert item["apiVersion"] == API_VERSION
        _validators()[item["kind"]].validate(item)


@pytest.mark.released(KUEUE)
@pytest.mark.parametrize("declaration", [ON_GKE, ON_AKS], ids=["gke", "aks"])
def test_a_queue_that_falls_back_is_valid(declaration: Declaration) -> None:
    """The single flavor of a fallback queue has a name that no pool can have, and is in both resource
    groups."""
    made = objects(declaration)
    for item in made:
        _validators()[item["kind"]].validate(item)
    groups = [group for item in made for group in item.get("spec", {}).get("resourceGroups", ())]
    name = f"{declaration['queues'][0]['name']}.pools"
    assert [[flavor["name"] for flavor in group["flavors"]] for group in groups] == [[name]] * 2


def _needs(item: dict[str, Any]) -> set[tuple[str, str]]:
    """The objects that an object names."""
    spec = item.get("spec", {})
    groups = spec.get("resourceGroups", ())
    needs = {("ResourceFlavor", flavor["name"]) for group in groups for flavor in group["flavors"]}
    strategy = spec.get("admissionChecksStrategy", {})
    needs |= {("AdmissionCheck", check["name"]) for check in strategy.get("admissionChecks", ())}
    if "cohortName" in spec:
        needs.add(("Cohort", spec["cohortName"]))
    if "clusterQueue" in spec:
        needs.add(("ClusterQueue", spec["clusterQueue"]))
    if "parameters" in spec:
        needs.add((spec["parameters"]["kind"], spec["parameters"]["name"]))
    return needs


@generated
@given(queued())
def test_the_objects_of_any_declaration(declaration: Declaration) -> None:
    """Layers name objects of earlier layers alone, the flavors of a group have its resources in its order,
    and each pool has one priority among the fallbacks."""
    cluster, made = declare(declaration), set[tuple[str, str]]()
    for layer in layers(queueing(cluster)):
        for item in layer:
            assert _needs(item) <= made
            for group in item.get("spec", {}).get("resourceGroups", ()):
                for flavor in group["flavors"]:
                    assert [resource["name"] for resource in flavor["resources"]] == group["coveredResources"]
        made |= {(item["kind"], item["metadata"]["name"]) for item in layer}
    queues = [queue.name for queue in cluster.queues if queue.fallback]
    orders = [item["metadata"]["name"] for item in fallback_objects(cluster)]
    assert orders == queues if cluster.site.cloud is CloudKind.GKE else len(orders) == bool(queues)
    patterns = [pattern for texts in priorities(cluster).values() for pattern in texts]
    for pool in cluster.pools:
        name = f"aks-{pool.name}-29141059-vmss"
        assert len([pattern for pattern in patterns if re.search(pattern, name)]) == 1


TEAMS = [{"name": "vision", "guarantee": {"t4": 1}}, {"name": "speech"}]


def _preemption(**fields: Any) -> dict[str, list[str]]:
    """Whose work the T4 queues of two teams preempt in their queue and in the cohort; the first has a
    guarantee."""
    declaration = changed(GKE, queues=[{"name": "gpus", "pools": ["t4"]}], teams=TEAMS)
    for path, value in fields.items():
        declaration = changed(declaration, **{path: value})
    preemption = [
        item["spec"]["preemption"] for item in objects(declaration) if item["kind"] == "ClusterQueue"
    ]
    return {key: [item[key] for item in preemption] for key in preemption[0]}


def test_only_a_guarantee_is_reclaimed_from_equal_work() -> None:
    """A team without a guarantee, or with one of no nodes, evicts no work of another team that has its
    priority."""
    for none in ({}, {"t4": 0}):
        teams = [TEAMS[0], TEAMS[1] | {"guarantee": none}]
        assert _preemption(teams=teams)["reclaimWithinCohort"] == ["Any", "LowerPriority"]


def test_a_queue_has_its_own_preemption_or_that_of_the_cohort() -> None:
    """Each of the two settings is the queue's, else the cohort's, else the default."""
    cohort = {"preemption": {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}}
    assert _preemption(cohort=cohort) == {
        "reclaimWithinCohort": ["Never", "Never"],
        "withinClusterQueue": ["Never", "Never"],
    }
    own = [{"name": "gpus", "pools": ["t4"], "preemption": {"reclaimWithinCohort": "Any"}}]
    assert _preemption(cohort=cohort, queues=own) == {
        "reclaimWithinCohort": ["Any", "Any"],
        "withinClusterQueue": ["Never", "Never"],
    }


def _quota(declaration: Declaration, name: str) -> list[tuple[str, str, str | None, str | None]]:
    """Flavor, quota and limits of the accelerators of a ClusterQueue."""
    return [
        (flavor["name"], item["nominalQuota"], item.get("borrowingLimit"), item.get("lendingLimit"))
        for group in object_of(declaration, "ClusterQueue", name)["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        for item in flavor["resources"]
        if item["name"] == "nvidia.com/gpu"
    ]


def test_limits_are_of_nodes() -> None:
    """A limit of nodes of a pool is one of each resource that these nodes have; a team's replaces that of its
    queue, and what it lends is limited in the queue that has the guarantee."""
    queue = {"name": "gpus", "pools": ["t4", "a100"], "borrowingLimit": {"t4": 2}}
    teams = [
        {"name": "vision", "guarantee": {"t4": 2}, "borrowingLimit": {"t4": 0}, "lendingLimit": {"t4": 1}},
        {"name": "speech"},
    ]
    declaration = changed(GKE, queues=[queue, {"name": "small", "pools": ["t4"]}], teams=teams)
    assert _quota(declaration, "vision.small") == [("t4", "0", "0", None)]
    assert _quota(declaration, "vision.gpus") == [("t4", "8", "0", "4"), ("a100", "0", None, None)]
    assert _quota(declaration, "speech.gpus") == [("t4", "0", "8", None), ("a100", "0", None, None)]


def test_the_limit_of_a_pool_that_falls_back_is_part_of_that_of_its_queue() -> None:
    """The single flavor of a fallback queue is limited by the pools with a limit, and has all nodes of the
    others, or all guaranteed ones."""
    steady = {**GKE["pools"][2], "name": "steady", "capacity": "on-demand"}
    queue = {"name": "gpus", "pools": ["t4", "steady"], "fallback": True, "borrowingLimit": {"steady": 1}}
    declaration = changed(GKE, pools=[*GKE["pools"], steady], queues=[queue])
    assert _quota(declaration, "gpus") == [("gpus.pools", "0", "20", None)]
    team = {"name": "vision", "guarantee": {"t4": 2, "steady": 1}, "lendingLimit": {"steady": 0}}
    assert _quota(changed(declaration, teams=[team]), "vision.gpus") == [("gpus.pools", "12", "20", "8")]


def _flavor(declaration: Declaration) -> Flavor:
    (item,) = queueing(declare(declaration)).flavors
    return item


def test_pools_of_a_class_are_known_as_such() -> None:
    """GKE wants the class as label and taint on each of its pools; the taint takes the place of the derived
    one, and what the user declares stays beside it."""
    for name in ("t4", "steady"):
        pool = profile(declare(ON_GKE)).pool(name)
        assert pool.labels["cloud.google.com/compute-class"] == "gpus"
        assert [taint.key for taint in pool.taints] == ["cloud.google.com/compute-class", "nvidia.com/gpu"]
    tainted = declare(changed(ON_GKE, pools=[*GKE["pools"], STEADY | {"taints": [{"key": "lab"}]}]))
    assert [taint.key for taint in profile(tainted).pool("steady").taints] == [
        "lab",
        "cloud.google.com/compute-class",
        "nvidia.com/gpu",
    ]


def test_work_sent_to_a_pool_of_a_class_asks_for_the_class() -> None:
    """Work for a pool of a ComputeClass selects the class, which GKE requires, and not spot, which GKE
    refuses."""
    pool = profile(declare(ON_GKE)).pool("t4")
    assert {term.key: term.values for term in pool.affinity} == {
        "ebbtide.dev/pool": ("t4",),
        "cloud.google.com/compute-class": ("gpus",),
    }


@pytest.mark.parametrize(
    ("labels", "taints"), [({}, []), ({"cloud.google.com/compute-class": "batch"}, ["batch"])]
)
def test_a_class_made_by_hand_is_a_class(labels: dict[str, str], taints: list[str]) -> None:
    """A pool that its user puts into a ComputeClass by the label has the taint that goes with it."""
    pool = Pool.model_validate({"name": "cpu", "machine": "n2-standard-8", "labels": labels})
    class_taints = [
        taint for taint in labels_and_taints(pool, CloudKind.GKE).taints if "compute-class" in taint.key
    ]
    assert [taint.value for taint in class_taints] == taints


@pytest.mark.parametrize(("pool", "class_taint"), [({"role": "system"}, ()), ({"capacity": "queued"}, ())])
def test_no_class_for_what_cannot_be_in_one(pool: Declaration, class_taint: tuple[str, ...]) -> None:
    """A system pool admits pods without a class, and a queued one selects its pods differently."""
    labels = {"cloud.google.com/compute-class": "batch"}
    declared = Pool.model_validate({"name": "p", "machine": "n2-standard-8", "labels": labels} | pool)
    assert labels_and_taints(declared, CloudKind.GKE).taints == class_taint


def test_quota_is_the_sum_and_the_limit_the_largest() -> None:
    """The quota is the offer of all pools' nodes; a container may request what the largest offers."""
    item = _flavor(ON_GKE)
    assert item.name == "gpus.pools"
    small, large = (offer.node for offer in item.offers)
    both = item.offer({"t4": 4, "steady": 2})
    assert both == {name: 4 * small[name] + 2 * large[name] for name in ("cpu", "memory", "nvidia.com/gpu")}
    assert small["cpu"] < large["cpu"]
    assert large["memory"] > small["memory"]
    assert largest_node([item])["cpu"] == f"{large['cpu']}m"


def test_a_flavor_of_several_pools_leads_to_all_of_them() -> None:
    """By the one label that they share, and past every taint that any of them has."""
    item = _flavor(ON_AKS)
    assert item.labels == {"ebbtide.dev/fallback": "cpus"}
    assert {(toleration.key, toleration.value) for toleration in item.tolerations} == {
        ("kubernetes.azure.com/scalesetpriority", "spot"),
        ("ebbtide.dev/fallback", "cpus"),
    }


def _chosen(by_priority: dict[int, list[str]], groups: list[str]) -> str:
    """Return the group that the priority expander takes (kubernetes/autoscaler, expander/priority): the one
    with the highest priority whose pattern matches anywhere in its name."""
    best = {
        group: max(
            place
            for place, patterns in by_priority.items()
            for pattern in patterns
            if re.search(pattern, group)
        )
        for group in groups
    }
    (first, *rest) = sorted(best, key=lambda group: -best[group])
    assert not rest or best[first] > best[rest[0]]
    return first


def test_the_expander_prefers_the_preferred_pool() -> None:
    """The expander's ConfigMap prefers the first pool, and does not match pools with the same prefix."""
    pools = [*AKS["pools"], {"name": "cpu2", "machine": "Standard_D8s_v5", "nodes": {"max": 2}}]
    queues = [{"name": "cpus", "pools": ["cpu2", "cpu", "steady"], "fallback": True}]
    (config_map,) = fallback_objects(declare(changed(AKS, pools=pools, queues=queues)))
    assert config_map["metadata"] == {
        "name": "cluster-autoscaler-priority-expander",
        "namespace": "kube-system",
    }
    by_priority: Any = yaml.safe_load(config_map["data"]["priorities"])
    sets = {name: f"aks-{name}-29141059-vmss" for name in ("cpu", "cpu2", "steady", "t4")}
    assert _chosen(by_priority, [sets["steady"], sets["cpu"], sets["cpu2"]]) == sets["cpu2"]
    assert _chosen(by_priority, [sets["steady"], sets["cpu"]]) == sets["cpu"]
    assert _chosen(by_priority, [sets["t4"]]) == sets["t4"]


def test_priorities_with_the_names_of_replacements() -> None:
    """A replaced pool's scale set has the name of its replacement; other names are unchanged."""
    (config_map,) = fallback_objects(declare(ON_AKS))
    written: str = config_map["data"]["priorities"]
    renamed = with_names(written, {"cpu": "steady", "steady": "cpu2"})
    assert renamed == written.replace("-steady-", "-cpu2-").replace("-cpu-", "-steady-")
    assert renamed != written


def test_a_guarantee_is_a_part_of_the_sum() -> None:
    """A team's guarantee of one pool is its own, and subtracted from the shared quota."""
    teams = [{"name": "vision", "guarantee": {"t4": 1}}]
    admission = queueing(declare(changed(ON_GKE, teams=teams)))
    ((_, own),) = admission.cluster_queues[0].flavors
    ((_, shared),) = admission.cohorts[0].owned
    assert (own, shared) == ({"t4": 1, "steady": 0}, {"t4": 3, "steady": 2})
