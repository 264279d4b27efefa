"""GKE clusters, and GKE's refusals that no rule of a declaration has: state, and conflicts of properties."""

from collections.abc import Iterator
from typing import Any, Final

from ebbtide.analysis.providers.property_path import merged
from ebbtide.declaration.catalog.clouds import is_gke_zone
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.gcp.nodes import machine_pool
from ebbtide_rehearsal.cloud.gcp.request import (
    BAD_REQUEST,
    CLOUD,
    CLUSTER,
    NODE_POOL,
    GoogleCloud,
    Request,
    ResourceKind,
    Rule,
    api_error,
    inputs_of,
    last,
    outputs_of,
)
from ebbtide_rehearsal.cloud.pools import forget, pools, register
from ebbtide_rehearsal.cloud.provider import Failure, Properties
from ebbtide_rehearsal.cloud.regions import locations
from ebbtide_rehearsal.cloud.store import Resource


def _bad(message: str) -> str:
    return api_error(400, message, BAD_REQUEST)


def _network(request: Request) -> str | None:
    name = last(request.fields.text("network") or "default")
    if name == "default" or request.cloud.get(request.network(request.fields.text("network"))) is not None:
        return None
    return _bad(f'Network "{name}" does not exist.')


def _subnetwork(request: Request) -> str | None:
    fields = request.fields
    reference = fields.text("subnetwork")
    if not reference or last(fields.text("network") or "default") == "default":
        return None
    subnetwork = request.cloud.get(request.subnetwork(reference))
    if subnetwork is None:
        return _bad(f'Subnetwork "{last(reference)}" does not exist.')
    if last(inputs_of(subnetwork).text("network")) != last(fields.text("network")):
        return _bad(
            f'Subnetwork "{subnetwork.id}" is not valid for Network "{last(fields.text("network"))}".'
        )
    return None


def _ranges(request: Request) -> str | None:
    """Reject a secondary range that does not exist, or that pods and services share."""
    fields = request.fields
    pods = fields.text("ipAllocationPolicy.clusterSecondaryRangeName")
    services = fields.text("ipAllocationPolicy.servicesSecondaryRangeName")
    if pods and pods == services:
        return _bad(
            f"Pod secondary range name ({pods}) should not be the same as service secondary range name."
        )
    subnetwork = request.cloud.get(request.subnetwork(fields.text("subnetwork")))
    if subnetwork is None:
        return None
    range_names = {extra.text("rangeName") for extra in inputs_of(subnetwork).parts("secondaryIpRanges")}
    for label, name in (("Pod", pods), ("Services", services)):
        if name and name not in range_names:
            network = last(fields.text("network"))
            return _bad(
                f'{label} secondary range "{name}" not found in network "{network}", subnetwork '
                f'"{last(subnetwork.id)}".'
            )
    return None


def _private_endpoint(request: Request) -> str | None:
    fields = request.fields
    if fields.flag("privateClusterConfig.enablePrivateEndpoint") and not fields.flag(
        "privateClusterConfig.enablePrivateNodes"
    ):
        return _bad("Private endpoint can be enabled only for clusters with private nodes.")
    return None


RULES: Final = (
    Rule("existing network", "gitpod-io/gitpod-gke-guide#21", _network),
    Rule("subnetwork of the network", "hashicorp/terraform-provider-google#7895", _subnetwork),
    Rule(
        "ranges of the subnetwork",
        "fabianlee/gcp-gke-clusters-ingress#2; gruntwork-io/terraform-google-gke#118",
        _ranges,
    ),
    Rule("private endpoint needs private nodes", "GKE docs, private-clusters (2026)", _private_endpoint),
)


DEFAULT_POOL: Final = "default-pool"

# GKE's version has the Kubernetes version of the rehearsal.
VERSION: Final = f"{PINS['kubernetes'].version}-gke.1000"


def cluster_id(project: str, location: str, name: str) -> str:
    """Return the id of a cluster, also used for its control plane."""
    return f"projects/{project}/locations/{location}/clusters/{name}"


def _outputs(request: Request) -> dict[str, Any]:
    fields = request.fields
    zones = list(fields.texts("nodeLocations")) or [
        zone for zone in _default_zones(request.cloud, request.location) if zone != request.location
    ]
    version = fields.text("minMasterVersion")
    outputs = outputs_of(request)
    return {
        **outputs,
        "masterAuth": {
            "clientCertificateConfig": {"issueClientCertificate": False},
            "clientCertificate": "",
            "clientKey": "",
            **outputs["masterAuth"],
        },
        "masterVersion": version if version.count(".") > 1 else VERSION,
        "nodeLocations": zones,
        "labelFingerprint": "00000000",
    }


def _protected(_cloud: GoogleCloud, cluster: Resource) -> str | None:
    if cluster.inputs.get("deletionPolicy") == "PREVENT":
        return (
            f"cannot destroy {cluster.id} because deletion_policy is set to PREVENT. Set it to DELETE to "
            "proceed."
        )
    if cluster.inputs.get("deletionProtection", True):
        return (
            "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed "
            "with cluster deletion."
        )
    return None


