"""The declarations of a program in the run of `ebbtide up` that replaces a pool."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ebbtide.analysis.recording.recording import Recording, Resource
from tests.declarations import BASES, changed
from tests.running import manifest
from tests.synth import synth_anew

_KEYS = {"gke": "cloud.google.com/gke-nodepool", "aks": "kubernetes.azure.com/agentpool"}


def _recorded(
    cloud: str, replacements: Mapping[str, Any], deployed: Recording | None = None, **changes: object
) -> Recording:
    queues = [{"name": "cpu", "pools": ["cpu"]}]
    teams = [{"name": "vision", "queues": [{"queue": "cpu"}]}]
    declared = changed(BASES[cloud], **{"queues": queues, "teams": teams, **changes})
    return synth_anew(declared, deployed=deployed, replacements=replacements)


@pytest.mark.parametrize("cloud", BASES)
def test_flavors_follow_a_replaced_pool(cloud: str) -> None:
    """Flavors select the replacement's nodes by its name, and do not depend on a pool, so that they are not
    deleted with it."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "cpu"),
        ({"cpu": {"name": "cpu3dwi", "nodes": 1, "inputs": {}}}, "cpu3dwi"),
    ]
    for replacements, name in cases:
        recording = _recorded(cloud, replacements)
        (flavor,) = [item for item in recording if item.type.endswith(":ResourceFlavor")]
        assert manifest(flavor)["spec"]["nodeLabels"][_KEYS[cloud]] == name
        assert not [urn for urn in flavor.dependencies if urn.endswith(("::train-cpu", "::train-cpu.next"))]


@pytest.mark.parametrize("cloud", BASES)
def test_a_replacement_ends_the_protection_of_both_pools(cloud: str) -> None:
    """The engine deletes the pool after its last work, or the replacement if the change is reverted."""
    pools = [{**pool, "protect": True} if pool["name"] == "cpu" else pool for pool in BASES[cloud]["pools"]]
    replacements: dict[str, Any] = {"cpu": {"name": "cpu3dwi", "nodes": 1, "inputs": {}}}
    for replaced, expected in (({}, [True]), (replacements, [False, False])):
        recording = _recorded(cloud, replaced, pools=pools)
        own = [item for item in recording if item.custom and item.name in ("train-cpu", "train-cpu.next")]
        assert [item.protect for item in own] == expected


@pytest.mark.parametrize("cloud", BASES)
def test_a_plan_knows_the_name_of_a_replaced_pool(cloud: str) -> None:
    """The flavor's label is that of the deployed pool, whose name the program ignores."""
    before = _recorded(cloud, {})
    (name,) = {"name", "agentPoolName"} & next(item for item in before if _is_pool(item)).inputs.keys()
    resources = tuple(
        replace(item, inputs={**item.inputs, name: "cpu3dwi"}) if _is_pool(item) else item for item in before
    )
    after = _recorded(cloud, {}, replace(before, resources=resources))
    (flavor,) = [item for item in after if item.type.endswith(":ResourceFlavor")]
    assert manifest(flavor)["spec"]["nodeLabels"][_KEYS[cloud]] == "cpu3dwi"


def _is_pool(resource: Resource) -> bool:
    return resource.custom and resource.name == "train-cpu"


@pytest.mark.parametrize(
    ("cloud", "kind", "expected"),
    [("gke", ":ComputeClass", "{'nodepools': ['cpu3dwi']}"), ("aks", ":ConfigMap", "^aks-cpu3dwi-")],
)
def test_fallback_orders_follow_a_replaced_pool(cloud: str, kind: str, expected: str) -> None:
    """Fallback orders name the replacement and the unchanged pools."""
    replacements: dict[str, Any] = {"cpu": {"name": "cpu3dwi", "nodes": 1, "inputs": {}}}
    second = {**BASES[cloud]["pools"][1], "name": "cpu2", "capacity": "on-demand"}
    queues = [{"name": "cpu", "pools": ["cpu", "cpu2"], "fallback": True}]
    recording = _recorded(cloud, replacements, pools=[*BASES[cloud]["pools"], second], queues=queues)
    (order,) = [
        manifest(item)
        for item in recording
        if item.type.endswith(kind) and item.name.startswith("train-addons-queues-")
    ]
    assert expected in str(order)
    assert "cpu2" in str(order)
