"""The admission policies that keep what members create, and their workloads, to what is theirs."""

from collections.abc import Iterator, Mapping
from typing import Final

from ebbtide.declaration.catalog.accelerators import resource_name
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE, Cluster
from ebbtide.declaration.model.labels_and_taints import SYSTEM_ONLY
from ebbtide.declaration.model.physical_names import SUBDOMAIN, fitting
from ebbtide.declaration.model.pool import Taint
from ebbtide.declaration.model.tenancy import Limits, Team
from ebbtide.placement.derive import BUCKET_DRIVERS
from ebbtide.placement.owner_policy import (
    KUBERNETES,
    LONGEST_GRACE,
    STEPS,
    Parts,
    guarded_maps,
    is_user,
    labels_of,
    owners,
)
from ebbtide.placement.profile import OWNER_LABEL, QUEUE_LABEL
from ebbtide.placement.queue_objects import QUEUES_LABEL
from ebbtide.placement.queue_policy import (
    CHANGED,
    CONTROLLER,
    IN_JOB_TEMPLATE,
    POD_RULES,
    POD_VARIABLES,
    Rule,
    assembled,
    binding,
    listed,
    quoted,
    resource_rule,
    tolerates,
)
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.paths import Object

MEMBERS_LABEL: Final = "ebbtide.dev/members"
"""Label of the namespaces that the policy applies to."""

LOAD_BALANCERS_LABEL: Final = "ebbtide.dev/load-balancers"
"""Label of the namespaces where Services of type LoadBalancer are declared."""

PODS_LABEL: Final = "ebbtide.dev/pods"
"""Label of a namespace with the maximum number of its pods, as in its quota."""

_WORK_LABELS: Final = ("jobset.sigs.k8s.io/jobset-name", "workflows.argoproj.io/workflow")
"""Labels of pods with the work that they belong to, which its controller sets; the record of costs reads
them."""
_JOB_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")
_UID_LABELS: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")
"""The same of a Job's pods, with its name, which Services select, and with its UID, by which the Job adopts
pods. The API server sets them in a Job's template."""

_POD_BYTES: Final = 1024**3
"""Maximum bytes of all pods of a namespace: their number times the size of one. etcd suggests 8 GiB for all
of a cluster's objects (etcd docs, limits, 2026)."""

_PIPELINE_IMAGES: Final = ("ghcr.io/kubeflow/", "gcr.io/ml-pipeline/")
"""Prefixes of the images of Kubeflow Pipelines (2.17.0, and before 2.4)."""

_UNPLACEABLE: Final = " || ".join(
    f"({listed(_PIPELINE_IMAGES)}.exists(p, c.image.startsWith(p + {quoted(f'{image}:')})) && {test})"
    for image, test in (
        ("kfp-driver", "has(c.command) && size(c.command) > 0 && c.command[size(c.command) - 1] == 'driver'"),
        ("kfp-launcher", "has(c.args) && '--executor_type' in c.args && 'importer' in c.args"),
    )
)
"""CEL condition of the container of a pod of Argo that runs no user's code: a driver, or an importer of an
artifact. Argo precedes the command with its own (Argo Workflows 4.0.5, emissary executor)."""

_DRIVES: Final = (
    f"{STEPS} && "
    f"variables.containers.all(c, c.name in ['init', 'wait'] || (c.name == 'main' && ({_UNPLACEABLE})))"
)
"""CEL condition of the pods of Kubeflow Pipelines that cannot be placed. Argo's own containers are `init` and
`wait`."""

_RULES: Final[tuple[Rule, ...]] = (*POD_RULES, ("", "v1", ("services",)))

