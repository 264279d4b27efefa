"""Nodes as the clouds make them."""

from decimal import Decimal
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.node_pools.actuator import SHUTDOWN, End, ended
from ebbtide_rehearsal.cloud.node_pools.loop import NO_PLUGIN, has_driver, objects
from ebbtide_rehearsal.cloud.node_pools.machines import UNINITIALIZED, new_name, node, node_info, provider_id
from ebbtide_rehearsal.cloud.node_pools.scheduling import read_pod
from ebbtide_rehearsal.cloud.node_pools.snapshot import read_node
from rehearsal.tests.unit.node_pool import a_gpu_pool, a_machine, a_node, a_pod, a_pool

AKS = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/tried"


def test_names_are_the_clouds_own_and_never_come_twice() -> None:
    """Short enough for a host name, with the pool in them, each once."""
    gke, aks = a_pool("a" * 40), a_pool("work", cloud="aks", cluster=AKS)
    names = [new_name(gke, "us-central1-a", number, 0) for number in range(50)]
    assert len(set(names)) == 50
    assert all(len(name) <= 63 and name.startswith("gke-tried-aaaa") for name in names)
    name = new_name(aks, "eastus-1", 37, 0)
    assert name.endswith("-vmss000011")
    machine = a_machine(aks, name=name)
    assert provider_id(machine).startswith("azure:///subscriptions/s/resourceGroups/mc_rg_tried/providers/")
    assert provider_id(machine).endswith("-vmss/virtualMachines/37")


def test_a_new_node_does_not_show_its_accelerators_yet() -> None:
    """Accelerators are in the autoscaler's node template, but not in a new node's status."""
    pool = a_gpu_pool(capacity="queued")
    registered = read_node(node(pool, a_machine(pool, request="default/r"), "v1.36.2"))
    assert "nvidia.com/gpu" not in registered.allocatable
    assert any(taint.key == UNINITIALIZED for taint in registered.taints)
    assert registered.labels["autoscaling.gke.io/provisioning-request"].startswith("gke-")
    assert node_info(pool, "us-central1-a", ()).free["nvidia.com/gpu"] == 1


@pytest.mark.parametrize(
    ("changes", "labels", "daemon", "image", "expected"),
    [
        ({"driver_installed": True}, {}, "", "", True),
        ({}, {}, "", "", False),
        ({}, {}, "ours", "cos-nvidia-installer:fixed", True),
        ({}, {}, "ours", "gke-nvidia-installer:fixed", True),
        ({}, {}, "nvidia-device-plugin-daemonset", "", False),
        ({}, {NO_PLUGIN: "true"}, "nvidia-device-plugin-daemonset", "", True),
        ({}, {NO_PLUGIN: "true"}, "ours", "cos-nvidia-installer:fixed", False),
        ({"cloud": "aks"}, {}, "nvidia-device-plugin", "", True),
        ({"cloud": "aks", "accelerator_resource": "amd.com/gpu"}, {}, "", "", False),
        ({"cloud": "aks", "accelerator_resource": "amd.com/gpu"}, {}, "amdgpu-device-plugin", "", True),
    ],
)
def test_accelerators_are_seen_with_their_driver(
    changes: dict[str, Any], labels: dict[str, str], daemon: str, image: str, *, expected: bool
) -> None:
    """GKE's installer suffices with GKE's own plugin; elsewhere NVIDIA's plugin must run."""
    given: dict[str, Any] = {"driver_installed": False, **changes}
    pool = a_gpu_pool("gpu", **given)
    bare = a_node(pool, a_machine(pool), allocatable={"cpu": Decimal(4)}, labels=labels)
    raw = {
        "metadata": {"ownerReferences": [{"kind": "DaemonSet", "name": daemon}]},
        "spec": {"initContainers": [{"image": image}]},
    }
    pods = [a_pod(node=bare.name, phase="Running", owner="DaemonSet", raw=raw)] if daemon else []
    assert has_driver(bare, pool, pods) is expected


@pytest.mark.parametrize("shutdown", [True, False])
def test_a_pod_s_end_is_a_kubelet_s(*, shutdown: bool) -> None:
    """A shutdown leaves reason, message and condition; a plain end leaves the exit status alone."""
    raw = {"spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Running"}}
    status = ended(raw, {"c": End(0)}, shutdown=shutdown)
    assert status["phase"] == ("Failed" if shutdown else "Succeeded")
    kinds = {condition["type"]: condition for condition in status["conditions"]}
    assert ("DisruptionTarget" in kinds) == shutdown
    assert status.get("message") == (SHUTDOWN if shutdown else None)
    assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"


@pytest.mark.parametrize(("cloud", "millicores"), [("gke", 400), ("aks", 760)])
def test_the_clouds_own_pods_ask_for_what_the_catalog_says(cloud: Any, millicores: int) -> None:
    """All Deployments together are the footprint of the cloud's system pods."""
    total = sum(
        body["spec"]["replicas"] * read_pod(body["spec"]["template"]).requests["cpu"] * 1000
        for _, body in objects(cloud)
        if body["kind"] == "Deployment"
    )
    assert total == millicores
