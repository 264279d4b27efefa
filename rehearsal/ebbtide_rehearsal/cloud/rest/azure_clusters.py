"""Azure: AKS clusters with their start and stop, over REST.

Source: azure-rest-api-specs, Microsoft.ContainerService 2025-09-01, `ManagedClusters_Get`, `_Stop` and
`_Start`; azure-aks-docs, start-stop-cluster (2026).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure.aks.power import message, power
from ebbtide_rehearsal.cloud.azure.arm import CLOUD
from ebbtide_rehearsal.cloud.azure.network import AGENT_POOL
from ebbtide_rehearsal.cloud.azure.values import inner
from ebbtide_rehearsal.cloud.pools import start, stop
from ebbtide_rehearsal.cloud.rest.routes import RefusedRequestError, Request, Route
from ebbtide_rehearsal.cloud.store import Resource, Store

_CLUSTER: Final = (
    r"(?P<cluster>/subscriptions/(?P<subscription>[^/]+)/resourceGroups/[^/]+/providers"
    r"/Microsoft\.ContainerService/managedClusters/[^/]+)"
)
_TYPE: Final = "azure-native:containerservice:ManagedCluster"
_SETS: Final = "VirtualMachineScaleSets"


class AzureClusters:
    """AKS clusters.

    Attributes:
        routes: operations of the API.
    """

    def __init__(self, store: Store, check: Callable[[Request], None]) -> None:
        """Serve the clusters of a store.

        Args:
            store: the fake cloud's store.
            check: rejects requests without valid credentials or `api-version`.
        """
        self._store, self._check = store, check
        name = "Microsoft.ContainerService/managedClusters"
        self.routes = (
            Route(f"{name}/read", "GET", re.compile(_CLUSTER), self._get),
            Route(f"{name}/stop/action", "POST", re.compile(f"{_CLUSTER}/stop"), self._stop),
            Route(f"{name}/start/action", "POST", re.compile(f"{_CLUSTER}/start"), self._start),
        )

    def _cluster(self, request: Request) -> Resource:
        self._check(request)
        identity = request.names["cluster"]
        for resource in self._store.resources(CLOUD, _TYPE):
            if resource.id.lower() == identity.lower():
                return resource
        name = identity.rpartition("/")[2]
        message = f"The Resource 'Microsoft.ContainerService/managedClusters/{name}' was not found."
        raise RefusedRequestError(404, message, "ResourceNotFound")

    def _pools(self, cluster: Resource) -> list[Mapping[str, Any]]:
        own = [
            resource.state
            for resource in self._store.resources(CLOUD, AGENT_POOL)
            if resource.id.startswith(f"{cluster.id}/")
        ]
        return [{"name": pool["name"], "type": pool.get("type", _SETS), "mode": pool["mode"]} for pool in own]

    def _get(self, request: Request) -> Mapping[str, Any]:
        cluster = self._cluster(request)
        return {
            "id": cluster.id,
            "name": cluster.id.rpartition("/")[2],
            "properties": {
                "powerState": cluster.state["powerState"],
                "provisioningState": cluster.state["provisioningState"],
                "nodeProvisioningProfile": cluster.inputs.get("nodeProvisioningProfile"),
                "agentPoolProfiles": self._pools(cluster),
            },
        }

    def _stop(self, request: Request) -> Mapping[str, Any]:
        cluster = self._settled(request, "Running", "stopping")
        if inner(cluster.inputs, "nodeProvisioningProfile").get("mode") == "Auto":  # Azure/AKS#5356
            raise RefusedRequestError(
                400, "Stop is not supported for clusters with node auto provisioning.", "BadRequest"
            )
        if any(pool["type"] != _SETS for pool in self._pools(cluster)):  # Azure/AKS#2349
            raise RefusedRequestError(400, "Client Error: Availability Sets Not Supported", "BadRequest")
        stop(self._store, cluster.id)
        self._store.put(cluster.having(powerState={"code": "Stopped"}))
        return {}

    def _start(self, request: Request) -> Mapping[str, Any]:
        cluster = self._settled(request, "Stopped", "starting")
        start(self._store, cluster.id)
        self._store.put(cluster.having(powerState={"code": "Running"}))
        return {}

    def _settled(self, request: Request, desired: str, doing: str) -> Resource:
        """Return a cluster in a power state; another is rejected (MicrosoftDocs/azure-docs#85161)."""
        cluster = self._cluster(request)
        if power(cluster.state) != desired:
            raise RefusedRequestError(400, message(cluster.state, doing), "BadRequest")
        return cluster
