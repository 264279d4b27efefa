"""Managed Prometheus of both clouds: instant queries over the HTTP API of Prometheus.

Sources: Monitoring API v1, `projects.location.prometheus.api.v1.query` (Google's REST reference, 2026);
azure-rest-api-specs, Microsoft.Monitor 2023-04-03, `AzureMonitorWorkspaces_Get`, and azure-monitor docs,
prometheus-api-promql (2026): the workspace's query endpoint, and the scope of its tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from azure.core.credentials import TokenCredential
from google.auth.transport.requests import AuthorizedSession

from ebbtide.clients.clouds.azure import azure_session, management_endpoint
from ebbtide.clients.clouds.google import GoogleEndpoints
from ebbtide.clients.clouds.http import get_json, of_host
from ebbtide.clients.clouds.interfaces import Sample

_QUERY: Final = "api/v1/query"
_WORKSPACE_VERSION: Final = "2023-04-03"
_HOSTS: Final = ".prometheus.monitor.azure.com"
"""End of the names of the hosts for which the tokens are."""
_SCOPE: Final = "https://prometheus.monitor.azure.com/.default"


@dataclass(frozen=True, slots=True)
class GoogleMetrics:
    """Cloud Monitoring's metrics of a project."""

    project: str
    session: AuthorizedSession
    endpoints: GoogleEndpoints = field(default_factory=GoogleEndpoints.configured)

    def query(self, promql: str) -> Sequence[Sample]:
        """See `MetricSource.query`."""
        url = f"{self.endpoints.monitoring}/projects/{self.project}/location/global/prometheus/{_QUERY}"
        advice = {403: f"Ask an owner of {self.project} for roles/monitoring.viewer."}
        return _samples(get_json(self.session, url, {"query": promql}, advice))


@dataclass(frozen=True, slots=True)
class AzureMetrics:
    """Metrics of an Azure Monitor workspace, by its resource id."""

    workspace: str
    credential: TokenCredential
    endpoint: str = field(default_factory=management_endpoint)

    def query(self, promql: str) -> Sequence[Sample]:
        """See `MetricSource.query`."""
        with azure_session(self.credential, f"{self.endpoint}/.default") as session:
            advice = {403: "Ask its owner for the role Reader.", 404: "Run `ebbtide up` again."}
            version = {"api-version": _WORKSPACE_VERSION}
            document = get_json(session, f"{self.endpoint}{self.workspace}", version, advice)
        address = str(document["properties"]["metrics"]["prometheusQueryEndpoint"])
        if not str(urlsplit(address).hostname).endswith(_HOSTS):
            address = of_host(address, self.endpoint)
        with azure_session(self.credential, _SCOPE) as session:
            advice = {403: "Ask an owner of the workspace for the role Monitoring Data Reader."}
            return _samples(get_json(session, f"{address}/{_QUERY}", {"query": promql}, advice))


def _samples(document: Mapping[str, Any]) -> list[Sample]:
    """Return the samples of a response, an instant vector (Prometheus docs, HTTP API, 2026)."""
    return [Sample(item["metric"], float(item["value"][1])) for item in document["data"]["result"]]
