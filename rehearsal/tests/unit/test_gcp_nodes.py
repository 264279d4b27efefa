"""Nodes of GKE's node pools, and existing clusters."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.gke import read_pool
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import NodeTaint
from ebbtide.placement.derive import profile
from ebbtide_rehearsal.cloud.gcp.nodes import ephemeral_gib
from ebbtide_rehearsal.cloud.gcp.request import CLUSTER, NODE_POOL
from ebbtide_rehearsal.cloud.gcp.seeding import SeededNetwork, seed_cluster, seed_network
from ebbtide_rehearsal.cloud.provider import DiffResult, RefusedError, UnfinishedError
from ebbtide_rehearsal.cloud.store import NO_STOCK, InjectedFault
from rehearsal.tests.unit.gcp_cloud import CLUSTER_ID, Cloud, asked_for, base, with_cluster
from tests.declarations import GKE, changed, only

GET_CLUSTER = "gcp:container/getCluster:getCluster"
GET_SUBNETWORK = "gcp:compute/getSubnetwork:getSubnetwork"

POOLS: list[dict[str, Any]] = [
    {"machine": "e2-standard-8"},
    {"machine": "n2-standard-8", "capacity": "spot"},
    {"machine": "n2-standard-8", "capacity": {"kind": "preemptible"}},
    {"machine": "g2-standard-8", "capacity": {"kind": "flex-start", "maxRunDuration": "12h"}},
    {"machine": "a2-highgpu-1g", "capacity": {"kind": "queued"}},
    {"machine": "a2-highgpu-1g", "capacity": {"kind": "reservation", "name": "held"}},
    {"machine": "a2-highgpu-1g", "capacity": {"kind": "reservation", "affinity": "any"}},
    {"machine": "n1-highmem-8", "accelerator": {"type": "nvidia-tesla-t4", "count": 4}, "capacity": "spot"},
    {
        "machine": "a2-highgpu-2g",
        "accelerator": {
            "type": "nvidia-tesla-a100",
            "count": 2,
            "gpuPartitionSize": "1g.5gb",
            "gpuSharingConfig": {"gpuSharingStrategy": "mps", "maxSharedClientsPerGpu": 4},
        },
    },
    {"machine": "n2-standard-8", "zones": ["us-central1-a", "us-central1-b"], "nodes": {"min": 2, "max": 6}},
    {"machine": "n2-standard-8", "ephemeralStorageLocalSsdConfig": {"localSsdCount": 2}},
    {"machine": "ct5lp-hightpu-4t", "tpuTopology": "2x4"},
    {"machine": "ct5lp-hightpu-4t"},
    {"machine": "n2-standard-8", "localNvmeSsdBlockConfig": {"localSsdCount": 2}},
    {"machine": "n2-standard-8", "nodes": {"count": 2}},
    {"machine": "c4a-standard-8", "capacity": "spot"},
    {"machine": {"type": "t2a-custom-4-8192", "vcpus": 4, "memoryGib": 8}},
    {"machine": "a4x-highgpu-4g"},
    {"machine": "n2-standard-8", "taints": [{"key": "dedicated", "value": "lab", "effect": "NoExecute"}]},
]


@pytest.mark.parametrize("pool", POOLS, ids=[str(pool) for pool in POOLS])
def test_nodes_are_as_the_placement_expects(tmp_path: Path, pool: dict[str, Any]) -> None:
    """Every label and taint that work is placed by is really on the nodes, and no taint that it does not
    know; capacity, limits and accelerators are those declared."""
    declared = declare(changed(only(GKE, **pool), lifetime={"hours": 8}))
    work = next(item for item in declared.resolved_pools if item.name == "work")
    cloud = Cloud(tmp_path)
    for resource, inputs in asked_for(changed(only(GKE, **pool), lifetime={"hours": 8})):
        cloud.create(resource.type, inputs, resource.name)

    made = cloud.node_pools()["work"]

    expected = work.labels_and_taints
    assert expected.all_labels.items() <= made.labels.items()
    assert {(taint.key, taint.value, taint.effect.value) for taint in expected.all_taints} == {
        (taint.key, taint.value, taint.effect) for taint in made.taints
    }
    assert made.capacity == work.capacity.kind
    assert made.cluster == CLUSTER_ID
    assert (made.minimum, made.maximum) == (
        (work.nodes.count, work.nodes.count) if work.nodes.count else (work.nodes.min, work.nodes.max)
    )
    assert made.autoscaled == (work.nodes.count is None)
    assert made.accelerator == ((work.accelerator.type, work.accelerator.count) if work.accelerator else None)
    accelerator = profile(declared).pool("work").accelerator
    assert made.accelerators == ({accelerator.resource: str(accelerator.count)} if accelerator else {})
    price = work.priced_node.machine_amount(work.capacity.kind)
    assert price.unknown or price.known < (made.hourly or 0) < price.known + 0.1


def test_a_spot_pool_in_full(tmp_path: Path) -> None:
    """Labels of GKE's own beside ours; the taint is ours alone, since GKE taints no spot node of such
    a pool."""
    cloud = with_cluster(tmp_path)
    cloud.create(NODE_POOL, base("train-cpu"))
    made = cloud.node_pools()["cpu"]
    google = "cloud.google.com/"
    assert made.labels == {
        f"{google}gke-nodepool": "cpu",
        f"{google}gke-provisioning": "spot",
        f"{google}gke-spot": "true",
        f"{google}gke-boot-disk": "pd-balanced",
        f"{google}gke-container-runtime": "containerd",
        f"{google}gke-os-distribution": "cos",
        f"{google}machine-family": "n2",
        "ebbtide.dev/pool": "cpu",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "n2-standard-8",
        "topology.kubernetes.io/region": "us-central1",
    }
    assert made.taints == (NodeTaint("cloud.google.com/gke-spot", "true", "NoSchedule"),)
    assert made.allocatable == {
        "cpu": "7910m",
        "memory": "28386Mi",
        "pods": "110",
        "ephemeral-storage": "49Gi",
    }
    assert made.zones == ("us-central1-a",)

    cloud.create(NODE_POOL, base("train-cpu", name="bare", nodeConfig__taints=None))
    assert cloud.node_pools()["bare"].taints == ()


@pytest.mark.parametrize(
    ("version", "installed", "label"),
    [("DEFAULT", True, "default"), ("LATEST", True, "latest"), ("INSTALLATION_DISABLED", False, None)],
)
def test_who_installs_the_driver(tmp_path: Path, version: str, *, installed: bool, label: str | None) -> None:
    """GKE does by default, and labels the nodes so that the DaemonSet skips them."""
    cloud = with_cluster(tmp_path)
    gpus = base("train-t4")["nodeConfig"]["guestAccelerators"]
    gpus[0]["gpuDriverInstallationConfig"] = {"gpuDriverVersion": version}
    cloud.create(NODE_POOL, base("train-t4", nodeConfig__guestAccelerators=gpus))
    made = cloud.node_pools()["t4"]
    assert made.driver_installed == installed
    assert made.labels.get("cloud.google.com/gke-gpu-driver-version") == label
    assert made.accelerator_resource == "nvidia.com/gpu"


def test_tpus_and_arm(tmp_path: Path) -> None:
    """TPUs are part of their machine and need no driver; custom machines say what they are by their name."""
    cloud = with_cluster(tmp_path)
    tpu = {"nodeConfig__machineType": "ct5lp-hightpu-4t", "name": "tpu"}
    cloud.create(NODE_POOL, base("train-cpu", **tpu))
    made = cloud.node_pools()["tpu"]
    assert made.accelerator == ("tpu-v5-lite-podslice", 4)
    assert made.labels["cloud.google.com/gke-tpu-accelerator"] == "tpu-v5-lite-podslice"
    assert NodeTaint("google.com/tpu", "present", "NoSchedule") in made.taints
    assert made.driver_installed

    arm = {"nodeConfig__machineType": "t2a-custom-4-8192", "name": "arm"}
    cloud.create(NODE_POOL, base("train-cpu", **arm))
    assert cloud.node_pools()["arm"].labels["kubernetes.io/arch"] == "arm64"
    assert NodeTaint("kubernetes.io/arch", "arm64", "NoSchedule") in cloud.node_pools()["arm"].taints
    assert cloud.node_pools()["arm"].allocatable["cpu"] == "3920m"


def test_one_thread_for_each_core(tmp_path: Path) -> None:
    """A node without SMT has half of its machine's CPUs."""
    cloud = with_cluster(tmp_path)
    features = {"nodeConfig__advancedMachineFeatures": {"threadsPerCore": 1}, "name": "calm"}
    cloud.create(NODE_POOL, base("train-cpu", **features))
    assert cloud.node_pools()["calm"].allocatable["cpu"] == "3920m"


