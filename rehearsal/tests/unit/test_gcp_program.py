"""The program's requests on the fake clouds: nodes of GKE's node pools, existing clusters, own regions."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.gke import read_pool
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from ebbtide_rehearsal.cloud.azure.nodes import machine
from ebbtide_rehearsal.cloud.existing import introduce, make
from ebbtide_rehearsal.cloud.gcp.nodes import ephemeral_gib
from ebbtide_rehearsal.cloud.gcp.provider import KINDS
from ebbtide_rehearsal.cloud.gcp.request import NODE_POOL
from ebbtide_rehearsal.cloud.gcp.seeding import seed_cluster
from ebbtide_rehearsal.cloud.provider import DiffResult, RefusedError
from ebbtide_rehearsal.cloud.regions import locations
from rehearsal.tests.unit.azure_cloud import Azure
from rehearsal.tests.unit.gcp_cloud import CLUSTER_ID, Cloud, asked_for, base, with_cluster
from tests.contract.pool_flips import UNKNOWN
from tests.declarations import AKS, GKE, Declaration, changed, only
from tests.repository import STACK_FILES, declaration, relative
from tests.running import full

GET_CLUSTER = "gcp:container/getCluster:getCluster"

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
    {"machine": {"type": "n4a-custom-4-8192", "vcpus": 4, "memoryGib": 8}},
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
    disk = 0 if work.disk.type == "hyperdisk-balanced" else 1e-6  # No list has the price of Hyperdisks.
    assert price.unknown or price.known + disk <= (made.hourly or 0) < price.known + 0.1


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


def test_one_thread_for_each_core(tmp_path: Path) -> None:
    """A node without SMT has half of its machine's CPUs."""
    cloud = with_cluster(tmp_path)
    features = {"nodeConfig__advancedMachineFeatures": {"threadsPerCore": 1}, "name": "calm"}
    cloud.create(NODE_POOL, base("train-cpu", **features))
    assert cloud.node_pools()["calm"].allocatable["cpu"] == "3920m"


def test_limits_and_first_nodes_count_per_zone(tmp_path: Path) -> None:
    """Limits that are not totals multiply with the zones, and so do the first nodes."""
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


def test_a_default_pool_that_is_removed_later(tmp_path: Path) -> None:
    """The provider deletes it on a change of the input, which a program of ours therefore ignores."""
    cloud = with_cluster(tmp_path, removeDefaultNodePool=False)
    assert set(cloud.node_pools()) == {"default-pool"}
    cloud.update(CLUSTER_ID, base("train-cluster", removeDefaultNodePool=True))
    assert set(cloud.node_pools()) == set()


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


FULL = full("gke", pipelines={"artifacts": "bucket"})
KEY = "projects/acme-ml/locations/us-central1/keyRings/clusters/cryptoKeys/train"
REGIONAL = changed(GKE, cloud=GKE["cloud"] | {"location": "us-central1"})
H200 = {
    "name": "h200",
    "machine": "a3-ultragpu-8g",
    "capacity": "spot",
    "nodes": {"max": 2},
    "gpuDirect": "rdma",
}
DECLARATIONS = {
    "small": GKE,
    "regional": REGIONAL,
    "everything": changed(
        FULL,
        cloud=FULL["cloud"] | {"keys": dict.fromkeys(("secrets", "disks", "buckets", "registries"), KEY)},
        pools=[*FULL["pools"], H200],
    ),
    **{
        relative(file): declaration(file)
        for file in STACK_FILES
        if declaration(file)["cloud"]["kind"] == "gke" and "existing" not in declaration(file)["cloud"]
    },
}


