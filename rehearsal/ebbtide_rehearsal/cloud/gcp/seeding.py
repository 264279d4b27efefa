"""Existing networks and clusters, which the declaration names but no stack created."""

from dataclasses import dataclass, replace

from ebbtide.analysis.providers.property_path import with_defaults
from ebbtide.analysis.recording.values import Plain
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.operations.adopting.found import Found
from ebbtide_rehearsal.cloud.gcp.provider import Gcp
from ebbtide_rehearsal.cloud.gcp.request import CLUSTER, NETWORK, SUBNETWORK
from ebbtide_rehearsal.cloud.provider import Call, Clusters, Properties
from ebbtide_rehearsal.cloud.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededNetwork:
    """An existing network, with the names in a declaration.

    Attributes:
        project: project id.
        location: a region, or a zone of it.
        network: name of the network.
        subnetwork: name of its subnetwork.
        pods: name of the secondary range for pods.
        services: name of the secondary range for services.
    """

    project: str
    location: str
    network: str
    subnetwork: str
    pods: str
    services: str


def seed_cluster(
    store: Store,
    clusters: Clusters,
    *,
    project: str,
    location: str,
    name: str,
    network: str = "default",
    release_channel: str = "REGULAR",
    dns_endpoint: bool = True,
) -> str:
    """Create a cluster outside of any stack: VPC-native, with Workload Identity, and a default pool of one
    node in each zone, as created by `gcloud container clusters create --machine-type e2-standard-4`.

    Args:
        store: the fake cloud's store.
        clusters: control planes.
        project: project id.
        location: a zone or a region.
        network: name of its network; the project's default network always exists.
        release_channel: release channel of the API, or `UNSPECIFIED`.
        dns_endpoint: True if the DNS endpoint is open to external traffic; otherwise the IP endpoint is used.

    Returns:
        Id of the cluster, also used for its control plane.
    """
    inputs: Properties = {
        "name": name,
        "project": project,
        "location": location,
        "network": f"projects/{project}/global/networks/{network}",
        "initialNodeCount": 1,
        "nodeConfig": {"machineType": "e2-standard-4"},  # Kubeflow Pipelines needs more than GKE's default
        "deletionProtection": False,
        "releaseChannel": {"channel": release_channel},
        "workloadIdentityConfig": {"workloadPool": f"{project}.svc.id.goog"},
        "controlPlaneEndpointsConfig": {
            "dnsEndpointConfig": {"allowExternalTraffic": dns_endpoint},
            "ipEndpointsConfig": {"enabled": not dns_endpoint},
        },
    }
    return seed(Gcp(store, clusters), CLUSTER, inputs)


def seed_found(store: Store, clusters: Clusters, found: Found) -> None:
    """Create a cluster that a document describes, with its pools, outside of any stack."""
    provider = Gcp(store, clusters)
    for item in found.resources:
        # The document has all pools; none is GKE's own.
        own: Properties = {"removeDefaultNodePool": True} if item.type == CLUSTER else {}
        seed(provider, item.type, {**item.inputs, **own})


def seed_network(store: Store, clusters: Clusters, names: SeededNetwork) -> None:
    """Create a network outside of any stack, with a subnetwork for a cluster."""
    provider, project = Gcp(store, clusters), names.project
    network: Properties = {"name": names.network, "project": project, "autoCreateSubnetworks": False}
    ranges: list[Plain] = [
        {"rangeName": names.pods, "ipCidrRange": "10.4.0.0/14"},
        {"rangeName": names.services, "ipCidrRange": "10.8.0.0/20"},
    ]
    inside: Properties = {
        "name": names.subnetwork,
        "project": project,
        "region": region_of(names.location),
        "network": seed(provider, NETWORK, network),
        "ipCidrRange": "10.0.0.0/20",
        "secondaryIpRanges": ranges,
    }
    seed(provider, SUBNETWORK, inside)


def seed(provider: Gcp, type_: str, inputs: Properties) -> str:
    """Create a resource without checking the rules, even if resources that it refers to do not exist."""
    inputs = with_defaults(inputs, provider.kind(type_).constraints.defaults)
    identity = provider.identity(type_, inputs)
    kind = replace(provider.kind(type_), rules=(), events="", is_seeded=True)
    provider.put(kind, provider.request(Call(type_, "", ""), inputs, identity))
    return identity
