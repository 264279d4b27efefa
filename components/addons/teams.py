"""Tenants: a team's cloud resources, its namespace, and the objects in it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from ebbtide.declaration.model.addons import Costs
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE, Cluster, pod_security_of
from ebbtide.declaration.model.physical_names import SUBDOMAIN, fitting
from ebbtide.declaration.model.tenancy import Team
from ebbtide.declaration.providers.constraints import PATCH_FORCE
from ebbtide.placement.derive import ACCOUNT, CLAIM
from ebbtide.placement.member_policy import LOAD_BALANCERS_LABEL, MEMBERS_LABEL, PODS_LABEL, limits_members
from ebbtide.placement.profile import Profile
from ebbtide.placement.profile_sources import CONFIG_MAP, KEY
from ebbtide.placement.queue_objects import QUEUES_LABEL
from ebbtide.placement.queue_policy import QUEUE_REQUIRED_LABEL
from ebbtide.placement.queueing import Flavor, largest_node
from ebbtide.values import quantities
from ebbtide.values.cloud_kind import CloudKind

from ..replacement import hooks
from .manifest import InCluster, Manifest, leaf_options, obj
from .security import (
    called_from,
    egress_policies,
    from_outside,
    granted,
    member_rules,
    own_namespace,
    pod_security,
    rbac_rule,
    subjects,
)

PIPELINES_ACCOUNT = "pipeline-runner"
"""The service account that steps of Kubeflow Pipelines run as by default (kubeflow/pipelines 2.17.0,
manifests/kustomize/base/pipeline/pipeline-runner-sa.yaml). The installation creates it."""

MOUNT_NAMESPACE = "kube-system"
"""Namespace of the Secrets with the credentials to mount volumes. A pod can mount any Secret of its own
namespace, so they are in one without members; a volume refers to a Secret of any namespace, which the kubelet
reads (Kubernetes docs, PersistentVolume, CSI, 2026)."""

SMALL = {"cpu": "100m", "memory": "256Mi"}
"""Default requests of a container."""

RECORDER = {"kind": "ServiceAccount", "name": "recorder", "namespace": Costs.spec.namespace}
"""The cost recorder's account, as the subject of a binding."""

_NODE_PORTS = 100
"""Ports of nodes that the load balancers of a team take at most."""


def volume_name(cluster: str, team: Team) -> str:
    """Return the name of a team's volume, which is cluster-scoped, and of the Secret to mount it with."""
    return fitting(f"{cluster}-{team.name}-{CLAIM}", SUBDOMAIN)


class RegistryKeyError(Exception):
    """A registry cannot have the declared key; the message has the alternative."""


def registry_inputs(key: str | None) -> dict[str, str]:
    """Return the inputs of a registry's component, which `fixed_registry_key` compares."""
    return {"key": key} if key else {}


def fixed_registry_key(cloud: CloudKind) -> pulumi.ResourceOptions:
    """Return options with which the component of a registry keeps the key that it was created with.

    Artifact Registry cannot change it, and the provider would delete the images (pulumi-gcp 10.2.0). Azure
    takes another key, but the first one only at the creation, and cannot go back to its own keys
    (azure-container-registry docs, tutorial-customer-managed-keys, 2026).
    """

    def refuse(args: pulumi.ResourceHookArgs) -> None:
        old, new = (args.old_inputs or {}, args.new_inputs or {})
        was, now = old.get("key"), new.get("key")
        if was == now or (cloud is CloudKind.AKS and was and now):
            return
        raise RegistryKeyError(
            f"The registry {args.name} was created with {was or 'no key'}, and cloud.keys.registries is "
            f"{now or 'not declared'}: only a new registry can have it. Write the old value, or another "
            "storageName of the team, which gives it a new bucket and registry; those of a permanent stack "
            "remain, with what they hold."
        )

    return pulumi.ResourceOptions(hooks=hooks(f"{cloud}:registry-key", before_update=refuse))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDisk:
    """A shared volume.

    Attributes:
        source: the volume source in a PersistentVolume's spec.
        size_gib: its size; a nominal one for a bucket, which has none.
        credentials: data of the Secret to mount it with, if it needs one.
    """

    source: Mapping[str, Any]
    size_gib: int
    mount_options: tuple[str, ...] = ()
    credentials: Mapping[str, pulumi.Input[str]] = field(default_factory=dict[str, pulumi.Input[str]])


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamResources:
    """A team's identity, bucket and volume in the cloud.

    Attributes:
        annotations: annotations that bind the service account in the cluster to the identity.
        bucket: address of the bucket; None if the team has no bucket.
        disk: the shared volume; None if the team has no volume.
        grants: prerequisites of the team's workloads.
        adopted: service accounts in the namespace that are not created with the team, and also get the
            annotations.
    """

    annotations: Mapping[str, pulumi.Input[str]]
    bucket: pulumi.Input[str] | None = None
    disk: SharedDisk | None = None
    grants: tuple[pulumi.Resource, ...] = ()
    adopted: tuple[str, ...] = ()


