"""Pools with GPUDirect: their networks, the objects on the cluster, and the pods that use them."""

import json
from typing import Any

import pytest

from ebbtide.analysis.quotas import quotas
from ebbtide.analysis.reading.pools import read_pools
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.work.jobs import job, job_over_nodes
from ebbtide.work.training import train_job
from tests.declarations import GKE, Declaration, changed, only
from tests.synth import synth

RDMA = only(GKE, machine="a3-ultragpu-8g", gpuDirect="rdma", capacity="spot")
TCPXO = only(GKE, machine="a3-megagpu-8g", gpuDirect="tcpxo", capacity="spot")
BOTH = changed(RDMA, pools=[*RDMA["pools"], {**TCPXO["pools"][-1], "name": "mega"}])
CLUSTER = "gcp:container/cluster:Cluster"


def _inputs(recording: Recording, kind: str) -> list[dict[str, Any]]:
    return [dict(item.inputs) for item in recording if item.type.endswith(f":{kind}")]


def _profile(declaration: Declaration) -> Profile:
    return Profile.load(profile(declare(declaration)).json())


def test_networks_of_tcpxo() -> None:
    """Each of the eight gVNICs has a VPC of its own, whose firewall admits the range of all of them."""
    recording = synth(TCPXO)
    vpcs = [item["name"] for item in _inputs(recording, "Network") if item.get("mtu") == 8244]
    assert vpcs == [f"train-vpc{number}" for number in range(1, 9)]
    firewalls = _inputs(recording, "Firewall")
    assert [item["network"] for item in firewalls] == vpcs
    assert {*(tuple(item["sourceRanges"]) for item in firewalls)} == {("192.168.0.0/16",)}


def test_objects_name_the_networks_of_the_cloud() -> None:
    """Each network of the nodes is a Network of its device mode, whose parameters name a VPC and subnet that
    exist, and every device-mode VPC is used by one of them alone, as GKE requires."""
    recording = synth(BOTH)
    subnets = {item["name"] for item in _inputs(recording, "Subnetwork")}
    parameters = {item["metadata"]["name"]: item["spec"] for item in _inputs(recording, "GKENetworkParamSet")}
    networks = [item for item in _inputs(recording, "Network") if "spec" in item]
    assert [item["spec"]["parametersRef"]["name"] for item in networks] == list(parameters)
    assert {item["vpcSubnet"] for item in parameters.values()} <= subnets
    vpcs = [item["vpc"] for item in parameters.values() if item["deviceMode"] == "NetDevice"]
    assert len(vpcs) == len({*vpcs}) == 9
    assert sum(item["deviceMode"] == "RDMA" for item in parameters.values()) == 8


def test_installers_run_on_their_pools() -> None:
    """The plugins are installed on the pools of their strategy alone, and the device injector with TCPXO."""
    on = {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]
        for item in _inputs(synth(BOTH), "DaemonSet")
    }
    assert on == {
        "ebbtide-nccl-rdma": ["work"],
        "ebbtide-nccl-tcpxo": ["mega"],
        "ebbtide-device-injector": ["mega"],
    }


def test_a_cluster_keeps_multi_networking() -> None:
    """Without a pool that needs it, multi-networking is ignored: the engine updates the cluster before it
    deletes the last such pool."""
    ignored = synth(GKE).named("train-cluster", CLUSTER).ignore_changes
    assert "enableMultiNetworking" in ignored
    assert "enableMultiNetworking" not in synth(RDMA).named("train-cluster", CLUSTER).ignore_changes


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
