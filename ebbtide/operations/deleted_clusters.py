"""Record of the clusters that a destroy deletes, in the outputs of the stack's state.

The engine keeps these outputs until the last resource is deleted. A destroy that fails after the cluster was
deleted can be repeated and still query the cloud for leftovers. The record is the only source of GKE's id of
the cluster, and of the names of its load balancers and disks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from ebbtide.clients.clouds.interfaces import ClusterIdentity
from ebbtide.operations.records import record, with_record

OUTPUT: Final = "ebbtideDeletedClusters"


@dataclass(frozen=True, slots=True)
class DeletedClusters:
    """The clusters that a destroy deletes or has deleted.

    Attributes:
        identities: the clusters, with the ids and names that identify their resources.
        retained: ids of the disks and snapshots that are kept.
    """

    identities: tuple[ClusterIdentity, ...] = ()
    retained: frozenset[str] = frozenset()


_ADAPTER: Final = TypeAdapter(DeletedClusters)


def recorded(deployment: Mapping[str, Any]) -> DeletedClusters:
    """Return the record of an earlier destroy; empty without one.

    Args:
        deployment: the `deployment` of `pulumi stack export`.
    """
    try:
        return _ADAPTER.validate_python(record(deployment, OUTPUT) or {})
    except ValidationError:
        return DeletedClusters()


def with_clusters(deployment: Mapping[str, Any], clusters: DeletedClusters) -> dict[str, Any]:
    """Return a state with a record of clusters; see `with_record`."""
    return with_record(deployment, OUTPUT, _ADAPTER.dump_python(clusters, mode="json"))


def merged(
    clusters: Iterable[ClusterIdentity], record: Iterable[ClusterIdentity]
) -> tuple[ClusterIdentity, ...]:
    """Return the clusters of a state and of a record without duplicates. The record has more detail."""
    return tuple({cluster.id: cluster for cluster in (*clusters, *record)}.values())
