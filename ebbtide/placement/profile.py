"""The placement profile: the description of a cluster for workloads, as versioned plain JSON."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from ebbtide.placement.profile_sources import ProfileError, read, stack_output
from ebbtide.values.cloud_kind import CloudKind

_NAME = "ebbtide.dev/profile/v"
VERSION = f"{_NAME}2"
_READABLE = (f"{_NAME}1", VERSION)

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Label with the LocalQueue of a workload (Kueue docs, run Jobs, 2026)."""

PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
"""Label with the WorkloadPriorityClass of a workload (Kueue docs, run Jobs with WorkloadPriority, 2026)."""

PRIORITIES = {
    "ebbtide-low": (-1000, "Yields to all other work, such as sweeps that can run overnight."),
    "ebbtide-normal": (0, "Default priority of work."),
    "ebbtide-high": (1000, "First within its team, whose work of lower priority it may preempt."),
}
"""Priorities of work in the queues: names, values and descriptions of Kueue's WorkloadPriorityClasses."""

_ARCHITECTURE = "kubernetes.io/arch"

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation of pods that says whether the cluster autoscaler may evict them to remove their node."""

OWNER_LABEL = "ebbtide.dev/owner"
"""Label of work and its objects with their user, as a label's value (`ebbtide.work.runs.run`); the record of
costs reads it, and policies keep other members off them."""

CREATED_FOR = "ebbtide.dev/created-for"
"""Label with a Job's name on a ConfigMap or a Service that the Job does not own yet: a later creation deletes
those of an interrupted one."""

MAX_RUN_ANNOTATION = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
"""Annotation with the requested lifetime of nodes, which Kueue copies to the ProvisioningRequest (Kueue docs,
provisioning, 0.19)."""

UNCONFIGURED = "unconfigured"
UNKNOWN = "unknown"
_Thing = TypeVar("_Thing")


@dataclass(frozen=True, slots=True)
class NodeTaint:
    """A taint of a node, as in Kubernetes; `value` may be empty."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration, as in a pod spec; `value` is empty with the operator `Exists`."""

    key: str
    operator: str
    value: str
    effect: str

    def manifest(self) -> dict[str, str]:
        """Return the toleration for a pod spec."""
        return {name: text for name, text in asdict(self).items() if text}


@dataclass(frozen=True, slots=True)
class MatchExpression:
    """A requirement on a node's label; a pool's requirements are in one term, and must all match."""

    key: str
    operator: str
    values: tuple[str, ...]

    def manifest(self) -> dict[str, Any]:
        """Return the expression for a pod spec."""
        return {"key": self.key, "operator": self.operator, "values": list(self.values)}


@dataclass(frozen=True, slots=True)
class AcceleratorProfile:
    """The accelerators of one node.

    Attributes:
        count: allocatable count of the resource on a node; for shared GPUs, the shares.
        resource: resource that a pod requests, such as `nvidia.com/gpu`.
        shares: count of the resource per accelerator.
        max_request: the maximum that one container can request; None for all of a node's.
        slice_nodes: nodes of a TPU slice, which run one Job together.
    """

    type: str
    count: int
    resource: str
    shares: int = 1
    max_request: int | None = None
    slice_nodes: int = 1

    @property
    def most(self) -> int:
        """The maximum that one container can request."""
        return self.count if self.max_request is None else self.max_request

    def __str__(self) -> str:
        return f"{self.count} {self.type}" if self.shares == 1 else f"{self.count} shares of {self.type}"


