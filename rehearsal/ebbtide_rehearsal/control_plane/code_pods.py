"""The admission policy by which pods with the code of `ebbtide run`, or with outputs, run as processes of
this machine.

It applies to namespaces of users: not to those of Kubernetes and of add-ons.
"""

from typing import Any, Final

from ebbtide.model.addons import ADD_ONS
from ebbtide.model.tenants import OPERATOR_NAMESPACE
from ebbtide.runs.code import DIRECTORY
from ebbtide.runs.metadata import MANAGED_BY
from ebbtide.workloads.volumes import OUTPUTS
from ebbtide_rehearsal.control_plane.stages import RUNS

NAME: Final = "code-as-processes"
_ADD_ONS: Final = sorted(
    {OPERATOR_NAMESPACE, *(add_on.spec.namespace for add_on in ADD_ONS.values() if not add_on.spec.runs_work)}
    - {""}
)

POLICY: Final[dict[str, Any]] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingAdmissionPolicy",
    "metadata": {"name": NAME},
    "spec": {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "objectSelector": {"matchLabels": {MANAGED_BY: "ebbtide"}},
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ],
        },
        "matchConditions": [
            {
                "name": "is-of-a-user",
                "expression": f"!request.namespace.startsWith('kube-') && !(request.namespace in {_ADD_ONS})",
            },
            {
                "name": "has-code-or-outputs",
                "expression": "object.spec.containers.exists(container, "
                f"(has(container.workingDir) && container.workingDir == '{DIRECTORY}') || "
                f"(has(container.env) && container.env.exists(variable, variable.name == '{OUTPUTS}')))",
            },
        ],
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {
                    "expression": "Object{metadata: Object.metadata{annotations: "
                    f'{{"{RUNS}": "process"}}}}}}'
                },
            }
        ],
    },
}

BINDING: Final[dict[str, Any]] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingAdmissionPolicyBinding",
    "metadata": {"name": NAME},
    "spec": {"policyName": NAME},
}
