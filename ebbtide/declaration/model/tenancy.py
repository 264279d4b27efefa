"""Queues over pools, teams that use the queues, and their members."""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ebbtide.declaration.model.base import Converted, Count, Declared, Name, Names, Positive, default

QueueingStrategy = Literal["BestEffortFIFO", "StrictFIFO"]
_GROUP = "group:"
_WORKFORCE, _WORKFORCE_GROUP = "principal://", "principalSet://"
_OBJECT_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ACCOUNT = ".gserviceaccount.com"


class LocalQueue(Declared):
    """A Kueue LocalQueue in an existing namespace that is not a team's, such as `default`. The namespace is
    labelled for Kueue, gets no service account, bucket or RBAC, and is never deleted. Work there may name the
    queue; the API server requires a queue in a team's namespace only."""

    namespace: Name
    """The namespace."""
    name: Name | None = None
    """Name. Default: the queue's name."""


class Preemption(Declared):
    """Eviction of admitted work in favor of waiting work. Evicted work waits again, and starts anew."""

    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] | None = None
    """Whose work the same team's waiting work evicts. Default: `LowerPriority`. If `reclaimWithinCohort` is
    `Never`, only up to the team's guarantee: Kueue preempts for borrowed nodes only if both are allowed."""
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] | None = None
    """Whose work on borrowed nodes a team's waiting work evicts, up to its guarantee, and beyond it up to its
    fair share. Default: `Any` for a team with a guarantee in the queue, `LowerPriority` for the others."""


class Cohort(Declared):
    """Settings of all queues, which share one cohort; a queue's own settings replace them."""

    name: Name | None = None
    """Name of the cohort, for example that of queues which exist. Default: the cluster's name."""
    preemption: Preemption | None = None
    """Preemption in queues without their own."""
    queueing_strategy: QueueingStrategy | None = None
    """Strategy of queues without their own. Default: `BestEffortFIFO`."""


class Queue(Declared):
    """A queue of work for pools, in order of preference."""

    name: Name
    """Name, and default name of its local queues in teams' namespaces."""
    pools: Names = Field(min_length=1)
    """Pools for the queue's work, the preferred one first."""
    fallback: bool = False
    """True if work falls back to the next pool when the cloud has no stock of the preferred one. The queue
    then treats its pools as one, and the cloud's autoscaler chooses among them in this order: GKE by a
    ComputeClass with the queue's name, AKS by the priority expander. No other queue may have these pools."""
    together: bool = False
    """AKS: request all nodes that a job needs at once before it is admitted, all or none. GKE does so on
    pools whose capacity is `queued`."""
    local_queues: Converted[tuple[LocalQueue, ...], Sequence[LocalQueue]] = default(())
    """Local queues in namespaces without a team. Teams' local queues are derived."""
    preemption: Preemption | None = None
    """Preemption by the queue's work. Default: the cohort's."""
    queueing_strategy: QueueingStrategy | None = None
    """`BestEffortFIFO`: work that does not fit yet lets later work pass. `StrictFIFO`: the oldest work of
    the highest priority holds up all others of its team. Default: the cohort's."""
    borrowing_limit: dict[Name, Count] = Field(default_factory=dict[Name, Count])
    """The most nodes that a team, or the namespaces without one, use through the queue beyond a guarantee, by
    pool. Default: all nodes that are free."""


class Namespace(Declared):
    """Namespace of a team, if it is not named after the team."""

    name: Name
    """Name in Kubernetes."""
    create: bool = True
    """True to create it; an existing namespace, such as `default`, is used and never deleted."""
    pod_security: Literal["privileged", "baseline", "restricted"] | None = None
    """Pod Security Standard that the API server enforces in the namespace. Default: `baseline`, under which
    no pod becomes root on its node; an existing namespace keeps its label."""


class QueueUse(Declared):
    """A queue that a team uses."""

    queue: Name
    """Name of one of the declared queues."""
    as_: Name | None = None
    """Name of the local queue in the team's namespace. Default: the queue's name."""
    cluster_queue: Name | None = None
    """Name of the team's ClusterQueue, for example that of one which exists: a LocalQueue cannot move to
    another one. Default: the names of the team and the queue, `vision.gpus`."""


