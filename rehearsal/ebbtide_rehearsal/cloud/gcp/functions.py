"""Functions with which the program queries Google Cloud."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ebbtide.analysis.recording.values import Plain
from ebbtide_rehearsal.cloud.gcp.answers import identity_of, result_of
from ebbtide_rehearsal.cloud.gcp.request import CLUSTER, Request, inputs_of
from ebbtide_rehearsal.cloud.provider import Properties, RefusedError

_GET_CLUSTER: Final = "gcp:container/getCluster:getCluster"
_GET_SUBNETWORK: Final = "gcp:compute/getSubnetwork:getSubnetwork"
_DEFAULT_RANGE: Final = "10.128.0.0/20"
_GET_PROJECT: Final = "gcp:organizations/getProject:getProject"


def _get_cluster(request: Request) -> Properties:
    """Return an existing cluster. As in Terraform's data sources, a nested object is a list of one.

    Raises:
        RefusedError: there is no cluster with that name.
    """
    identity = identity_of(replace(request, type=CLUSTER))
    cluster = request.cloud.get(identity)
    if cluster is None:
        raise RefusedError(f"{identity} not found")
    request = replace(request, type=CLUSTER, id=identity, inputs=cluster.inputs)
    fields, result = request.fields, result_of(_GET_CLUSTER, request)
    endpoints: list[dict[str, Any]] = result["controlPlaneEndpointsConfigs"]
    (by_name,), (by_address,) = endpoints[0]["dnsEndpointConfigs"], endpoints[0]["ipEndpointsConfigs"]
    path = "controlPlaneEndpointsConfig"
    by_name["allowExternalTraffic"] = fields.flag(f"{path}.dnsEndpointConfig.allowExternalTraffic")
    by_address["enabled"] = fields.flag(f"{path}.ipEndpointsConfig.enabled")
    return {
        **result,
        "masterVersion": cluster.state["masterVersion"],
        "nodeLocations": cluster.state["nodeLocations"],
        "network": request.network(fields.text("network") or "default"),
        "subnetwork": request.subnetwork(fields.text("subnetwork") or "default"),
        "resourceLabels": dict[str, Plain](fields.labels("resourceLabels")),
        "deletionProtection": fields.flag("deletionProtection"),
        "releaseChannels": [{"channel": fields.text("releaseChannel.channel") or "UNSPECIFIED"}],
        "workloadIdentityConfigs": [{"workloadPool": fields.text("workloadIdentityConfig.workloadPool")}],
    }


def _get_subnetwork(request: Request) -> Properties:
    """Return a subnetwork; a project's default network has one in each region (Compute docs, subnets, IP
    ranges of auto mode VPC networks, 2026).

    Raises:
        RefusedError: there is no subnetwork with that name.
    """
    name = request.fields.text("name")
    subnetwork = request.cloud.get(request.subnetwork(name))
    if subnetwork is None and name != "default":
        raise RefusedError(f"{request.subnetwork(name)} not found")
    range_ = inputs_of(subnetwork).text("ipCidrRange") if subnetwork else _DEFAULT_RANGE
    return {**result_of(_GET_SUBNETWORK, request), "ipCidrRange": range_}


def _get_project(request: Request) -> Properties:
    """Return a project for any id, with a number derived from the id."""
    project = request.fields.text("projectId") or request.project
    return result_of(_GET_PROJECT, replace(request, inputs={"projectId": project}))


FUNCTIONS: Final[Mapping[str, Callable[[Request], Properties]]] = {
    _GET_CLUSTER: _get_cluster,
    _GET_PROJECT: _get_project,
    _GET_SUBNETWORK: _get_subnetwork,
}
"""Functions by token."""