def _start(request: Request, cluster: Resource) -> None:
    """Start the control plane. GKE then creates a default pool, and the provider deletes it immediately if it
    is not wanted, and on a later change of `removeDefaultNodePool` (terraform-provider-google,
    resourceContainerClusterUpdate).
    """
    if request.old is not None:
        if request.fields.flag("removeDefaultNodePool") and not request.old.inputs.get(
            "removeDefaultNodePool"
        ):
            request.cloud.store.remove(CLOUD, f"{cluster.id}/nodePools/{DEFAULT_POOL}")
            forget(request.cloud.store, cluster.id, DEFAULT_POOL)
        return
    cloud = request.cloud
    cloud.clusters.create(cluster.id, "gke")
    cloud.store.put(cluster.having(**merged(cluster.state, _outputs(request))))
    if not request.fields.flag("removeDefaultNodePool"):
        inputs = {
            "name": DEFAULT_POOL,
            "cluster": request.name,
            "project": request.project,
            "location": request.location,
            "initialNodeCount": request.fields.number("initialNodeCount"),
            **{key: request.inputs[key] for key in ("nodeConfig", "nodeLocations") if key in request.inputs},
        }
        pool = Request(cloud=cloud, type=NODE_POOL, inputs=inputs)
        zones = zones_of_cluster(cloud, request.inputs, request.location)
        register(cloud.store, machine_pool(pool, cluster.id, zones))


def _default_zones(cloud: GoogleCloud, location: str) -> tuple[str, ...]:
    """Return the default zones for a cluster's nodes: its own, or three of its region."""
    if is_gke_zone(location):
        return (location,)
    return locations(cloud.store, CloudKind.GKE).default_zones(location)


def zones_of_cluster(cloud: GoogleCloud, inputs: Properties, location: str) -> tuple[str, ...]:
    """Return the default zones for the nodes of a cluster's pools."""
    named = inputs.get("nodeLocations")
    own = tuple(str(zone) for zone in named) if isinstance(named, list) else ()
    if not own:
        return _default_zones(cloud, location)
    return (location, *own) if is_gke_zone(location) else own


def _stop(cloud: GoogleCloud, cluster: Resource) -> None:
    """Delete a cluster's node pools, regardless of the program that created them."""
    for pool in pools(cloud.store, cluster.id):
        forget(cloud.store, cluster.id, pool.name)
    cloud.forget_below(cluster.id, NODE_POOL)
    cloud.clusters.delete(cluster.id)


def _with_pools(cloud: GoogleCloud, cluster: Resource) -> dict[str, Any]:
    """Return the list of all node pools of a cluster, including those of other resources
    (`resourceContainerClusterRead`)."""
    prefix = f"{cluster.id}/nodePools/"
    own = (pool for pool in cloud.store.resources(CLOUD, NODE_POOL) if pool.id.startswith(prefix))
    return {"nodePools": [{"name": last(pool.id)} for pool in own]}


def _taken(identity: str) -> str:
    return api_error(409, f"Already exists: {identity}.", "alreadyExists")


def _conflicts(inputs: Properties) -> Iterator[Failure]:
    """Yield the refusals of Terraform's `ConflictsWith` and `CustomizeDiff`."""
    autopilot = ("removeDefaultNodePool", "nodePools", "enableShieldedNodes", "networkPolicy")
    if inputs.get("enableAutopilot") is True:
        for other in autopilot:
            if inputs.get(other) is not None:
                yield Failure(other, f'"{other}": conflicts with enable_autopilot')
    policy = inputs.get("ipAllocationPolicy")
    if policy is not None and inputs.get("clusterIpv4Cidr") is not None:
        yield Failure("clusterIpv4Cidr", '"cluster_ipv4_cidr": conflicts with ip_allocation_policy')
    if inputs.get("removeDefaultNodePool") is True and inputs.get("nodeVersion") is not None:
        yield Failure(
            "nodeVersion", "node_version can only be specified if remove_default_node_pool is not true"
        )


def cluster_of(request: Request) -> Resource | None:
    """Return the cluster of a requested node pool, by name or by id."""
    reference = request.fields.text("cluster")
    identity = reference if "/" in reference else cluster_id(request.project, request.location, reference)
    return request.cloud.get(identity)


def location_of(cluster: Resource) -> str:
    """Return the zone or region of a cluster, by default the provider's."""
    return str(cluster.state["location"])


KINDS: Final = (
    ResourceKind(
        type=CLUSTER,
        outputs=_outputs,
        autonamed="name",
        conflicts=_conflicts,
        rules=RULES,
        already_exists=_taken,
        before_delete=_protected,
        apply=_start,
        after_delete=_stop,
        current=_with_pools,
        events="cluster",
    ),
)