def adopted_accounts(team: Team) -> tuple[str, ...]:
    """Return service accounts, besides the team's, that act as its identity: that of pipeline steps, if the
    team uses the namespace of Kubeflow Pipelines."""
    return (PIPELINES_ACCOUNT,) if team.namespace_name == PIPELINES_NAMESPACE else ()


CreateTeamResources = Callable[[Team], TeamResources]
"""Creates the cloud resources of a team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantArgs:
    """Arguments of `Tenant`.

    Attributes:
        profile: the placement profile for workloads in its namespace.
        flavors: the flavors of its queues.
        resources: its cloud resources; None for a namespace without a team, such as `default`.
        depends_on: Kueue, whose webhooks intercept requests in the namespace.
        namespace_made_with: the add-on that creates the namespace with its labels, if any.
        accounts_made_with: the add-on that creates its service accounts, if any.
        deleted_with: the cluster, if its deletion deletes the tenant.
    """

    declaration: Cluster
    team: Team
    profile: Profile
    flavors: tuple[Flavor, ...] = ()
    resources: TeamResources | None = None
    depends_on: tuple[pulumi.Resource, ...] = ()
    namespace_made_with: tuple[pulumi.Resource, ...] = ()
    accounts_made_with: tuple[pulumi.Resource, ...] = ()
    deleted_with: pulumi.Resource | None = None


class Tenant(InCluster):
    """A namespace, created or existing, with its members' permissions, queues, limits and identity.

    An existing namespace is never created or deleted, and gets no limits, unless they are declared, and no
    network policy, since it may have other workloads. It has the label that enables queueing while the team
    is declared.
    """

    namespace: tuple[pulumi.Resource, ...]
    """Prerequisites of every object in the namespace."""
    bucket: pulumi.Input[str] | None
    """Address of the team's bucket; None if it has none."""

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:Tenant", name, opts, args.deleted_with)
        declaration, team = args.declaration, args.team
        ours = team.creates_namespace

        def create(manifest: dict[str, Any], *needs: pulumi.Resource, patch: bool = False) -> Manifest:
            role = f"{manifest['kind'].lower()}-{manifest['metadata']['name']}"
            return self._create(f"{name}-{role}", manifest, needs, patch=patch)

        self.namespace = args.namespace_made_with or (
            create(namespace_manifest(declaration, team), *args.depends_on, patch=not ours),
        )
        self.bucket = args.resources.bucket if args.resources else None
        created = ours or bool(args.namespace_made_with)
        profile = profile_map(args.profile, team, created=created)
        options = leaf_options(self, args.deleted_with, self.namespace)
        # Otherwise Pulumi prints a changed profile with a line for each value, for each team.
        options.hide_diffs = ["data"]
        Manifest(f"{name}-configmap-{profile['metadata']['name']}", profile, options)
        if ours:
            for manifest in network_policies(declaration, team):
                create(manifest, *self.namespace)
            create(nothing_left_behind(team), *self.namespace)
            if (largest := limit_range(args.flavors, team)) is not None:
                create(largest, *self.namespace)
        if (quota := object_quota(declaration, team)) is not None:
            create(quota, *self.namespace)
        roles = (*members(declaration, team), *attempts_readers(declaration, team))
        for manifest in roles:
            create(manifest, *self.namespace)
        if args.resources is not None:
            ready = (*self.namespace, *args.resources.grants)
            # By default its pods get no token for the Kubernetes API: workloads need none.
            worker = account(ACCOUNT, team, args.resources, automountServiceAccountToken=False)
            create(worker, *ready)
            for existing in args.resources.adopted:
                annotated = account(existing, team, args.resources)
                create(annotated, *ready, *args.accounts_made_with, patch=True)
            if args.resources.disk is not None:
                self._share(name, args, args.resources)
        self.register_outputs({"bucket": self.bucket})

    def _share(self, name: str, args: TenantArgs, resources: TeamResources) -> None:
        """Create the shared volume and its claim. The claim is deleted with the namespace if the stack
        created the namespace: a separate deletion would wait for the pods that use the claim."""
        declaration, team, disk = args.declaration, args.team, resources.disk
        if disk is None:
            return
        needs = [*self.namespace, *resources.grants]
        if disk.credentials:
            secret = mount_secret(declaration.name, team, disk.credentials)
            needs.append(self._create(f"{name}-mount", secret, self.namespace))
        disk_volume = self._create(f"{name}-volume", volume_manifest(declaration.name, team, disk), needs)
        ours = team.creates_namespace
        Manifest(
            f"{name}-claim",
            claim_manifest(declaration.name, team, disk),
            leaf_options(self, args.deleted_with or (self.namespace[0] if ours else None), [disk_volume]),
        )


