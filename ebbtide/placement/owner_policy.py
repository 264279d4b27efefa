"""The admission policies that keep members of one namespace off what belongs to others there: work and its
objects that have the label of another user, and the ConfigMaps that all of them use."""

from typing import Final

from ebbtide.declaration.model.capacity import Queued
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE, Cluster
from ebbtide.placement.profile import CREATED_FOR, MAX_RUN_ANNOTATION, OWNER_LABEL, QUEUE_LABEL
from ebbtide.placement.profile_sources import CONFIG_MAP
from ebbtide.placement.queue_policy import (
    CONTROLLER,
    QUEUE_REQUIRED_LABEL,
    listed,
    quoted,
    resource_rule,
)
from ebbtide.values.paths import Object

_ROOT_CERTIFICATES: Final = "kube-root-ca.crt"
"""ConfigMap by which pods verify the API server. Its publisher cannot restore one that is immutable
(Kubernetes 1.36, pkg/controller/certificates/rootcacertpublisher)."""

_LONG_NAME: Final = 50
"""Length of a label from which on the user's name may have been cut, after 63 characters."""

_STEPS_ACCOUNT: Final = f"system:serviceaccount:{PIPELINES_NAMESPACE}:argo"
"""Account of the controller that creates the steps of Kubeflow Pipelines, and their drivers and importers,
which cannot be placed (kubeflow/pipelines 2.17.0, argocompiler)."""

STEPS: Final = f"request.userInfo.username == {quoted(_STEPS_ACCOUNT)}"
"""CEL condition of the pods of Kubeflow Pipelines: steps, drivers and importers."""

KUBERNETES: Final = (
    "request.userInfo.username == 'system:kube-controller-manager' || "
    "request.userInfo.username.startsWith('system:serviceaccount:kube-system:')"
)
"""Kubernetes' own controllers, whose accounts depend on the cloud."""

LONGEST_GRACE: Final = 3600
"""Maximum seconds that a pod gets to terminate, while its namespace cannot be deleted."""

_MANAGED: Final = "kueue.x-k8s.io/managed"
"""Label, and finalizer, that Kueue's webhook adds to a pod when a user creates it (Kueue 0.19.2,
pkg/controller/jobs/pod)."""

_MANAGERS: Final = (
    "kubernetes.io/job-controller",
    "jobset.sigs.k8s.io/jobset-controller",
    "trainer.kubeflow.org/trainjob-controller",
)
"""Controllers of work that exist on a cluster, as its field `managedBy` names them."""

_TOKEN: Final = "kubernetes.io/service-account-token"  # noqa: S105 - the type of a Secret
"""Type of a Secret for which the API server makes a token without an end."""

Parts = tuple[list[Object], dict[str, str], dict[str, str], list[tuple[str, str]]]
"""Rules, conditions and variables of a policy, and its checks: each a condition and the message of its
failure, both in CEL."""

_RULES: Final = (
    resource_rule(("batch", "v1", ("jobs", "cronjobs")), "CREATE", "UPDATE"),
    resource_rule(("", "v1", ("configmaps", "secrets", "services", "pods")), "CREATE", "UPDATE", "DELETE"),
)


def is_user(labels: str) -> str:
    """Return the CEL condition under which the user of a map of labels is that of the request.

    The owner's label is the user's name, whose other characters are replaced (`ebbtide.work.runs.run`).
    A long name is cut, so that only its beginning is compared.
    """
    owner = f"{labels}[{quoted(OWNER_LABEL)}]"
    return (
        f"request.userInfo.username.matches('^[^A-Za-z0-9]*' + {owner}.replace('.', '[.]')"
        f".replace('-', '[^A-Za-z0-9._]+') + (size({owner}) < {_LONG_NAME} ? '[^A-Za-z0-9]*$' : ''))"
    )


def labels_of(item: str) -> str:
    """Return the CEL list of the labels of an object, of the Jobs of a CronJob, and of the pods of its
    template."""
    jobs = f"{item}.spec.jobTemplate"
    return (
        f"([{item}] + (!has({item}.spec) ? [] : has({jobs}) ? [{jobs}, {jobs}.spec.template] : "
        f"has({item}.spec.template) ? [{item}.spec.template] : []))"
        ".filter(t, has(t.metadata)).map(t, has(t.metadata.labels) ? t.metadata.labels : {})"
    )


