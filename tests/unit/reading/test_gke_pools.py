"""GKE node pools, read from the resources of a flat program, in the document of a preview."""

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest

from ebbtide.analysis.preview.preview_document import (
    AcceleratorReport,
    DiskReport,
    NodesReport,
    PoolReport,
    TaintReport,
)
from ebbtide.analysis.reading.pools import read_pools
from ebbtide.analysis.recording.record import record
from ebbtide.values.cloud_kind import CloudKind
from tests.unit.reading.reports import NO_CHARGE, reports

_GPU = TaintReport("nvidia.com/gpu", "present", "NoSchedule", automatic=True)


def _read(program: Callable[[], object]) -> tuple[PoolReport, ...]:
    return reports(read_pools(record(program, project="shop", stack="dev")))


def _pool(location: str = "us-central1-a", **args: Any) -> PoolReport:
    def program() -> None:
        gcp.container.NodePool("pool", name="pool", cluster="train", location=location, **args)

    (pool,) = _read(program)
    return pool


def test_a_pool_is_read_whole() -> None:
    """Every fact, in neutral words."""
    pool = _pool(
        autoscaling={"total_min_node_count": 0, "total_max_node_count": 4},
        initial_node_count=0,
        node_locations=["us-central1-a"],
        node_config={
            "machine_type": "n1-highmem-8",
            "spot": True,
            "disk_size_gb": 200,
            "disk_type": "pd-ssd",
            "guest_accelerators": [{"type": "nvidia-tesla-t4", "count": 4}],
            "labels": {"ebbtide.dev/pool": "t4"},
            "taints": [{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}],
            "resource_labels": {"ebbtide-owner": "vision"},
        },
    )
    assert pool == PoolReport(
        urn="urn:pulumi:dev::shop::gcp:container/nodePool:NodePool::pool",
        cloud=CloudKind.GKE,
        name="pool",
        cluster="train",
        location="us-central1-a",
        role="work",
        machine="n1-highmem-8",
        accelerator=AcceleratorReport("nvidia-tesla-t4", 4, 4),
        capacity="spot",
        nodes=NodesReport(minimum=0, maximum=4, initial=0),
        zones=("us-central1-a",),
        disk=DiskReport(200, "pd-ssd"),
        labels={"ebbtide.dev/pool": "t4"},
        taints=(TaintReport("cloud.google.com/gke-spot", "true", "NoSchedule"), _GPU),
        billing={"ebbtide-owner": "vision"},
        vcpus=8,
        memory_gib=52,
        admits="only pods that request nvidia.com/gpu and tolerate cloud.google.com/gke-spot=true:NoSchedule",
        queues=(),
        falls_back_to=(),
        charge=NO_CHARGE,
    )


def test_what_gke_takes_where_nothing_is_declared() -> None:
    """Machine type and boot disk have defaults; without autoscaling the count is fixed."""
    pool = _pool(initial_node_count=2)
    assert (pool.machine, pool.disk) == ("e2-medium", DiskReport(100, "pd-balanced"))
    assert pool.nodes == NodesReport(fixed=2, initial=2)
    assert pool.capacity == "on-demand"


@pytest.mark.parametrize(
    ("config", "queued", "capacity", "limit"),
    [
        ({"preemptible": True}, False, "preemptible", 86400),
        ({"flex_start": True, "max_run_duration": "3600s"}, False, "flex-start", 3600),
        ({"flex_start": True, "max_run_duration": "604800s"}, True, "queued", 604800),
        ({"reservation_affinity": {"consume_reservation_type": "NO_RESERVATION"}}, False, "on-demand", None),
    ],
)
def test_capacity_kinds(config: dict[str, Any], capacity: str, limit: int | None, *, queued: bool) -> None:
    """Each has fields of its own, and some a limit on how long a node lives."""
    pool = _pool(node_config=config, queued_provisioning={"enabled": queued})
    assert (pool.capacity, pool.max_run_seconds) == (capacity, limit)


