"""Kubeflow Pipelines' objects as they are wanted: patches over what its kustomizations make, all pure."""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide.model import Pipelines

from .home import Home
from .network_policies import labeled, own_namespace, policy, ports
from .objects import Object, Patch, is_, updated
from .patches import (
    annotated,
    at_home,
    holding,
    labelled_namespaces,
    left_out,
    movable,
    unawaited_claims,
    with_config,
    with_requests,
    without_config,
)
from .retry import retrying

NAMESPACE: Final = Pipelines.spec.namespace

_ARGO_METRICS: Final = 9090
_MYSQL: Final = 3306

STORE_SECRET = "mlpipeline-minio-artifact"  # noqa: S105 - a Secret's name
DATABASE_SECRET = "mysql-secret"  # noqa: S105 - a Secret's name

WORKERS = ("pipeline-runner", "ml-pipeline", "ml-pipeline-ui")
"""Service accounts of what reads and writes artifacts: steps, the API server, the interface."""

CACHE = ("cache-deployer-deployment", "cache-server")
"""The cache of pipelines of version 1. It is left out: its deployer makes a webhook configuration and a
certificate that no stack knows of and no destroy removes, and the webhook would go on to be asked for every
pod in the namespace. Steps compiled with kfp 2 are cached by their driver, and the webhook passes them by
(kubeflow/pipelines 2.17.0, backend/src/cache/server/mutation.go)."""

_REQUESTS = {"cpu": "20m", "memory": "128Mi"}
"""For what upstream gives no requests: envoy, metadata server and writer, two controllers. With these the sum
is near upstream's own measurement, 970m and 3.5 GiB with the cache (kubeflow/manifests, resource table,
2026-04)."""


def _with_password(manifest: Object) -> Object:
    """Set the database's root password, which its clients read; upstream's has none."""
    if not is_(manifest, "Deployment", "mysql"):
        return manifest
    spec = manifest["spec"]["template"]["spec"]
    password = {
        "name": "MYSQL_ROOT_PASSWORD",
        "valueFrom": {"secretKeyRef": {"name": DATABASE_SECRET, "key": "password"}},
    }
    changed = [
        {
            **container,
            "env": [
                *(item for item in container.get("env", ()) if item["name"] != "MYSQL_ALLOW_EMPTY_PASSWORD"),
                password,
            ],
        }
        for container in spec["containers"]
    ]
    return updated(manifest, ("spec", "template", "spec", "containers"), changed)


def cluster_patches(namespace_labels: Mapping[str, str]) -> tuple[Patch, ...]:
    """Patches over the kinds, the namespace and what else is the whole cluster's.

    Args:
        namespace_labels: labels of the namespace, as those by which Kueue or Katib know it.
    """
    return (labelled_namespaces(namespace_labels),)


def patches(
    declared: Pipelines,
    home: Home,
    credentials: Mapping[str, Mapping[str, Any]],
    artifact_root: object = None,
    identity: Mapping[str, Any] | None = None,
) -> tuple[Patch, ...]:
    """Patches over the objects in the namespace.

    Args:
        declared: the add-on, as it is declared.
        home: where controllers run. Drivers of pipelines are made by Argo and have no tolerations: they find
            the system pool because it has no taint.
        credentials: for each Secret all that it holds, in base64, in place of what upstream publishes.
        artifact_root: where artifacts are kept, as `gs://bucket/artifacts`; None for in the cluster.
        identity: annotations by which the service accounts of `WORKERS` act as an identity of the cloud.
    """
    return (
        retrying(declared.retry),
        at_home(home),
        with_requests(_REQUESTS, {}),
        movable,
        left_out(*CACHE),
        # Read by the cache alone, and the one image that names no version.
        without_config("pipeline-install-config", "cacheImage"),
        unawaited_claims,
        *(holding(name, data) for name, data in credentials.items()),
        _with_password,
        *(
            [with_config("kfp-launcher", {"defaultPipelineRoot": artifact_root})]
            if artifact_root is not None
            else []
        ),
        *([annotated("ServiceAccount", WORKERS, identity)] if identity else []),
    )


def network_policies() -> tuple[Object, ...]:
    """Return the policies of its namespace; its API asks for no password.

    Runs are in the same namespace: their drivers, launchers and steps reach the API, the metadata and the
    store. The database is for its three clients alone. The store's policy is upstream's, which lets in this
    namespace, and those of profiles (kubeflow/pipelines 2.17.0, manifests/kustomize, seaweedfs).
    """
    others = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["mysql", "seaweedfs"]}]}
    clients = [
        labeled("app", "ml-pipeline"),
        labeled("app", "cache-server"),
        labeled("component", "metadata-grpc-server"),
    ]
    to_database = {"from": [{"podSelector": client} for client in clients], **ports(_MYSQL)}
    controller = labeled("app", "workflow-controller")
    return (
        own_namespace(NAMESPACE, others),
        policy("mysql", NAMESPACE, [to_database], labeled("app", "mysql")),
        policy("workflow-controller", NAMESPACE, [ports(_ARGO_METRICS)], controller),
    )
