"""Existing resources that a declaration refers to and no stack created: networks, clusters, Kubeflow
Pipelines, Kueue."""

import contextlib
import http
import json
import subprocess
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, Final, assert_never

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import part
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE, Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.placement.kueue_settings import Installation
from ebbtide.placement.queue_objects import frameworks, uncounted
from ebbtide.values.kueue_api import CONFIGURATION
from ebbtide_rehearsal.cloud import ids
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.ids import (
    AKS_CLUSTER,
    AZURE,
    GCP,
    GKE_CLUSTER,
    GROUP,
    NETWORK,
    SUBNET,
    SUBNETWORK,
    VNET,
)
from ebbtide_rehearsal.cloud.pools import add_machines, add_regions
from ebbtide_rehearsal.cloud.provider import BEHIND, Clusters
from ebbtide_rehearsal.cloud.store import Store

NAME: Final = "ml-pipeline"
SPEC_PATCH: Final = "COMPILED_PIPELINE_SPEC_PATCH"
RELEASE: Final = "batch"
NAMESPACE: Final = "queues"
"""Name and namespace of an existing Kueue: not those that Ebbtide's has."""
_NAME: Final = "rehearsal"  # name of resources that the declaration does not name
_SUBNETS_OF_POOLS: Final = "172.20.{}.0/24"
"""Ranges of existing subnets, which a declaration does not have."""
_TIMEOUT_SECONDS: Final = 600
_POLL_SECONDS: Final = 0.2
_LABELS: Final = {"app": NAME}
_VISIBILITY: Final = 8082
_OPEN: Final = 443
_SYSTEM_MACHINE: Final = "Standard_D4s_v5"


def seed_network(
    store: Store,
    clusters: Clusters,
    *,
    project: str,
    location: str,
    network: str,
    subnetwork: str,
    pods: str,
    services: str,
) -> None:
    """Create a network of Google Cloud, with a subnetwork and its secondary ranges for pods and services.

    Args:
        location: a region, or a zone of it.
        pods: name of the secondary range for pods.
        services: name of the secondary range for services.
    """
    provider = FakeProvider(GCP, store, clusters, {"project": project, "region": region_of(location)})
    inside = provider.seed(NETWORK, {"name": network, "autoCreateSubnetworks": False})
    ranges: Any = [
        {"rangeName": pods, "ipCidrRange": "10.4.0.0/14"},
        {"rangeName": services, "ipCidrRange": "10.8.0.0/20"},
    ]
    own: Any = {
        "name": subnetwork,
        "network": inside,
        "ipCidrRange": "10.0.0.0/20",
        "secondaryIpRanges": ranges,
    }
    provider.seed(SUBNETWORK, own)


def seed_gke(
    store: Store,
    clusters: Clusters,
    *,
    project: str,
    location: str,
    name: str,
    release_channel: str = "REGULAR",
    dns_endpoint: bool = True,
) -> str:
    """Create a cluster on GKE: VPC-native, in the project's default network, with Workload Identity, and a
    default pool of one node in each zone, as `gcloud container clusters create --machine-type e2-standard-4`.

    Args:
        location: a zone or a region.
        release_channel: release channel of the API, or `UNSPECIFIED`.
        dns_endpoint: True if the DNS endpoint is open to external traffic; otherwise the IP endpoint is used.

    Returns:
        Id of the cluster, also used for its control plane.
    """
    inputs: Any = {
        "name": name,
        "project": project,
        "location": location,
        "network": f"projects/{project}/global/networks/default",
        "subnetwork": f"projects/{project}/regions/{region_of(location)}/subnetworks/default",
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
    return FakeProvider(GCP, store, clusters).seed(GKE_CLUSTER, inputs)


def seed_aks(
    store: Store,
    clusters: Clusters,
    *,
    subscription: str,
    resource_group: str,
    name: str,
    location: str,
) -> str:
    """Create a cluster on AKS, with one system pool, an OIDC issuer, workload identity and Entra.

    Args:
        resource_group: name of the resource group, which is created if it does not exist.

    Returns:
        The cluster's id.
    """
    system = {"name": "system", "mode": "System", "vmSize": _SYSTEM_MACHINE, "count": 2, "osType": "Linux"}
    inputs: Any = {
        "resourceName": name,
        "dnsPrefix": name.replace("_", "-"),
        "identity": {"type": "SystemAssigned"},
        "aadProfile": {"managed": True, "enableAzureRBAC": True},
        "disableLocalAccounts": True,
        "oidcIssuerProfile": {"enabled": True},
        "securityProfile": {"workloadIdentity": {"enabled": True}},
        "networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay"},
        "agentPoolProfiles": [system],
    }
    return _in_group(store, clusters, subscription, resource_group, location)(AKS_CLUSTER, inputs)


def seed_subnet(store: Store, clusters: Clusters, subnet: str, *, location: str, prefix: str) -> None:
    """Create a subnet of Azure, with its network and resource group.

    Args:
        subnet: resource id of the subnet.
        prefix: address range of the subnet, and of its network if that does not exist.
    """
    network = {"virtualNetworkName": subnet.split("/")[-3]}
    group = ids.last(ids.group_of(subnet))
    seed = _in_group(store, clusters, subnet.split("/")[2], group, location)
    seed(VNET, {**network, "addressSpace": {"addressPrefixes": [prefix]}})
    seed(SUBNET, {**network, "subnetName": ids.last(subnet), "addressPrefix": prefix})