@dataclass(frozen=True, slots=True)
class GpuDirectProfile:
    """Additions to a pod that uses all GPUs of a node, for GPUDirect.

    Attributes:
        strategy: `rdma` or `tcpxo`.
        annotations: annotations of the pod: its network interfaces.
        env: environment variables of its container, for NCCL.
        init_containers: sidecars.
        volumes: volumes of the pod.
        mounts: mounts of its container.
    """

    strategy: str
    annotations: dict[str, str]
    env: dict[str, str]
    init_containers: tuple[dict[str, Any], ...] = ()
    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class PriceProfile:
    """The list price of a node at its pool's capacity type, before discounts and tax.

    Attributes:
        per_hour: price of a node's hour, with its accelerators and its boot disk; None if the price of its
            machine or its accelerators is unknown.
        currency: currency, as in ISO 4217.
        estimated: whether a part of it is an estimate.
        as_of: month or date of its oldest part; empty if unknown.
        without: parts without a known price, which are not in `per_hour`.
    """

    per_hour: float | None = None
    currency: str = "USD"
    estimated: bool = False
    as_of: str = ""
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolProfile:
    """A node pool, as described for workloads.

    Attributes:
        role: `system` or `work`.
        machine: machine type.
        capacity: capacity type, such as `spot`.
        interruptible: true if the cloud may reclaim a node with running pods.
        cpu_m: allocatable CPU of a node in millicores; 0 for an unknown machine type.
        memory_mib: allocatable memory of a node in MiB; 0 for an unknown machine type.
        max_nodes: the maximum node count.
        max_run_seconds: maximum lifetime of a node in seconds; None for no limit.
        accelerator: accelerators of one node; None for a CPU pool.
        labels: labels of its nodes.
        taints: taints of its nodes.
        tolerations: tolerations that a pod needs.
        affinity: node affinity that selects the pool.
        queues: queues that use it.
        price: price of a node; unknown in a profile of version 1.
        image: default image of work on it, pinned by digest; empty for none.
        gpu_direct: additions to pods for GPUDirect; None for a pool without it.
        period: begin and end of its reservation in calendar mode (RFC 3339), outside which it has no nodes;
            empty for any other pool.
    """

    name: str
    role: str
    machine: str
    capacity: str
    interruptible: bool
    cpu_m: int
    memory_mib: int
    max_nodes: int
    max_run_seconds: int | None
    accelerator: AcceleratorProfile | None
    labels: dict[str, str]
    taints: tuple[NodeTaint, ...]
    tolerations: tuple[Toleration, ...]
    affinity: tuple[MatchExpression, ...]
    queues: tuple[str, ...]
    price: PriceProfile = PriceProfile()
    image: str = ""
    gpu_direct: GpuDirectProfile | None = None
    period: tuple[str, ...] = ()

    @property
    def architecture(self) -> str:
        """Architecture of its nodes: `amd64` or `arm64`."""
        return self.labels.get(_ARCHITECTURE, "amd64")


@dataclass(frozen=True, slots=True)
class LocalQueueProfile:
    """A queue in a team's namespace.

    Attributes:
        name: the queue's name there.
        required: whether the API server rejects workloads there that could use the queue's pools without the
            queue.
        restricted: whether it rejects pods there that violate the Pod Security Standard `restricted`.
    """

    team: str
    namespace: str
    name: str
    required: bool = False
    restricted: bool = False


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """A queue: its pools in order of preference, and its name in each namespace."""

    name: str
    pools: tuple[str, ...]
    local_queues: tuple[LocalQueueProfile, ...]


@dataclass(frozen=True, slots=True)
class LogsProfile:
    """Address of a pod's logs, also after its deletion; `{namespace}` and `{pod}` are placeholders.

    Attributes:
        query: a query in the language of the cloud's log store.
        link: address of a page with that query; empty if it cannot be derived.
    """

    query: str
    link: str


