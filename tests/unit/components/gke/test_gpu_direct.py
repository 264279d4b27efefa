"""Pools with GPUDirect: their networks, the objects on the cluster, and the pods that use them."""

import json
from typing import Any

import pytest

from ebbtide.analysis.quotas import quotas
from ebbtide.analysis.reading.pools import read_pools
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.work.jobs import job, job_over_nodes
from ebbtide.work.training import train_job
from tests.declarations import GKE, Declaration, changed, only
from tests.synth import synth

RDMA = only(GKE, machine="a3-ultragpu-8g", gpuDirect="rdma", capacity="spot")
TCPXO = only(GKE, machine="a3-megagpu-8g", gpuDirect="tcpxo", capacity="spot")


def _profile(declaration: Declaration) -> Profile:
    return Profile.load(profile(declare(declaration)).json())


def _job(declaration: Declaration, gpus: int) -> dict[str, Any]:
    made = job(
        _profile(declaration), name="train", image="train", pool="work", gpus=gpus, env={"NCCL_IB_TC": "1"}
    )
    return made["spec"]["template"]


def test_a_job_of_whole_nodes_attaches_to_the_networks() -> None:
    """Pods that use all GPUs of a node have its interfaces and NCCL's settings, which the task's own
    variables override; pods with fewer GPUs have none."""
    pod = _job(RDMA, 8)
    interfaces = json.loads(pod["metadata"]["annotations"]["networking.gke.io/interfaces"])
    assert [item["interfaceName"] for item in interfaces] == ["eth0", *(f"eth{n}" for n in range(2, 10))]
    assert [item["network"] for item in interfaces] == ["default", *(f"rdma-{n}" for n in range(8))]
    variables = {item["name"]: item["value"] for item in pod["spec"]["containers"][0]["env"]}
    assert (variables["NCCL_NET"], variables["NCCL_IB_TC"]) == ("gIB", "1")
    assert "volumes" not in pod["spec"]
    assert "metadata" not in _job(RDMA, 4)


def test_a_job_with_tcpxo_has_its_daemon() -> None:
    """TCPXO's daemon is a sidecar that ends with the work, gets the GPUs by annotation, and mounts volumes
    that the pod has."""
    pod = _job(TCPXO, 8)
    (daemon,) = pod["spec"]["initContainers"]
    assert daemon["restartPolicy"] == "Always"
    assert f"devices.gke.io/container.{daemon['name']}" in pod["metadata"]["annotations"]
    mounts = [*daemon["volumeMounts"], *pod["spec"]["containers"][0]["volumeMounts"]]
    assert {item["name"] for item in mounts} == {item["name"] for item in pod["spec"]["volumes"]}


@pytest.mark.parametrize(("declaration", "attached"), [(RDMA, True), (TCPXO, False)], ids=["rdma", "tcpxo"])
def test_a_train_job(declaration: Declaration, *, attached: bool) -> None:
    """A TrainJob uses RDMA, with variables for its trainer; its patches can add no sidecar for TCPXO."""
    placement = train_job(_profile(declaration), nodes=2, pool="work", gpus=8)
    pod = placement.pods["node"]
    assert ("networking.gke.io/interfaces" in pod.get("metadata", {}).get("annotations", {})) is attached
    assert ("NCCL_NET" in placement.variables) is attached
    env = placement.manifest()["spec"]["trainer"].get("env", [])
    assert ({"name": "NCCL_NET", "value": "gIB"} in env) is attached


def test_a_queue_over_other_pools_attaches_to_none() -> None:
    """Pods that may run on a pool without the networks would never be scheduled there with them."""
    plain = {**RDMA["pools"][-1], "name": "plain"}
    del plain["gpuDirect"]
    queues = [{"name": "own", "pools": ["work"]}, {"name": "mixed", "pools": ["work", "plain"]}]
    cluster = _profile(changed(RDMA, pools=[*RDMA["pools"], plain], queues=queues))
    fields: Any = {
        "name": "train",
        "image": "train",
        "gpus": 8,
        "cpu": "8",
        "memory": "8Gi",
        "namespace": "default",
    }
    mine, _ = job_over_nodes(cluster, 2, queue="own", **fields)
    both, _ = job_over_nodes(cluster, 2, queue="mixed", **fields)
    assert "annotations" in mine["spec"]["template"]["metadata"]
    assert "metadata" not in both["spec"]["template"]


def test_quotas_count_networks_once() -> None:
    """Pools of one strategy share their networks, which a project's quotas limit."""
    twice = changed(RDMA, pools=[*RDMA["pools"], {**RDMA["pools"][-1], "name": "more"}])
    found = {item.name: item.amount for item in quotas(read_pools(synth(twice))) if item.region == "global"}
    assert {name: found[name] for name in ("NETWORKS", "SUBNETWORKS", "FIREWALLS")} == {
        "NETWORKS": 2,
        "SUBNETWORKS": 9,
        "FIREWALLS": 1,
    }
