"""Roles with their bindings, and the rules of a team's members in their namespace: submit, observe and stop
workloads."""

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model import Cluster, Team
from ebbtide.declaration.model.add_on import READ, WORK
from ebbtide.declaration.model.members import is_group, is_object_id, name_of

from .manifest import obj

Rule = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"


def rbac_rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Rule:
    """Return a rule of a role."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def granted(
    namespace: str,
    name: str,
    rules: Sequence[Rule],
    subjects: Sequence[dict[str, str]],
    *,
    bound_by: str = "",
) -> Iterator[dict[str, Any]]:
    """Yield a role of a namespace and its binding, which has the role's name unless it has its own."""
    yield obj(f"{_RBAC}/v1", "Role", name, namespace, rules=list(rules))
    yield binding("Role", name, namespace, subjects, name=bound_by)


def binding(
    kind: str, role: str, namespace: str | None, subjects: Sequence[dict[str, str]], *, name: str = ""
) -> dict[str, Any]:
    """Return the binding of a Role, or without a namespace of a ClusterRole."""
    to = {"apiGroup": _RBAC, "kind": kind, "name": role}
    return obj(f"{_RBAC}/v1", f"{kind}Binding", name or role, namespace, roleRef=to, subjects=list(subjects))


def member_rules(declaration: Cluster, team: Team) -> list[Rule]:
    """Return the rules of the role of a team's members.

    Workloads are submitted as Jobs and as the kinds of the declared add-ons. The pods of a multi-node Job
    find each other by a headless Service; the namespace's quota admits no Service of type LoadBalancer. Not
    included: claims, whose disks would outlive the cluster (volumes are declared, with the team); reading
    Secrets, nor `patch` or `update`, whose answers have the object; roles, quotas, and anything outside of
    the namespace. `exec` into a running pod permits no more than the Job that started it. That Job can mount
    every Secret of its namespace, and the answer to `delete` in the foreground has the object too, so the
    stack creates no Secret there.
    """
    rules = [
        rbac_rule("batch", ["jobs"], WORK),
        rbac_rule("", ["pods"], [*READ, *(["create"] if team.interactive else []), "delete"]),
        rbac_rule("", ["pods/log"], ["get"]),
        rbac_rule("", ["pods/exec", "pods/portforward"], ["create"]),
        rbac_rule("", ["configmaps", "services"], WORK),
        rbac_rule("", ["secrets"], ["create", "delete"]),
        # `kubectl top pods`, from the metrics server that both clouds run.
        rbac_rule("metrics.k8s.io", ["pods"], ["get", "list"]),
        rbac_rule("", ["events", "serviceaccounts", "persistentvolumeclaims", "limitranges"], READ),
    ]
    rights = [right for add_on in declaration.installed for right in add_on.spec.rights]
    return rules + [rbac_rule(right.group, right.resources, right.verbs) for right in rights]


def readers(declaration: Cluster) -> tuple[dict[str, str], ...]:
    """Return the subjects of all users of the cluster: all members, and all service accounts."""
    members = dict.fromkeys(member for team in declaration.teams for member in team.members)
    accounts = {"kind": "Group", "name": "system:serviceaccounts", "apiGroup": _RBAC}
    return (
        accounts,
        *(item for member in members for item in subjects(member, declaration.site.cloud)),
    )


def _kinds(member: str, cloud: CloudKind) -> tuple[str, ...]:
    """Return the RBAC subject kinds of a member. On AKS an object id is a user's or a group's, and is
    unique."""
    match cloud:
        case CloudKind.GKE:
            return ("Group",) if is_group(member) else ("User",)
        case CloudKind.AKS:
            return ("User", "Group") if is_object_id(member) else ("User",)
        case _:
            assert_never(cloud)


def subjects(member: str, cloud: CloudKind) -> list[dict[str, str]]:
    """Return the subjects of a binding for a member."""
    return [{"kind": kind, "name": name_of(member), "apiGroup": _RBAC} for kind in _kinds(member, cloud)]