def test_limits_and_first_nodes_count_per_zone(tmp_path: Path) -> None:
    """Limits that are no totals multiply with the zones, and so do the first nodes."""
    cloud = with_cluster(tmp_path)
    zones = [f"us-central1-{letter}" for letter in "abc"]
    limits = {"minNodeCount": 1, "maxNodeCount": 3}
    cloud.create(NODE_POOL, base("train-system", nodeLocations=zones, autoscaling=limits))
    made = cloud.node_pools()["system"]
    assert (made.minimum, made.maximum, made.initial) == (3, 9, 3)
    assert made.zones == tuple(zones)


def test_a_cluster_where_the_provider_says(tmp_path: Path) -> None:
    """A region that only the provider's settings have is the cluster's and its pools'."""
    cloud = with_cluster(tmp_path, location=None)
    pool = cloud.create(NODE_POOL, base("train-cpu", location=None))
    assert pool.id == "projects/acme-ml/locations/us-central1/clusters/train/nodePools/cpu"
    assert len(cloud.node_pools()["cpu"].zones) == 3


def test_a_changed_pool_is_changed_for_its_nodes_too(tmp_path: Path) -> None:
    """The controllers are notified of an update, and of a deletion."""
    cloud = with_cluster(tmp_path)
    pool = cloud.create(NODE_POOL, base("train-cpu"))
    cloud.update(pool.id, base("train-cpu", autoscaling__totalMaxNodeCount=20))
    assert cloud.node_pools()["cpu"].maximum == 20
    cloud.delete(pool.id)
    assert cloud.node_pools() == {}


