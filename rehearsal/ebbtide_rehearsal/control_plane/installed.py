"""Objects that a cloud installs in a new cluster: storage classes, CRDs, and the rehearsal's admission
policies.

ComputeClass: Google publishes its reference only; fields and types are from the reference (GKE docs,
reference/crds/computeclass, 2026), scope and plural from `kubectl get computeclasses`. Fields for
auto-created pools (`nodePoolConfig`, a rule's hardware) are not validated. Managed Prometheus:
PodMonitoring on GKE, PodMonitor and ServiceMonitor on AKS; fields that no stack of Ebbtide uses are not
validated. Sources: GoogleCloudPlatform/prometheus-engine, doc/api.md (2026); prometheus-operator,
api-reference/api.md (2026), which Azure's CRDs follow in a group of their own (azure-monitor docs,
prometheus-metrics-scrape-crd, 2025-08).

Admission policies make pods run as processes of this machine: the cost recorder's, and those with the code
of `ebbtide run`, or with outputs, in namespaces of users (not of Kubernetes and of add-ons).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, assert_never

import yaml

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.catalog.clouds import COMPUTE_CLASS
from ebbtide.declaration.model.addons import ADD_ONS, Costs
from ebbtide.declaration.model.cluster import OPERATOR_NAMESPACE
from ebbtide.work.runs.code import DIRECTORY
from ebbtide.work.runs.run import MANAGED_BY
from ebbtide.work.volumes import OUTPUTS
from ebbtide_rehearsal.control_plane.plan import CloudName
from ebbtide_rehearsal.control_plane.stages import RUNS

_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
_GKE_DISKS, _AKS_DISKS, _AKS_FILES = "pd.csi.storage.gke.io", "disk.csi.azure.com", "file.csi.azure.com"
Schema = dict[str, Any]
_API: Final = "admissionregistration.k8s.io/v1"
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_TEXT: Final[Schema] = {"type": "string"}
_WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
_ANYTHING: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_INTERVAL: Final[Schema] = {"type": "string", "pattern": r"^([0-9]+(ms|s|m|h))+$"}
_NAME_OR_NUMBER: Final[Schema] = {"x-kubernetes-int-or-string": True}
_SCHEME: Final[Schema] = {"type": "string", "enum": ["http", "https"]}
_ADD_ONS: Final = sorted(
    {OPERATOR_NAMESPACE, *(add_on.spec.namespace for add_on in ADD_ONS.values() if not add_on.spec.runs_work)}
    - {""}
)
_AS_PROCESS: Final = {
    "patchType": "ApplyConfiguration",
    "applyConfiguration": {
        "expression": f'Object{{metadata: Object.metadata{{annotations: {{"{RUNS}": "process"}}}}}}'
    },
}
"""Lets new pods run as processes."""
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def _class(
    name: str,
    driver: str,
    parameters: dict[str, str],
    *,
    binding: str = "WaitForFirstConsumer",
    default: bool = False,
) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": _DEFAULT if default else {}},
        "provisioner": driver,
        "parameters": parameters,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": binding,
        "allowVolumeExpansion": True,
    }


def storage_classes(cloud: CloudName) -> tuple[dict[str, Any], ...]:
    """Return the storage classes of a cloud's new cluster, including the default one.

    Sources: GKE docs, persistent-volumes/gce-pd-csi-driver (2026); AKS docs, concepts-storage and
    azure-disk-csi, azure-files-csi (2026).
    """
    match cloud:
        case "gke":
            return (
                _class("standard", _GKE_DISKS, {"type": "pd-standard"}, binding="Immediate"),
                _class("standard-rwo", _GKE_DISKS, {"type": "pd-balanced"}, default=True),
                _class("premium-rwo", _GKE_DISKS, {"type": "pd-ssd"}),
            )
        case "aks":
            standard, premium = {"skuname": "StandardSSD_LRS"}, {"skuname": "Premium_LRS"}
            return (
                _class("default", _AKS_DISKS, standard, default=True),
                _class("managed", _AKS_DISKS, standard),
                _class("managed-csi", _AKS_DISKS, standard),
                _class("managed-premium", _AKS_DISKS, premium),
                _class("managed-csi-premium", _AKS_DISKS, premium),
                _class("azurefile", _AKS_FILES, {"skuName": "Standard_LRS"}, binding="Immediate"),
                _class("azurefile-csi", _AKS_FILES, {"skuName": "Standard_LRS"}, binding="Immediate"),
                _class("azurefile-premium", _AKS_FILES, {"skuName": "Premium_LRS"}, binding="Immediate"),
                _class("azurefile-csi-premium", _AKS_FILES, {"skuName": "Premium_LRS"}, binding="Immediate"),
            )
        case _:
            assert_never(cloud)


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


_RULE: Final = _object(
    nodepools={"type": "array", "minItems": 1, "items": _TEXT},
    machineFamily=_TEXT,
    machineType=_TEXT,
    spot=_BOOLEAN,
    minCores=_WHOLE,
    minMemoryGb=_WHOLE,
    minCpuPlatform=_TEXT,
    maxRunDurationSeconds=_WHOLE,
    maxPodsPerNode=_WHOLE,
    gpu=_object(type=_TEXT, count=_WHOLE, driverVersion=_TEXT),
    tpu=_object(type=_TEXT, count=_WHOLE, topology=_TEXT),
    flexStart=_object(enabled=_BOOLEAN, nodeRecycling=_ANYTHING),
    storage=_ANYTHING,
    placement=_ANYTHING,
    reservations=_ANYTHING,
    location=_ANYTHING,
    nodeSystemConfig=_ANYTHING,
)
_SPEC: Final = {
    **_object(
        priorities={"type": "array", "items": _RULE},
        whenUnsatisfiable={"type": "string", "enum": ["ScaleUpAnyway", "DoNotScaleUp"]},
        nodePoolAutoCreation=_object(enabled=_BOOLEAN),
        activeMigration=_object(optimizeRulePriority=_BOOLEAN, ensureAllDaemonSetPodsRunning=_BOOLEAN),
        autoscalingPolicy=_object(
            consolidationDelayMinutes={**_WHOLE, "minimum": 1},
            consolidationThreshold=_WHOLE,
            gpuConsolidationThreshold=_WHOLE,
        ),
        description=_TEXT,
        priorityDefaults=_ANYTHING,
        nodePoolConfig=_ANYTHING,
    ),
    "required": ["priorities"],
}


def _definition(group: str, kind: str, plural: str, scope: str, spec: Schema) -> Schema:
    """Return a CRD with one version."""
    root = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": _ANYTHING}}
    version: Schema = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "scope": scope,
            "versions": [{**version, "schema": {"openAPIV3Schema": root}}],
        },
    }


def _policies(
    name: str,
    constraints: Schema,
    conditions: Mapping[str, str],
    mutation: Schema,
    reinvocation: str = "Never",
) -> tuple[Schema, Schema]:
    """Return the policy that changes new pods, and its binding."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    policy = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": reinvocation,
            "matchConstraints": {"resourceRules": [pods], **constraints},
            "matchConditions": [{"name": key, "expression": text} for key, text in conditions.items()],
            "mutations": [mutation],
        },
    }
    binding = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
    return policy, binding


