"""Node pools, pods and clusters for the tests of what the cloud decides about nodes."""

from typing import Any

from ebbtide.autoscaler.nodes import Machine, NodePool, labels, node_group, provides
from ebbtide.autoscaler.scheduling import Pod
from ebbtide.autoscaler.snapshot import TO_BE_DELETED, ClusterSnapshot, Node
from ebbtide.placement import NodeTaint
from ebbtide.placement.profile import Toleration
from ebbtide.values.pod_requests import amounts

CLUSTER = "projects/acme/locations/us-central1/clusters/tried"
MARK = NodeTaint(TO_BE_DELETED, "1", "NoSchedule")
"""The taint of nodes that the autoscaler removes."""


def a_pool(name: str = "cpu", **changes: Any) -> NodePool:
    """A pool of four processors a node."""
    pool = NodePool(
        cluster=CLUSTER,
        name=name,
        cloud="gke",
        machine="n2-standard-4",
        capacity="spot",
        region="us-central1",
        zones=("us-central1-a",),
        labels={"pool": name},
        taints=(),
        allocatable={"cpu": "4", "memory": "16Gi"},
        accelerator=None,
        accelerator_resource="",
        driver_installed=False,
        minimum=0,
        maximum=10,
        initial=0,
        autoscaled=True,
        hourly=0.1,
    )
    return pool.having(**changes)


def backed_off(pool: NodePool, until: float) -> dict[str, float]:
    """Backoffs of all node groups of a pool."""
    return dict.fromkeys((node_group(pool, zone) for zone in pool.zones), until)


def a_gpu_pool(name: str = "gpu", **changes: Any) -> NodePool:
    """A pool of one T4 a node, tainted as GKE taints it."""
    gpus: dict[str, Any] = {
        "accelerator": ("nvidia-tesla-t4", 1),
        "accelerator_resource": "nvidia.com/gpu",
        "taints": (NodeTaint("nvidia.com/gpu", "present", "NoSchedule"),),
        "driver_installed": True,
        "hourly": 0.5,
    }
    return a_pool(name, **{**gpus, **changes})


def a_pod(name: str = "p", *, cpu: str = "1", gpu: int = 0, **fields: Any) -> Pod:
    """A pod of a Job that waits for a node, in `default`."""
    requests = {"cpu": cpu, "memory": "1Gi", "pods": "1"} | ({"nvidia.com/gpu": str(gpu)} if gpu else {})
    tolerations = (Toleration("nvidia.com/gpu", "Exists", "", ""),) if gpu else ()
    given: dict[str, Any] = {
        "namespace": "default",
        "name": name,
        "uid": name,
        "requests": amounts(requests),
        "tolerations": tolerations,
        "owner": "Job",
        "unschedulable": not fields.get("node"),
    }
    return Pod(**{**given, **fields})


def a_machine(pool: NodePool, number: int = 0, **changes: Any) -> Machine:
    """A machine that runs since the beginning."""
    zone = pool.zones[number % len(pool.zones)]
    machine = Machine(
        pool.cluster, pool.name, f"{pool.name}-{number}", zone, pool.cloud, pool.hourly, 0, "running", 0
    )
    return machine.having(**changes)


def a_node(pool: NodePool, machine: Machine, **changes: Any) -> Node:
    """The node of a machine, complete."""
    given: dict[str, Any] = {
        "name": machine.name,
        "labels": labels(pool, machine.zone, machine.name),
        "annotations": {},
        "taints": pool.taints,
        "allocatable": amounts(provides(pool)),
        "ready": True,
        "cordoned": False,
    }
    return Node(**{**given, **changes})


def snapshot(
    *pools: NodePool, machines: tuple[Machine, ...] = (), pods: tuple[Pod, ...] = (), **more: Any
) -> ClusterSnapshot:
    """A cluster in which every machine that runs is a complete node."""
    by_name = {pool.name: pool for pool in pools}
    nodes = {
        machine.name: a_node(by_name[machine.pool], machine)
        for machine in machines
        if machine.state == "running" and machine.pool in by_name
    }
    given: dict[str, Any] = {
        "now": 0.0,
        "pools": pools,
        "machines": machines,
        "nodes": nodes,
        "pods": pods,
    }
    return ClusterSnapshot(**{**given, **more})
