"""Pools that are replaced, in a state: names, renames and references."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.operations import pool_replacement

_PARENTS = {
    "gke": ("ebbtide:gke:Topology$ebbtide:gke:NodePool", "gcp:container/nodePool:NodePool", "name"),
    "aks": (
        "ebbtide:aks:Topology$ebbtide:aks:NodePool",
        "azure-native:containerservice:AgentPool",
        "agentPoolName",
    ),
}


def _pool(cloud: str, name: str, cloud_name: str) -> list[dict[str, Any]]:
    """A pool as a state has it."""
    types, type_, key = _PARENTS[cloud]
    urn = f"urn:pulumi:dev::p::{types}::{name}"
    component = {"urn": urn, "type": types.rpartition("$")[2], "inputs": {key: "cpu", "mode": "User"}}
    child = {
        "urn": f"urn:pulumi:dev::p::{types}${type_}::{name}",
        "type": type_,
        "custom": True,
        "parent": urn,
        "inputs": {key: cloud_name},
    }
    return [component, child]


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_a_drained_pool_gives_its_name_to_its_replacement(cloud: str) -> None:
    """In every reference, and back with the other rename."""
    resources = [*_pool(cloud, "train-cpu", "cpu"), *_pool(cloud, "train-cpu.next", "cpu-abcd")]
    user = {"urn": "urn:pulumi:dev::p::a:b:C::user", "type": "a:b:C", "dependencies": [resources[1]["urn"]]}
    deployment = {"resources": [*resources, user]}
    retired = pool_replacement.renamed(deployment, pool_replacement.retired("train-cpu"))
    names = {name: pool.cloud_name for name, pool in pool_replacement.pools_of(retired).items()}
    assert names == {"train-cpu.old": "cpu", "train-cpu": "cpu-abcd"}
    assert retired["resources"][4]["dependencies"] == [retired["resources"][1]["urn"]]
    assert pool_replacement.interrupted(retired) == ["cpu"]
    swapped = pool_replacement.renamed(deployment, pool_replacement.swapped("train-cpu"))
    assert pool_replacement.renamed(swapped, pool_replacement.swapped("train-cpu")) == deployment
    assert [item["urn"] for item in pool_replacement.without_replacements(deployment)["resources"]] == [
        resources[0]["urn"],
        resources[1]["urn"],
        user["urn"],
    ]


def _recorded(cloud: str, name: str, **inputs: Any) -> Recording:
    types, _, key = _PARENTS[cloud]
    type_ = types.rpartition("$")[2]
    urn = f"urn:pulumi:dev::p::{types}::train-{name}"
    component = Resource(
        urn=urn, type=type_, name=f"train-{name}", custom=False, inputs={key: name, "mode": "User", **inputs}
    )
    return Recording(project="p", stack="dev", resources=(component,))


@pytest.mark.parametrize(
    ("cloud", "name", "pattern"),
    [
        ("gke", "cpu", r"cpu-[a-z0-9]{4}"),
        ("gke", "a" * 40, r"a{35}-[a-z0-9]{4}"),
        ("aks", "cpu", r"cpu[a-z0-9]{4}"),
        ("aks", "a" * 12, r"a{8}[a-z0-9]{4}"),
    ],
)
def test_a_replacement_has_a_name_of_its_own(cloud: str, name: str, pattern: str) -> None:
    """The same for the same inputs, another for others, and none that is taken."""
    first = pool_replacement.replacement_name(_recorded(cloud, name, spot=True), f"train-{name}", ())
    assert re.fullmatch(pattern, first)
    assert first == pool_replacement.replacement_name(_recorded(cloud, name, spot=True), f"train-{name}", ())
    assert first != pool_replacement.replacement_name(_recorded(cloud, name, spot=False), f"train-{name}", ())
    assert first != pool_replacement.replacement_name(
        _recorded(cloud, name, spot=True), f"train-{name}", (first,)
    )


def test_the_time_for_work_is_declared() -> None:
    """Without one it is a day."""
    assert pool_replacement.timeout(_recorded("gke", "cpu"), "train-cpu") == timedelta(hours=24)
    declared = _recorded("gke", "cpu", drainTimeoutSeconds=1800)
    assert pool_replacement.timeout(declared, "train-cpu") == timedelta(minutes=30)
    assert pool_replacement.timeout(declared, "train-cpu", timedelta()) == timedelta()


def test_a_pool_with_an_error_is_not_ready() -> None:
    """A pool with an error has no work, and is created again."""
    resources = _pool("aks", "train-cpu", "cpu")
    resources[1] |= {"initErrors": ["no stock"], "inputs": {"agentPoolName": "cpu", "count": 3}}
    pool = pool_replacement.pools_of(json.loads(json.dumps({"resources": resources})))["train-cpu"]
    assert (pool.is_ready, pool.count, pool.name) == (False, 3, "cpu")
    assert pool_replacement.pools_of({"resources": resources[:1]})["train-cpu"].is_ready is False
