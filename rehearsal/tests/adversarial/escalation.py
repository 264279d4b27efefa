"""Powers by which a subject becomes more than it is, and the subjects that have them by RBAC.

Source: Kubernetes docs, Role Based Access Control Good Practices, privilege escalation risks (2026).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from ebbtide.values.paths import Object

ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Power:
    """Verbs on resources, of which any is enough.

    Attributes:
        group: API group.
        resources: resources of the group.
        verbs: verbs.
        anywhere: True if it is a power in any one namespace, and over objects by name; False if only in all
            namespaces or in a system namespace, and over all objects.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    anywhere: bool = False


_WRITE: Final = ("create", "update", "patch")
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_CERTIFICATES: Final = "certificates.k8s.io"

POWERS: Final = {
    "request certificates": (Power(_CERTIFICATES, ("certificatesigningrequests",), ("create",)),),
    "approve certificates": (
        Power(_CERTIFICATES, ("certificatesigningrequests/approval",), ("update", "patch")),
        Power(_CERTIFICATES, ("signers",), ("approve", "sign")),
    ),
    "change admission": (
        Power(_ADMISSION, ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"), _WRITE),
        Power(_ADMISSION, ("mutatingadmissionpolicies", "validatingadmissionpolicies"), _WRITE),
        Power(_ADMISSION, ("mutatingadmissionpolicybindings", "validatingadmissionpolicybindings"), _WRITE),
    ),
    "grant rights": (
        Power(_RBAC, ("roles", "clusterroles"), (*_WRITE, "escalate", "bind"), anywhere=True),
        Power(_RBAC, ("rolebindings", "clusterrolebindings"), _WRITE, anywhere=True),
    ),
    "impersonate": (Power("", ("users", "groups", "serviceaccounts"), ("impersonate",), anywhere=True),),
    "create tokens": (Power("", ("serviceaccounts/token",), ("create",), anywhere=True),),
    "run pods": (
        Power("", ("pods", "replicationcontrollers"), _WRITE),
        Power("apps", ("deployments", "replicasets", "statefulsets", "daemonsets"), _WRITE),
        Power("batch", ("jobs", "cronjobs"), _WRITE),
        Power("argoproj.io", ("workflows", "cronworkflows"), _WRITE),
        Power("jobset.x-k8s.io", ("jobsets",), _WRITE),
        Power("kubeflow.org", ("experiments", "trials", "scheduledworkflows", "viewers"), _WRITE),
        Power("trainer.kubeflow.org", ("trainjobs", "trainingruntimes", "clustertrainingruntimes"), _WRITE),
    ),
    "enter pods": (
        Power("", ("pods/exec", "pods/attach", "pods/portforward"), ("create", "get")),
        Power("", ("pods/ephemeralcontainers",), ("update", "patch")),
    ),
    "reach kubelets": (Power("", ("nodes/proxy",), ("get", "create")),),
    "change nodes": (Power("", ("nodes", "nodes/status"), ("update", "patch", "delete")),),
    "create volumes": (Power("", ("persistentvolumes",), _WRITE),),
    # The API server answers a change with the object.
    "read Secrets": (
        Power("", ("secrets",), ("get", "list", "watch", "update", "patch", "deletecollection")),
    ),
    "write Secrets": (Power("", ("secrets",), _WRITE),),
    "change ConfigMaps": (Power("", ("configmaps",), _WRITE),),
    "change namespaces": (Power("", ("namespaces",), _WRITE),),
    "change kinds": (
        Power("apiextensions.k8s.io", ("customresourcedefinitions",), _WRITE),
        Power("apiregistration.k8s.io", ("apiservices",), _WRITE),
    ),
}
"""Powers by name."""


_CLUSTER_SCOPED: Final = ("clusterroles", "clusterrolebindings", "nodes", "nodes/proxy", "persistentvolumes")


def holders(objects: Iterable[Object], system: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return each subject's powers, with where it has them: `*` for the cluster, or namespaces.

    Args:
        objects: all objects of a cluster.
        system: the namespaces of its controllers.
    """
    items = list(objects)
    roles = {_key(item): item for item in items if item["kind"] in ("Role", "ClusterRole")}
    held: dict[str, dict[str, set[str]]] = {}
    for binding in items:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        scope = ALL if binding["kind"] == "ClusterRoleBinding" else binding["metadata"]["namespace"]
        rules = list(_rules(binding, roles))
        for subject in binding.get("subjects") or ():
            for name, powers in POWERS.items():
                if any(_gives(rule, power, scope, system) for rule in rules for power in powers):
                    held.setdefault(_named(subject, scope), {}).setdefault(name, set()).add(scope)
    return {
        subject: {
            name: ALL if ALL in scopes else ", ".join(sorted(scopes))
            for name, scopes in sorted(powers.items())
        }
        for subject, powers in sorted(held.items())
    }


def _key(role: Object) -> tuple[str, str, str]:
    namespace = role["metadata"]["namespace"] if role["kind"] == "Role" else ""
    return role["kind"], namespace, role["metadata"]["name"]


def _named(subject: Object, scope: str) -> str:
    if subject["kind"] == "ServiceAccount":
        return f"{subject.get('namespace', scope)}/{subject['name']}"
    return f"{subject['kind'].lower()} {subject['name']}"


def _rules(binding: Object, roles: dict[tuple[str, str, str], Object]) -> Iterator[Object]:
    """Yield the rules of a binding's role; of a role of Kubernetes' own, all, unless it only reads."""
    reference = binding["roleRef"]
    namespace = binding["metadata"].get("namespace", "") if reference["kind"] == "Role" else ""
    role = roles.get((reference["kind"], namespace, reference["name"]))
    if role is not None:
        yield from role.get("rules") or ()
    elif reference["name"] not in _HARMLESS:
        yield {"apiGroups": [ALL], "resources": [ALL], "verbs": [ALL]}


_HARMLESS: Final = ("system:auth-delegator", "extension-apiserver-authentication-reader", "view")
"""Roles that Kubernetes has, and that give none of these powers."""


def _gives(rule: Object, power: Power, scope: str, system: Iterable[str]) -> bool:
    """Return whether a rule of a role that is bound in a scope gives a power."""
    if not power.anywhere and (rule.get("resourceNames") or not (scope == ALL or scope in system)):
        return False
    # A binding in a namespace gives nothing over the cluster's own kinds.
    resources = [name for name in power.resources if scope == ALL or name not in _CLUSTER_SCOPED]
    return (
        _has(rule.get("apiGroups", ()), (power.group,))
        and _has(rule["verbs"], power.verbs)
        and any(
            _has(rule.get("resources", ()), (name, f"{ALL}/{name.partition('/')[2]}")) for name in resources
        )
    )


def _has(given: Iterable[str], names: Iterable[str]) -> bool:
    return bool({ALL, *names} & set(given))


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why a subject has a power.

    Attributes:
        subject: the subject: namespace and name of a service account, or the kind and name of another.
        power: the power.
        scope: where: `*` for the cluster, or namespaces.
        why: the reason.
    """

    subject: str
    power: str
    scope: str
    why: str


def reasons() -> list[Reason]:
    """Return every reason, in the order of the page."""
    written = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return [
        Reason(subject, power, entry["in"], entry["why"])
        for subject, powers in written.items()
        for power, entry in powers.items()
    ]
