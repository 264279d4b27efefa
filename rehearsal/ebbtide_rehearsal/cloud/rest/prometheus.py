"""Managed Prometheus of both clouds: instant queries.

No program of a rehearsal uses a GPU, so that there are no samples but those that tests put into the store. A
query returns those of its cluster; their other labels and the rest of PromQL are not evaluated.

Sources: Monitoring API v1, `projects.location.prometheus.api.v1.query`; azure-rest-api-specs,
Microsoft.Monitor 2023-04-03, `AzureMonitorWorkspaces_Get`; Prometheus docs, HTTP API (2026).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure.arm import CLOUD
from ebbtide_rehearsal.cloud.rest.routes import RefusedRequestError, Request, Route
from ebbtide_rehearsal.cloud.store import Resource, Store

SCOPE: Final = "https://prometheus.monitor.azure.com"
"""The audience of tokens for queries on Azure."""

_SAMPLE: Final = "sample"
_METRICS: Final = "metrics"
_GOOGLE: Final = "/v1/projects/(?P<project>[^/]+)/location/global/prometheus/api/v1/query"
_AZURE: Final = "/prometheus/(?P<workspace>[^/]+)/api/v1/query"
_WORKSPACE: Final = (
    r"(?P<id>/subscriptions/(?P<subscription>[^/]+)/resourceGroups/[^/]+/providers/Microsoft\.Monitor"
    r"/accounts/(?P<name>[^/]+))"
)
_CLUSTER: Final = re.compile(r'[{,]cluster="([^"]*)"')


def planted_sample(number: int, value: float, **labels: str) -> Resource:
    """Return a sample of a metric, to be put into the store."""
    return Resource(_METRICS, str(number), _SAMPLE, state={"metric": labels, "value": value})


class Prometheus:
    """Queries of metrics."""

    def __init__(self, store: Store) -> None:
        """Answer from the samples of a store."""
        self._store = store

    def google(self, check: Callable[[Request], None]) -> Route:
        """Return the route of Cloud Monitoring; `check` rejects requests without valid credentials."""
        operation = "monitoring.projects.location.prometheus.api.v1.query"
        return Route(operation, "GET", re.compile(_GOOGLE), lambda request: self._query(request, check))

    def azure(
        self, check: Callable[[Request], None], check_token: Callable[[Request], None]
    ) -> tuple[Route, ...]:
        """Return the routes of Azure Monitor workspaces.

        Args:
            check: rejects requests of Azure Resource Manager without valid credentials.
            check_token: rejects queries without a token for them.
        """

        def workspace(request: Request) -> Mapping[str, Any]:
            check(request)
            return self._workspace(request)

        return (
            Route("Microsoft.Monitor/accounts/read", "GET", re.compile(_WORKSPACE), workspace),
            Route(
                "Microsoft.Monitor/accounts/data/metrics/read",
                "GET",
                re.compile(_AZURE),
                lambda request: self._query(request, check_token),
            ),
        )

    def _workspace(self, request: Request) -> Mapping[str, Any]:
        identity, name = request.names["id"], request.names["name"]
        if all(item.id.lower() != identity.lower() for item in self._store.resources(CLOUD)):
            message = f"The Resource 'Microsoft.Monitor/accounts/{name}' was not found."
            raise RefusedRequestError(404, message, "ResourceNotFound")
        endpoint = f"{request.origin}/prometheus/{name}"
        return {
            "id": identity,
            "name": name,
            "properties": {"metrics": {"prometheusQueryEndpoint": endpoint}},
        }

    def _query(self, request: Request, check: Callable[[Request], None]) -> Mapping[str, Any]:
        check(request)
        query = request.query.get("query", "")
        if not query:
            raise RefusedRequestError(
                400, 'invalid parameter "query": unknown position: parse error: no expression found in input'
            )
        clusters = set(_CLUSTER.findall(query))
        result = [
            {
                "metric": dict(item.state["metric"]),
                "value": [self._store.clock.now(), str(item.state["value"])],
            }
            for item in self._store.resources(_METRICS, _SAMPLE)
            if item.state["metric"].get("cluster") in clusters
        ]
        return {"status": "success", "data": {"resultType": "vector", "result": result}}