_TOLERATIONS: Final = _policies(
    "compute-class-tolerations",
    {},
    {
        "selects-a-class": f"has(object.spec.nodeSelector) && '{COMPUTE_CLASS}' in object.spec.nodeSelector",
        "does-not-tolerate-it": "!has(object.spec.tolerations) || "
        f"!object.spec.tolerations.exists(t, has(t.key) && t.key == '{COMPUTE_CLASS}')",
    },
    {
        "patchType": "JSONPatch",
        "jsonPatch": {
            "expression": "(has(object.spec.tolerations) ? [] : "
            '[JSONPatch{op: "add", path: "/spec/tolerations", value: []}]) + '
            '[JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{'
            f'key: "{COMPUTE_CLASS}", operator: "Equal", effect: "NoSchedule", '
            f'value: object.spec.nodeSelector["{COMPUTE_CLASS}"]}}}}]'
        },
    },
    reinvocation="IfNeeded",
)
"""GKE adds the toleration of a class's taint to pods that select the class (GoogleCloudPlatform/
cluster-autoscaler, pkg/test/integration, TestCCCSchedulingWithoutNodeSelector, 2026-11)."""


def _with(required: tuple[str, ...], schema: Schema) -> Schema:
    return {**schema, "required": [*required]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_SELECTOR: Final = _object(
    matchLabels={"type": "object", "additionalProperties": _TEXT}, matchExpressions=_list(_ANYTHING)
)
_RELABELING: Final = _object(
    sourceLabels=_list(_TEXT),
    regex=_TEXT,
    replacement=_TEXT,
    targetLabel=_TEXT,
    action={
        "type": "string",
        "enum": ["replace", "keep", "drop", "hashmod", "labelmap", "labeldrop", "labelkeep"],
    },
)
_SECRET: Final = _object(name=_TEXT, key=_TEXT, namespace=_TEXT)
_AUTHORIZATION: Final = _object(type=_TEXT, credentials=_object(secret=_SECRET))
_ENDPOINT: Final[Mapping[str, Schema]] = {
    "path": _TEXT,
    "interval": _INTERVAL,
    "scheme": _SCHEME,
    "authorization": _AUTHORIZATION,
}
_OPERATORS: Final[Mapping[str, Schema]] = {
    **_ENDPOINT,
    "port": _TEXT,
    "honorLabels": _BOOLEAN,
    "tlsConfig": _object(insecureSkipVerify=_BOOLEAN, serverName=_TEXT),
    "metricRelabelings": _list(_RELABELING),
}
_SPECS: Final[Mapping[str, Mapping[tuple[str, str], Schema]]] = {
    "gke": {
        ("networking.gke.io", "GKENetworkParamSet"): _object(
            vpc=_TEXT,
            vpcSubnet=_TEXT,
            deviceMode={"type": "string", "enum": ["DPDK-VFIO", "NetDevice", "RDMA"]},
            podIPv4Ranges=_ANYTHING,
            networkAttachment=_TEXT,
        ),
        ("networking.gke.io", "Network"): _with(
            ("type",),
            _object(
                type={"type": "string", "enum": ["L2", "L3", "Device"]},
                parametersRef=_with(
                    ("group", "kind", "name"), _object(group=_TEXT, kind=_TEXT, name=_TEXT, namespace=_TEXT)
                ),
                routes=_ANYTHING,
                dnsConfig=_ANYTHING,
            ),
        ),
        ("monitoring.googleapis.com", "PodMonitoring"): _with(
            ("selector", "endpoints"),
            _object(
                selector=_SELECTOR,
                endpoints=_list(
                    _with(
                        ("port", "interval"),
                        _object(
                            **_ENDPOINT,
                            port=_NAME_OR_NUMBER,
                            tls=_object(insecureSkipVerify=_BOOLEAN, serverName=_TEXT),
                            metricRelabeling=_list(_RELABELING),
                        ),
                    )
                ),
                targetLabels=_ANYTHING,
            ),
        ),
    },
    "aks": {
        ("azmonitoring.coreos.com", "PodMonitor"): _with(
            ("selector", "podMetricsEndpoints"),
            _object(
                selector=_SELECTOR,
                namespaceSelector=_ANYTHING,
                podMetricsEndpoints=_list(_object(**_OPERATORS)),
                podTargetLabels=_list(_TEXT),
            ),
        ),
        ("azmonitoring.coreos.com", "ServiceMonitor"): _with(
            ("selector", "endpoints"),
            _object(
                selector=_SELECTOR,
                namespaceSelector=_ANYTHING,
                endpoints=_list(_object(**_OPERATORS, bearerTokenFile=_TEXT)),
            ),
        ),
    },
}


def definitions(cloud: str) -> Iterator[Schema]:
    """Yield the CRDs of a cloud's managed Prometheus, and on GKE of ComputeClasses and multi-networking
    (GoogleCloudPlatform/gke-networking-api 0.2.11, config/crds)."""
    for (group, kind), spec in _SPECS[cloud].items():
        scope = "Cluster" if group == "networking.gke.io" else "Namespaced"
        yield _definition(group, kind, f"{kind.lower()}s", scope, spec)
    if cloud == "gke":
        yield _definition("cloud.google.com", "ComputeClass", "computeclasses", "Cluster", _SPEC)


POLICIES: Final = (
    _policies(
        "code-as-processes",
        {"objectSelector": {"matchLabels": {MANAGED_BY: "ebbtide"}}},
        {
            "is-of-a-user": f"!request.namespace.startsWith('kube-') && !(request.namespace in {_ADD_ONS})",
            "has-code-or-outputs": "object.spec.containers.exists(container, "
            f"(has(container.workingDir) && container.workingDir == '{DIRECTORY}') || "
            f"(has(container.env) && container.env.exists(variable, variable.name == '{OUTPUTS}')))",
        },
        _AS_PROCESS,
    ),
    _policies(
        "cost-recorder-as-process",
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": Costs.spec.namespace}}},
        {},
        _AS_PROCESS,
    ),
)


def install_definitions(api: Api, directory: Path, pattern: str = "*.yaml") -> None:
    """Install the CRDs in the files of a directory."""
    for file in sorted(directory.glob(pattern)):
        for item in yaml.safe_load_all(file.read_text()):
            if item and item["kind"] == "CustomResourceDefinition":
                api.apply(f"{_KINDS}/{item['metadata']['name']}", item)


def install(api: Api, cloud: CloudName, provisioning_requests: Path) -> None:
    """Install storage classes, the CRDs of ProvisioningRequest and of managed Prometheus, on GKE the
    ComputeClass CRD and tolerations, and the policy for pods with code of users.

    Args:
        api: an administrator's client.
        provisioning_requests: the directory of the ProvisioningRequest CRD. GKE installs it in every cluster
            (GKE docs, provisioningrequest, 2026-04), AKS with its cluster autoscaler (AKS docs,
            configure-kueue-with-cluster-autoscaler, 2026).
    """
    for item in storage_classes(cloud):
        api.apply(f"{_CLASSES}/{item['metadata']['name']}", item)
    for item in definitions(cloud):
        api.apply(f"{_KINDS}/{item['metadata']['name']}", item)
    for policy, binding in (*([_TOLERATIONS] if cloud == "gke" else ()), *POLICIES):
        install_policy(api, policy, binding)
    install_definitions(api, provisioning_requests)


def install_policy(api: Api, policy: dict[str, Any], binding: dict[str, Any]) -> None:
    """Create a mutating policy and its binding."""
    for plural, item in (
        ("mutatingadmissionpolicies", policy),
        ("mutatingadmissionpolicybindings", binding),
    ):
        api.apply(f"/apis/{_API}/{plural}/{item['metadata']['name']}", item)
