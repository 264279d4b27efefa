"""Queues over pools, and teams that use the queues."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ebbtide.model.base import Converted, Count, Declared, Name, Names, default


class LocalQueue(Declared):
    """A Kueue LocalQueue in a namespace that exists and is not a team's, such as `default`. The namespace is
    labelled for Kueue, and gets neither service account, bucket nor RBAC; it is never removed. Work there may
    name the queue, and is not required to: the API server requires a queue in a team's namespace alone."""

    namespace: Name
    """The namespace."""
    name: Name | None = None
    """Its name. Default: the queue's."""


class Queue(Declared):
    """A queue of work for pools, in order of preference."""

    name: Name
    """Name, and by default that of its local queues in teams' namespaces."""
    pools: Names = Field(min_length=1)
    """Pools that the queue's work runs on, the preferred one first."""
    fallback: bool = False
    """True if work falls back to the next pool when the cloud has no stock of the preferred one. The queue
    then treats its pools as one, and the cloud's autoscaler chooses among them in this order: GKE by a
    ComputeClass with the queue's name, AKS by the priority expander. No other queue may have these pools."""
    together: bool = False
    """AKS: the nodes that a job needs are asked for at once, before it is admitted, and come all or not at
    all. GKE has that on pools whose capacity is `queued`."""
    local_queues: Converted[tuple[LocalQueue, ...], Sequence[LocalQueue]] = default(())
    """Local queues in namespaces without a team. Teams have their own."""


class Namespace(Declared):
    """The namespace of a team, where it is not one of its own name."""

    name: Name
    """As Kubernetes has it."""
    create: bool = True
    """True to create it; an existing one, such as `default`, is used and never deleted."""
    pod_security: Literal["privileged", "baseline", "restricted"] | None = None
    """Pod Security Standard that the API server enforces in it. Default: `baseline`, under which no pod
    becomes root on its node; an existing namespace keeps the label that it has."""


class QueueUse(Declared):
    """A queue that a team uses."""

    queue: Name
    """Name of one of the declared queues."""
    as_: Name | None = None
    """Name of the local queue in the team's namespace. Default: the queue's name."""


class Bucket(Declared):
    """A bucket for checkpoints and results: it outlives pods and nodes, and bills what is in it."""

    keep: bool | None = None
    """True to keep it, with its contents, when the stack is destroyed. Default: true, and false for an
    ephemeral cluster, whose bucket is deleted with its contents."""


class Volume(Declared):
    """A volume that all of a team's pods read and write at once."""

    kind: Literal["bucket", "filestore", "azure-files"] = "bucket"
    """`bucket`: the team's bucket, mounted; it bills what is in it, and is slow for small files. `filestore`
    (GKE) and `azure-files` (AKS) are file systems, which bill their size while nothing runs."""
    size_gib: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Size of a file system. Left out, and at least: 1024 for `filestore`, 100 for `azure-files`."""


class Registry(Declared):
    """A container registry for images: the team's members push, the cluster's nodes pull. Images are billed
    by the GiB, and on AKS the registry by the day, also while it is empty."""

    keep: bool | None = None
    """True to keep it, with its images, when the stack is destroyed. Default: true, and false for an
    ephemeral cluster."""
    immutable_tags: bool = False
    """GKE: whether a tag can never be moved to another image."""
    delete_untagged_days: Annotated[int, Field(strict=True, ge=1)] | None = None
    """GKE: days after which an image without a tag is deleted. Default: never."""


def _use_from_name(value: object) -> object:
    return {"queue": value} if isinstance(value, str) else value


_QueueUse = Annotated[QueueUse, BeforeValidator(_use_from_name, json_schema_input_type=str | QueueUse)]


class Team(Declared):
    """People who share a namespace and queues."""

    name: Name
    """Name, and by default that of its namespace."""
    namespace: Namespace | None = None
    members: Names = default(())
    """GKE: e-mail addresses of users and service accounts, and of groups as `group:vision@acme.example`. AKS:
    object ids of Entra groups, or names of users (`ada@acme.example`). On a cluster of ours they are also let
    in: given what fetching the kubeconfig and reaching the control plane takes, and no more."""
    queues: Converted[
        tuple[_QueueUse, ...], list[QueueUse | str] | list[QueueUse] | list[str] | tuple[QueueUse | str, ...]
    ] = default(())
    """Queues that the team uses. Default: all."""
    guarantee: dict[Name, Count] = Field(default_factory=dict[Name, Count])
    """Nodes, by pool, that are the team's whenever it wants them; while it does not, others borrow them."""
    require_queue: bool | None = None
    """Require work that could run on a queue's pools to name a queue; the API server refuses it otherwise.
    Default: yes, but no in an existing namespace."""
    interactive: bool = False
    """Let members create pods, as for a shell, besides Jobs. On a queue's pools a pod names a queue, like all
    other work."""
    weight: Annotated[int, Field(strict=True, ge=1)] = 1
    """The team's share of what no team is guaranteed, relative to the other teams'."""
    bucket: Bucket | None = None
    """A bucket that the team's pods may write, `{}` for its defaults."""
    registry: Registry | None = None
    """A container registry for the team's images, `{}` for its defaults."""
    volume: Volume | None = None
    """A shared volume in the team's namespace, `{}` for its bucket, mounted."""

    @property
    def namespace_name(self) -> str:
        """The namespace that the team works in."""
        return self.namespace.name if self.namespace else self.name

    @property
    def creates_namespace(self) -> bool:
        """True where the namespace is created with the team, and deleted with it."""
        return self.namespace is None or self.namespace.create

    @property
    def pod_security(self) -> str | None:
        """Pod Security Standard to enforce; None for the namespace's own."""
        if self.namespace is not None and self.namespace.pod_security is not None:
            return self.namespace.pod_security
        return "baseline" if self.creates_namespace else None

    @property
    def has_bucket(self) -> bool:
        """True if a bucket is created: for `bucket`, or for a shared volume of that kind."""
        return self.bucket is not None or (self.volume is not None and self.volume.kind == "bucket")

    def queues_used(self, queue: str) -> tuple[QueueUse, ...]:
        """Return the team's uses of a queue: under the names that it declares, or under the queue's own."""
        if not self.queues:
            return (QueueUse(queue=queue),)
        return tuple(use for use in self.queues if use.queue == queue)