def _kept(path: str, *others: str) -> str:
    """Return the CEL condition under which an update keeps all fields of a map, besides some."""
    new, old, excluded = f"variables.new{path}", f"variables.old{path}", listed(others)
    return (
        f"{new}.all(k, k in {excluded} || (k in {old} && {new}[k] == {old}[k])) && "
        f"{old}.all(k, k in {excluded} || k in {new})"
    )


def _only_stops() -> str:
    """Return the CEL condition under which an update at most suspends work, or lowers its parallelism."""
    suspended = "variables.{0}.spec.?suspend.orValue(false)"
    return " && ".join(
        (
            f"({_kept('', 'metadata', 'status', 'spec')})",
            f"({_kept('.metadata', 'managedFields', 'resourceVersion', 'generation')})",
            (
                f"(!has(variables.old.spec) || ({_kept('.spec', 'suspend', 'parallelism')} && "
                f"({suspended.format('new')} || !{suspended.format('old')}) && "
                "variables.new.spec.?parallelism.orValue(1) <= variables.old.spec.?parallelism.orValue(1)))"
            ),
        )
    )


def _longest_runs(cluster: Cluster) -> dict[str, int]:
    """Return the seconds that nodes of a LocalQueue may run, by its namespace and name, for the queues whose
    work requests its nodes' lifetime."""
    pools = {pool.name: pool for pool in cluster.resolved_pools}
    longest: dict[str, int] = {}
    for queue in cluster.resolved_queues:
        queued = [pools[name] for name in queue.pools if isinstance(pools[name].capacity, Queued)]
        limits = [limit for pool in queued if (limit := pool.max_run_seconds) is not None]
        for tenant in cluster.tenants if limits and len(limits) == len(queued) else ():
            for use in tenant.queues_used(queue.name):
                longest[f"{tenant.namespace_name}/{use.as_ or use.queue}"] = max(limits)
    return longest


def _run_checks(cluster: Cluster) -> list[tuple[str, str]]:
    longest = _longest_runs(cluster)
    if not longest:
        return []
    limits = ", ".join(f"{quoted(key)}: {seconds}" for key, seconds in sorted(longest.items()))
    annotation, label = quoted(MAX_RUN_ANNOTATION), quoted(QUEUE_LABEL)
    queue = f"request.namespace + '/' + m.labels[{label}]"
    test = (
        "variables.jobs.filter(j, has(j.metadata)).map(j, j.metadata)"
        ".all(m, !(has(m.annotations) && has(m.labels) && "
        f"{annotation} in m.annotations && {label} in m.labels && ({queue}) in {{{limits}}}) || "
        f"(m.annotations[{annotation}].matches('^[0-9]{{1,9}}$') && "
        f"int(m.annotations[{annotation}]) <= {{{limits}}}[{queue}]))"
    )
    return [
        (
            test,
            quoted(f"requests nodes for longer than their pool's maxRunDuration: lower {MAX_RUN_ANNOTATION}"),
        )
    ]


