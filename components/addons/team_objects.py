"""Manifests of a tenant's namespace."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pulumi

from ebbtide.declaration.model import Cluster, Team
from ebbtide.declaration.model.addons import Costs
from ebbtide.declaration.model.tenants import pod_security_of
from ebbtide.placement.kueue import QUEUES_LABEL
from ebbtide.placement.member_policy import LOAD_BALANCERS_LABEL, MEMBERS_LABEL, PODS_LABEL, limits_members
from ebbtide.placement.profile import Profile
from ebbtide.placement.profile_sources import CONFIG_MAP, KEY
from ebbtide.placement.queue_policy import QUEUE_REQUIRED_LABEL, requires_queue
from ebbtide.placement.quotas import Flavor, largest_node
from ebbtide.placement.team_storage import ACCOUNT, CLAIM
from ebbtide.values import quantities

from .manifest import PATCH_FORCE, obj
from .members import granted, member_rules, rbac_rule, subjects
from .network_policies import called_from, egress_policies, from_outside, own_namespace
from .pod_security import pod_security
from .team_resources import MOUNT_NAMESPACE, SharedDisk, TeamResources, volume_name

SMALL = {"cpu": "100m", "memory": "256Mi"}
"""Default requests of a container."""

RECORDER = {"kind": "ServiceAccount", "name": "recorder", "namespace": Costs.spec.namespace}
"""The cost recorder's account, as the subject of a binding."""


def namespace_labels(declaration: Cluster, team: Team) -> dict[str, str]:
    """Return the labels of a tenant's namespace: its team, its Pod Security Standard, the controllers that
    watch it."""
    labels = {"ebbtide.dev/team": team.name}
    standard = pod_security_of(declaration, team)
    if standard is not None:
        labels |= pod_security(standard)
    if declaration.has_kueue:
        labels[QUEUES_LABEL] = "true"
    if requires_queue(declaration, team):
        labels[QUEUE_REQUIRED_LABEL] = "true"
    if limits_members(declaration, team):
        labels[MEMBERS_LABEL] = "true"
    if team.load_balancers:
        labels[LOAD_BALANCERS_LABEL] = "true"
    if team.object_limits is not None:
        labels[PODS_LABEL] = str(team.object_limits.pods)
    for add_on in declaration.installed:
        labels |= add_on.spec.namespace_labels
    return labels


def namespace(declaration: Cluster, team: Team) -> dict[str, Any]:
    """Return the namespace, or only the labels of an existing one."""
    labels = namespace_labels(declaration, team)
    return obj("v1", "Namespace", team.namespace_name, metadata={"labels": labels})


def profile_map(profile: Profile, team: Team, *, created: bool) -> dict[str, Any]:
    """Return the placement profile's ConfigMap, for workloads that submit workloads.

    Args:
        profile: the profile for workloads in the tenant's namespace.
        team: the tenant.
        created: whether the stack creates the namespace, and so owns the ConfigMap: an update overwrites
            fields that another field manager applied. In an existing namespace, another stack may own it, and
            the update fails with a conflict (pulumi-kubernetes 4.34, annotation `pulumi.com/patchForce`).
    """
    return obj(
        "v1",
        "ConfigMap",
        CONFIG_MAP,
        team.namespace_name,
        metadata={"annotations": {PATCH_FORCE: "true"}} if created else {},
        data={KEY: profile.json()},
    )


def limits(flavors: Sequence[Flavor], team: Team) -> dict[str, Any] | None:
    """Return the limit range; None if the tenant has no queue, and so no flavors.

    A container may request at most what the largest node has. Quota is a sum over nodes, so a pod that fits
    no node would be admitted and then be pending indefinitely.

    The maximum of a limit range is also the default of containers without requests, so small default requests
    are set, without limits. Accelerators cannot be limited this way: the range would reject every pod without
    one (Kubernetes 1.37, plugin/pkg/admission/limitranger).
    """
    if not flavors:
        return None
    most = largest_node(flavors)
    return obj(
        "v1",
        "LimitRange",
        "one-node",
        team.namespace_name,
        spec={
            "limits": [{"type": "Container", "max": most, "default": most, "defaultRequest": SMALL}],
        },
    )


def nothing_left_behind(team: Team) -> dict[str, Any]:
    """Return the quota that admits no claim but the declared one, and no load balancer unless declared: after
    the cluster's deletion, the cloud would keep and bill their disks and addresses."""
    hard = {"persistentvolumeclaims": "1" if team.volume is not None else "0"}
    if not team.load_balancers:
        hard["services.loadbalancers"] = "0"
    return obj(
        "v1",
        "ResourceQuota",
        "nothing-left-behind",
        team.namespace_name,
        spec={"hard": hard},
    )