def namespace_labels(declaration: Cluster, team: Team) -> dict[str, str]:
    """Return the labels of a tenant's namespace: its team, its Pod Security Standard, the controllers that
    watch it."""
    labels = {"ebbtide.dev/team": team.name}
    standard = pod_security_of(declaration, team)
    if standard is not None:
        labels |= pod_security(standard)
    if declaration.has_kueue:
        labels[QUEUES_LABEL] = "true"
    if declaration.requires_queue(team):
        labels[QUEUE_REQUIRED_LABEL] = "true"
    if limits_members(declaration, team):
        labels[MEMBERS_LABEL] = "true"
    if team.load_balancers:
        labels[LOAD_BALANCERS_LABEL] = "true"
    if team.object_limits is not None:
        labels[PODS_LABEL] = str(team.object_limits.pods)
    for add_on in declaration.add_ons:
        labels |= add_on.spec.namespace_labels
    return labels


def namespace_manifest(declaration: Cluster, team: Team) -> dict[str, Any]:
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


def limit_range(flavors: Sequence[Flavor], team: Team) -> dict[str, Any] | None:
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
    the cluster's deletion, the cloud would keep and bill their disks and addresses. Load balancers also take
    ports of nodes, of which all Services of the cluster share 2,768 (Kubernetes docs, Service, 2026)."""
    hard = {"persistentvolumeclaims": "1" if team.volume is not None else "0"}
    hard["services.nodeports"] = str(_NODE_PORTS if team.load_balancers else 0)
    if not team.load_balancers:
        hard["services.loadbalancers"] = "0"
    return obj(
        "v1",
        "ResourceQuota",
        "nothing-left-behind",
        team.namespace_name,
        spec={"hard": hard},
    )


def object_quota(declaration: Cluster, team: Team) -> dict[str, Any] | None:
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
    kinds = ("configmaps", "cronjobs.batch", "secrets", "services")
    hard = dict.fromkeys(kinds, limits.objects) | {"jobs.batch": limits.jobs}
    # Those of an add-on whose namespace is a tenant's run there.
    if any(item.spec.untolerating and not item.spec.runs_work for item in declaration.add_ons):
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
    for add_on in declaration.add_ons:
        if add_on.spec.calls:
            yield called_from(add_on, team.namespace_name)


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


def account(name: str, team: Team, resources: TeamResources, **fields: Any) -> dict[str, Any]:
    """Return a service account with the annotations by which it acts as the team's cloud identity."""
    annotations = {"annotations": dict(resources.annotations)}
    return obj("v1", "ServiceAccount", name, team.namespace_name, metadata=annotations, **fields)


def _size(disk: SharedDisk) -> dict[str, str]:
    return {"storage": f"{disk.size_gib}Gi"}


def volume_manifest(cluster: str, team: Team, disk: SharedDisk) -> dict[str, Any]:
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


def claim_manifest(cluster: str, team: Team, disk: SharedDisk) -> dict[str, Any]:
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