def _checks(cluster: Cluster) -> list[tuple[str, str]]:
    """Return the condition of each check, and the message of its failure, both in CEL."""
    kind, managers = "request.kind.kind", listed(_MANAGERS)
    # Where work needs a queue, its policy refuses owners; `kubectl create job --from` sets the CronJob.
    controls = (
        "o.?blockOwnerDeletion.orValue(false) || (o.?controller.orValue(false) && o.kind != 'CronJob' && "
        f"!namespaceObject.metadata.?labels[?{quoted(QUEUE_REQUIRED_LABEL)}].hasValue())"
    )
    return [
        (
            f"request.operation != 'UPDATE' || !variables.theirs || ({_only_stops()})",
            (
                "'belongs to another user than ' + request.userInfo.username + ', who is charged for what it "
                "runs: stop it, or create your own'"
            ),
        ),
        (
            (
                f"request.operation != 'DELETE' || {kind} == 'Pod' || !variables.theirs || "
                f"variables.old.metadata.?labels[?{quoted(CREATED_FOR)}].hasValue()"
            ),
            quoted(
                "belongs to the work of another user, which would run with one of the same name: delete the "
                "work, with which it is deleted"
            ),
        ),
        (
            (
                f"variables.new.metadata.?ownerReferences.orValue([]).all(o, !({controls}) || "
                "o in variables.old.metadata.?ownerReferences.orValue([]))"
            ),
            quoted(
                "has an owner reference with controller or blockOwnerDeletion, and would count as work of "
                "its owner, or block its deletion: omit both"
            ),
        ),
        (
            (
                "variables.new.metadata.?finalizers.orValue([]).all(f, "
                "f in variables.old.metadata.?finalizers.orValue([]) || "
                f"({kind} == 'Pod' && f == {quoted(_MANAGED)} && "
                f"variables.new.metadata.?labels[?{quoted(_MANAGED)}].hasValue()))"
            ),
            quoted(
                "has a finalizer that no controller removes, which would block the deletion of the "
                "namespace: omit metadata.finalizers"
            ),
        ),
        (
            f"{kind} != 'Secret' || !has(variables.new.type) || variables.new.type != {quoted(_TOKEN)}",
            quoted("is of a type for which the API server makes a token that never expires: omit the type"),
        ),
        (
            (
                "variables.jobs.all(j, !has(j.spec) || !has(j.spec.managedBy) || "
                f"j.spec.managedBy in {managers})"
            ),
            quoted(
                "names a controller that does not exist, and would hold its quota forever: omit managedBy"
            ),
        ),
        (
            (
                f"request.operation != 'DELETE' || {kind} != 'Pod' || "
                "!has(request.options.gracePeriodSeconds) || "
                f"request.options.gracePeriodSeconds <= {LONGEST_GRACE}"
            ),
            quoted(f"may take at most {LONGEST_GRACE} seconds to terminate: lower --grace-period"),
        ),
        *_run_checks(cluster),
    ]


def owners(cluster: Cluster) -> Parts:
    """Return the policy on what belongs to one member of a namespace.

    A member may stop another's work, by suspending it, by fewer pods at once or by its deletion, and change
    nothing else of what has the label of its user. Objects without the label are everybody's. What members
    write has no finalizer and no owner that it blocks, so that it can be deleted with its namespace.
    """
    rules = [
        *_RULES,
        *(
            resource_rule((right.group, "*", right.resources), "CREATE", "UPDATE")
            for add_on in cluster.add_ons
            for right in add_on.spec.rights
            if "update" in right.verbs
        ),
    ]
    theirs = f"l, {quoted(OWNER_LABEL)} in l && !{is_user('l')}"
    variables = {
        "old": "request.operation == 'CREATE' ? dyn({'metadata': {}}) : dyn(oldObject)",
        "new": "request.operation == 'DELETE' ? dyn({'metadata': {}}) : dyn(object)",
        "theirs": f"{labels_of('variables.old')}.exists({theirs})",
        "jobs": "[variables.new] + (has(variables.new.spec) && has(variables.new.spec.jobTemplate) "
        "? [variables.new.spec.jobTemplate] : [])",
    }
    checks = [(f"({test})", message) for test, message in _checks(cluster)]
    return rules, {"by-no-controller": f"!(({CONTROLLER}) || {STEPS})"}, variables, checks


def guarded_maps() -> Parts:
    """Return the policy on the placement profile, which the commands of every member of the team follow, such
    as the registry that code is pushed to, and on the certificates by which pods verify the API server.
    Kubernetes' controllers create the latter, and delete both with their namespace."""
    names = {"resourceNames": [CONFIG_MAP, _ROOT_CERTIFICATES]}
    rule = names | resource_rule(("", "v1", ("configmaps",)), "CREATE", "UPDATE", "DELETE")
    certificates = "has the certificates by which all pods verify the API server: mount another one"
    profile = (
        "is the placement profile, which the commands of all members follow: write another one to a file, "
        "and set EBBTIDE_PROFILE to its path"
    )
    message = f"request.name == {quoted(_ROOT_CERTIFICATES)} ? {quoted(certificates)} : {quoted(profile)}"
    return [rule], {}, {}, [(KUBERNETES, message)]