class Bucket(Declared):
    """A bucket for checkpoints and results. It outlives pods and nodes, and is billed by its contents."""

    keep: bool | None = None
    """True to keep the bucket with its contents when the stack is destroyed. Default: true; false for an
    ephemeral cluster, whose bucket is deleted with its contents."""


class Volume(Declared):
    """A shared volume that all of a team's pods can read and write."""

    kind: Literal["bucket", "filestore", "azure-files"] = "bucket"
    """`bucket`: the team's bucket, mounted; billed by its contents, and slow for small files. `filestore`
    (GKE) and `azure-files` (AKS): file systems, billed by their size even while unused."""
    size_gib: Positive | None = None
    """Size of a file system. Default and minimum: 1024 for `filestore`, 100 for `azure-files`."""


class Registry(Declared):
    """A container registry for images: the team's members push, the cluster's nodes pull. Images are billed
    by the GiB; on AKS the registry is also billed by the day, even while it is empty."""

    keep: bool | None = None
    """True to keep the registry with its images when the stack is destroyed. Default: true; false for an
    ephemeral cluster."""
    immutable_tags: bool = False
    """GKE: True if a tag can never be moved to another image."""
    delete_untagged_days: Positive | None = None
    """GKE: days after which an image without a tag is deleted. Default: never."""


class Limits(Declared):
    """Limits of the objects in a team's namespace, which keep the API server responsive. Queues limit what
    the work uses."""

    jobs: Positive = 2000
    """Maximum number of Jobs, finished ones included, which a day after their end are deleted by default, and
    those of add-ons. The sum of all teams determines Kueue's memory: 40 KiB for each Job are requested on the
    system pool, and 190 KiB may be used."""
    pods: Positive = 5000
    """Maximum number of pods that have not ended, and of those that one Job runs at once. As many of them
    have at most 1 GiB of etcd: with the default, 214 kB each."""
    experiments: Positive = 20
    """Maximum number of Katib's experiments that run at once. Each has a pod on the system pool."""
    objects: Positive = 500
    """Maximum number of ConfigMaps, of CronJobs, of Secrets and of Services. The code of a run may be a
    ConfigMap. Each has at most 1 MiB, and Kubernetes has no quota of their size: the default admits 500 MiB
    of each kind, of the 8 GiB that etcd suggests for all of a cluster's objects (Kubernetes docs, ConfigMaps;
    etcd docs, limits, 2026)."""


def _use_from_name(value: object) -> object:
    return {"queue": value} if isinstance(value, str) else value


_QueueUse = Annotated[QueueUse, BeforeValidator(_use_from_name, json_schema_input_type=str | QueueUse)]


