"""A cluster whose node pools' controllers run in a thread, as in the fake cloud."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import NodePool
from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.labels_and_taints import labels_and_taints
from ebbtide.placement import NodeTaint
from ebbtide_rehearsal.cloud.node_pools.loop import NodeLoop
from ebbtide_rehearsal.cloud.pools import register
from ebbtide_rehearsal.cloud.store import RECLAIM, InjectedFault, Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.cluster import Object, pod
from rehearsal.tests.unit.node_pool import a_pool

CLUSTER = "projects/acme/locations/us-central1-a/clusters/tried"
SPEED = 200

QUICK = NodeSettings(step_seconds=0.2, notice_seconds=8, pod_grace_seconds=3)
"""The clouds' own settings, but for the time that runs by the wall clock."""


def work_pool(name: str, **changes: Any) -> NodePool:
    """A pool of four processors a node that only pods for it come to."""
    pool = a_pool(
        name,
        cluster=CLUSTER,
        labels={"pool": name, "cloud.google.com/gke-nodepool": name},
        taints=(NodeTaint("pool", name, "NoSchedule"),),
        allocatable={"cpu": "3920m", "memory": "13Gi"},
        maximum=4,
        hourly=0.05,
    )
    return pool.having(**changes)


def declared_pool(cluster: Cluster, name: str, **changes: Any) -> NodePool:
    """A pool with the labels and taints that a declaration gives it."""
    pool = next(pool for pool in cluster.pools if pool.name == name)
    placement = labels_and_taints(pool, cluster.site.cloud)
    taints = tuple(NodeTaint(item.key, item.value, item.effect) for item in placement.all_taints)
    return work_pool(name, labels=dict(placement.all_labels), taints=taints, **changes)


class Running:
    """A cluster with node pools.

    Attributes:
        store: the cloud's memory.
        api: the cluster.
        directory: where pods that run as processes have their files.
    """

    def __init__(self, store: Store, api: Api, directory: Path) -> None:
        self.store, self.api, self.directory = store, api, directory

    def nodes(self, pool: str) -> list[str]:
        """The names of a pool's nodes."""
        selector = f"cloud.google.com/gke-nodepool={pool}"
        return [node["metadata"]["name"] for node in self.api.items("/api/v1/nodes", labelSelector=selector)]

    def messages(self, kind: str) -> list[str]:
        """Return the texts of the timeline's events of a kind."""
        return [event.text for event in self.store.events(kind=kind)]

    def reclaim(self, pool: str, **details: Any) -> None:
        """Have the cloud take nodes back."""
        self.store.inject(InjectedFault(RECLAIM, pool, 1, details))


@contextmanager
def running(
    plane: ControlPlane,
    directory: Path,
    *pools: NodePool,
    settings: NodeSettings = QUICK,
    speed: float = SPEED,
) -> Generator[Running]:
    """Run the controllers of node pools until the end of the block."""
    api = plane.api
    store = Store(directory / "store", speed=speed)
    for pool in pools:
        register(store, pool)
    ending = threading.Event()
    controllers = NodeLoop(CLUSTER, pools[0].cloud, api, store, directory, plane.plan.sessions, settings)
    thread = threading.Thread(target=controllers.run, args=(ending,), daemon=True)
    thread.start()
    try:
        yield Running(store, api, directory)
    finally:
        ending.set()
        thread.join(600)
        assert not thread.is_alive()
        for node in api.items("/api/v1/nodes"):
            api.delete(f"/api/v1/nodes/{node['metadata']['name']}")


def work(pool: str, annotations: dict[str, str] | None = None, *, cpu: str = "3", **spec: Any) -> Object:
    """A pod's template for a pool."""
    toleration = {"key": "pool", "operator": "Equal", "value": pool, "effect": "NoSchedule"}
    container = {"resources": {"requests": {"cpu": cpu}}, **spec.pop("container", {})}
    return pod(
        annotations or {}, container=container, nodeSelector={"pool": pool}, tolerations=[toleration], **spec
    )