@pytest.mark.parametrize(
    ("affinity", "named"),
    [
        ("ANY_RESERVATION", "any"),
        ("ANY_RESERVATION_THEN_FAIL", "any, and no other machines"),
        ("SPECIFIC_RESERVATION", "h100-block"),
    ],
)
def test_reservations(affinity: str, named: str) -> None:
    """A reservation with affinity any has no name, and the preview shows whether on-demand machines are used
    as well."""
    key = "compute.googleapis.com/reservation-name"
    names = {"key": key, "values": [named]} if affinity == "SPECIFIC_RESERVATION" else {}
    pool = _pool(node_config={"reservation_affinity": {"consume_reservation_type": affinity, **names}})
    assert (pool.capacity, pool.reservation) == ("reservation", named)


@pytest.mark.parametrize(
    ("location", "args", "nodes"),
    [
        ("us-central1", {"initial_node_count": 1}, NodesReport(fixed=3, initial=3)),
        ("us-central1-a", {"node_count": 2, "initial_node_count": 1}, NodesReport(fixed=2, initial=2)),
        (
            "us-central1",
            {"autoscaling": {"min_node_count": 1, "max_node_count": 3}},
            NodesReport(minimum=3, maximum=9),
        ),
        (
            "us-central1",
            {
                "autoscaling": {"min_node_count": 1, "max_node_count": 3},
                "node_locations": ["us-central1-a", "us-central1-b"],
            },
            NodesReport(minimum=2, maximum=6),
        ),
        (
            "us-central1",
            {"autoscaling": {"total_min_node_count": 1, "total_max_node_count": 3}},
            NodesReport(minimum=1, maximum=3),
        ),
    ],
)
def test_counts_are_totals(location: str, args: dict[str, Any], nodes: NodesReport) -> None:
    """GKE counts per zone, unless it says total: the published example for a minimum of three idles at
    nine.
    """
    assert _pool(location, **args).nodes == nodes


def test_taints_that_the_cloud_adds() -> None:
    """On nodes with accelerators and on queued ones; declared again, they are there once."""
    queued = _pool(
        queued_provisioning={"enabled": True},
        node_config={"machine_type": "a2-highgpu-1g", "flex_start": True},
    )
    assert queued.taints == (
        TaintReport("cloud.google.com/gke-queued", "true", "NoSchedule", automatic=True),
        _GPU,
    )
    declared = _pool(
        node_config={
            "machine_type": "a2-highgpu-1g",
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
        }
    )
    assert declared.taints == (TaintReport("nvidia.com/gpu", "present", "NoSchedule"),)


@pytest.mark.parametrize(
    ("machine", "resources"),
    [("n2-custom-6-20480", (6, 20)), ("custom-4-16384-ext", (4, 16)), ("no-such-machine", (None, None))],
)
def test_custom_machines(machine: str, resources: tuple[int | None, int | None]) -> None:
    """The name of a custom machine type has its resources."""
    pool = _pool(node_config={"machine_type": machine})
    assert (pool.vcpus, pool.memory_gib) == resources


def test_a_system_pool_takes_anything_and_is_always_there() -> None:
    """GKE has no word for it."""
    always: dict[str, Any] = {"autoscaling": {"total_min_node_count": 1, "total_max_node_count": 3}}
    tainted = {"taints": [{"key": "a", "value": "b", "effect": "NO_EXECUTE"}]}
    assert _pool(**always).role == "system"
    assert _pool(autoscaling={"total_min_node_count": 0, "total_max_node_count": 3}).role == "work"
    pool = _pool(**always, node_config=tainted)
    assert pool.role == "work"
    assert str(pool.taints[0]) == "a=b:NoExecute"


def test_the_default_pool_of_a_cluster() -> None:
    """A cluster that keeps it has it, inside its own resource."""

    def program(**args: Any) -> Callable[[], object]:
        return lambda: gcp.container.Cluster(
            "train", name="train", location="us-central1-a", initial_node_count=3, **args
        )

    (pool,) = _read(program(node_config={"machine_type": "e2-standard-4"}))
    assert (pool.name, pool.inline, pool.machine, pool.nodes.idle) == (
        "default-pool",
        True,
        "e2-standard-4",
        3,
    )
    assert pool.cluster == "train"
    assert _read(program(remove_default_node_pool=True)) == ()
    assert _read(program(enable_autopilot=True)) == ()
    listed = _read(program(node_pools=[{"name": "a", "node_count": 1}, {"name": "b", "node_count": 2}]))
    assert [(pool.name, pool.nodes.fixed) for pool in listed] == [("a", 1), ("b", 2)]