_VOLUMES: Final = (
    "configMap",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
"""Volume types that find nothing outside of their namespace: those of the Pod Security Standard `restricted`
without `csi`, and images (Kubernetes docs, 2026)."""

_INLINE_DRIVERS: Final = by_cloud(gke=(BUCKET_DRIVERS[CloudKind.GKE],), aks=())
"""CSI drivers that a pod may use without a claim: those that mount with the identity of the pod. Those of AKS
also mount NFS shares by their address, or with the identity of the node (kubernetes-sigs/blob-csi-driver and
azurefile-csi-driver, docs/driver-parameters.md, 2026)."""

_GKE_SYSTEM_ONLY: Final = Taint(key="components.gke.io/gke-managed-components", value="true")
"""Taint of nodes for GKE's own pods (GKE docs, isolate-workloads-dedicated-nodes, 2026)."""

HIGHEST_PRIORITY: Final = 1_000_000_000
"""The highest value of a priority class besides those of Kubernetes (Kubernetes docs,
pod-priority-preemption, 2026)."""

_OWNERS: Final = (
    ("Pod", ("Job", "ReplicaSet", "StatefulSet", "DaemonSet")),
    ("ReplicaSet", ("Deployment",)),
    ("Job", ("CronJob",)),
)
"""Kinds that Kubernetes' own controllers create from an owner whose template was checked."""


_ABSENT: Final = "-"
"""Value of a label that a node does not have; it is not a valid one."""

_SERVICE_CHECKS: Final = (
    (
        "!has(dyn(object).spec.externalIPs) || size(dyn(object).spec.externalIPs) == 0",
        (
            "'has external IPs, and would receive the traffic of every pod of the cluster to these addresses "
            "(CVE-2020-8554): omit externalIPs'"
        ),
    ),
    (
        "dyn(object).spec.type != 'NodePort' || variables.loadBalancers",
        (
            "'is of type NodePort, which takes a port of the few that all Services of the cluster share: use "
            "`kubectl port-forward`, or ask for loadBalancers in the declaration of the team'"
        ),
    ),
    (
        "dyn(object).spec.type != 'LoadBalancer' || variables.loadBalancers",
        (
            "'is of type LoadBalancer, which creates a billed address that may be public: use `kubectl "
            "port-forward`, or ask for loadBalancers in the declaration of the team'"
        ),
    ),
)


def limits_members(cluster: Cluster, team: Team) -> bool:
    """Return whether the policy applies to a tenant's namespace: the stack creates it, or members or pipeline
    steps can create workloads there."""
    return (
        team.creates_namespace
        or bool(team.members)
        or cluster.requires_queue(team)
        or (team.namespace_name == PIPELINES_NAMESPACE and cluster.addons.installed_pipelines is not None)
    )


def controllers_priority(cluster: Cluster) -> str:
    """Return the name of the priority class of the add-ons' controllers."""
    return fitting(f"ebbtide-controllers-{cluster.name}", SUBDOMAIN)


def controllers_class(cluster: Cluster) -> Object:
    """Return the priority class of the add-ons' controllers.

    A system pool without taints, which GKE's is, also takes steps of Kubeflow Pipelines, and on an existing
    cluster pods that members create without a queue. These are preempted if a controller finds no node:
    webhooks of Kueue, Trainer and Katib fail closed, so that without them no pod of any team would start. Not
    `system-cluster-critical`, which GKE admits outside of kube-system only with a quota (GKE docs,
    gpu-operator, 2026).
    """
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": controllers_priority(cluster)},
        "value": HIGHEST_PRIORITY,
        "description": "Controllers of the cluster's add-ons",
    }


def _system_taints(cluster: Cluster) -> tuple[Taint, ...]:
    """Return the taints of the system pool; of one that is not declared, those that the cloud documents."""
    if cluster.system_pool is not None:
        return cluster.system_pool.labels_and_taints.repelling
    return (by_cloud(gke=_GKE_SYSTEM_ONLY, aks=SYSTEM_ONLY)[cluster.site.cloud],)


def _open_nodes(cluster: Cluster) -> Mapping[str, str]:
    """Return every label of the pools' nodes, with its value on those of the system pool, if pods without
    tolerations run there; empty if none do, or there is no other pool."""
    pool = cluster.system_pool
    if pool is None or pool.labels_and_taints.repelling or not cluster.work_pools:
        return {}
    keys = [key for item in cluster.resolved_pools for key in item.labels_and_taints.all_labels]
    return {key: pool.labels_and_taints.all_labels.get(key, _ABSENT) for key in keys}