class Team(Declared):
    """Users who share a namespace and queues."""

    name: Name
    """Name, and default name of its namespace."""
    namespace: Namespace | None = None
    members: Names = default(())
    """GKE: e-mail addresses of users and service accounts, and of groups as `group:vision@acme.example`;
    users and groups of a workforce identity pool as `principal://…` and `principalSet://…`. AKS: object ids
    of Entra groups, or names of users (`ada@acme.example`). On a cluster that Ebbtide creates, they are also
    granted the rights to fetch the kubeconfig and reach the control plane; on any, the rights to read and
    write the team's bucket, share and registry."""
    queues: Converted[
        tuple[_QueueUse, ...], list[QueueUse | str] | list[QueueUse] | list[str] | tuple[QueueUse | str, ...]
    ] = default(())
    """Queues that the team uses. Default: all queues."""
    guarantee: dict[Name, Count] = Field(default_factory=dict[Name, Count])
    """Nodes guaranteed to the team, by pool; other teams borrow them while the team does not use them."""
    borrowing_limit: dict[Name, Count] = Field(default_factory=dict[Name, Count])
    """The most nodes that the team uses beyond its guarantee through each of its queues, by pool. Default:
    the queue's limit."""
    lending_limit: dict[Name, Count] = Field(default_factory=dict[Name, Count])
    """The most of the guaranteed nodes that other teams borrow, by pool. Default: all of them."""
    require_queue: bool | None = None
    """Require work that could run on a queue's pools to name a queue; the API server rejects it otherwise.
    Default: true, but false in an existing namespace."""
    interactive: bool = False
    """Let members create pods besides Jobs, for example for a shell. On a queue's pools, pods must name a
    queue like all other work."""
    load_balancers: bool = False
    """Let members create Services of type LoadBalancer and NodePort, with at most 100 ports of nodes, and
    admit clients from outside of the cluster to the team's pods. With `externalTrafficPolicy: Local`, a
    Service keeps the client's address, by which it is admitted. The cloud bills the addresses, which are
    public unless an annotation makes them internal; `ebbtide destroy` deletes them."""
    limits: Limits | None = None
    """Limits of the objects in the namespace. Default: `{}`; none in an existing namespace."""
    weight: Positive = 1
    """Fair-sharing weight of the team, relative to other teams, for capacity that is not guaranteed."""
    bucket: Bucket | None = None
    """A bucket that the team's pods can write to, `{}` for the defaults."""
    registry: Registry | None = None
    """A container registry for the team's images, `{}` for the defaults."""
    volume: Volume | None = None
    """A shared volume in the team's namespace, `{}` for the team's bucket, mounted."""
    storage_name: Name | None = None
    """Name of the team in the names of its bucket, share and registry. Default: its name. A team that is
    renamed keeps them, with all that they contain, with its former name here."""

    @property
    def stored_as(self) -> str:
        """Name of the team in the names of its bucket, share and registry."""
        return self.storage_name or self.name

    @property
    def namespace_name(self) -> str:
        """Name of the team's namespace."""
        return self.namespace.name if self.namespace else self.name

    @property
    def creates_namespace(self) -> bool:
        """True if the namespace is created, and deleted, with the team."""
        return self.namespace is None or self.namespace.create

    @property
    def pod_security(self) -> str | None:
        """Pod Security Standard to enforce; None to keep the namespace's own."""
        if self.namespace is not None and self.namespace.pod_security is not None:
            return self.namespace.pod_security
        return "baseline" if self.creates_namespace else None

    @property
    def object_limits(self) -> Limits | None:
        """Limits of the objects in the namespace; None for none."""
        return Limits() if self.limits is None and self.creates_namespace else self.limits

    @property
    def has_bucket(self) -> bool:
        """True if a bucket is created: for `bucket`, or for a shared volume of that kind."""
        return self.bucket is not None or (self.volume is not None and self.volume.kind == "bucket")

    def queues_used(self, queue: str) -> tuple[QueueUse, ...]:
        """Return the team's uses of a queue: under the declared names, or under the queue's own name."""
        if not self.queues:
            return (QueueUse(queue=queue),)
        return tuple(use for use in self.queues if use.queue == queue)

    def cluster_queue(self, queue: str) -> str:
        """Return the name of the team's ClusterQueue for a queue."""
        declared = (use.cluster_queue for use in self.queues_used(queue) if use.cluster_queue)
        return next(declared, f"{self.name}.{queue}")


def is_group(member: str) -> bool:
    """Return whether a member is a group in GKE's form: of Google, or of a workforce identity pool."""
    return member.startswith((_GROUP, _WORKFORCE_GROUP))


def name_of(member: str) -> str:
    """Return a member's name in Kubernetes, without the prefix for groups."""
    return member.removeprefix(_GROUP)


def is_object_id(member: str) -> bool:
    """Return whether a member is an Entra object id, to which Azure can assign a role."""
    return _OBJECT_ID.fullmatch(member) is not None


def principal(member: str) -> str:
    """Return a member as an IAM principal with its type (cloud.google.com/iam/docs/principal-identifiers,
    2026)."""
    if is_group(member) or member.startswith(_WORKFORCE):
        return member
    return f"serviceAccount:{member}" if member.endswith(_ACCOUNT) else f"user:{member}"


def groups_domain(members: Iterable[str]) -> str:
    """Return the domain of Google's groups among the members; empty if there is none."""
    return next((member.rpartition("@")[2] for member in members if member.startswith(_GROUP)), "")
