"""The clouds' own client libraries take every cluster and node pool that the repository declares."""

from typing import Any, cast

import pytest

from ebbtide.analysis.recording.values import revealed
from tests.declarations import AKS, GKE, Declaration, changed
from tests.repository import STACK_FILES, declaration, relative
from tests.running import full
from tests.synth import synth
from tests.typed_models import TYPES, misfits

_EVERY_SETTING: dict[str, Declaration] = {
    "gke": changed(
        GKE,
        pools=[
            GKE["pools"][0],
            {
                "name": "all",
                "machine": "n2-standard-8",
                "capacity": "spot",
                "nodes": {"max": 4},
                "zones": ["us-central1-a"],
                "compact": True,
                "shutdownGrace": "120s",
                "maxPodsPerNode": 64,
                "image": "ubuntu",
                "upgrade": {"maxSurge": 1, "maxUnavailable": 0},
                "taints": [{"key": "lab", "value": "a", "effect": "NoExecute"}],
            },
            {
                "name": "held",
                "machine": "g2-standard-8",
                "capacity": {"kind": "reservation", "name": "held"},
                "nodes": {"count": 2},
            },
            {"name": "flex", "machine": "g2-standard-8", "capacity": "flex-start", "nodes": {"max": 4}},
        ],
    ),
    "aks": changed(
        AKS,
        pools=[
            AKS["pools"][0],
            {
                "name": "all",
                "machine": "Standard_D8ds_v5",
                "nodes": {"count": 2},
                "zones": ["1", "2"],
                "disk": {"type": "ephemeral", "sizeGib": 200},
                "image": "azure-linux",
                "maxPodsPerNode": 50,
                "upgrade": {"maxSurge": 1, "maxUnavailable": 0},
            },
            {
                "name": "spot",
                "machine": "Standard_NC4as_T4_v3",
                "accelerator": {"type": "nvidia-t4", "driver": "none"},
                "capacity": {"kind": "spot", "maxPrice": 0.5, "evictionPolicy": "Deallocate"},
                "nodes": {"max": 2},
            },
        ],
        addons={"logs": {}, "drivers": "gpu-operator"},
    ),
}

DECLARATIONS = {
    **{f"everything on {cloud}": full(cloud) for cloud in ("gke", "aks")},
    **{f"every setting on {cloud}": written for cloud, written in _EVERY_SETTING.items()},
    **{relative(file): {"name": "it-test", **declaration(file)} for file in STACK_FILES},
}


@pytest.mark.parametrize("declared", DECLARATIONS.values(), ids=DECLARATIONS.keys())
def test_the_libraries_take_what_is_declared(declared: Declaration) -> None:
    """Neither a field nor a value of an enumeration is unknown to google-cloud-container and
    azure-mgmt-containerservice."""
    faults = [
        (resource.name, misfit)
        for resource in synth(declared)
        if resource.type in TYPES
        for misfit in misfits(resource.type, cast("dict[str, Any]", revealed(dict(resource.inputs))))
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("kind", "inputs", "misfit"),
    [
        ("gcp:container/nodePool:NodePool", {"nodeConfig": {"spto": True}}, 'no field named "spto"'),
        ("gcp:container/nodePool:NodePool", {"autoscaling": {"locationPolicy": "WIDE"}}, "WIDE"),
        ("gcp:container/cluster:Cluster", {"networkingMode": "VPC_NATIVE", "nodeKonfig": {}}, "nodeKonfig"),
        ("azure-native:containerservice:AgentPool", {"vmsize": "x"}, "vmsize: AgentPool has no such field"),
        ("azure-native:containerservice:AgentPool", {"scaleSetPriority": "spot"}, "'spot' is no str of"),
        ("azure-native:containerservice:AgentPool", {"maxPods": "30"}, "'30' is no int"),
        ("azure-native:containerservice:ManagedCluster", {"sku": {"nmae": "Base"}}, "sku.nmae"),
        ("azure-native:containerservice:ManagedCluster", {"fqdn": "x"}, "fqdn: ManagedCluster has no"),
    ],
)
def test_the_libraries_refuse_what_the_clouds_do_not_know(
    kind: str, inputs: dict[str, Any], misfit: str
) -> None:
    """An unknown field, an unknown value, and one of another type."""
    assert misfit in "\n".join(misfits(kind, inputs))