@dataclass(frozen=True, slots=True)
class TeamProfile:
    """A team, or a namespace without one, and what its workloads can use.

    Attributes:
        registry: prefix of the names of its images, without a trailing slash; empty without a registry.
        bucket: address of its bucket, as `gs://NAME` or `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net`;
            empty without a bucket.
        claim: PersistentVolumeClaim of its shared volume; empty without a volume.
        claim_kind: kind of that volume, `bucket`, `filestore` or `azure-files`; empty without a volume, and
            in a profile from an older Ebbtide.
        service_account: service account of pods that act as its cloud identity; empty without one.
    """

    name: str
    namespace: str
    registry: str = ""
    bucket: str = ""
    claim: str = ""
    service_account: str = ""
    claim_kind: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """A cluster, as described for workloads.

    Attributes:
        pipeline_retries: failures after which a pipeline step is retried, as the stack configures Kubeflow
            Pipelines: `disruptions` or `any`; `unconfigured` if it does not; `unknown` in a profile from an
            older Ebbtide.
        priorities: names of the WorkloadPriorityClasses, lowest first; empty in a profile from an older
            Ebbtide.
        bucket_driver: CSI driver that mounts buckets in pods; empty if the cluster may not have it, and in a
            profile from an older Ebbtide.
        teams: the teams; in a profile of version 1, those with registries.
    """

    cluster: str
    cloud: CloudKind
    location: str
    pools: tuple[PoolProfile, ...]
    queues: tuple[QueueProfile, ...]
    logs: LogsProfile
    pipeline_retries: str = UNKNOWN
    teams: tuple[TeamProfile, ...] = ()
    priorities: tuple[str, ...] = ()
    bucket_driver: str = ""
    version: str = VERSION

    def pool(self, name: str) -> PoolProfile:
        """Return a pool by name.

        Raises:
            ProfileError: the cluster has no such pool.
        """
        return _named("pool", name, {pool.name: pool for pool in self.pools}, self.cluster)

    def queue(self, name: str) -> QueueProfile:
        """Return a queue by name.

        Raises:
            ProfileError: the cluster has no such queue.
        """
        return _named("queue", name, {queue.name: queue for queue in self.queues}, self.cluster)

    def find_queue(self, reference: str, namespace: str = "") -> tuple[QueueProfile, str]:
        """Return a queue, and the namespace of work in it; empty if that is still to be chosen.

        Args:
            reference: the queue's name in the declaration, or a LocalQueue: `big`, or `vision/big`.
            namespace: the namespace of the work; empty if it follows from the queue.

        Raises:
            ProfileError: the cluster has no such queue, or several.
        """
        if any(queue.name == reference for queue in self.queues):
            return self.queue(reference), namespace
        given, _, name = reference.rpartition("/")
        if given and namespace not in ("", given):
            raise ProfileError(f"queue is {reference}, and namespace is {namespace}: write one namespace.")
        named = [
            (queue, local)
            for queue in self.queues
            for local in queue.local_queues
            if local.name == name and (given or namespace) in ("", local.namespace)
        ]
        if len({(queue.name, local.namespace) for queue, local in named}) == 1:
            queue, local = named[0]
            return queue, local.namespace
        if named:
            listed = ", ".join(f"{local.namespace}/{local.name}" for _, local in named)
            raise ProfileError(f"Several queues have the name {name}: write one of {listed}.")
        return self.queue(reference), namespace

    def default_image(self, *, pool: str = "", queue: str = "", namespace: str = "") -> str:
        """Return the default image of work on a pool or in a queue, pinned by digest; arguments of a queue as
        for `find_queue`.

        Raises:
            ProfileError: the cluster has no such pool or queue, or its pools have no common default.
        """
        images = {item.image for item in self.pools_of(pool, queue, namespace)}
        image = images.pop()
        if images or not image:
            raise ProfileError(
                f"{'Queue' if queue else 'Pool'} {queue or pool} of cluster {self.cluster} has no default "
                "image. Name one with --image."
            )
        return image

    def architecture(self, *, pool: str = "", queue: str = "", namespace: str = "") -> str:
        """Return the architecture of the nodes of a pool, or of the pools of a queue; arguments of a queue as
        for `find_queue`.

        Raises:
            ProfileError: the cluster has no such pool or queue, or its pools have no common architecture.
        """
        pools = self.pools_of(pool, "" if pool else queue, namespace)
        names = sorted({item.architecture for item in pools}) or ["amd64"]
        if len(names) > 1:
            raise ProfileError(
                f"Queue {queue} of cluster {self.cluster} has pools of {' and '.join(names)}, and an image "
                "with code has one platform. Name a pool with --pool, or use --code-in config-map."
            )
        return names[0]

    def pools_of(self, pool: str, queue: str, namespace: str) -> list[PoolProfile]:
        """Return the pools that work names: one, or those of a queue, with arguments as for `find_queue`.

        Raises:
            ProfileError: the cluster has no such pool or queue, or several.
        """
        names = self.find_queue(queue, namespace)[0].pools if queue else (pool,) if pool else ()
        return [self.pool(name) for name in names]

    def is_restricted(self, namespace: str) -> bool:
        """Return whether pods in a namespace have to satisfy the Pod Security Standard `restricted`; known
        only for namespaces with queues."""
        return any(
            local.restricted
            for queue in self.queues
            for local in queue.local_queues
            if local.namespace == namespace
        )

    def team_of(self, namespace: str) -> TeamProfile | None:
        """Return the team of a namespace; None if the profile has none."""
        return next((team for team in self.teams if team.namespace == namespace), None)

    def image(self, team: str, name: str) -> str:
        """Return the full name of an image in a team's registry.

        Args:
            name: name of the image, with its tag or digest, such as `trainer:1`.

        Raises:
            ProfileError: the team has no registry.
        """
        prefixes = {item.name: item.registry for item in self.teams if item.registry}
        return f"{_named('registry of team', team, prefixes, self.cluster)}/{name}"

    def data(self) -> dict[str, Any]:
        """Return the profile as plain data, `version` first."""
        plain: dict[str, Any] = json.loads(json.dumps(_members(self), default=_members))
        return {"version": plain.pop("version"), **plain}

    def json(self) -> str:
        """Return the profile as indented JSON text."""
        return json.dumps(self.data(), indent=2)

    def output(self) -> str:
        """Return the profile as a stack output: one line, with a digest in front that changes with the
        profile."""
        return stack_output(self.data())

    @classmethod
    def load(
        cls,
        source: str | Path | Mapping[str, Any] | None = None,
        *,
        namespace: str = "",
        context: str = "",
    ) -> "Profile":
        """Read a profile.

        Args:
            source: the data, its JSON text, or the value of a stack output; or its location: a file,
                `stack:NAME` for the output of a Pulumi stack, `configmap:NAMESPACE` for the ConfigMap in a
                team's namespace. Default: the environment variable `EBBTIDE_PROFILE`, which accepts the same
                texts; without it, the ConfigMap in a namespace of the kubeconfig's cluster.
            namespace: that namespace; empty for the context's.
            context: the kubeconfig's context; empty for the current one.

        Raises:
            ProfileError: it does not exist, is not a profile, or has an unsupported version.
        """
        data = source if isinstance(source, Mapping) else read(source, namespace=namespace, context=context)
        _check_version(data.get("version"))
        try:
            return cast("Profile", _read(cls, _with_teams(data)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProfileError(
                f"The profile is damaged: {type(error).__name__}: {error}. Write it again with `ebbtide "
                "profile`."
            ) from None


def _check_version(version: object) -> None:
    if version in _READABLE:
        return
    number = re.fullmatch(rf"{re.escape(_NAME)}(\d+)", str(version))
    if number and int(number[1]) > int(VERSION.removeprefix(_NAME)):
        raise ProfileError(
            f"The profile is newer than this package: its version is {version}, this package reads "
            f"{VERSION}. Install a newer ebbtide."
        )
    raise ProfileError(
        f"This profile cannot be read: its version is {version!r}, this package reads {VERSION}. Install the "
        "version of ebbtide that created the cluster, or write the profile again with this version."
    )


def _named(kind: str, name: str, known: Mapping[str, _Thing], cluster: str) -> _Thing:
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    guess = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(known) or 'none'}."
    raise ProfileError(f"Cluster {cluster} has no {kind} {name}{guess}")


def _read(kind: Any, data: Any) -> Any:
    """Return a value of a type from plain data; fields that this version does not know are left out, since a
    newer profile of the same version may have more."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        known = [field.name for field in fields(kind) if field.name in data]
        return cast("type[Any]", kind)(**{name: _read(hints[name], data[name]) for name in known})
    if get_origin(kind) is tuple:
        return tuple(_read(get_args(kind)[0], item) for item in data)
    if get_origin(kind) is UnionType:
        return None if data is None else _read(get_args(kind)[0], data)
    return CloudKind(data) if kind is CloudKind else data


def _with_teams(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the data of a profile with its teams, which version 1 has as registries and local queues."""
    if data["version"] == VERSION:
        return data
    namespaces = {
        local["team"]: local["namespace"] for queue in data["queues"] for local in queue["local_queues"]
    }
    teams = [
        {"name": item["team"], "namespace": namespaces.get(item["team"], ""), "registry": item["prefix"]}
        for item in data.get("registries", ())
    ]
    return {**data, "teams": teams, "version": VERSION}


def _members(part: Any) -> dict[str, Any]:
    """Return the fields of a part of a profile; `asdict` would also copy all that is below."""
    return {item.name: getattr(part, item.name) for item in fields(part)}
