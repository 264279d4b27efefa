"""Nodes, hardware, quotas and sizes of node pools on the fake clouds, and of clusters that exist."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.gke import read_pool
from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import Autoscaling, Machine
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud import pools
from ebbtide_rehearsal.cloud.aks_nodes import machine
from ebbtide_rehearsal.cloud.existing import introduce, make, seed_gke
from ebbtide_rehearsal.cloud.gke_nodes import ephemeral_gib
from ebbtide_rehearsal.cloud.ids import AGENT_POOL, AKS_CLUSTER, FUTURE_RESERVATION, NODE_POOL
from ebbtide_rehearsal.cloud.node_pools.fleet import Fleet
from ebbtide_rehearsal.cloud.node_pools.removal import expired, recreated, surplus
from ebbtide_rehearsal.cloud.pools import locations, put
from ebbtide_rehearsal.cloud.provider import DiffResult, RefusedError
from ebbtide_rehearsal.cloud.store import QUOTA, Clock, InjectedFault
from rehearsal.tests.unit.fake_cloud import CLUSTER_ID, Cloud, base, with_cluster
from rehearsal.tests.unit.node_pool import a_machine, a_pool, snapshot
from tests.contract.pool_flips import UNKNOWN
from tests.declarations import AKS, GKE, Declaration, changed, only

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
    cloud.create_all(changed(only(GKE, **pool), lifetime={"hours": 8}))

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
    features: dict[str, Any] = {"nodeConfig__advancedMachineFeatures": {"threadsPerCore": 1}, "name": "calm"}
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
    identity = seed_gke(cloud.store, cloud.clusters, **where, dns_endpoint=False)
    cluster: Any = cloud.provider.invoke("gcp:container/getCluster:getCluster", where)
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


def test_a_fixed_count_that_the_pool_has(tmp_path: Path) -> None:
    """A pool that was created with an initial count is not changed by the same fixed count, and resized by
    another."""
    cloud = with_cluster(tmp_path)
    fixed = base("train-cpu", autoscaling=None, initialNodeCount=1)
    made = cloud.create(NODE_POOL, fixed)
    newer = base("train-cpu", autoscaling=None, initialNodeCount=None)
    assert cloud.diff(made.id, newer | {"nodeCount": 1}) == DiffResult()
    assert cloud.diff(made.id, newer | {"nodeCount": 2}) == DiffResult(("nodeCount",))
    cloud.update(made.id, fixed | {"nodeCount": 2})
    assert cloud.node_pools()["cpu"].initial == 2


def test_the_autoscalers_size_is_kept(tmp_path: Path) -> None:
    """A pool that is no longer autoscaled keeps its size until a count is declared that differs."""
    cloud = with_cluster(tmp_path)
    made = cloud.create(NODE_POOL, base("train-cpu", initialNodeCount=1))
    for number in range(4):
        put(
            cloud.store,
            Machine(CLUSTER_ID, "cpu", f"n-{number}", "us-central1-a", "gke", 0.1, 0, "running", 0),
        )
    fixed = base("train-cpu", autoscaling=None, initialNodeCount=None, nodeCount=4)
    assert cloud.update(made.id, fixed)["nodeCount"] == 4
    assert cloud.node_pools()["cpu"].initial == 4
    assert cloud.diff(made.id, fixed) == DiffResult()
    assert cloud.update(made.id, {**fixed, "nodeCount": 1})["nodeCount"] == 1
    assert cloud.node_pools()["cpu"].initial == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"availabilityZones": ["1", "3"]}, {"zones": ("eastus-1", "eastus-3")}),
        ({}, {"zones": ("0",), "minimum": 0, "maximum": 10, "initial": 0}),
        # azure-aks-docs use-amd-gpus.md, 2025-06: neither driver nor plugin
        (
            {"vmSize": "Standard_ND96isr_MI300X_v5", "gpuProfile": {"driver": "None"}},
            {"accelerators": {"amd.com/gpu": "8"}, "driver_installed": False},
        ),
        # azure-aks-docs use-arm64-vms.md, 2025-02: labelled as Kubernetes does, and not tainted
        ({"vmSize": "Standard_D8ps_v6", "nodeTaints": None, "scaleSetPriority": None}, {"taints": ()}),
        (
            {"minCount": None, "maxCount": None, "enableAutoScaling": False, "count": 3},
            {"autoscaled": False, "minimum": 3, "maximum": 3, "initial": 3},
        ),
    ],
)
def test_nodes_of_a_pool_on_aks(tmp_path: Path, changes: dict[str, Any], expected: dict[str, Any]) -> None:
    """Zones, counts, accelerators and taints of a pool's nodes follow from its inputs."""
    cloud = with_cluster(tmp_path, "aks")
    cloud.create(AGENT_POOL, base("train-cpu", "aks", **changes))
    pool = cloud.node_pools()["cpu"]
    assert {name: getattr(pool, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("cloud", "pool", "changes", "message"),
    [
        (
            "gke",
            "cpu",
            {"nodeConfig__machineType": "n2-standard-7"},
            'with name "n2-standard-7" does not exist',
        ),
        # GoogleCloudPlatform/kubernetes-engine-samples#1738
        (
            "gke",
            "t4",
            {"nodeConfig__guestAccelerators": [{"type": "nvidia-tesla-p100", "count": 1}]},
            "is not available in us-central1-a: it has no nvidia-tesla-p100",
        ),
        # keras-team/kinetic#305
        ("gke", "cpu", {"nodeConfig__machineType": "ct6e-standard-1t"}, "is not available in us-central1-a"),
        ("aks", "cpu", {"vmSize": "n1-standard-4"}, 'with name "n1-standard-4" does not exist'),
        ("aks", "cpu", {"vmSize": "Standard_ND96asr_v4"}, "is not available in norwaywest"),
    ],
)
def test_machines_that_a_location_lacks(
    tmp_path: Path, cloud: str, pool: str, changes: dict[str, Any], message: str
) -> None:
    """A pool of unknown or missing hardware is refused, and nothing is left of it."""
    elsewhere = {"location": "norwaywest"} if "norwaywest" in message else {}
    made = with_cluster(tmp_path, cloud, **elsewhere)
    token = NODE_POOL if cloud == "gke" else AGENT_POOL
    before = made.store.resources()
    with pytest.raises(RefusedError, match=message):
        made.create(token, base(f"train-{pool}", cloud, **changes))
    assert made.store.resources() == before


def test_an_unknown_size_of_the_inline_pool(tmp_path: Path) -> None:
    """A cluster whose system pool AKS refuses does not exist afterwards."""
    system = base("train-cluster", "aks")["agentPoolProfiles"][0]
    with pytest.raises(RefusedError, match="does not exist there"):
        with_cluster(tmp_path, "aks", agentPoolProfiles=[{**system, "vmSize": "n1-standard-4"}])


@pytest.mark.parametrize(
    ("cloud", "quota", "refused"),
    [
        ("gke", "CPUS", {"initialNodeCount": 2}),
        ("aks", "lowPriorityCores", {"count": 2}),
    ],
)
def test_a_quota_is_exceeded(tmp_path: Path, cloud: str, quota: str, refused: dict[str, Any]) -> None:
    """A new pool's first nodes need quota, and one that begins empty none (m-lab/etl#798)."""
    made = with_cluster(tmp_path, cloud)
    token, name = (NODE_POOL, "train-system") if cloud == "gke" else (AGENT_POOL, "train-cpu")
    made.store.inject(InjectedFault(QUOTA, quota, details={"limit": 6}))
    with pytest.raises(RefusedError, match=f'Insufficient quota to satisfy request: resource "{quota}"'):
        made.create(token, base(name, cloud, **refused))
    made.create(token, base("train-cpu", cloud))
    (event,) = made.store.events(kind="quota-exceeded")
    assert event.facts["quota"] == quota


def test_settings_of_the_autoscaler(tmp_path: Path) -> None:
    """Every setting of AKS' profile reaches the autoscaler, and an omitted one has its default."""
    cloud = with_cluster(tmp_path, "aks")
    ((cluster, _),) = cloud.clusters.running.items()
    inputs = base("train-cluster", "aks")
    profile: dict[str, Any] = {
        "expander": "priority",
        "scaleDownUnneededTime": "3m",
        "scaleDownDelayAfterAdd": "0m",
        "scaleDownUtilizationThreshold": "0.7",
        "ignoreDaemonsetsUtilization": True,
        "maxGracefulTerminationSec": "30",
        "skipNodesWithLocalStorage": "true",
        "skipNodesWithSystemPods": "false",
    }
    cloud.update(cluster, {**inputs, "autoScalerProfile": profile})
    assert pools.settings_of(cloud.store, cluster) == Autoscaling(
        expander="priority",
        idle_seconds=180,
        delay_after_add_seconds=0,
        utilization=0.7,
        daemons_count=False,
        eviction_seconds=30,
        skip_local_storage=True,
        skip_system_pods=False,
    )
    cloud.update(cluster, {**inputs, "autoScalerProfile": {"expander": "least-waste"}})
    assert pools.settings_of(cloud.store, cluster) == Autoscaling(expander="least-waste")


def test_pools_of_an_aks_cluster(tmp_path: Path) -> None:
    """The system pool is changed with its cluster, which no pool is added to; a stopped one stays."""
    cloud = with_cluster(tmp_path, "aks")
    ((cluster, _),) = cloud.clusters.running.items()
    inputs = base("train-cluster", "aks")
    (system,) = inputs["agentPoolProfiles"]
    cloud.update(cluster, {**inputs, "agentPoolProfiles": [{**system, "maxCount": 9}]})
    assert cloud.node_pools()["system"].maximum == 9
    with pytest.raises(RefusedError, match="A new agent pool was introduced"):
        cloud.update(cluster, {**inputs, "agentPoolProfiles": [system, {**system, "name": "second"}]})
    cloud.store.put(cloud.found(cluster).having(powerState={"code": "Stopped"}))
    for refused in (
        lambda: cloud.update(cluster, inputs),
        lambda: cloud.create(AGENT_POOL, base("train-cpu", "aks")),
        lambda: cloud.delete(f"{cluster}/agentPools/system"),
    ):
        with pytest.raises(RefusedError, match=r"Power State\(Stopped\), .* cannot be performed"):
            refused()
    assert [item.id for item in cloud.store.resources(kind=AKS_CLUSTER)] == [cluster]


_PERIOD = {"from": "2026-12-01T08:00Z", "until": "2026-12-08T08:00Z"}
_BEGIN, _END = (datetime(2026, 12, day, 8, tzinfo=UTC).timestamp() for day in (1, 8))


def test_machines_in_the_period_of_a_reservation_alone(tmp_path: Path) -> None:
    """A pool gets machines from the begin of its reservation to its end, before which that cannot be deleted;
    the reservation is billed for them."""
    cloud = Cloud(tmp_path)

    def at(time: float) -> None:
        cloud.store.clock = Clock(_BEGIN - 60, wall=lambda: time)

    at(_BEGIN - 1)
    declared = only(GKE, machine="a3-megagpu-8g", capacity={"kind": "reservation", **_PERIOD})
    cloud.create_all(changed(declared, lifetime={"hours": 8}))
    pool, end = cloud.node_pools()["work"], 60 + 7 * 24 * 3600
    assert pool.reserved == (60, end)
    assert (pool.hourly or 0) < 1  # its disk
    fleet = Fleet(CLUSTER_ID, cloud.store, NodeSettings())
    for time, has_stock in ((_BEGIN - 1, False), (_BEGIN, True), (_END - 1, True), (_END, False)):
        at(time)
        assert (fleet.order(pool, pool.zones) == {}) == has_stock
    for now, is_over in ((end - 1, False), (end, True)):
        assert bool([*expired(snapshot(pool, machines=(a_machine(pool),), now=now))]) == is_over

    at(_BEGIN)
    (reservation,) = cloud.store.resources("gcp", FUTURE_RESERVATION)
    with pytest.raises(RefusedError, match="cannot be deleted before its end"):
        cloud.delete(reservation.id)
    at(_END)
    cloud.delete(reservation.id)


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
    cloud.create_all(declaration)
    assert cloud.node_pools()["t4"].zones == ("us-east7-a", "us-east7-b")


def test_a_machine_that_the_catalog_lacks_is_created(tmp_path: Path) -> None:
    """A machine type with its resources exists once the cloud has the declaration, and its nodes have these
    resources."""
    declaration = changed(only(GKE, machine=UNKNOWN, capacity="spot"), lifetime={"hours": 8})
    with pytest.raises(RefusedError, match='Machine type with name "n9-standard-8" does not exist'):
        Cloud(tmp_path).create_all(declaration)
    (tmp_path / "own").mkdir()
    cloud = Cloud(tmp_path / "own")
    make(declaration, cloud.store, cloud.clusters)
    cloud.create_all(declaration)
    allocatable = declare(declaration).resolved_pools[1].allocatable
    assert allocatable is not None
    node = cloud.node_pools()["work"].allocatable
    assert (node["cpu"], node["memory"]) == (f"{allocatable.cpu_m:g}m", f"{int(allocatable.memory_mib)}Mi")


def test_a_size_that_the_catalog_lacks_has_its_declared_memory(tmp_path: Path) -> None:
    """A size of Azure that the catalog lacks has the declared memory, not the usual 4 GiB a core."""
    store = Cloud(tmp_path).store
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


def test_a_change_that_recreates_nodes(tmp_path: Path) -> None:
    """A change of machine types, or of a cluster's shielding, makes a new version of the nodes; one of
    labels or limits does not (the rows `recreates` of noted.csv)."""
    cloud = with_cluster(tmp_path)
    made = cloud.create(NODE_POOL, base("train-cpu"))
    put(cloud.store, Machine(CLUSTER_ID, "cpu", "n", "us-central1-a", "gke", 0.1, 0, "running", 0))

    def version() -> tuple[int, int]:
        pool = cloud.node_pools()["cpu"]
        return pool.version, pool.size

    cloud.update(made.id, base("train-cpu", nodeConfig__labels={"a": "b"}, autoscaling__totalMaxNodeCount=9))
    assert version() == (0, 0)
    cloud.update(made.id, base("train-cpu", nodeConfig__machineType="n2-standard-16"))
    assert version() == (1, 1)
    cloud.update(
        made.id, base("train-cpu", nodeConfig__machineType="n2-standard-16", nodeConfig__diskSizeGb=200)
    )
    cloud.update(CLUSTER_ID, base("train-cluster", enableShieldedNodes=False))
    assert version() == (3, 1)


def test_nodes_are_recreated_by_surge() -> None:
    """Surge upgrades create a new machine, drain an old one once it runs, and begin again, until none is old;
    a fixed pool is not made smaller meanwhile."""
    pool = a_pool(version=1, size=2, autoscaled=False, initial=2)
    old = tuple(a_machine(pool, number) for number in range(2))
    new = a_machine(pool, 7, version=1)
    steps: list[tuple[tuple[Machine, ...], tuple[list[str], list[Machine]]]] = [
        (old, (["us-central1-a"], [])),
        ((*old, new.having(state="starting")), ([], [])),
        ((*old, new), ([], [old[0]])),
        ((old[0].having(state="draining"), old[1], new), ([], [])),
        ((old[1], new), (["us-central1-a"], [])),
        ((new, new.having(name="last")), ([], [])),
    ]
    for machines, step in steps:
        current = snapshot(pool, machines=machines)
        assert recreated(current, pool) == step
        assert surplus(current) == []