def _in_group(
    store: Store, clusters: Clusters, subscription: str, group: str, location: str
) -> Callable[[str, Mapping[str, Any]], str]:
    """Return a function that creates resources in a resource group, which is created if it does not exist."""
    settings = {"subscriptionId": subscription, "location": location}
    provider = FakeProvider(AZURE, store, clusters, settings)
    within = {"resourceGroupName": group}
    provider.seed(GROUP, within)
    return lambda token, inputs: provider.seed(token, {**within, **inputs})


@contextlib.contextmanager
def _administered(store: Store, cluster: str) -> Generator[tuple[Api, str]]:
    """Yield an administrator's client of a cluster, and the path of its kubeconfig.

    Raises:
        LookupError: the cluster has no control plane.
    """
    running = store.get(BEHIND, cluster)
    if running is None:
        raise LookupError(cluster)
    path = str(running.state["kubeconfig"])
    kubeconfig = json.loads(Path(path).read_text(encoding="utf-8"))
    with contextlib.closing(Api.of_kubeconfig(kubeconfig)) as api:
        yield api, path


def _wait(is_done: Callable[[], object], missed: str) -> None:
    """Wait until something is done.

    Raises:
        TimeoutError: it takes too long; the message is `missed`.
    """
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError(missed)
        time.sleep(_POLL_SECONDS)


def seed_pipelines(store: Store, cluster: str) -> None:
    """Create the namespace and the API server's Deployment, as kubectl applies them from the released
    manifests, after the objects that Kubernetes creates in every namespace, so that none is taken for the
    stack's.

    Source: kubeflow/pipelines 2.17.0, manifests/kustomize/base/pipeline/ml-pipeline-apiserver-deployment.yaml
    (2026-07), with only the variable that patches compiled workflows.
    """
    inside = f"/api/v1/namespaces/{PIPELINES_NAMESPACE}"
    own = (f"{inside}/serviceaccounts/default", f"{inside}/configmaps/kube-root-ca.crt")
    with _administered(store, cluster) as (api, _):
        _create(api, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": PIPELINES_NAMESPACE}})
        _wait(lambda: all(api.find(path) for path in own), f"Kubernetes did not create {' and '.join(own)}.")
        _create(api, f"/apis/apps/v1/namespaces/{PIPELINES_NAMESPACE}/deployments", deployment())


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


def seed_kueue(declaration: Cluster, tools: Mapping[str, str], store: Store, cluster: str) -> None:
    """Install the pinned Kueue as another user does, with the frameworks that the declaration queues, on
    ports that GKE's control plane reaches, and wait until its webhooks answer.

    Args:
        tools: paths of programs and data, by name.

    Raises:
        LookupError: the cluster has no control plane.
        TimeoutError: the controller does not become ready.
    """
    template = (
        *(tools["helm"], "template", RELEASE, tools["kueue-chart"]),
        *("--namespace", NAMESPACE, "--include-crds", "--values", "-"),
    )
    name = Installation(NAMESPACE, f"{RELEASE}-kueue").deployment
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}"
    with _administered(store, cluster) as (api, kubeconfig):
        _create(api, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": NAMESPACE}})
        chart = _run(*template, stdin=json.dumps(_values(declaration)))
        _run(
            *(tools["kubectl"], "--kubeconfig", kubeconfig),
            *("apply", "--server-side", "--filename", "-"),
            stdin=chart.replace(f"targetPort: {_VISIBILITY}", f"targetPort: {_OPEN}"),
        )
        _wait(
            lambda: part(api.get(path), "status").get("readyReplicas"),
            f"The Deployment {name} in {NAMESPACE} does not become ready.",
        )


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
    with _administered(store, cluster) as (api, _):
        for name in names:
            _create(api, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": name}})
            if name == PIPELINES_NAMESPACE:
                metadata = {"name": "pipeline-runner", "namespace": name}
                account = {"kind": "ServiceAccount", "metadata": metadata}
                _create(api, f"/api/v1/namespaces/{name}/serviceaccounts", account)


def _create(api: Api, path: str, manifest: dict[str, Any]) -> None:
    """Create an object, unless it exists, such as the namespace `default`."""
    try:
        api.create(path, {"apiVersion": "v1", **manifest}, fieldManager="kubectl-client-side-apply")
    except ApiError as error:
        if error.status != http.HTTPStatus.CONFLICT:
            raise


def make(
    written: Mapping[str, Any], store: Store, clusters: Clusters, tools: Mapping[str, str] | None = None
) -> None:
    """Create the existing resources of a declaration.

    Args:
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
        seed_kueue(declaration, tools, store, cluster)
    seed_namespaces(declaration, store, cluster)


def introduce(written: Mapping[str, Any], store: Store) -> None:
    """Add the regions and machine types of a declaration to a running cloud. An invalid
    declaration is ignored, since the program rejects it.
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
