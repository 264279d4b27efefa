"""The admission policy that keeps workloads without a queue name off the queues' pools."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ebbtide.declaration.catalog.accelerators import resource_name
from ebbtide.declaration.catalog.clouds import COMPUTE_CLASS
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.pool import Pool, Taint
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide.values.paths import Object

NAME = "ebbtide-queue-required"
"""Name of the policy and its binding."""

QUEUE_REQUIRED_LABEL = "ebbtide.dev/queue-required"
"""Label of the namespaces that the policy applies to."""

Rule = tuple[str, str, tuple[str, ...]]
"""API group, version and resources."""

POD_RULES: Final[tuple[Rule, ...]] = (
    ("", "v1", ("pods",)),
    ("apps", "v1", ("deployments", "replicasets", "statefulsets", "daemonsets")),
    ("batch", "v1", ("jobs", "cronjobs")),
)
"""Pods, and kinds with a pod template."""

_RULES = (
    *POD_RULES,
    ("jobset.x-k8s.io", "*", ("jobsets",)),
    ("trainer.kubeflow.org", "*", ("trainjobs",)),
)
_TEMPLATE_LABELED = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
"""Kinds whose pods Kueue admits individually: the label is in their pod template."""
_WITHOUT_POD_SPEC = ("JobSet", "TrainJob")
"""Kinds whose pod specs are elsewhere, in a list or a runtime: they always need a queue name."""
_ADMITTED_WITH_OWNER = (("Pod", "Job"), ("Job", "JobSet"), ("JobSet", "TrainJob"))
"""Kinds that Kueue admits as part of their owner, whose label was checked."""

CONTROLLER = (
    "request.userInfo.username.startsWith('system:') && "
    "!request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')"
)
"""A controller outside of the namespace. Users can set any owner reference: with that of a finished Job, a
pod would also bypass Kueue (Kueue 0.19.2, pkg/controller/jobframework, ancestors)."""

_OF_CRON_JOB = (
    "(object.kind == 'Job' && dyn(object).metadata.ownerReferences"
    ".all(o, o.kind == 'CronJob' && o.apiVersion == 'batch/v1'))"
)
"""A Job of a CronJob, as of `kubectl create job --from`. Kueue ends its search for ancestors at kinds that it
does not know, and admits such a Job by itself (Kueue 0.19.2, jobframework, isKnownOwner)."""

IN_JOB_TEMPLATE = "(object.kind == 'CronJob' ? ', in spec.jobTemplate.metadata.labels' : '')"
"""CEL text for messages on the label of a queue: Kueue reads a Job's, not its CronJob's (Kueue docs,
tasks/run/run_cronjobs, 2023-12)."""


_LABELS: Final = "(has({0}.metadata.labels) ? {0}.metadata.labels : {{}})"

CHANGED: Final = (
    "request.operation == 'CREATE' || object.spec != oldObject.spec || "
    f"{_LABELS.format('object')} != {_LABELS.format('oldObject')}"
)
"""CEL condition of a policy on work: what is older than the policy can still be finished and removed."""


POD_VARIABLES: Final[Mapping[str, str]] = {
    "template": "has(dyn(object).spec.jobTemplate) ? dyn(object).spec.jobTemplate.spec.template : "
    "has(dyn(object).spec.template) ? dyn(object).spec.template : dyn(object)",
    "pod": "variables.template.spec",
    "tolerations": "has(variables.pod.tolerations) ? variables.pod.tolerations : []",
    "containers": "(has(variables.pod.containers) ? variables.pod.containers : []) + "
    "(has(variables.pod.initContainers) ? variables.pod.initContainers : [])",
    "limits": "variables.containers.map(c, "
    "has(c.resources) && has(c.resources.limits) ? c.resources.limits : {})",
    "terms": "has(variables.pod.affinity) && has(variables.pod.affinity.nodeAffinity) && "
    "has(variables.pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution) ? "
    "variables.pod.affinity.nodeAffinity"
    ".requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms : []",
}
"""Variables of a pod, or of the pods of a workload's template."""


def quoted(text: str) -> str:
    """Return a text as a CEL string."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def listed(texts: Iterable[str]) -> str:
    """Return texts as a CEL list."""
    return "[" + ", ".join(map(quoted, texts)) + "]"


def guarded_pools(cluster: Cluster) -> tuple[ResolvedPool, ...]:
    """Return the work pools of the queues, in the order of the declaration."""
    names = {name for queue in cluster.resolved_queues for name in queue.pools}
    return tuple(pool for pool in cluster.resolved_pools if pool.name in names)


def tolerates(taint: Taint) -> str:
    """Return the CEL condition under which a pod tolerates a taint."""
    value = "(has(t.value) ? t.value : '')"
    matches = (
        f"(!has(t.key) || t.key in ['', {quoted(taint.key)}])",
        f"(!has(t.effect) || t.effect in ['', {quoted(taint.effect.value)}])",
        f"((has(t.operator) && !(t.operator in ['', 'Equal'])) || {value} == {quoted(taint.value)})",
    )
    return f"variables.tolerations.exists(t, {' && '.join(matches)})"


def _passes(taint: Taint, pool: Pool) -> str:
    """Return the CEL condition under which a pod may be scheduled despite a taint.

    Besides a toleration, this is a request for the accelerator or a selector on the ComputeClass: admission
    then adds the toleration (Kubernetes docs, ExtendedResourceToleration; GKE docs,
    about-custom-compute-classes, 2026).
    """
    conditions = [tolerates(taint)]
    if pool.accelerator is not None and taint.key == resource_name(pool.accelerator.type):
        conditions.append(f"variables.limits.exists(l, {quoted(taint.key)} in l)")
    if taint.key == COMPUTE_CLASS:
        key = quoted(taint.key)
        conditions.append(f"(has(variables.pod.nodeSelector) && {key} in variables.pod.nodeSelector)")
        in_term = f"has(t.matchExpressions) && t.matchExpressions.exists(e, e.key == {key})"
        conditions.append(f"variables.terms.exists(t, {in_term})")
    return "(" + " || ".join(conditions) + ")"


def _reaches(pool: ResolvedPool) -> str:
    """Return the CEL condition under which a pod may be scheduled on a pool's nodes."""
    return " && ".join(_passes(taint, pool) for taint in pool.labels_and_taints.repelling) or "true"


