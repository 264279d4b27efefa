"""Trials of both autoscalers: the same pods, pools and nodes for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import Autoscaling, Expander, Machine, NodePool, new_name
from ebbtide.autoscaler.snapshot import read_node
from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator
from ebbtide_rehearsal.cloud.node_pools.fleet import Fleet
from ebbtide_rehearsal.cloud.node_pools.snapshot import SnapshotReader
from ebbtide_rehearsal.cloud.pools import put, put_settings, register
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.control_plane.cluster import Object, pod, wait
from rehearsal.tests.control_plane.node_pools import CLUSTER, work_pool


def aks_pool(name: str, **changes: Any) -> NodePool:
    """An AKS pool that anything may run on."""
    given: dict[str, Any] = {"labels": {"pool": name}, "taints": (), "cloud": "aks", "zones": ("0",)}
    return work_pool(name, **{**given, **changes})


def pending_pods(count: int, cpu: str = "1", *, gpu: int = 0, **spec: Any) -> list[Object]:
    requests = {"cpu": cpu} | ({"nvidia.com/gpu": str(gpu)} if gpu else {})
    resources = {"requests": requests, "limits": {"nvidia.com/gpu": str(gpu)} if gpu else {}}
    return [pod({}, container={"resources": resources}, **spec) for _ in range(count)]


@dataclass
class Trial:
    """A fake cloud with pools."""

    store: Store
    fleet: Fleet
    reader: SnapshotReader

    @classmethod
    def of(cls, api: Api, directory: Path, case_pools: Sequence[NodePool], expander: Expander) -> "Trial":
        """A fake cloud of its own, with the cluster's API."""
        store = Store(directory, speed=1)
        for pool in case_pools:
            register(store, pool)
        put_settings(
            store, CLUSTER, Autoscaling(expander=expander, idle_seconds=1, delay_after_add_seconds=0)
        )
        return cls(store, Fleet(CLUSTER, store, NodeSettings()), SnapshotReader(api, store, CLUSTER))


def join(api: Api, actuator: Actuator, trials: Sequence[Trial], pool: NodePool, number: int) -> str:
    """A node of a pool, which all trials know."""
    name = new_name(pool, pool.zones[0], number, 0)
    machine = Machine(CLUSTER, pool.name, name, pool.zones[0], pool.cloud, pool.hourly, 0, "running", 0)
    for trial in trials:
        put(trial.store, machine)
    assert actuator.register(pool, machine)
    path = f"/api/v1/nodes/{name}"

    def complete(raw: Object) -> bool:
        if raw["spec"].get("taints") and read_node(raw).ready:
            actuator.remove_uninitialized_taint(read_node(raw))
        return not raw["spec"].get("taints")

    wait(lambda: api.get(path), complete)
    return name