def _selects_other_nodes(cluster: Cluster) -> str:
    """Return the CEL condition under which a pod cannot be scheduled on the nodes of `variables.nodes`: by
    its node selector, by each term of its node affinity, or by accelerators, which they do not have."""
    selector, nodes = "variables.pod.nodeSelector", "variables.nodes"
    differs = (
        f"e.key in {nodes} && (e.operator == 'In' ? !({nodes}[e.key] in e.values) : "
        f"e.operator == 'NotIn' ? {nodes}[e.key] in e.values : "
        f"e.operator == 'Exists' && {nodes}[e.key] == {quoted(_ABSENT)})"
    )
    accelerators = {
        resource_name(pool.accelerator.type) for pool in cluster.work_pools if pool.accelerator is not None
    }
    positive = "quantity(string(l[r])).isGreaterThan(quantity('0'))"
    by_term = f"has(t.matchExpressions) && t.matchExpressions.exists(e, {differs})"
    return (
        f"(has({selector}) && {selector}.exists(k, k in {nodes} && {selector}[k] != {nodes}[k])) || "
        f"(size(variables.terms) > 0 && variables.terms.all(t, {by_term})) || "
        f"variables.limits.exists(l, {listed(sorted(accelerators))}.exists(r, r in l && {positive}))"
    )


def _checked_with_owner() -> str:
    owned = " || ".join(
        f"(object.kind == {quoted(kind)} && o.kind in {listed(owners)})" for kind, owners in _OWNERS
    )
    return (
        f"({KUBERNETES}) && "
        "has(dyn(object).metadata.ownerReferences) && dyn(object).metadata.ownerReferences.exists(o, "
        f"has(o.controller) && o.controller && ({owned}))"
    )


def _variables(cluster: Cluster) -> dict[str, str]:
    harmless = [f"has(v.{volume})" for volume in _VOLUMES]
    if drivers := _INLINE_DRIVERS[cluster.site.cloud]:
        harmless.append(f"(has(v.csi) && v.csi.driver in {listed(drivers)})")
    enforced = "'pod-security.kubernetes.io/enforce'"
    nodes = ", ".join(f"{quoted(key)}: {quoted(value)}" for key, value in _open_nodes(cluster).items())
    claims = listed((OWNER_LABEL, *_JOB_LABELS, *_UID_LABELS, *_WORK_LABELS))
    return {
        **POD_VARIABLES,
        "labels": "has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels : {}",
        "exempt": f"object.kind == 'Service' || ({enforced} in variables.labels && "
        f"variables.labels[{enforced}] == 'privileged')",
        "foreign": "(has(variables.pod.volumes) ? variables.pod.volumes : [])"
        f".filter(v, !({' || '.join(harmless)})).map(v, v.name)",
        "priorityClass": "has(variables.pod.priorityClassName) ? variables.pod.priorityClassName : ''",
        "loadBalancers": f"{quoted(LOAD_BALANCERS_LABEL)} in variables.labels",
        "job": "object.kind == 'CronJob' ? dyn(object).spec.jobTemplate : dyn(object)",
        # No pod of a suspended Job exists, and none with a gate is scheduled: Kueue resumes both with the
        # labels of a pool. It suspends the Jobs of a CronJob when they are created.
        "held": "object.kind == 'Pod' "
        "? has(variables.pod.schedulingGates) && size(variables.pod.schedulingGates) > 0 "
        ": (has(variables.job.spec.suspend) && variables.job.spec.suspend) || (object.kind == 'CronJob' && "
        f"{quoted(QUEUES_LABEL)} in variables.labels && has(variables.job.metadata) && "
        f"has(variables.job.metadata.labels) && {quoted(QUEUE_LABEL)} in variables.job.metadata.labels && "
        f"variables.job.metadata.labels[{quoted(QUEUE_LABEL)}] != '')",
        **({"nodes": f"{{{nodes}}}"} if nodes else {}),
        "annotations": "has(variables.template.metadata) && has(variables.template.metadata.annotations) "
        "? variables.template.metadata.annotations : {}",
        "bytes": "size(bytes('%s %s'.format([variables.annotations, variables.pod])))",
        "most": f"{_POD_BYTES} / ({quoted(PODS_LABEL)} in variables.labels "
        f"? int(variables.labels[{quoted(PODS_LABEL)}]) : {Limits().pods})",
        "labelled": labels_of("dyn(object)"),
        "before": f"request.operation == 'CREATE' ? [] : {labels_of('dyn(oldObject)')}",
        # An update of an object of another user keeps its labels.
        "claims": f"{claims}.filter(k, variables.labelled.exists(l, k in l && "
        "!variables.before.exists(b, k in b && b[k] == l[k])))",
    }


