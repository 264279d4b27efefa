"""Minimal objects with the structure of the released manifests, for properties that need no release.

Written for these tests: each name, port, label and setting is one that a patch, a network policy or another
add-on of ours relies on (kubeflow/pipelines 2.17.0, manifests/kustomize; kubeflow/katib 0.19.0,
manifests/v1beta1). `tests.manifests` has the released manifests.
"""

from collections.abc import Sequence
from typing import Any, Final

import yaml

from components.addons.patches import Object

_KUBEFLOW: Final = "kubeflow"


def _object(
    kind: str, name: str, version: str = "v1", namespace: str | None = _KUBEFLOW, **rest: Any
) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})} | rest.pop("metadata", {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _service(name: str, *ports: Object) -> Object:
    return _object("Service", name, spec={"selector": {"app": name}, "ports": list(ports or [{"port": 80}])})


def _claim(name: str, storage: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return _object("PersistentVolumeClaim", name, spec=spec)


def _role(kind: str, name: str, *rules: tuple[str, str, str]) -> Object:
    """Return a Role or ClusterRole from its rules: API group, resources, verbs."""
    version, namespace = "rbac.authorization.k8s.io/v1", _KUBEFLOW if kind == "Role" else None
    return _object(
        kind,
        name,
        version,
        namespace,
        rules=[
            {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
            for group, resources, verbs in rules
        ],
    )


def _binding(kind: str, name: str, role: str, *accounts: str, groups: Sequence[str] = ()) -> Object:
    group, namespace = "rbac.authorization.k8s.io", _KUBEFLOW if kind == "RoleBinding" else None
    return _object(
        kind,
        name,
        f"{group}/v1",
        namespace,
        roleRef={"apiGroup": group, "kind": kind.removesuffix("Binding"), "name": role},
        subjects=[
            *({"kind": "ServiceAccount", "name": account, "namespace": _KUBEFLOW} for account in accounts),
            *({"kind": "Group", "apiGroup": group, "name": each} for each in groups),
        ],
    )


def _variable(name: str, value: str, key: str = "") -> Object:
    """Return a variable with a value, or with a key of the Secret `value`."""
    reference = {"valueFrom": {"secretKeyRef": {"name": value, "key": key}}}
    return {"name": name, **(reference if key else {"value": value})}


def _deployment(
    name: str,
    labels: dict[str, str],
    image: str,
    *variables: Object,
    claim: str = "",
    container: str = "",
    **spec: Any,
) -> Object:
    """Return a Deployment of one container.

    Args:
        name: its name.
        labels: the pods' labels.
        image: the container's image.
        variables: the container's environment.
        claim: a claim that it mounts.
        container: the container's name, by default the Deployment's.
        spec: `serviceAccountName` of the pods, and the container's `args`, `ports` and `resources`.
    """
    own = {"args", "ports", "resources"}
    main = {"name": container or name, "image": image, "env": list(variables)} | {
        key: value for key, value in spec.items() if key in own
    }
    pods: Object = {"containers": [main]} | {key: value for key, value in spec.items() if key not in own}
    if claim:
        pods["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        main["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    template = {"metadata": {"labels": labels}, "spec": pods}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return _object("Deployment", name, "apps/v1", spec=spec)


def _app(name: str) -> dict[str, str]:
    return {"app": name}


_DATABASE: Final = (
    _variable("DBCONFIG_USER", "mysql-secret", "username"),
    _variable("DBCONFIG_PASSWORD", "mysql-secret", "password"),
)
_STORE: Final = (
    _variable("ACCESS_KEY", "mlpipeline-minio-artifact", "accesskey"),
    _variable("SECRET_KEY", "mlpipeline-minio-artifact", "secretkey"),
)
_CACHE: Final = "kubeflow-pipelines-cache"
_WORKFLOW_DEFAULTS: Final = {
    "ttlStrategy": {"secondsAfterCompletion": 3600},
    "templateDefaults": {"retryStrategy": {"limit": "2", "retryPolicy": "OnError"}},
}

PIPELINES_CLUSTER: Final = (
    _object(
        "Namespace",
        _KUBEFLOW,
        namespace=None,
        metadata={"labels": {"pod-security.kubernetes.io/enforce": "baseline"}},
    ),
    _object("ServiceAccount", f"{_CACHE}-deployer-sa"),
    _role(
        "ClusterRole",
        f"{_CACHE}-deployer-clusterrole",
        ("certificates.k8s.io", "certificatesigningrequests certificatesigningrequests/approval", "create"),
        ("certificates.k8s.io", "signers", "approve"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "create patch"),
    ),
    _binding(
        "ClusterRoleBinding",
        f"{_CACHE}-deployer-clusterrolebinding",
        f"{_CACHE}-deployer-clusterrole",
        f"{_CACHE}-deployer-sa",
    ),
)

PIPELINES_SERVICES: Final = (
    "cache-server",
    "metadata-envoy-service",
    "metadata-grpc-service",
    "ml-pipeline",
    "ml-pipeline-ui",
    "ml-pipeline-visualizationserver",
    "mysql",
    "seaweedfs",
)
"""Names of the Services of Kubeflow Pipelines, in these manifests and the released ones."""

PIPELINES: Final = (
    *(
        _object("ServiceAccount", name)
        for name in ("argo", _CACHE, "ml-pipeline", "ml-pipeline-ui", "pipeline-runner")
    ),
    _role("Role", "pipeline-runner", ("", "pods", "create get"), ("batch", "jobs", "create")),
    _binding("RoleBinding", "pipeline-runner-binding", "pipeline-runner", "pipeline-runner"),
    _role("Role", f"{_CACHE}-role", ("", "pods", "get patch")),
    _binding("RoleBinding", f"{_CACHE}-binding", f"{_CACHE}-role", _CACHE),
    _role("Role", "kubeflow-pipelines-public", ("", "configmaps", "get")),
    _binding(
        "RoleBinding",
        "kubeflow-pipelines-public",
        "kubeflow-pipelines-public",
        groups=["system:authenticated"],
    ),
    _object(
        "Secret", "mlpipeline-minio-artifact", stringData={"accesskey": "minio", "secretkey": "minio123"}
    ),
    _object("Secret", "mysql-secret", stringData={"username": "root", "password": ""}),
    _object("ConfigMap", "kfp-launcher", data={"defaultPipelineRoot": ""}),
    _object("ConfigMap", "pipeline-install-config", data={"cacheImage": "ghcr.io/containerd/busybox"}),
    _object(
        "ConfigMap",
        "workflow-controller-configmap",
        data={
            "executor": "imagePullPolicy: IfNotPresent\n",
            "workflowDefaults": yaml.safe_dump({"spec": _WORKFLOW_DEFAULTS}),
        },
    ),
    *map(_service, PIPELINES_SERVICES),
    _claim("mysql-pv-claim", "20Gi"),
    _claim("seaweedfs-pvc", "20Gi"),
    _deployment(
        "cache-deployer-deployment",
        _app("cache-deployer"),
        "ghcr.io/kubeflow/kfp-cache-deployer:2.17.0",
        container="main",
        serviceAccountName=f"{_CACHE}-deployer-sa",
    ),
    _deployment(
        "cache-server",
        _app("cache-server"),
        "ghcr.io/kubeflow/kfp-cache-server:2.17.0",
        *_DATABASE,
        container="server",
        serviceAccountName=_CACHE,
    ),
    _deployment(
        "metadata-grpc-deployment",
        {"component": "metadata-grpc-server"},
        "gcr.io/tfx-oss-public/ml_metadata_store_server:1.14.0",
        *_DATABASE,
        container="container",
    ),
    _deployment(
        "ml-pipeline",
        _app("ml-pipeline"),
        "ghcr.io/kubeflow/kfp-api-server:2.17.0",
        *_DATABASE,
        *_STORE,
        _variable("V2_DRIVER_IMAGE", "ghcr.io/kubeflow/kfp-driver:2.17.0"),
        _variable("COMPILED_PIPELINE_SPEC_PATCH", "{}"),
        container="ml-pipeline-api-server",
        serviceAccountName="ml-pipeline",
        resources={"requests": {"cpu": "250m", "memory": "500Mi"}},
    ),
    _deployment(
        "ml-pipeline-ui",
        _app("ml-pipeline-ui"),
        "ghcr.io/kubeflow/kfp-frontend:2.17.0",
        *_STORE,
        serviceAccountName="ml-pipeline-ui",
    ),
    _deployment(
        "mysql",
        _app("mysql"),
        "mysql:8.4",
        _variable("MYSQL_ALLOW_EMPTY_PASSWORD", "true"),
        claim="mysql-pv-claim",
    ),
    _deployment("seaweedfs", _app("seaweedfs"), "ghcr.io/chrislusf/seaweedfs:4.34", claim="seaweedfs-pvc"),
    _deployment(
        "workflow-controller",
        _app("workflow-controller"),
        "quay.io/argoproj/workflow-controller:v4.0.5",
        args=["--executor-image", "quay.io/argoproj/argoexec:v4.0.5"],
        serviceAccountName="argo",
    ),
    _object(
        "NetworkPolicy",
        "seaweedfs",
        "networking.k8s.io/v1",
        spec={
            "podSelector": {"matchLabels": _app("seaweedfs")},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 8333}]}],
        },
    ),
)

_COMPONENT: Final = "katib.kubeflow.org/component"
_INJECTED: Final = "katib.kubeflow.org/metrics-collector-injection"
_CONTROLLER_PORTS: Final = {"webhook": 8443, "metrics": 8080, "healthz": 18080}
_READ: Final = "get list watch"


def _webhooks(kind: str, name: str, path: str, resource: tuple[str, str, str], **rest: Any) -> Object:
    group, version, plural = resource
    webhook = {
        "name": f"{name}.katib.kubeflow.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"name": "katib-controller", "namespace": _KUBEFLOW, "path": path}},
        "rules": [
            {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": [plural]}
        ],
    }
    version = "admissionregistration.k8s.io/v1"
    return _object(kind, "katib.kubeflow.org", version, None, webhooks=[webhook | rest])


def _of_katib(component: str, *variables: Object, **spec: Any) -> Object:
    image = "mysql:8.0.29" if component == "mysql" else f"ghcr.io/kubeflow/katib/katib-{component}:v0.19.0"
    return _deployment(f"katib-{component}", {_COMPONENT: component}, image, *variables, **spec)


KATIB: Final = (
    _object("Namespace", _KUBEFLOW, namespace=None, metadata={"labels": {_INJECTED: "enabled"}}),
    *(_object("ServiceAccount", name) for name in ("katib-controller", "katib-ui")),
    _role(
        "ClusterRole",
        "katib-controller",
        ("", "secrets", f"{_READ} patch update"),
        ("", "persistentvolumes persistentvolumeclaims", f"{_READ} create"),
        ("", "pods", _READ),
        ("batch", "jobs cronjobs", f"{_READ} create delete"),
        ("trainer.kubeflow.org", "trainjobs", f"{_READ} create delete"),
        ("jobset.x-k8s.io", "jobsets", _READ),
        (
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations validatingwebhookconfigurations",
            f"{_READ} patch update",
        ),
    ),
    _role("ClusterRole", "katib-ui", ("", "configmaps namespaces", "*"), ("kubeflow.org", "trials", "*")),
    *(_binding("ClusterRoleBinding", name, name, name) for name in ("katib-controller", "katib-ui")),
    _object(
        "ConfigMap",
        "katib-config",
        data={
            "katib-config.yaml": yaml.safe_dump(
                {
                    "init": {
                        "certGenerator": {"enable": True},
                        "controller": {"webhookPort": 8443, "trialResources": ["Job.v1.batch"]},
                    },
                    "runtime": {
                        "suggestions": [
                            {
                                "algorithmName": "random",
                                "image": "ghcr.io/kubeflow/katib/suggestion-hyperopt:v0.19.0",
                            }
                        ]
                    },
                }
            )
        },
    ),
    _object("Secret", "katib-mysql-secrets", data={"MYSQL_ROOT_PASSWORD": "dGVzdA=="}),
    _object("Secret", "katib-webhook-cert", data={}),
    _service(
        "katib-controller",
        *(
            {"name": name, "port": 443 if name == "webhook" else port, "targetPort": port}
            for name, port in _CONTROLLER_PORTS.items()
        ),
    ),
    *(_service(f"katib-{component}") for component in ("db-manager", "mysql", "ui")),
    _claim("katib-mysql", "10Gi"),
    _of_katib(
        "controller",
        args=["--katib-config=/katib-config.yaml"],
        ports=[{"name": name, "containerPort": port} for name, port in _CONTROLLER_PORTS.items()],
        serviceAccountName="katib-controller",
    ),
    _of_katib("db-manager", _variable("DB_PASSWORD", "katib-mysql-secrets", "MYSQL_ROOT_PASSWORD")),
    _of_katib(
        "mysql",
        _variable("MYSQL_ROOT_PASSWORD", "katib-mysql-secrets", "MYSQL_ROOT_PASSWORD"),
        _variable("MYSQL_ALLOW_EMPTY_PASSWORD", "true"),
        claim="katib-mysql",
    ),
    _of_katib("ui", serviceAccountName="katib-ui"),
    _webhooks(
        "MutatingWebhookConfiguration",
        "mutator.pod",
        "/mutate-pod",
        ("", "v1", "pods"),
        namespaceSelector={"matchLabels": {_INJECTED: "enabled"}},
        matchConditions=[
            {
                "name": "exclude-katib-controller",
                "expression": "request.userInfo.username != "
                '"system:serviceaccount:kubeflow:katib-controller"',
            }
        ],
    ),
    _webhooks(
        "ValidatingWebhookConfiguration",
        "validator.experiment",
        "/validate-experiment",
        ("kubeflow.org", "v1beta1", "experiments"),
    ),
)
