"""The admission policies by which pods run as processes of this machine: the cost recorder's, and those with
the code of `ebbtide run`, or with outputs, in namespaces of users (not of Kubernetes and of add-ons).
"""

from typing import Any, Final

from ebbtide.declaration.model.addons import ADD_ONS, Costs
from ebbtide.declaration.model.cluster import OPERATOR_NAMESPACE
from ebbtide.work.runs.code import DIRECTORY
from ebbtide.work.runs.run import MANAGED_BY
from ebbtide.work.volumes import OUTPUTS
from ebbtide_rehearsal.control_plane.stages import RUNS

_API: Final = "admissionregistration.k8s.io/v1"
_ADD_ONS: Final = sorted(
    {OPERATOR_NAMESPACE, *(add_on.spec.namespace for add_on in ADD_ONS.values() if not add_on.spec.runs_work)}
    - {""}
)


def _policies(name: str, constraints: dict[str, Any], conditions: dict[str, str]) -> list[dict[str, Any]]:
    """Return the policy that lets new pods run as processes, and its binding."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    annotated = f'Object{{metadata: Object.metadata{{annotations: {{"{RUNS}": "process"}}}}}}'
    policy = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [pods], **constraints},
            "matchConditions": [{"name": key, "expression": text} for key, text in conditions.items()],
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": annotated}}
            ],
        },
    }
    binding = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
    return [policy, binding]


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
    ),
    _policies(
        "cost-recorder-as-process",
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": Costs.spec.namespace}}},
        {},
    ),
)
