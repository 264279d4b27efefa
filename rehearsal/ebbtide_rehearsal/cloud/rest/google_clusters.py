"""Google Cloud: clusters and node pools of GKE, over REST.

Source: Kubernetes Engine API v1, `projects.locations.clusters` (Google's REST reference, 2026).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import part
from ebbtide_rehearsal.cloud.gcp.request import CLOUD
from ebbtide_rehearsal.cloud.pools import NodePool, pools, register
from ebbtide_rehearsal.cloud.rest.routes import RefusedRequestError, Request, Route
from ebbtide_rehearsal.cloud.store import Resource, Store

_CLUSTER: Final = r"/v1/(?P<cluster>projects/(?P<project>[^/]+)/locations/[^/]+/clusters/[^/]+)"
_POOL: Final = _CLUSTER + r"/nodePools/(?P<pool>[^/:]+)"


class GoogleClusters:
    """GKE clusters.

    Attributes:
        routes: operations of the API.
    """

    def __init__(self, store: Store, check: Callable[[Request], None]) -> None:
        """Serve the clusters of a store.

        Args:
            store: the fake cloud's store.
            check: rejects requests without valid credentials.
        """
        self._store, self._check = store, check
        self.routes = (
            Route("container.clusters.get", "GET", re.compile(_CLUSTER), self._cluster),
            Route("container.nodePools.get", "GET", re.compile(_POOL), self._pool),
            Route("container.nodePools.setSize", "POST", re.compile(f"{_POOL}:setSize"), self._size),
            Route(
                "container.nodePools.setAutoscaling",
                "POST",
                re.compile(f"{_POOL}:setAutoscaling"),
                self._autoscaling,
            ),
        )

    def _resource(self, identity: str, request: Request) -> Resource:
        self._check(request)
        resource = self._store.get(CLOUD, identity)
        if resource is None:
            raise RefusedRequestError(404, f"Not found: {identity}.")
        return resource

    def _cluster(self, request: Request) -> Mapping[str, Any]:
        cluster = self._resource(request.names["cluster"], request)
        return {
            "name": cluster.id.rpartition("/")[2],
            "status": "RUNNING",
            "autopilot": {"enabled": bool(cluster.inputs.get("enableAutopilot"))},
        }

    def _found(self, request: Request) -> tuple[Resource, NodePool]:
        cluster, name = request.names["cluster"], request.names["pool"]
        resource = self._resource(f"{cluster}/nodePools/{name}", request)
        return resource, next(pool for pool in pools(self._store, cluster) if pool.name == name)

    def _pool(self, request: Request) -> Mapping[str, Any]:
        resource, pool = self._found(request)
        autoscaling = part(resource.inputs, "autoscaling")
        return {
            "name": pool.name,
            "status": "RUNNING",
            "initialNodeCount": pool.initial // len(pool.zones),
            "autoscaling": {"enabled": True, **autoscaling} if pool.autoscaled else {},
        }

    def _size(self, request: Request) -> Mapping[str, Any]:
        resource, pool = self._found(request)
        count = request.body.get("nodeCount")
        if not isinstance(count, int) or count < 0:
            raise RefusedRequestError(400, "NodePool.node_count must be non-negative.")
        nodes = count * len(pool.zones)
        limits = {} if pool.autoscaled else {"minimum": nodes, "maximum": nodes}
        register(self._store, pool.having(initial=nodes, **limits))
        self._store.put(resource.having(nodeCount=count, initialNodeCount=count))
        return _operation("SET_NODE_POOL_SIZE")

    def _autoscaling(self, request: Request) -> Mapping[str, Any]:
        resource, pool = self._found(request)
        desired: Mapping[str, Any] = request.body.get("autoscaling") or {}
        inputs = {key: value for key, value in resource.inputs.items() if key != "autoscaling"}
        state = {key: value for key, value in resource.state.items() if key != "autoscaling"}
        if not desired.get("enabled"):
            nodes = pool.initial
            register(self._store, pool.having(autoscaled=False, minimum=nodes, maximum=nodes))
            self._save(resource, inputs, state)
            return _operation("SET_NODE_POOL_SIZE")
        limits = {key: value for key, value in desired.items() if key != "enabled"}
        zones = 1 if "totalMaxNodeCount" in limits else len(pool.zones)
        least = limits.get("totalMinNodeCount", limits.get("minNodeCount", 0)) * zones
        most = limits.get("totalMaxNodeCount", limits.get("maxNodeCount", 0)) * zones
        if most < max(1, least):
            raise RefusedRequestError(400, "Autoscaling maximum must be at least 1 and the minimum.")
        register(self._store, pool.having(autoscaled=True, minimum=least, maximum=most))
        self._save(resource, {**inputs, "autoscaling": limits}, {**state, "autoscaling": limits})
        return _operation("SET_NODE_POOL_SIZE")

    def _save(self, resource: Resource, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        self._store.put(Resource(resource.cloud, resource.id, resource.type, resource.urn, inputs, state))


def _operation(kind: str) -> Mapping[str, Any]:
    return {"name": "operation-1", "operationType": kind, "status": "DONE"}
