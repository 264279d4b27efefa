"""Kueue's objects: what its own schemas take, in an order in which they can be made."""

from functools import cache
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import given, settings

from ebbtide.declaration.model import declare
from ebbtide.placement.queue_objects import layers
from ebbtide.placement.queueing import queueing
from ebbtide.values.kueue_api import API_VERSION
from tests.declarations import AKS, GKE, Declaration, changed
from tests.manifests import KUEUE, upstream
from tests.unit.placement.test_quotas import queued

generated = settings(max_examples=40, deadline=None)


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
@pytest.mark.parametrize(
    ("base", "pools"),
    [(GKE, ["t4", "t4-steady"]), (AKS, ["cpu", "steady"])],
)
def test_a_queue_that_falls_back_is_valid(base: Declaration, pools: list[str]) -> None:
    """The single flavor of a fallback queue has a name that no pool can have, and is in both resource
    groups."""
    steady = next(pool for pool in base["pools"] if pool["name"] == pools[0]) | {
        "name": pools[1],
        "capacity": "on-demand",
    }
    others = [pool for pool in base["pools"] if pool["name"] != pools[1]]
    queues = [{"name": "work", "pools": pools, "fallback": True}]
    made = objects(changed(base, pools=[*others, steady], queues=queues))
    for item in made:
        _validators()[item["kind"]].validate(item)
    groups = [group for item in made for group in item.get("spec", {}).get("resourceGroups", ())]
    assert [[flavor["name"] for flavor in group["flavors"]] for group in groups] == [["work.pools"]] * 2


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
def test_nothing_is_made_before_what_it_names(declaration: Declaration) -> None:
    """Each layer names objects of earlier layers alone."""
    made: set[tuple[str, str]] = set()
    for layer in layers(queueing(declare(declaration))):
        for item in layer:
            assert _needs(item) <= made
        made |= {(item["kind"], item["metadata"]["name"]) for item in layer}


@generated
@given(queued())
def test_every_flavor_of_a_group_has_every_resource(declaration: Declaration) -> None:
    """Kueue refuses a group whose flavors differ in their resources, or in the order of them."""
    for item in objects(declaration):
        for group in item.get("spec", {}).get("resourceGroups", ()):
            for flavor in group["flavors"]:
                assert [resource["name"] for resource in flavor["resources"]] == group["coveredResources"]


QUEUED = changed(GKE, queues=[{"name": "gpus", "pools": ["t4", "a100"]}])


def test_a_queue_prefers_and_borrows() -> None:
    """The paths that decide how work is admitted."""
    spec = object_of(QUEUED, "ClusterQueue", "gpus")["spec"]
    assert spec["cohortName"] == "train"
    assert spec["flavorFungibility"] == {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
    assert spec["preemption"] == {
        "reclaimWithinCohort": "LowerPriority",
        "withinClusterQueue": "LowerPriority",
    }
    assert spec["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    assert spec["admissionChecksStrategy"]["admissionChecks"] == [
        {"name": "queued-nvidia", "onFlavors": ["a100"]}
    ]
    (group,) = spec["resourceGroups"]
    assert {resource["nominalQuota"] for flavor in group["flavors"] for resource in flavor["resources"]} == {
        "0"
    }


def test_a_queued_pool_is_asked_for() -> None:
    """The request is for pods with the accelerator, and they are led to the nodes of their own request."""
    spec = object_of(QUEUED, "ProvisioningRequestConfig", "queued-nvidia")["spec"]
    assert spec["provisioningClassName"] == "queued-provisioning.gke.io"
    assert spec["managedResources"] == ["nvidia.com/gpu"]
    assert spec["podSetMergePolicy"] == "IdenticalWorkloadSchedulingRequirements"
    assert spec["podSetUpdates"]["nodeSelector"] == [
        {
            "key": "autoscaling.gke.io/provisioning-request",
            "valueFromProvisioningClassDetail": "ResizeRequestName",
        }
    ]
    check = object_of(QUEUED, "AdmissionCheck", "queued-nvidia")["spec"]
    assert check["controllerName"] == "kueue.x-k8s.io/provisioning-request"


def test_the_cohort_owns_the_quota() -> None:
    """Four T4 nodes of four GPUs, ten A100 nodes of one."""
    (group,) = object_of(QUEUED, "Cohort", "train")["spec"]["resourceGroups"]
    gpus = {flavor["name"]: flavor["resources"][2]["nominalQuota"] for flavor in group["flavors"]}
    assert gpus == {"t4": "16", "a100": "10"}


def test_a_share_is_a_weight() -> None:
    """A team's weight stands on each of its queues, a guarantee on one and no longer in the cohort."""
    teams = [{"name": "vision", "weight": 3, "guarantee": {"t4": 1}}, {"name": "speech"}]
    declaration = changed(QUEUED, teams=teams)
    mine = object_of(declaration, "ClusterQueue", "vision.gpus")["spec"]
    assert mine["fairSharing"] == {"weight": "3"}
    assert mine["resourceGroups"][0]["flavors"][0]["resources"][2]["nominalQuota"] == "4"
    (group,) = object_of(declaration, "Cohort", "train")["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"][2]["nominalQuota"] == "12"


def test_a_check_of_aks_is_for_all_pods() -> None:
    """AKS has no detail by which pods would find their nodes, and takes pods of any kind."""
    declaration = changed(AKS, queues=[{"name": "gpus", "pools": ["t4"], "together": True}])
    spec = object_of(declaration, "ProvisioningRequestConfig", "together")["spec"]
    assert "podSetUpdates" not in spec
    assert "managedResources" not in spec


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
    """A team without a guarantee evicts no work of another team that has its priority."""
    assert _preemption()["reclaimWithinCohort"] == ["Any", "LowerPriority"]


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
    queue."""
    queue = {"name": "gpus", "pools": ["t4", "a100"], "borrowingLimit": {"t4": 2}}
    teams = [
        {"name": "vision", "guarantee": {"t4": 2}, "borrowingLimit": {"t4": 0}, "lendingLimit": {"t4": 1}},
        {"name": "speech"},
    ]
    declaration = changed(GKE, queues=[queue], teams=teams)
    assert _quota(declaration, "vision.gpus") == [("t4", "8", "0", "4"), ("a100", "0", None, None)]
    assert _quota(declaration, "speech.gpus") == [("t4", "0", "8", None), ("a100", "0", None, None)]


def test_the_limit_of_a_pool_that_falls_back_is_part_of_that_of_its_queue() -> None:
    """The single flavor of a fallback queue is limited by the pools with a limit, and has all nodes of the
    others."""
    steady = {**GKE["pools"][2], "name": "steady", "capacity": "on-demand"}
    queue = {"name": "gpus", "pools": ["t4", "steady"], "fallback": True, "borrowingLimit": {"steady": 1}}
    declaration = changed(GKE, pools=[*GKE["pools"], steady], queues=[queue])
    assert _quota(declaration, "gpus") == [("gpus.pools", "0", "20", None)]
