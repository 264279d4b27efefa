"""Ids and outputs from the templates that previews also use: `ebbtide.analysis.recording.assumed_gcp`."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ebbtide.analysis.recording.assumed_gcp import INVOKES, RESOURCES
from ebbtide.analysis.recording.assumption_tables import Text, rendered_properties
from ebbtide.declaration.catalog.clouds import account_host
from ebbtide_rehearsal.cloud.gcp.request import Request, resource_id

_PUBLIC: Final = "192.0.2.10"  # reserved for documentation (RFC 5737), unreachable

_DERIVED: Final[Mapping[str, Callable[[Request], str]]] = {
    "project": lambda request: request.project,
    "location": lambda request: request.location,
    "region": lambda request: request.region,
    "accountHost": lambda request: account_host(request.project),
    "address": lambda request: _endpoint(request)[0],
    "dnsEndpoint": lambda request: _endpoint(request)[1],
    "certificate": lambda request: _endpoint(request)[2],
    "networkId": lambda request: request.network(request.fields.text("network") or "default"),
    "number": lambda request: str(int.from_bytes(request.fields.text("projectId").encode()[:5], "big")).zfill(
        12
    ),
}


class _Facts(dict[str, str]):
    """Facts that a template references, derived from a request, or its inputs."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    def __missing__(self, key: str) -> Text:
        derive = _DERIVED.get(key)
        return Text(derive(self._request) if derive else self._request.fields.text(key))


def _endpoint(request: Request) -> tuple[str, str, str]:
    """Return address, host name and certificate of a cluster's control plane; empty before it starts."""
    fields = request.fields
    try:
        endpoint = request.cloud.clusters.endpoint(request.id)
    except KeyError:
        host, authority = "", ""
    else:
        host, authority = endpoint.host, endpoint.certificate_authority
    by_address = fields.flag("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled")
    return host if by_address else _PUBLIC, host, authority


def identity_of(request: Request) -> str:
    """Return the id of a requested resource; raises RefusedError if it cannot be determined."""
    cluster = resource_id(request.fields.text("cluster"))
    template = RESOURCES[request.type].id
    if cluster:  # a node pool with its cluster's id, which has the location
        template = template.replace(
            "projects/{project}/locations/{location}/clusters/{cluster:last}", cluster
        )
    return template.format_map(_Facts(request))


def outputs_of(request: Request) -> dict[str, Any]:
    """Return the outputs of a requested resource."""
    return rendered_properties(RESOURCES[request.type].outputs, _Facts(request))


def result_of(token: str, request: Request) -> dict[str, Any]:
    """Return the result of a function about a requested resource."""
    return rendered_properties(INVOKES[token], _Facts(request))
