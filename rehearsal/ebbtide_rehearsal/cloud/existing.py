"""Existing resources that a declaration refers to: clusters, networks, users and groups."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, assert_never

from ebbtide.model import Aks, Cluster, DeclarationError, Gke, declare
from ebbtide.model.members import is_object_id, members_of
from ebbtide_rehearsal.cloud.azure import know, seed_subnet
from ebbtide_rehearsal.cloud.azure import seed_cluster as seed_aks
from ebbtide_rehearsal.cloud.clusters import Clusters
from ebbtide_rehearsal.cloud.existing_namespaces import seed_namespaces
from ebbtide_rehearsal.cloud.existing_pipelines import seed_pipelines
from ebbtide_rehearsal.cloud.gcp import SeededNetwork, seed_network
from ebbtide_rehearsal.cloud.gcp import seed_cluster as seed_gke
from ebbtide_rehearsal.cloud.regions import add_regions
from ebbtide_rehearsal.cloud.store import Store

_NAME: Final = "rehearsal"  # name of resources that the declaration does not name


def make(written: Mapping[str, Any], store: Store, clusters: Clusters) -> None:
    """Create the existing resources of a declaration.

    Args:
        written: the declaration.
        store: the fake cloud's store.
        clusters: control planes.

    Raises:
        RefusedError: the cloud rejects such a resource.
        DeclarationError: the declaration is invalid.
    """
    declaration = declare(written, default_name=_NAME)
    _introduce(declaration, store)
    match declaration.cloud:
        case Gke() as cloud:
            cluster = _gke(cloud, store, clusters)
        case Aks() as cloud:
            cluster = _aks(declaration, cloud, store, clusters)
        case _:
            assert_never(declaration.cloud)
    if cluster is None:
        return
    pipelines = declaration.addons.pipelines
    if pipelines is not None and pipelines.existing:
        seed_pipelines(store, cluster)
    seed_namespaces(declaration, store, cluster)


def introduce(written: Mapping[str, Any], store: Store) -> None:
    """Add the users, groups and regions of a declaration to a running cloud. An invalid declaration is
    ignored, since the program rejects it.

    Args:
        written: the declaration.
        store: the fake cloud's store.
    """
    with contextlib.suppress(DeclarationError):
        _introduce(declare(written, default_name=_NAME), store)


def _introduce(declaration: Cluster, store: Store) -> None:
    know(store, _people(declaration))
    add_regions(store, declaration.site.cloud, declaration.cloud.regions)


def _people(declaration: Cluster) -> Iterator[str]:
    """Return the object ids that Azure grants a role. A rehearsal cannot look them up in the real directory,
    so an undeclared id is an error of the program."""
    return filter(is_object_id, members_of(declaration))


def _gke(cloud: Gke, store: Store, clusters: Clusters) -> str | None:
    """Create the existing resources of a declaration for GKE; return the id of its existing cluster."""
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
    if cloud.existing is None:
        return None
    name = cloud.existing.name
    return seed_gke(store, clusters, project=cloud.project, location=cloud.location, name=name)


def _aks(declaration: Cluster, cloud: Aks, store: Store, clusters: Clusters) -> str | None:
    """Create the existing resources of a declaration for AKS; return the id of its existing cluster."""
    network = cloud.network
    if network.subnet:
        seed_subnet(store, clusters, network.subnet, location=cloud.location, prefix=network.nodes)
    if cloud.existing is None:
        return None
    return seed_aks(
        store,
        clusters,
        subscription=cloud.subscription,
        resource_group=cloud.resource_group or declaration.physical_name,
        name=cloud.existing.name,
        location=cloud.location,
    )
