"""The ComputeClass CRD and the tolerations of pods that select a class, which every GKE cluster has.

Google publishes its reference only: fields and types are from the reference (GKE docs,
reference/crds/computeclass, 2026), scope and plural from `kubectl get computeclasses`. Fields for
auto-created pools (`nodePoolConfig`, a rule's hardware) are not validated.
"""

from typing import Any, Final

from ebbtide.declaration.catalog import COMPUTE_CLASS

Schema = dict[str, Any]

NAME: Final = "computeclasses.cloud.google.com"
POLICY: Final = "compute-class-tolerations"
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_TEXT: Final[Schema] = {"type": "string"}
_WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
_ANYTHING: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


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

DEFINITION: Final[Schema] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": NAME,
    },
    "spec": {
        "group": "cloud.google.com",
        "names": {
            "kind": "ComputeClass",
            "listKind": "ComputeClassList",
            "plural": "computeclasses",
            "singular": "computeclass",
        },
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {"spec": _SPEC, "status": _ANYTHING},
                    }
                },
            }
        ],
    },
}

TOLERATIONS: Final[Schema] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingAdmissionPolicy",
    "metadata": {"name": POLICY},
    "spec": {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]
        },
        "matchConditions": [
            {
                "name": "selects-a-class",
                "expression": "has(object.spec.nodeSelector) && "
                f"'{COMPUTE_CLASS}' in object.spec.nodeSelector",
            },
            {
                "name": "does-not-tolerate-it",
                "expression": "!has(object.spec.tolerations) || "
                f"!object.spec.tolerations.exists(t, has(t.key) && t.key == '{COMPUTE_CLASS}')",
            },
        ],
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {
                    "expression": "(has(object.spec.tolerations) ? [] : "
                    '[JSONPatch{op: "add", path: "/spec/tolerations", value: []}]) + '
                    '[JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{'
                    f'key: "{COMPUTE_CLASS}", operator: "Equal", effect: "NoSchedule", '
                    f'value: object.spec.nodeSelector["{COMPUTE_CLASS}"]}}}}]'
                },
            }
        ],
    },
}
"""GKE adds the toleration of a class's taint to pods that select the class (GoogleCloudPlatform/
cluster-autoscaler, pkg/test/integration, TestCCCSchedulingWithoutNodeSelector, 2026-11)."""

BINDING: Final[Schema] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingAdmissionPolicyBinding",
    "metadata": {"name": POLICY},
    "spec": {"policyName": POLICY},
}