def test_first_nodes_that_do_not_come(tmp_path: Path) -> None:
    """The pool exists nonetheless, in error; an initially empty one does not wait for nodes."""
    cloud = with_cluster(tmp_path)
    cloud.store.inject(InjectedFault(NO_STOCK))
    with pytest.raises(UnfinishedError, match='system was created in the error state "RUNNING_WITH_ERROR"'):
        cloud.create(NODE_POOL, base("train-system"))
    cloud.create(NODE_POOL, base("train-cpu"))
    assert cloud.node_pools().keys() == {"cpu", "system"}
    assert cloud.diff(f"{CLUSTER_ID}/nodePools/system", base("train-system")) == DiffResult()


def test_a_default_pool_that_is_kept(tmp_path: Path) -> None:
    """Unless it is removed, GKE's default pool exists with its initial nodes."""
    cloud = with_cluster(tmp_path, removeDefaultNodePool=None, initialNodeCount=2)
    made = cloud.node_pools()["default-pool"]
    assert (made.initial, made.autoscaled, made.machine) == (2, False, "e2-small")


def test_a_cluster_that_is_there_already(tmp_path: Path) -> None:
    """An existing cluster is found by name, responds at its DNS endpoint if that is enabled, and accepts
    pools."""
    cloud = Cloud(tmp_path)
    where: dict[str, Any] = {"project": "acme-ml", "location": "us-central1-a", "name": "train"}
    with pytest.raises(RefusedError, match=f"{CLUSTER_ID} not found"):
        cloud.provider.invoke(GET_CLUSTER, where)

    identity = seed_cluster(cloud.store, cloud.clusters, **where)

    cluster: Any = cloud.provider.invoke(GET_CLUSTER, where)
    endpoint = cluster["controlPlaneEndpointsConfigs"][0]["dnsEndpointConfigs"][0]
    assert (identity, cluster["id"]) == (CLUSTER_ID, CLUSTER_ID)
    assert endpoint["endpoint"] == cloud.clusters.endpoint(identity).host
    assert endpoint["allowExternalTraffic"]
    assert cluster["network"] == "projects/acme-ml/global/networks/default"
    assert _range(cloud, cluster["subnetwork"].rpartition("/")[2]) == "10.128.0.0/20"
    with pytest.raises(RefusedError, match="subnetworks/lab not found"):
        _range(cloud, "lab")
    cloud.create(NODE_POOL, base("train-cpu"))
    assert cloud.node_pools().keys() == {"cpu", "default-pool"}


