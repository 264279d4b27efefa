"""The functions that the program asks the cloud with."""

from collections.abc import Callable, Mapping
from typing import Final

from ebbtide.reading.inputs import Inputs
from ebbtide_rehearsal.cloud.gcp.asked import CLUSTER, Asked, resource_id
from ebbtide_rehearsal.cloud.gcp.clusters import cluster_id
from ebbtide_rehearsal.cloud.gcp.kinds import KINDS
from ebbtide_rehearsal.cloud.provider import Properties, RefusedError


def _get_cluster(asked: Asked) -> Properties:
    """A cluster that is there. As Terraform's data sources do, this has as a list of one what is an object in
    the resource.

    Raises:
        RefusedError: there is none of that name.
    """
    identity = cluster_id(asked.project, asked.location, asked.name)
    found = asked.world.get(identity)
    if found is None:
        raise RefusedError(f"{identity} not found")
    there = Asked(asked.world, asked.settings, CLUSTER, found.urn, found.inputs)
    said, now = there.said, Inputs(KINDS[CLUSTER].outputs(there))
    dns = "controlPlaneEndpointsConfig.dnsEndpointConfig"
    return {
        "id": identity,
        "name": asked.name,
        "project": asked.project,
        "location": asked.location,
        "endpoint": now.text("endpoint"),
        "selfLink": now.text("selfLink"),
        "masterVersion": now.text("masterVersion"),
        "nodeLocations": list(now.texts("nodeLocations")),
        "network": resource_id(said.text("network")) or f"projects/{asked.project}/global/networks/default",
        "subnetwork": resource_id(said.text("subnetwork")),
        "resourceLabels": dict(said.labels("resourceLabels")),
        "deletionProtection": said.flag("deletionProtection"),
        "releaseChannels": [{"channel": said.text("releaseChannel.channel") or "UNSPECIFIED"}],
        "workloadIdentityConfigs": [{"workloadPool": said.text("workloadIdentityConfig.workloadPool")}],
        "masterAuths": [
            {
                "clusterCaCertificate": now.text("masterAuth.clusterCaCertificate"),
                "clientCertificate": "",
                "clientKey": "",
                "clientCertificateConfigs": [{"issueClientCertificate": False}],
            }
        ],
        "controlPlaneEndpointsConfigs": [
            {
                "dnsEndpointConfigs": [
                    {
                        "endpoint": now.text(f"{dns}.endpoint"),
                        "allowExternalTraffic": said.flag(f"{dns}.allowExternalTraffic"),
                        "enableK8sCertsViaDns": False,
                        "enableK8sTokensViaDns": False,
                    }
                ],
                "ipEndpointsConfigs": [
                    {"enabled": said.flag("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled")}
                ],
            }
        ],
    }


def _get_project(asked: Asked) -> Properties:
    """Any project; its number is made up, and is the same each time."""
    project = asked.said.text("projectId") or asked.project
    number = str(int.from_bytes(project.encode()[:5], "big")).zfill(12)
    return {"id": f"projects/{project}", "projectId": project, "name": project, "number": number}


FUNCTIONS: Final[Mapping[str, Callable[[Asked], Properties]]] = {
    "gcp:container/getCluster:getCluster": _get_cluster,
    "gcp:organizations/getProject:getProject": _get_project,
}
"""By token."""