@pytest.mark.parametrize("declared", DECLARATIONS.values(), ids=DECLARATIONS.keys())
def test_all_of_it_comes_and_goes(tmp_path: Path, declared: Declaration) -> None:
    """Each resource is created with the id that the preview assumes, reads back as declared, has no
    difference afterwards, and can be deleted; nothing is left."""
    cloud = Cloud(tmp_path, declared["cloud"]["project"])
    ephemeral = {"name": "it-test", **declared, "lifetime": {"hours": 8}}
    made: list[str] = []
    for resource, inputs in asked_for(ephemeral):
        created = cloud.create(resource.type, inputs, resource.name)
        assert created.id == resource.id
        assert (cloud.read(created.id).inputs, []) == cloud.check(resource.type, inputs)
        assert cloud.diff(created.id, inputs) == DiffResult()
        made.append(created.id)

    assert {pool["name"] for pool in declared["pools"]} <= cloud.node_pools().keys()
    for identity in reversed(made):
        cloud.delete(identity)
    assert cloud.store.resources() == []
    assert cloud.clusters.running == {}


def test_every_type_is_known() -> None:
    """The fake cloud has every type that the program creates."""
    assert {resource.type for resource, _ in asked_for(DECLARATIONS["everything"])} <= KINDS.keys()


NEWER = {
    "name": "us-east7",
    "zones": ["us-east7-a", "us-east7-b"],
    "offers": ["e2-standard-4", "n2", "nvidia-tesla-t4", "a2-highgpu-1g"],
}


def _in(declaration: Declaration, location: str, *regions: dict[str, Any]) -> Declaration:
    cloud = declaration["cloud"] | {"location": location, "regions": list(regions)}
    return changed(declaration, cloud=cloud, lifetime={"hours": 8})


def test_what_a_declaration_adds_is_created(tmp_path: Path) -> None:
    """The whole cluster, with a pool in each of the zones, once the cloud has the region."""
    declaration = _in(GKE, "us-east7", NEWER)
    cloud = Cloud(tmp_path)
    make(declaration, cloud.store, cloud.clusters)
    _create(cloud, declaration)
    assert cloud.node_pools()["t4"].zones == ("us-east7-a", "us-east7-b")


def test_a_machine_that_the_catalog_lacks_is_created(tmp_path: Path) -> None:
    """A machine type with its resources exists once the cloud has the declaration, and its nodes have these
    resources."""
    declaration = changed(only(GKE, machine=UNKNOWN, capacity="spot"), lifetime={"hours": 8})
    with pytest.raises(RefusedError, match='Machine type with name "n9-standard-8" does not exist'):
        _create(Cloud(tmp_path), declaration)
    (tmp_path / "own").mkdir()
    cloud = Cloud(tmp_path / "own")
    make(declaration, cloud.store, cloud.clusters)
    _create(cloud, declaration)
    allocatable = declare(declaration).resolved_pools[1].allocatable
    assert allocatable is not None
    node = cloud.node_pools()["work"].allocatable
    assert (node["cpu"], node["memory"]) == (f"{allocatable.cpu_m:g}m", f"{int(allocatable.memory_mib)}Mi")


def _create(cloud: Cloud, declaration: Declaration) -> None:
    for resource, inputs in asked_for(declaration):
        cloud.create(resource.type, inputs, resource.name)


def test_a_size_that_the_catalog_lacks_has_its_declared_memory(tmp_path: Path) -> None:
    """A size of Azure that the catalog lacks has the declared memory, not the usual 4 GiB a core."""
    store = Azure(tmp_path).store
    assert (found := machine(store, "Standard_D8as_v9")) is not None
    assert found.memory_gib == 32
    shape = {"type": "Standard_D8as_v9", "vcpus": 8, "memoryGib": 64}
    introduce(only(AKS, machine=shape), store)
    assert (found := machine(store, "Standard_D8as_v9")) is not None
    assert found.memory_gib == 64


def test_a_running_cloud_hears_of_a_region(tmp_path: Path) -> None:
    """Another declaration of the same stack adds to what the cloud has."""
    store = Cloud(tmp_path).store
    introduce(_in(GKE, "us-central1", NEWER), store)
    introduce(_in(AKS, "eastus3", {"name": "eastus3", "zones": ["1"]}), store)
    assert locations(store, CloudKind.GKE).zones("us-east7") == ("us-east7-a", "us-east7-b")
    assert locations(store, CloudKind.AKS).zones("eastus3") == ("1",)
    assert "eastus3" not in locations(store, CloudKind.GKE).names()
