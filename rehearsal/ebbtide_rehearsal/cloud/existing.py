"""Existing resources that a declaration refers to: clusters, networks, users, groups, Kubeflow Pipelines."""

import contextlib
import http
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, assert_never

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE, Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.model.tenancy import is_object_id
from ebbtide_rehearsal.cloud.azure.identities import know
from ebbtide_rehearsal.cloud.azure.seeding import seed_cluster as seed_aks
from ebbtide_rehearsal.cloud.azure.seeding import seed_subnet
from ebbtide_rehearsal.cloud.gcp.seeding import SeededNetwork, seed_network
from ebbtide_rehearsal.cloud.gcp.seeding import seed_cluster as seed_gke
from ebbtide_rehearsal.cloud.provider import BEHIND, Clusters
from ebbtide_rehearsal.cloud.regions import add_machines, add_regions
from ebbtide_rehearsal.cloud.store import Store

NAME: Final = "ml-pipeline"
SPEC_PATCH: Final = "COMPILED_PIPELINE_SPEC_PATCH"
_TIMEOUT_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.2
_LABELS: Final = {"app": NAME}


def seed_pipelines(store: Store, cluster: str) -> None:
    """Create the namespace and the API server's Deployment, as kubectl applies them from the released
    manifests.

    Source: kubeflow/pipelines 2.17.0, manifests/kustomize/base/pipeline/ml-pipeline-apiserver-deployment.yaml
    (2026-07), with only the variable that patches compiled workflows.

    Args:
        store: the fake cloud's store.
        cluster: id of the cluster.

    Raises:
        LookupError: the cluster has no control plane.
        TimeoutError: its controllers do not respond.
    """
    running = store.get(BEHIND, cluster)
    if running is None:
        raise LookupError(cluster)
    kubeconfig = json.loads(Path(running.state["kubeconfig"]).read_text(encoding="utf-8"))
    api = Api.of_kubeconfig(kubeconfig)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PIPELINES_NAMESPACE}}
    query = {"fieldManager": "kubectl-client-side-apply"}
    api.create("/api/v1/namespaces", namespace, **query)
    _settled(api)
    api.create(f"/apis/apps/v1/namespaces/{PIPELINES_NAMESPACE}/deployments", deployment(), **query)
    api.close()


def _settled(api: Api) -> None:
    """Wait for the objects that Kubernetes creates in every namespace, so that none is taken for the stack's.

    Raises:
        TimeoutError: they are not created.
    """
    inside = f"/api/v1/namespaces/{PIPELINES_NAMESPACE}"
    own = (f"{inside}/serviceaccounts/default", f"{inside}/configmaps/kube-root-ca.crt")
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not all(api.find(path) for path in own):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Kubernetes did not create {' and '.join(own)}.")
        time.sleep(_POLL_SECONDS)


def deployment() -> dict[str, Any]:
    """Return the Deployment."""
    container = {
        "name": "ml-pipeline-api-server",
        "image": f"ghcr.io/kubeflow/kfp-api-server:{PINS['pipelines'].version}",
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": SPEC_PATCH, "value": "{}"},
        ],
        "resources": {"requests": {"cpu": "250m", "memory": "500Mi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": PIPELINES_NAMESPACE, "labels": _LABELS},
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": [container]}},
        },
    }


def seed_namespaces(declaration: Cluster, store: Store, cluster: str) -> None:
    """Create the namespaces that teams and local queues use but the stack does not create. That of Kubeflow
    Pipelines has the service account of the steps (kubeflow/pipelines 2.17.0,
    manifests/kustomize/base/pipeline/pipeline-runner-sa.yaml).

    Args:
        store: the fake cloud's store.
        cluster: id of the cluster.

    Raises:
        LookupError: the cluster has no control plane.
        ApiError: its API server rejects a request.
    """
    names = [team.namespace_name for team in declaration.teams if not team.creates_namespace]
    names += [local.namespace for queue in declaration.queues for local in queue.local_queues]
    if declaration.addons.installed_pipelines is not None:
        names = [name for name in names if name != PIPELINES_NAMESPACE]
    if not names:
        return
    running = store.get(BEHIND, cluster)
    if running is None:
        raise LookupError(cluster)
    api = Api.of_kubeconfig(json.loads(Path(running.state["kubeconfig"]).read_text(encoding="utf-8")))
    for name in names:
        _create(api, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": name}})
        if name == PIPELINES_NAMESPACE:
            account = {"kind": "ServiceAccount", "metadata": {"name": "pipeline-runner", "namespace": name}}
            _create(api, f"/api/v1/namespaces/{name}/serviceaccounts", account)
    api.close()


def _create(api: Api, path: str, manifest: dict[str, Any]) -> None:
    """Create an object, unless it exists, such as the namespace `default`."""
    try:
        api.create(path, {"apiVersion": "v1", **manifest}, fieldManager="kubectl-client-side-apply")
    except ApiError as error:
        if error.status != http.HTTPStatus.CONFLICT:
            raise


_NAME: Final = "rehearsal"  # name of resources that the declaration does not name


def make(written: Mapping[str, Any], store: Store, clusters: Clusters) -> None:
    """Create the existing resources of a declaration.

    Args:
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
    """Add the users, groups, regions and machine types of a declaration to a running cloud. An invalid
    declaration is ignored, since the program rejects it.

    Args:
        store: the fake cloud's store.
    """
    with contextlib.suppress(DeclarationError):
        _introduce(declare(written, default_name=_NAME), store)


def _introduce(declaration: Cluster, store: Store) -> None:
    know(store, _people(declaration))
    add_regions(store, declaration.site.cloud, declaration.cloud.regions)
    machines = (pool.hardware for pool in declaration.resolved_pools if pool.declared_shape)
    add_machines(store, filter(None, machines))


def _people(declaration: Cluster) -> Iterator[str]:
    """Return the object ids that Azure grants a role. A rehearsal cannot look them up in the real directory,
    so an undeclared id is an error of the program."""
    return filter(is_object_id, declaration.members)


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
