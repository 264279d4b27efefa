"""AKS node pools, read from the resources of a flat program, in the document of a preview."""

from typing import Any

import pulumi_azure_native as azure
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

_SPOT = "kubernetes.azure.com/scalesetpriority"


def _pool(**args: Any) -> PoolReport:
    def program() -> None:
        azure.containerservice.AgentPool(
            "pool", agent_pool_name="pool", resource_name_="train", resource_group_name="group", **args
        )

    (pool,) = reports(read_pools(record(program, project="shop", stack="dev")))
    return pool


def test_a_pool_is_read_whole() -> None:
    """Every fact, in neutral words; accelerators are the catalog's, since no field has them."""
    pool = _pool(
        vm_size="Standard_NC4as_T4_v3",
        mode="User",
        enable_auto_scaling=True,
        min_count=0,
        max_count=4,
        scale_set_priority="Spot",
        spot_max_price=0.25,
        availability_zones=["1"],
        os_disk_size_gb=128,
        os_disk_type="Ephemeral",
        node_labels={"ebbtide.dev/pool": "pool"},
        node_taints=[f"{_SPOT}=spot:NoSchedule", "bare:NoExecute"],
        tags={"ebbtide-owner": "vision"},
    )
    assert pool == PoolReport(
        urn="urn:pulumi:dev::shop::azure-native:containerservice:AgentPool::pool",
        cloud=CloudKind.AKS,
        name="pool",
        cluster="train",
        role="work",
        machine="Standard_NC4as_T4_v3",
        accelerator=AcceleratorReport("nvidia-t4", 1, 1),
        capacity="spot",
        max_price=0.25,
        nodes=NodesReport(minimum=0, maximum=4),
        zones=("1",),
        disk=DiskReport(128, "ephemeral"),
        labels={"ebbtide.dev/pool": "pool"},
        taints=(TaintReport(_SPOT, "spot", "NoSchedule"), TaintReport("bare", "", "NoExecute")),
        billing={"ebbtide-owner": "vision"},
        vcpus=4,
        memory_gib=28,
        admits=f"only pods that tolerate {_SPOT}=spot:NoSchedule and bare:NoExecute",
        queues=(),
        falls_back_to=(),
        charge=NO_CHARGE,
    )
    assert [str(taint) for taint in pool.taints] == [f"{_SPOT}=spot:NoSchedule", "bare:NoExecute"]


@pytest.mark.parametrize(
    ("args", "nodes"),
    [
        ({"count": 3}, NodesReport(fixed=3, initial=3)),
        ({}, NodesReport(fixed=0)),
        ({"enable_auto_scaling": True, "min_count": 1, "max_count": 3}, NodesReport(minimum=1, maximum=3)),
        (
            {"enable_auto_scaling": True, "min_count": 1, "max_count": 3, "count": 2},
            NodesReport(minimum=1, maximum=3, initial=2),
        ),
    ],
)
def test_counts(args: dict[str, Any], nodes: NodesReport) -> None:
    """With autoscaling there are limits, without it a number."""
    assert _pool(**args).nodes == nodes


def test_capacity() -> None:
    """A capacity reservation is the id of a group, and AKS's spot price of -1 is any up to the list price."""
    group = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/capacityReservationGroups/h100"
    reserved = _pool(capacity_reservation_group_id=group)
    assert (reserved.capacity, reserved.reservation) == ("reservation", group)
    spot = _pool(scale_set_priority="Spot", spot_max_price=-1)
    assert spot.max_price is None
    assert spot.taints == (TaintReport(_SPOT, "spot", "NoSchedule", automatic=True),)


def test_the_system_pool_stands_in_the_cluster() -> None:
    """AKS makes it with the cluster, and its mode says what it is; other pools are where their cluster is."""

    def program() -> None:
        azure.containerservice.ManagedCluster(
            "train",
            resource_name_="train",
            resource_group_name="group",
            location="westeurope",
            agent_pool_profiles=[
                azure.containerservice.ManagedClusterAgentPoolProfileArgs(
                    name="system", mode="System", vm_size="Standard_D4s_v5", count=2
                )
            ],
        )
        azure.containerservice.AgentPool(
            "work", agent_pool_name="work", resource_name_="train", resource_group_name="group"
        )

    system, work = reports(read_pools(record(program, project="shop", stack="dev")))
    assert (system.name, system.role, system.inline, system.cluster) == ("system", "system", True, "train")
    assert (work.name, work.role, work.inline, work.cluster) == ("work", "work", False, "train")
    assert system.location == work.location == "westeurope"


def test_ephemeral_storage_on_the_temporary_disk() -> None:
    """The kubelet's disk is named if it is the machine's own."""
    pool = _pool(vm_size="Standard_D8ds_v5", kubelet_disk_type="Temporary")
    assert pool.local_disks == "the temporary disk for ephemeral storage"
    assert _pool(vm_size="Standard_D8ds_v5").local_disks == ""