def objects(declaration: Cluster, team: Team) -> dict[str, Any] | None:
    """Return the quota of objects in a tenant's namespace: those that members create, and Katib's Deployments
    for them; None without limits.

    Custom kinds are not counted. Until the quota controller has discovered one, up to five minutes after its
    installation, it would refuse every object of the kind, such as Kueue's Workload of the first Job
    (Kubernetes 1.36, kube-controller-manager, resource-quota-sync-period). The Jobs and pods that they create
    are counted.
    """
    limits = team.object_limits
    if limits is None:
        return None
    hard = dict.fromkeys(("configmaps", "secrets", "services"), limits.objects) | {"jobs.batch": limits.jobs}
    # Those of an add-on whose namespace is a tenant's run there.
    if any(item.spec.untolerating and not item.spec.runs_work for item in declaration.installed):
        hard["deployments.apps"] = limits.experiments
    counts = {"pods": limits.pods} | {f"count/{kind}": number for kind, number in hard.items()}
    return obj(
        "v1",
        "ResourceQuota",
        "objects",
        team.namespace_name,
        spec={"hard": {name: quantities.count(number) for name, number in sorted(counts.items())}},
    )


def network_policies(declaration: Cluster, team: Team) -> Iterator[dict[str, Any]]:
    """Yield policies that admit only pods of the same namespace, and add-ons' controllers and clients of load
    balancers if necessary. Egress is not restricted otherwise: data sets and registries are anywhere."""
    yield own_namespace(team.namespace_name)
    if team.load_balancers:
        yield from_outside(team.namespace_name)
    yield from egress_policies(declaration.site.cloud, team.namespace_name)
    for add_on in declaration.installed:
        if add_on.spec.calls:
            yield called_from(add_on.spec, team.namespace_name)


def members(declaration: Cluster, team: Team) -> Iterator[dict[str, Any]]:
    """Return the members' role and its binding."""
    if not team.members:
        return
    who = [subject for member in team.members for subject in subjects(member, declaration.site.cloud)]
    rules = member_rules(declaration, team)
    yield from granted(team.namespace_name, "member", rules, who, bound_by="members")


def attempts_readers(declaration: Cluster, team: Team) -> Iterator[dict[str, Any]]:
    """Yield the role by which the cost recorder reads the pods and Jobs of a tenant's namespace, and its
    binding."""
    if declaration.addons.costs is not None:
        rules = [rbac_rule("", ["pods", "events"], ["list"]), rbac_rule("batch", ["jobs"], ["list"])]
        yield from granted(team.namespace_name, "cost-recorder", rules, [RECORDER])


def account(team: Team, resources: TeamResources) -> dict[str, Any]:
    """Return the service account of the team's cloud identity. By default its pods get no token for the
    Kubernetes API: workloads need none."""
    return obj(
        "v1",
        "ServiceAccount",
        ACCOUNT,
        team.namespace_name,
        metadata={"annotations": dict(resources.annotations)},
        automountServiceAccountToken=False,
    )


def adopted(name: str, team: Team, resources: TeamResources) -> dict[str, Any]:
    """Return the annotations with which an existing service account acts as the team's identity."""
    return obj(
        "v1",
        "ServiceAccount",
        name,
        team.namespace_name,
        metadata={"annotations": dict(resources.annotations)},
    )


def _size(disk: SharedDisk) -> dict[str, str]:
    return {"storage": f"{disk.size_gib}Gi"}


def volume(cluster: str, team: Team, disk: SharedDisk) -> dict[str, Any]:
    """Return the shared volume. It is provisioned statically: its storage is created and deleted with the
    team, regardless of the claim and its reclaim policy."""
    spec: Mapping[str, Any] = {
        "capacity": _size(disk),
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        | {"namespace": team.namespace_name, "name": CLAIM},
        **disk.source,
    }
    if disk.mount_options:
        spec = {**spec, "mountOptions": list(disk.mount_options)}
    return obj("v1", "PersistentVolume", volume_name(cluster, team), spec=spec)


def claim(cluster: str, team: Team, disk: SharedDisk) -> dict[str, Any]:
    """Return the claim of the shared volume, for pods."""
    return obj(
        "v1",
        "PersistentVolumeClaim",
        CLAIM,
        team.namespace_name,
        spec={
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": volume_name(cluster, team),
            "resources": {"requests": _size(disk)},
        },
    )


def mount_secret(cluster: str, team: Team, data: Mapping[str, pulumi.Input[str]]) -> dict[str, Any]:
    """Return the Secret with the credentials to mount the volume."""
    name = volume_name(cluster, team)
    return obj("v1", "Secret", name, MOUNT_NAMESPACE, type="Opaque", stringData=dict(data))
