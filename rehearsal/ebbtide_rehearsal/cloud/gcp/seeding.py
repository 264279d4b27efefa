"""What is in the cloud before the stack is: a network or a cluster that the declaration says is there."""

from dataclasses import dataclass

from ebbtide.catalog.clouds import region_of
from ebbtide.recording.values import Plain
from ebbtide_rehearsal.cloud.clusters import Clusters
from ebbtide_rehearsal.cloud.gcp.asked import CLOUD, CLUSTER, NETWORK, SUBNETWORK, Asked, Settings, World
from ebbtide_rehearsal.cloud.gcp.kinds import KINDS
from ebbtide_rehearsal.cloud.gcp.paths import filled, laid_over
from ebbtide_rehearsal.cloud.provider import Properties
from ebbtide_rehearsal.cloud.store import Resource, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededNetwork:
    """A network that is there, by the names that a declaration has for it.

    Attributes:
        project: project id.
        location: a region, or a zone of it.
        network: name of the network.
        subnetwork: name of its subnetwork.
        pods: name of the subnetwork's range for pods.
        services: name of its range for services.
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
    """Make a cluster that nobody's stack has: VPC-native, with Workload Identity, and a default pool of one
    node in each zone, as `gcloud container clusters create --machine-type e2-standard-4` leaves it.

    Args:
        store: the cloud's.
        clusters: where its control plane is started.
        project: project id.
        location: a zone or a region.
        name: of the cluster.
        network: name of its network; the project's default one is always there.
        release_channel: as the API has it, or `UNSPECIFIED`.
        dns_endpoint: whether the DNS endpoint is open from outside; else it is reached by its address.

    Returns:
        Its id, as the control planes know it too.
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
    return _seed(World(store, clusters), CLUSTER, inputs)


def seed_network(store: Store, clusters: Clusters, names: SeededNetwork) -> None:
    """Make a network that nobody's stack has, with a subnetwork for a cluster."""
    world, project = World(store, clusters), names.project
    made: Properties = {"name": names.network, "project": project, "autoCreateSubnetworks": False}
    ranges: list[Plain] = [
        {"rangeName": names.pods, "ipCidrRange": "10.4.0.0/14"},
        {"rangeName": names.services, "ipCidrRange": "10.8.0.0/20"},
    ]
    inside: Properties = {
        "name": names.subnetwork,
        "project": project,
        "region": region_of(names.location),
        "network": _seed(world, NETWORK, made),
        "ipCidrRange": "10.0.0.0/20",
        "secondaryIpRanges": ranges,
    }
    _seed(world, SUBNETWORK, inside)


def _seed(world: World, type_: str, inputs: Properties) -> str:
    kind = KINDS[type_]
    asked = Asked(world, Settings(), type_, "", filled(inputs, kind.defaults))
    identity = kind.identity(asked)
    kind.happens(asked, identity)
    state = laid_over(asked.inputs, kind.outputs(asked))
    world.store.put(Resource(CLOUD, identity, type_, "", asked.inputs, state))
    return identity
