"""Existing resources that a declaration refers to: clusters, networks, Kubeflow Pipelines,
Kueue."""

import contextlib
import http
import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, assert_never

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import part
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE, Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.operations.adopting.found import Found
from ebbtide.placement.kueue_settings import Installation, frameworks, uncounted
from ebbtide.values.kueue_api import CONFIGURATION
from ebbtide_rehearsal.cloud.provider import BEHIND, Clusters
from ebbtide_rehearsal.cloud.regions import add_machines, add_regions
from ebbtide_rehearsal.cloud.seeding import seed_aks, seed_found, seed_gke, seed_network, seed_subnet
from ebbtide_rehearsal.cloud.store import Store

NAME: Final = "ml-pipeline"
SPEC_PATCH: Final = "COMPILED_PIPELINE_SPEC_PATCH"
_TIMEOUT_SECONDS: Final = 600
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


def seed_kueue(
    declaration: Cluster,
    tools: Mapping[str, str],
    store: Store,
    cluster: str,
    release: str,
    namespace: str,
) -> None:
    """Install the pinned Kueue as another user does, with the frameworks that the declaration queues, on
    ports that GKE's control plane reaches, and wait until its webhooks answer.

    Args:
        declaration: the declaration.
        tools: paths of programs and data, by name.
        store: the fake cloud's store.
        cluster: id of the cluster.
        release: name of the release.
        namespace: its namespace.

    Raises:
        LookupError: the cluster has no control plane.
        TimeoutError: the controller does not become ready.
    """
    running = store.get(BEHIND, cluster)
    if running is None:
        raise LookupError(cluster)
    kubeconfig = str(running.state["kubeconfig"])
    api = Api.of_kubeconfig(json.loads(Path(kubeconfig).read_text(encoding="utf-8")))
    _create(api, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": namespace}})
    template = (
        *(tools["helm"], "template", release, tools["kueue-chart"]),
        *("--namespace", namespace, "--include-crds", "--values", "-"),
    )
    chart = _run(*template, stdin=json.dumps(_values(declaration)))
    _run(
        *(tools["kubectl"], "--kubeconfig", kubeconfig),
        *("apply", "--server-side", "--filename", "-"),
        stdin=chart.replace(f"targetPort: {_VISIBILITY}", f"targetPort: {_OPEN}"),
    )
    found = Installation(namespace, release if "kueue" in release else f"{release}-kueue")
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{found.deployment}"
    deadline = time.monotonic() + _CONTROLLER_SECONDS
    while not part(api.get(path), "status").get("readyReplicas"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"The Deployment {found.deployment} in {namespace} does not become ready.")
        time.sleep(_POLL_SECONDS)
    api.close()


_VISIBILITY: Final = 8082
_OPEN: Final = 443
_CONTROLLER_SECONDS: Final = 600


def _values(declaration: Cluster) -> dict[str, Any]:
    """Return the values of Kueue's chart (Kueue 0.19.2, charts/kueue). Its visibility server's port has none
    in its Service."""
    config = {
        **CONFIGURATION,
        "webhook": {"port": 10250},
        "visibilityServer": {"bindPort": _OPEN},
        "integrations": {"frameworks": frameworks(declaration)},
        "resources": {"excludeResourcePrefixes": list(uncounted(declaration))},
    }
    manager = {
        "image": {"repository": "registry.k8s.io/kueue/kueue", "tag": f"v{PINS['kueue'].version}"},
        "podSecurityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]},
    }
    return {
        "controllerManager": {"manager": manager},
        "managerConfig": {"controllerManagerConfigYaml": json.dumps(config)},
        "webhookService": {"ports": [{"port": 443, "protocol": "TCP", "targetPort": 10250}]},
    }


def _run(*command: str, stdin: str) -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise OSError(f"{Path(command[0]).name} {command[1]} failed: {done.stderr.strip()}")
    return done.stdout


def tools_of(written: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the tools that create the existing resources of a declaration."""
    return ("helm",) if part(written, "addons", "kueue").get("existing") else ()


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


RELEASE: Final = "batch"
NAMESPACE: Final = "queues"
"""Name and namespace of an existing Kueue: not those that Ebbtide's has."""
_NAME: Final = "rehearsal"  # name of resources that the declaration does not name


def make(
    written: Mapping[str, Any], store: Store, clusters: Clusters, tools: Mapping[str, str] | None = None
) -> None:
    """Create the existing resources of a declaration.

    Args:
        store: the fake cloud's store.
        clusters: control planes.
        tools: paths of programs and data, by name, for an existing Kueue; None without a real API server.

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
    kueue = declaration.addons.kueue
    if kueue is not None and kueue.existing and tools:
        seed_kueue(declaration, tools, store, cluster, RELEASE, NAMESPACE)
    seed_namespaces(declaration, store, cluster)


def make_found(found: Found, written: Mapping[str, Any], store: Store, clusters: Clusters) -> None:
    """Create a cluster that documents describe, and the other existing resources of its declaration.

    Args:
        found: the cluster with its pools.
        written: the declaration.
        store: the fake cloud's store.
        clusters: control planes.

    Raises:
        RefusedError: the cloud rejects such a resource.
        DeclarationError: the declaration is invalid.
    """
    if "existing" in written["cloud"]:
        introduce(written, store)
    else:
        make(written, store, clusters)
    seed_found(store, clusters, found)


def introduce(written: Mapping[str, Any], store: Store) -> None:
    """Add the regions and machine types of a declaration to a running cloud. An invalid
    declaration is ignored, since the program rejects it.

    Args:
        store: the fake cloud's store.
    """
    with contextlib.suppress(DeclarationError):
        _introduce(declare(written, default_name=_NAME), store)


def _introduce(declaration: Cluster, store: Store) -> None:
    add_regions(store, declaration.site.cloud, declaration.cloud.regions)
    machines = (pool.hardware for pool in declaration.resolved_pools if pool.declared_shape)
    add_machines(store, filter(None, machines))


def _gke(cloud: Gke, store: Store, clusters: Clusters) -> str | None:
    """Create the existing resources of a declaration for GKE; return the id of its existing cluster."""
    network = cloud.network
    if network.vpc:
        seed_network(
            store,
            clusters,
            project=cloud.project,
            location=cloud.location,
            network=network.vpc.rpartition("/")[2],
            subnetwork=(network.subnet or "").rpartition("/")[2],
            pods=network.pods_range or "",
            services=network.services_range or "",
        )
    if cloud.existing is None:
        return None
    name = cloud.existing.name
    return seed_gke(store, clusters, project=cloud.project, location=cloud.location, name=name)


_SUBNETS_OF_POOLS: Final = "172.20.{}.0/24"
"""Ranges of existing subnets, which a declaration does not have."""


def _aks(declaration: Cluster, cloud: Aks, store: Store, clusters: Clusters) -> str | None:
    """Create the existing resources of a declaration for AKS; return the id of its existing cluster."""
    network = cloud.network
    if network.subnet:
        seed_subnet(store, clusters, network.subnet, location=cloud.location, prefix=network.nodes)
    subnets = dict.fromkeys(pool.subnet for pool in declaration.pools if pool.subnet)
    for number, subnet in enumerate(subnets):
        if subnet != network.subnet:
            range_ = _SUBNETS_OF_POOLS.format(number)
            seed_subnet(store, clusters, subnet, location=cloud.location, prefix=range_)
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
