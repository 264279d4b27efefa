"""GKE clusters, and GKE's refusals that no rule of a declaration has: state, and conflicts of properties."""

from typing import Any, Final

from ebbtide.analysis.providers.property_path import merged
from ebbtide.declaration.catalog.clouds import is_gke_zone
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.gcp.nodes import machine_pool
from ebbtide_rehearsal.cloud.gcp.request import (
    CLOUD,
    CLUSTER,
    NODE_POOL,
    GoogleCloud,
    Request,
    ResourceKind,
    last,
    outputs_of,
)
from ebbtide_rehearsal.cloud.pools import forget, pools, register
from ebbtide_rehearsal.cloud.provider import Properties
from ebbtide_rehearsal.cloud.regions import locations
from ebbtide_rehearsal.cloud.store import Resource

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
        before_delete=_protected,
        apply=_start,
        after_delete=_stop,
        current=_with_pools,
        events="cluster",
    ),
)