def test_a_cluster_that_is_reached_by_its_address(tmp_path: Path) -> None:
    """Without an open DNS endpoint there are an address and its certificate."""
    cloud = Cloud(tmp_path)
    where: dict[str, Any] = {"project": "acme-ml", "location": "us-central1", "name": "old"}
    identity = seed_cluster(cloud.store, cloud.clusters, **where, dns_endpoint=False)
    cluster: Any = cloud.provider.invoke(GET_CLUSTER, where)
    assert not cluster["controlPlaneEndpointsConfigs"][0]["dnsEndpointConfigs"][0]["allowExternalTraffic"]
    assert cluster["endpoint"] == cloud.clusters.endpoint(identity).host
    assert cluster["masterAuths"][0]["clusterCaCertificate"] == "Q0E="
    assert cloud.node_pools()["default-pool"].zones == ("us-central1-a", "us-central1-b", "us-central1-c")


def test_a_network_that_is_there_already(tmp_path: Path) -> None:
    """A cluster can stand in it, by the names that a declaration has."""
    cloud = Cloud(tmp_path)
    names = SeededNetwork(
        project="acme-ml",
        location="us-central1-a",
        network="lab",
        subnetwork="lab-nodes",
        pods="lab-pods",
        services="lab-services",
    )
    seed_network(cloud.store, cloud.clusters, names)
    cluster = base(
        "train-cluster",
        network="lab",
        subnetwork="lab-nodes",
        ipAllocationPolicy__clusterSecondaryRangeName="lab-pods",
        ipAllocationPolicy__servicesSecondaryRangeName="lab-services",
    )
    assert cloud.create(CLUSTER, cluster).id == CLUSTER_ID
    assert _range(cloud, "lab-nodes") == "10.0.0.0/20"


def _range(cloud: Cloud, subnetwork: str) -> Any:
    where: dict[str, Any] = {"project": "acme-ml", "region": "us-central1", "name": subnetwork}
    return cloud.provider.invoke(GET_SUBNETWORK, where)["ipCidrRange"]


def test_a_function_that_has_no_stand_in(tmp_path: Path) -> None:
    """The error names it, and no answer is invented."""
    with pytest.raises(RefusedError, match="does not implement the function gcp:compute/getZones"):
        Cloud(tmp_path).provider.invoke("gcp:compute/getZones:getZones", {})


@pytest.mark.parametrize(
    ("config", "gib"),
    [
        ({}, 49),
        ({"diskSizeGb": 20}, 8),
        ({"ephemeralStorageLocalSsdConfig": {"localSsdCount": 1}}, 287),
        ({"ephemeralStorageLocalSsdConfig": {"localSsdCount": 4}}, 1250),
        ({"localNvmeSsdBlockConfig": {"localSsdCount": 4}}, 49),
    ],
)
def test_ephemeral_storage_of_a_node(config: dict[str, Any], gib: int) -> None:
    """Ephemeral storage is the boot disk or the local SSDs, without the system's reservation."""
    assert ephemeral_gib(read_pool(Inputs({"nodeConfig": config}), "us-central1")) == gib
