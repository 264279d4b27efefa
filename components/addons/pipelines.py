"""Kubeflow Pipelines: its component, and the patches of its kustomizations."""

from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.declaration.catalog.versions import Pin
from ebbtide.declaration.model.addons import Pipelines as Declared
from ebbtide.declaration.model.addons import remote_inputs

from .add_on import AddOnArgs, AddOnComponent, SystemPlacement, system_placement
from .patches import (
    Object,
    Patch,
    annotated,
    encoded,
    for_readers,
    generated,
    holding,
    is_,
    labelled_namespaces,
    left_out,
    movable,
    on_system_pool,
    patch_transform,
    unawaited_claims,
    updated,
    with_config,
    with_requests,
    without_config,
    without_rights,
)
from .pipeline_retries import retry_strategy, retrying
from .security import labeled, own_namespace, policy, ports, readers
from .teams import namespace_labels

_SOURCE = "github.com/kubeflow/pipelines/manifests/kustomize"

NAMESPACE: Final = Declared.spec.namespace

_ARGO_METRICS: Final = 9090
_MYSQL: Final = 3306

STORE_SECRET = "mlpipeline-minio-artifact"  # noqa: S105 - a Secret's name
DATABASE_SECRET = "mysql-secret"  # noqa: S105 - a Secret's name

WORKERS = ("pipeline-runner", "ml-pipeline", "ml-pipeline-ui")
"""Service accounts that read and write artifacts: those of steps, the API server and the UI."""

CACHE = ("cache-deployer-deployment", "cache-server")
"""The cache of pipelines of version 1. It is disabled: its deployer creates a webhook configuration and a
certificate that are in no stack and that no destroy removes, and the API server would continue to call the
webhook for every pod in the namespace. Steps compiled with kfp 2 are cached by their driver, and the webhook
ignores them (kubeflow/pipelines 2.17.0, backend/src/cache/server/mutation.go)."""

CACHE_ACCOUNTS = ("kubeflow-pipelines-cache-deployer-sa", "kubeflow-pipelines-cache")
"""Its service accounts, which lose their rights: the first could register webhooks and approve certificates
of any user, and a pipeline's step can create a pod as any account of its namespace."""

_REQUESTS = {"cpu": "20m", "memory": "128Mi"}
"""Requests where upstream has none: envoy, metadata server and writer, two controllers. The sum is close to
upstream's own measurement, 970m and 3.5 GiB with the cache (kubeflow/manifests, resource table, 2026-04)."""


def kustomization(path: str, release: Pin) -> str:
    """Return the URL of a kustomization of a release."""
    return f"{_SOURCE}/{path}?ref={release.commit}"


class Pipelines(AddOnComponent):
    """Kubeflow Pipelines from its own kustomizations, patched: retries of steps that lost their node, no
    published password, requests for all containers, the system pool, and no cache of version 1.

    Two directories: the second uses the kinds and the namespace of the first, and is deleted before it. Two
    claims of 20 GiB store the database and the artifacts; they are deleted with the namespace, after their
    pods. The namespace always gets its own deletion, which is awaited, even when the cluster is deleted.
    Creation needs git and access to GitHub: upstream's kustomizations refer to Argo's there.

    It depends on Kueue, whose webhooks intercept every Deployment of a labelled namespace, and on Katib,
    whose experiments a pipeline may start in this namespace: on an existing cluster, they are deleted before
    the controller that removes their finalizer. The namespace is an ordinary tenant's, but created here,
    since the kustomization contains it.

    Objects in the namespace, such as local queues and roles, depend on `namespace`; clients of the API depend
    on `ready`. Sources: kubeflow/pipelines 2.17.0, manifests/kustomize; pulumi-kubernetes 4.34, kustomize/v2.
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        declared = args.declaration.addons.pipelines or Declared()
        # A preview does not show the transforms, so the component's inputs show their settings.
        inputs = {"retryStrategy": retry_strategy(declared.retry), "artifacts": declared.artifacts}
        super().__init__(name, args, opts, inputs)
        store, tenants = args.artifacts, args.declaration.tenants
        tenant = next(team for team in tenants if team.namespace_name == NAMESPACE)
        labels = namespace_labels(args.declaration, tenant)
        kinds_directory = kustomization("cluster-scoped-resources", declared.release)
        directory = kustomization("env/platform-agnostic", declared.release)
        kinds = kustomize.Directory(
            f"{name}-cluster",
            directory=kinds_directory,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=args.depends_on,
                transforms=[patch_transform(cluster_patches(labels), args.deleted_with)],
            ),
        )
        credentials = {
            STORE_SECRET: {"accesskey": generated(), "secretkey": generated()},
            DATABASE_SECRET: {"username": encoded("root"), "password": generated()},
        }
        manifest_patches = (
            *patches(
                declared,
                system_placement(args.declaration),
                credentials,
                store.root if store else None,
                store.identity if store else None,
            ),
            for_readers(readers(args.declaration)),
        )
        objects = kustomize.Directory(
            f"{name}-objects",
            directory=directory,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[kinds, *(store.grants if store else ())],
                transforms=[patch_transform(manifest_patches, args.deleted_with, tuple(credentials))],
            ),
        )
        self._network_policies(network_policies(), kinds)
        self.namespace = (kinds,)
        self.ready = (objects,)
        self.register_outputs(remote_inputs({"directory": kinds_directory}, {"directory": directory}))


def _with_password(manifest: Object) -> Object:
    """Set the database's root password, which its clients read; upstream's is empty."""
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
    """Return the patches of kinds, the namespace and other cluster-wide objects.

    Args:
        namespace_labels: labels of the namespace, such as those that Kueue and Katib select.
    """
    return (labelled_namespaces(namespace_labels), without_rights(*CACHE_ACCOUNTS))


def patches(
    declared: Declared,
    placement: SystemPlacement,
    credentials: Mapping[str, Mapping[str, Any]],
    artifact_root: object = None,
    identity: Mapping[str, Any] | None = None,
) -> tuple[Patch, ...]:
    """Return the patches of the objects in the namespace.

    Args:
        declared: the add-on, as declared.
        placement: placement of controllers. Argo creates the pipelines' driver pods without tolerations; they
            run on the system pool because it has no taint.
        credentials: data of each Secret, in base64, replacing the values that upstream publishes.
        artifact_root: where artifacts are stored, as `gs://bucket/artifacts`; None if in the cluster.
        identity: annotations with which the service accounts of `WORKERS` act as a cloud identity.
    """
    return (
        retrying(declared.retry),
        on_system_pool(placement),
        with_requests(_REQUESTS, {}),
        movable,
        left_out(*CACHE),
        without_rights(*CACHE_ACCOUNTS),
        # Only the cache reads it, and it is the only image without a version.
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
    """Return the network policies of its namespace; its API requires no password.

    Runs are in the same namespace: their drivers, launchers and steps reach the API, the metadata and the
    store. Only its three clients reach the database. The store's policy is upstream's, which admits this
    namespace and those of profiles (kubeflow/pipelines 2.17.0, manifests/kustomize, seaweedfs).
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
