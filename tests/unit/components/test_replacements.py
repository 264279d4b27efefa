"""What a program declares in the run of `ebbtide up` that replaces a pool."""

import json

import pytest

from ebbtide.recording.record import record
from ebbtide.recording.recording import Recording
from tests.declarations import BASES, changed
from tests.repository import ROOT
from tests.running import manifest

_KEYS = {"gke": "cloud.google.com/gke-nodepool", "aks": "kubernetes.azure.com/agentpool"}


def _recorded(cloud: str, replacements: dict[str, object]) -> Recording:
    queues = [{"name": "cpu", "pools": ["cpu"]}]
    teams = [{"name": "vision", "queues": [{"queue": "cpu"}]}]
    config = {
        "ebbtide:cluster": json.dumps(changed(BASES[cloud], queues=queues, teams=teams)),
        "ebbtide:replacements": json.dumps(replacements),
    }
    return record(ROOT, project="ebbtide", stack="test", config=config)


@pytest.mark.parametrize("cloud", BASES)
def test_flavors_follow_a_replaced_pool(cloud: str) -> None:
    """Their label of the cloud is the name of the replacement, by which alone its nodes are found; they
    depend on no pool, which would be deleted with them."""
    for replacements, name in (
        ({}, "cpu"),
        ({"cpu": {"name": "cpu3dwi", "nodes": 1, "inputs": {}}}, "cpu3dwi"),
    ):
        recording = _recorded(cloud, replacements)
        (flavor,) = [item for item in recording if item.type.endswith(":ResourceFlavor")]
        assert manifest(flavor)["spec"]["nodeLabels"][_KEYS[cloud]] == name
        assert not [urn for urn in flavor.dependencies if urn.endswith(("::train-cpu", "::train-cpu.next"))]
