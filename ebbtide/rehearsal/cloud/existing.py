"""What a declaration needs and does not make: a cluster or network that it only adds to, and people."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, assert_never

from ebbtide.model import Aks, Cluster, DeclarationError, Gke, declare
from ebbtide.model.members import is_object_id, members_of
from ebbtide.rehearsal.cloud.azure import know, seed_subnet
from ebbtide.rehearsal.cloud.azure import seed_cluster as seed_aks
from ebbtide.rehearsal.cloud.clusters import Clusters
from ebbtide.rehearsal.cloud.gcp import SeededNetwork, seed_network
from ebbtide.rehearsal.cloud.gcp import seed_cluster as seed_gke
from ebbtide.rehearsal.cloud.store import Store

_NAME: Final = "rehearsal"  # where the declaration gives none; what is here has names of its own


def make(written: Mapping[str, Any], store: Store, clusters: Clusters) -> None:
    """Make what a declaration needs and does not make.

    Args:
        written: the declaration.
        store: the cloud's.
        clusters: where control planes are started.

    Raises:
        RefusedError: the cloud refuses such a thing.
        DeclarationError: the declaration has faults.
    """
    declaration = declare(written, default_name=_NAME)
    know(store, _people(declaration))
    match declaration.cloud:
        case Gke() as cloud:
            _gke(cloud, store, clusters)
        case Aks() as cloud:
            _aks(declaration, cloud, store, clusters)
        case _:
            assert_never(declaration.cloud)


def introduce(written: Mapping[str, Any], store: Store) -> None:
    """Have whom a declaration names known to a cloud that runs already. One with faults names nobody: the
    program refuses it.

    Args:
        written: the declaration.
        store: the cloud's.
    """
    with contextlib.suppress(DeclarationError):
        know(store, _people(declare(written, default_name=_NAME)))


def _people(declaration: Cluster) -> Iterator[str]:
    """Those whom Azure gives a role to. Whether the real directory has them a rehearsal cannot know; whoever
    is not declared is a mistake of the program."""
    return filter(is_object_id, members_of(declaration))


def _gke(cloud: Gke, store: Store, clusters: Clusters) -> None:
    network = cloud.network
    if network.vpc:
        seed_network(
            store,
            clusters,
            SeededNetwork(
                project=cloud.project,
                location=cloud.location,
                network=network.vpc,
                subnetwork=network.subnet or "",
                pods=network.pods_range or "",
                services=network.services_range or "",
            ),
        )
    if cloud.existing:
        seed_gke(store, clusters, project=cloud.project, location=cloud.location, name=cloud.existing.name)


def _aks(declaration: Cluster, cloud: Aks, store: Store, clusters: Clusters) -> None:
    network = cloud.network
    if network.subnet:
        seed_subnet(store, clusters, network.subnet, location=cloud.location, prefix=network.nodes)
    if cloud.existing:
        seed_aks(
            store,
            clusters,
            subscription=cloud.subscription,
            resource_group=cloud.resource_group or declaration.name,
            name=cloud.existing.name,
            location=cloud.location,
        )
