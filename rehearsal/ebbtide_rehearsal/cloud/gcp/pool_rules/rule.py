"""Rules of node pools: their subject, and the form of their messages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from ebbtide.analysis.reading import RecordedPool
from ebbtide.analysis.reading.gke import read_pool
from ebbtide.analysis.reading.inputs import Inputs
from ebbtide.declaration.catalog import CloudKind, Machine
from ebbtide.declaration.model.capacity import CapacityKind
from ebbtide_rehearsal.cloud.gcp.clusters import cluster_id, cluster_of, location_of, zones_of_cluster
from ebbtide_rehearsal.cloud.gcp.request import BAD_REQUEST, NOT_FOUND, Request, api_error
from ebbtide_rehearsal.cloud.gcp.resource_kind import Rule
from ebbtide_rehearsal.cloud.regions import machine_of
from ebbtide_rehearsal.cloud.store import Resource

TOOLKIT: Final = "GoogleCloudPlatform/cluster-toolkit@01a7a3ed modules/compute/gke-node-pool/main.tf"
QUEUED_DOCS: Final = "GKE docs, provisioningrequest (2026-04-08)"
FLEX_DOCS: Final = "GKE docs, dws-flex-start-training (2026-06-09)"


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """A requested node pool.

    Attributes:
        request: the request.
        cluster: cluster of the pool.
        pool: the pool.
        zones: zones of its nodes.
    """

    request: Request
    cluster: Resource
    pool: RecordedPool
    zones: tuple[str, ...]

    @property
    def fields(self) -> Inputs:
        """Its inputs."""
        return self.request.fields

    @property
    def machine(self) -> Machine | None:
        """Machine type; None for an unknown name."""
        return self.pool.hardware

    @property
    def capacity(self) -> CapacityKind:
        """Capacity kind of its nodes."""
        return self.pool.capacity.kind

    @property
    def scheduled(self) -> bool:
        """True if the Dynamic Workload Scheduler provisions its nodes."""
        return self.fields.flag("nodeConfig.flexStart") or self.fields.flag("queuedProvisioning.enabled")

    @property
    def queued(self) -> bool:
        """True if its nodes are only for queued requests."""
        return self.fields.flag("queuedProvisioning.enabled")

    @property
    def reservation(self) -> str:
        """Type of reservations for its nodes; empty if unset."""
        return self.fields.text("nodeConfig.reservationAffinity.consumeReservationType")


def pool_rule(name: str, source: str, says: Callable[[PoolRequest], str | None], *, code: int = 400) -> Rule:
    """Build a rule whose refusals have an HTTP status, by default that of a bad request."""

    def refusal(request: Request) -> str | None:
        cluster = cluster_of(request)
        if cluster is None:
            return None
        zones = zones_of_cluster(request.cloud, cluster.inputs, location_of(cluster))
        find = partial(machine_of, request.cloud.store, CloudKind.GKE)
        pool = read_pool(request.fields, location_of(cluster), default_zones=zones, find=find)
        message = says(PoolRequest(request, cluster, pool, pool.zones or zones))
        reason = {400: BAD_REQUEST, 403: "forbidden"}[code]
        return None if message is None else api_error(code, message, reason)

    return Rule(name, source, refusal)


def _no_cluster(request: Request) -> str | None:
    if cluster_of(request) is not None:
        return None
    reference = request.fields.text("cluster")
    identity = reference if "/" in reference else cluster_id(request.project, request.location, reference)
    return api_error(404, f"Not found: {identity}.", NOT_FOUND)


CLUSTER_IS_THERE: Final = Rule("a cluster that there is", "GKE v1 API, nodePools.create (2026)", _no_cluster)