def test_what_is_unknown_or_secret() -> None:
    """An unknown value is as if it were absent, a secret one is read."""

    def program() -> None:
        cluster = gcp.container.Cluster(
            "train", name="train", location="us-central1-a", remove_default_node_pool=True
        )
        gcp.container.NodePool(
            "pool",
            name=pulumi.Output.secret("pool"),
            cluster=cluster.id,
            location=cluster.master_version,
            node_config={"machine_type": cluster.master_version, "labels": {"a": cluster.master_version}},
        )

    (pool,) = _read(program)
    assert (pool.name, pool.cluster, pool.location) == ("pool", "train", "")
    assert (pool.machine, pool.labels) == ("e2-medium", {})


def test_pools_that_are_only_read_are_left_out() -> None:
    """Nothing is recorded of what they are like."""

    def program() -> None:
        gcp.container.NodePool.get("old", "projects/p/locations/l/clusters/c/nodePools/old")

    assert _read(program) == ()


def test_system_pools_come_first() -> None:
    """The others stay in the order of their registration."""

    def program() -> None:
        for name, minimum in (("a", 0), ("b", 1), ("c", 0)):
            gcp.container.NodePool(
                name,
                name=name,
                cluster="train",
                autoscaling={"total_min_node_count": minimum, "total_max_node_count": 3},
            )

    assert [pool.name for pool in _read(program)] == ["b", "a", "c"]


def test_local_ssds() -> None:
    """By their use, as the preview says it."""
    pool = _pool(node_config={"ephemeral_storage_local_ssd_config": {"local_ssd_count": 2}})
    assert pool.local_disks == "2 local SSDs for ephemeral storage"
    pool = _pool(node_config={"local_nvme_ssd_block_config": {"local_ssd_count": 1}})
    assert pool.local_disks == "1 local SSD as block devices"


def test_shared_gpus() -> None:
    """Partition, sharing and the number of shares of a node are read, and the topology of a TPU slice."""
    sharing = {"gpu_sharing_strategy": "TIME_SHARING", "max_shared_clients_per_gpu": 4}
    gpu = {
        "type": "nvidia-tesla-a100",
        "count": 2,
        "gpu_partition_size": "1g.5gb",
        "gpu_sharing_config": sharing,
    }
    pool = _pool(node_config={"machine_type": "a2-highgpu-2g", "guest_accelerators": [gpu]})
    assert pool.accelerator == AcceleratorReport("nvidia-tesla-a100", 2, 56, "1g.5gb, time-sharing by 4")
    tpus = _pool(
        node_config={"machine_type": "ct5lp-hightpu-4t"},
        placement_policy={"type": "COMPACT", "tpu_topology": "4x4"},
    )
    assert tpus.accelerator == AcceleratorReport("tpu-v5-lite-podslice", 4, 4, topology="4x4")


def test_settings() -> None:
    """Each in a word or two; a TPU slice's placement is its topology."""
    gvnic = {"gvnic": {"enabled": True}}
    assert _pool(node_config=gvnic, placement_policy={"type": "COMPACT"}).settings == (
        "compact placement",
        "gVNIC",
    )
    assert _pool(placement_policy={"type": "COMPACT", "tpu_topology": "4x4"}).settings == ()
    disks = [
        {"disk_image": "global/images/trainer", "mode": "CONTAINER_IMAGE_CACHE"},
        {"disk_image": "projects/acme-data/global/images/imagenet"},
    ]
    assert _pool(node_config={"gcfs_config": {"enabled": True}, "secondary_boot_disks": disks}).settings == (
        "image streaming",
        "preloaded images of trainer",
        "preloaded data of imagenet",
    )