def _pod_checks(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield the condition of each check, and the message of its failure, both in CEL."""
    yield (
        "size(variables.foreign) == 0",
        (
            "'has volumes that can mount storage of other teams by its name or address: ' + "
            "variables.foreign.join(', ') + '. Use a claim that `kubectl get persistentvolumeclaims` lists, "
            "a ConfigMap, a Secret or an emptyDir'"
        ),
    )
    # Pods have the value of their class, templates only its name.
    yield (
        (
            f"(object.kind == 'Pod' ? !has(variables.pod.priority) || variables.pod.priority < "
            f"{HIGHEST_PRIORITY} : variables.priorityClass == '')"
        ),
        (
            "'has the priority class ' + variables.priorityClass + ', which may preempt system pods: omit "
            "priorityClassName; in a queue, a WorkloadPriorityClass orders the work'"
        ),
    )
    yield (
        "!has(variables.pod.nodeName) || variables.pod.nodeName == '' || request.operation == 'UPDATE'",
        (
            "'names a node, which bypasses the taints of every pool: omit nodeName, and select nodes "
            "by their labels'"
        ),
    )
    if taints := _system_taints(cluster):
        yield (
            f"!({' && '.join(map(tolerates, taints))})",
            (
                "'tolerates the taints of the system pool, whose nodes are reserved for system pods: "
                "tolerate only the taints of other pools'"
            ),
        )

    if _open_nodes(cluster):
        pools = ", ".join(pool.name for pool in cluster.work_pools)
        queue = (
            f"{quoted(f'set the label {QUEUE_LABEL} to a queue')} + {IN_JOB_TEMPLATE} + ', or ' + "
            if cluster.has_kueue
            else ""
        )
        is_open = cluster.system_pool is not None and cluster.system_pool.is_declared_open
        yield (
            (
                "!(object.kind in ['Pod', 'Job', 'CronJob']) || variables.held || "
                f"({STEPS if is_open else _DRIVES}) || {_selects_other_nodes(cluster)}"
            ),
            (
                "'could run on the system pool, which is for the pods of the cluster and counts towards no "
                f"quota: ' + {queue}"
                + quoted(f"select the nodes of a pool ({pools}), as `ebbtide job --pool` and `use_pool` do")
            ),
        )


def _claim_checks() -> Iterator[tuple[str, str]]:
    """Yield the checks of what a pod says of itself in the record of costs."""
    yield (
        (
            f"!({quoted(OWNER_LABEL)} in variables.claims) || variables.labelled.all(l, "
            f"!({quoted(OWNER_LABEL)} in l) || {is_user('l')})"
        ),
        (
            f"'has the label {OWNER_LABEL} of another user than ' + request.userInfo.username + ', who "
            "would be charged in the record of costs: omit the label'"
        ),
    )
    own = f"k in {listed(_JOB_LABELS)} ? dyn(object).metadata.name : dyn(object).metadata.uid"
    yield (
        (
            f"({CONTROLLER}) || {STEPS} || "
            f"!variables.claims.exists(k, k in {listed(_WORK_LABELS)} || "
            f"(k in {listed((*_JOB_LABELS, *_UID_LABELS))} && !variables.labelled.all(l, !(k in l) || "
            f"(object.kind == 'Job' && l[k] == ({own})))))"
        ),
        (
            "'has a label that its controller sets, and would count as part of other work: omit "
            f"{', '.join((*_JOB_LABELS, *_UID_LABELS, *_WORK_LABELS))}'"
        ),
    )


def _size_checks() -> Iterator[tuple[str, str]]:
    """Yield the checks of what the API server and its clients would have to hold."""
    pods, parallelism = quoted(PODS_LABEL), "variables.job.spec.parallelism"
    yield (
        (
            f"!(object.kind in ['Job', 'CronJob']) || !({pods} in variables.labels) || "
            f"!has({parallelism}) || {parallelism} <= int(variables.labels[{pods}])"
        ),
        (
            f"'has a parallelism of ' + string({parallelism}) + ', and its namespace admits ' + "
            f"variables.labels[{pods}] + ' pods: lower the parallelism, or ask for a higher limits.pods in "
            "the declaration of the team'"
        ),
    )
    yield (
        "variables.bytes <= variables.most",
        (
            "'has ' + string(variables.bytes) + ' bytes in each pod, and its namespace admits ' + "
            "string(variables.most) + ': write large texts to a ConfigMap or a bucket, or ask for a lower "
            "limits.pods in the declaration of the team'"
        ),
    )
    yield (
        (
            "!has(variables.pod.terminationGracePeriodSeconds) || "
            f"variables.pod.terminationGracePeriodSeconds <= {LONGEST_GRACE}"
        ),
        quoted(f"takes more than {LONGEST_GRACE} seconds to terminate: lower terminationGracePeriodSeconds"),
    )
    yield (
        "!has(variables.job.spec.manualSelector) || !variables.job.spec.manualSelector",
        quoted("may adopt pods of other work by its selector: omit manualSelector and selector"),
    )


def _members(cluster: Cluster) -> Parts:
    """Return the policy on work and Services."""
    checks = [(f"variables.exempt || {test}", message) for test, message in _pod_checks(cluster)]
    checks += [(f"object.kind != 'Service' || {test}", message) for test, message in _SERVICE_CHECKS]
    of_work = (*_claim_checks(), *_size_checks())
    checks += [(f"object.kind == 'Service' || {test}", message) for test, message in of_work]
    rules = [resource_rule(rule, "CREATE", "UPDATE") for rule in _RULES]
    conditions = {"changed": CHANGED, "not-checked-with-its-owner": f"!({_checked_with_owner()})"}
    return rules, conditions, _variables(cluster), checks


def objects(cluster: Cluster) -> Mapping[str, tuple[Object, Object]]:
    """Return the ValidatingAdmissionPolicies of a complete declaration, each with its binding, by what they
    are on; empty if it has no tenant whose members or steps create workloads.

    Refused are volumes of types that find storage by its name or address, such as the NFS share of another
    team; Services with external IPs or of type LoadBalancer; pods on the system pool or with the priorities
    of its pods: Kueue's webhooks fail closed, so that no pod of any team starts while Kueue has no node, and
    the pool would grow beyond every quota; labels of other users and their work; more or larger pods than
    the namespace admits; and changes of what belongs to others (`owner_policy`). A namespace whose pods may
    be privileged is exempt from the checks of pods: they can become root on a node.

    Requests of administrators, who could change the policy, are admitted, as are the pods of their
    DaemonSets and Deployments. Sources: Kubernetes docs, ValidatingAdmissionPolicy v1 (stable since 1.30),
    pod-priority-preemption and volumes (2026).
    """
    if not any(limits_members(cluster, team) for team in cluster.tenants):
        return {}
    policies = {"members": _members(cluster), "profile": guarded_maps(), "owners": owners(cluster)}
    # Two stacks may declare teams of one existing cluster.
    names = {subject: fitting(f"ebbtide-{subject}-{cluster.name}", SUBDOMAIN) for subject in policies}
    resource = "authorizer.group('admissionregistration.k8s.io').resource('validatingadmissionpolicies')"
    administrator = f"{resource}.name({quoted(names['members'])}).check('update').allowed()"
    return {
        subject: (
            assembled(
                names[subject],
                rules,
                conditions,
                {**variables, "administrator": administrator},
                [
                    {
                        "expression": f"{test} || variables.administrator",
                        "messageExpression": message,
                        "reason": "Forbidden",
                    }
                    for test, message in checks
                ],
            ),
            binding(names[subject], MEMBERS_LABEL),
        )
        for subject, (rules, conditions, variables, checks) in policies.items()
    }