def _named(expressions: Mapping[str, str]) -> list[Object]:
    """Return CEL expressions as the list of a policy."""
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


def _variables(pools: Sequence[ResolvedPool]) -> dict[str, str]:
    return {
        **POD_VARIABLES,
        "labeled": f"object.kind in {listed(_TEMPLATE_LABELED)} "
        "? (has(variables.template.metadata) ? variables.template.metadata : {}) "
        ": object.kind == 'CronJob' "
        "? (has(dyn(object).spec.jobTemplate.metadata) ? dyn(object).spec.jobTemplate.metadata : {}) "
        ": dyn(object).metadata",
        "queue": f"has(variables.labeled.labels) && {quoted(QUEUE_LABEL)} in variables.labeled.labels && "
        f"variables.labeled.labels[{quoted(QUEUE_LABEL)}] != ''",
        "reaches": " || ".join(f"({_reaches(pool)})" for pool in pools),
    }


def _validations(pools: Sequence[Pool]) -> list[Object]:
    names = ", ".join(pool.name for pool in pools)
    no_queue = (
        f"names no queue, but could run on nodes of {names}, which queues share: set the label "
        f"{QUEUE_LABEL} to one that `kubectl get localqueues --namespace "
    )
    return [
        {
            "expression": f"variables.queue || !(object.kind in {listed(_WITHOUT_POD_SPEC)} "
            "|| variables.reaches)",
            "messageExpression": f"{quoted(no_queue)} + request.namespace + '` lists' + {IN_JOB_TEMPLATE}",
            "reason": "Forbidden",
        },
        {
            "expression": f"!has(dyn(object).metadata.ownerReferences) || ({CONTROLLER}) || {_OF_CRON_JOB}",
            "message": "has an owner reference, so Kueue would treat it as already admitted: "
            "omit metadata.ownerReferences",
            "reason": "Forbidden",
        },
    ]


def _is_admitted_with_owner() -> str:
    kinds = " || ".join(
        f"(object.kind == {quoted(kind)} && o.kind == {quoted(owner)})"
        for kind, owner in _ADMITTED_WITH_OWNER
    )
    return (
        "has(dyn(object).metadata.ownerReferences) && dyn(object).metadata.ownerReferences.exists(o, "
        f"has(o.controller) && o.controller && ({kinds})) && {CONTROLLER}"
    )


def policy(cluster: Cluster) -> Object:
    """Return the ValidatingAdmissionPolicy of a complete declaration with queues.

    Workloads that could be scheduled on a queue's pool need a queue name; others are not affected, such as an
    interactive pod on a pool without a queue. They are rejected instead of sent to a default queue, so that a
    job's quota and machine are always declared, and its author gets an error immediately. The policy applies
    to all users of the namespace, including administrators. Source: Kubernetes docs,
    ValidatingAdmissionPolicy v1 (stable since 1.30).
    """
    pools = guarded_pools(cluster)
    return assembled(
        NAME,
        [resource_rule(rule, "CREATE", "UPDATE") for rule in _RULES],
        {"changed": CHANGED, "not-admitted-with-its-owner": f"!({_is_admitted_with_owner()})"},
        _variables(pools),
        _validations(pools),
    )


def resource_rule(rule: Rule, *operations: str) -> Object:
    """Return a rule of a policy for operations."""
    group, version, resources = rule
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": list(resources),
    }


def assembled(
    name: str,
    rules: list[Object],
    conditions: Mapping[str, str],
    variables: Mapping[str, str],
    validations: list[Object],
) -> Object:
    """Return a policy that fails closed."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            **({"matchConditions": _named(conditions)} if conditions else {}),
            "variables": _named(variables),
            "validations": validations,
        },
    }


def binding(name: str, label: str) -> Object:
    """Return the binding of a policy to the namespaces with a label."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {label: "true"}}},
        },
    }


def layers(cluster: Cluster) -> tuple[tuple[Object, ...], ...]:
    """Return the policy, then its binding; empty if no namespace requires a queue."""
    if not any(cluster.requires_queue(team) for team in cluster.teams):
        return ()
    return ((policy(cluster),), (binding(NAME, QUEUE_REQUIRED_LABEL),))
