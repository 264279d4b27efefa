"""The declaration of one cluster, and what follows from all of it."""

import math
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property
from typing import Annotated, Final

from pydantic import Field

from ebbtide.declaration.catalog.accelerators import vendor
from ebbtide.declaration.catalog.gpu_direct import GpuNetwork, networks_of
from ebbtide.declaration.catalog.machines import AMD64
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.model.addons import AddOn, Addons, Kueue, Pipelines
from ebbtide.declaration.model.base import Converted, Declared, Name, Positive, default
from ebbtide.declaration.model.capacity import Queued
from ebbtide.declaration.model.cloud import Cloud
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import ResolvedPool, resolve
from ebbtide.declaration.model.site import Site
from ebbtide.declaration.model.tenancy import Cohort, Limits, Namespace, Preemption, Queue, QueueUse, Team
from ebbtide.declaration.providers.constraints import most
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.kueue_api import API_VERSION

_CPU_QUEUE = "cpu"
PIPELINES_NAMESPACE: Final = Pipelines.spec.namespace
"""Namespace of the steps of Kubeflow Pipelines."""
OPERATOR_NAMESPACE: Final = "gpu-operator"
"""Namespace of NVIDIA's operator."""
FLAVORS_IN_A_GROUP = most(f"kubernetes:{API_VERSION}:ClusterQueue", "spec.resourceGroups.flavors")
"""Kueue's limit for the flavors of one resource group."""
TAINTS_OF_A_FLAVOR = most(f"kubernetes:{API_VERSION}:ResourceFlavor", "spec.nodeTaints")
"""Kueue's limit for the taints of a flavor, and for its tolerations."""
_EMPTY_MIB = 160
_JOB_KIB = 44
_LARGE_JOB_KIB = 190
_LEAST_LIMIT_MIB = 512
"""The chart's limit."""


class Lifetime(Declared):
    """Intended lifetime of an ephemeral cluster."""

    hours: Annotated[int, Field(strict=True, ge=1, le=87600)]
    """Hours from the first `pulumi up` to the expiry. Every billable resource has the expiry as the label or
    tag `ebbtide-expires`. At most ten years."""


class Commitment(Declared):
    """Machines or accelerators that are paid for a term, used or not: a committed use discount, or on AKS a
    reservation (Reserved VM Instances). It lowers the cost in previews, and creates nothing."""

    machines: Name | None = None
    """Machine type, if it is for machines."""
    gpus: Name | None = None
    """Accelerator type, if it is for accelerators: attached ones alone, or built-in ones with their share of
    the machine."""
    region: Name | None = None
    """Region. Default: the cluster's. A commitment of another region costs this stack nothing."""
    count: Positive
    """Number of machines, or of accelerators."""
    usd_per_hour: Annotated[float, Field(strict=True, ge=0)]
    """Price of one of them, USD per hour."""


class Cluster(Declared):
    """A cluster for ML workloads: its cloud, node pools, teams and add-ons."""

    name: Name
    """Name, and prefix of its resources' names. Default in a stack's file: `<project>-<stack>`, so that
    stacks never collide."""
    owner: Name
    """Billing owner, a label on every billable resource."""
    cloud: Cloud
    """Cloud, location, network and access."""
    lifetime: Lifetime | None = None
    """Lifetime of an ephemeral cluster. Default: a permanent cluster, protected from deletion."""
    pools: Converted[tuple[Pool, ...], Sequence[Pool]] = Field(min_length=1)
    queues: Converted[tuple[Queue, ...], Sequence[Queue]] = default(())
    """Queues over the pools. Default with Kueue: one for the CPU pools and one for each accelerator type."""
    cohort: Cohort = Cohort()
    teams: Converted[tuple[Team, ...], Sequence[Team]] = default(())
    addons: Addons = Addons()
    commitments: Converted[tuple[Commitment, ...], Sequence[Commitment]] = default(())
    """Commitments that the stack's nodes on demand and in reservations use first. Every stack counts all that
    it declares, though one account shares them."""
    adopt: Name | None = None
    """File of the existing resources that the stack adopts, relative to the directory of `Pulumi.yaml`:
    `adopt.dev.json`, as `ebbtide adopt` writes it. They are imported, not created. Default: none."""

    @cached_property
    def site(self) -> Site:
        """Site that the rules of its pools read."""
        return self.cloud.site

    @property
    def physical_name(self) -> str:
        """Name of the cluster in its cloud."""
        return self.cloud.existing.name if self.cloud.existing else self.name

    @property
    def is_ephemeral(self) -> bool:
        """True for a cluster with a lifetime, which is never protected from deletion."""
        return self.lifetime is not None

    @cached_property
    def resolved_pools(self) -> tuple[ResolvedPool, ...]:
        """Every pool, complete and with the facts that are derived from it."""
        return tuple(
            resolve(pool, self.site, self.addons, self.fallback_of(pool.name)) for pool in self.pools
        )

    def resolved(self) -> "Cluster":
        """Return the cluster with resolved pools."""
        return self.model_copy(update={"pools": self.resolved_pools})

    @property
    def work_pools(self) -> tuple[ResolvedPool, ...]:
        """Every pool but the system pool."""
        return tuple(pool for pool in self.resolved_pools if not pool.is_system)

    @property
    def system_pool(self) -> ResolvedPool | None:
        """The system pool; None for an existing cluster, which has its own."""
        return next((pool for pool in self.resolved_pools if pool.is_system), None)

    @property
    def gpu_pools(self) -> tuple[ResolvedPool, ...]:
        """The pools whose nodes have NVIDIA's GPUs."""
        return tuple(pool for pool in self.resolved_pools if pool.has_gpus and not pool.has_amd_gpus)

    @property
    def gpu_networks(self) -> tuple[GpuNetwork, ...]:
        """The networks of GPU NICs that its pools with GPUDirect need."""
        return networks_of(pool.gpu_direct for pool in self.pools)

    @property
    def gpu_zone(self) -> str:
        """Zone of its pools with GPUDirect-RDMA; empty for none."""
        zones = (
            zone
            for pool in self.pools
            if pool.gpu_direct == "rdma"
            for zone in pool.zones or (self.cloud.location,)
        )
        return next(zones, "")

    @property
    def driver_pools(self) -> tuple[ResolvedPool, ...]:
        """The GPU pools whose driver the cloud does not install, and to which `addons.drivers` applies."""
        return tuple(pool for pool in self.gpu_pools if not pool.has_cloud_driver)

    @property
    def measured_pools(self) -> tuple[ResolvedPool, ...]:
        """The GPU pools on which `addons.metrics` measures the GPUs: those with the cloud's driver, on AKS of
        whole GPUs.

        GKE's exporter needs GKE's drivers (GKE docs, dcgm-metrics, 2026). DCGM reports the utilization of a
        GPU instance only to containers with CAP_SYS_ADMIN (NVIDIA docs, dcgm-exporter, 2026), which the
        exporter on AKS does not have.
        """
        if self.addons.metrics is None:
            return ()
        on_aks = self.site.cloud is CloudKind.AKS
        return tuple(
            pool
            for pool in self.gpu_pools
            if pool.has_cloud_driver
            and not (on_aks and pool.accelerator and pool.accelerator.gpu_instance_profile)
        )

    @cached_property
    def resolved_queues(self) -> tuple[Queue, ...]:
        """Every queue, with the cohort's settings where it has none of its own.

        By default `cpu` over the CPU pools, `cpu-arm64` over those with Arm processors, and one for each
        accelerator type, named after the type without its vendor (`t4`, `a100-80gb`), in the order of the
        declaration. Empty without Kueue.
        """
        return tuple(self._with_cohort(queue) for queue in self.queues or self._derived_queues())

    def _derived_queues(self) -> Iterator[Queue]:
        if not self.has_kueue:
            return
        pools: dict[str, list[str]] = {_CPU_QUEUE: []}
        for pool in self.work_pools:
            kind = pool.accelerator_type
            hardware = kind.removeprefix(f"{vendor(kind)}-").removeprefix("tesla-")
            cpus = _CPU_QUEUE if pool.architecture == AMD64 else f"{_CPU_QUEUE}-{pool.architecture}"
            pools.setdefault(hardware or cpus, []).append(pool.name)
        yield from (Queue(name=name, pools=tuple(names)) for name, names in pools.items() if names)

    def _with_cohort(self, queue: Queue) -> Queue:
        own, shared = (item.preemption or Preemption() for item in (queue, self.cohort))
        preemption = Preemption(
            within_cluster_queue=own.within_cluster_queue or shared.within_cluster_queue,
            reclaim_within_cohort=own.reclaim_within_cohort or shared.reclaim_within_cohort,
        )
        strategy = queue.queueing_strategy or self.cohort.queueing_strategy
        return queue.model_copy(update={"preemption": preemption, "queueing_strategy": strategy})

    @cached_property
    def tenants(self) -> tuple[Team, ...]:
        """The declared teams; tenants of the namespaces with local queues; that of Kubeflow Pipelines if
        declared and not among them; and that of `default` if there are no others and Kueue admits work, since
        a queue needs a namespace."""
        uses: dict[str, list[QueueUse]] = {}
        for queue in self.queues:
            for local in queue.local_queues:
                uses.setdefault(local.namespace, []).append(QueueUse(queue=queue.name, as_=local.name))
        tenants = (*self.teams, *(_existing(name, queues) for name, queues in uses.items()))
        pipelines = self.addons.pipelines
        # An existing installation needs local queues only.
        needed = pipelines is not None and (not pipelines.existing or self.has_kueue)
        if needed and all(team.namespace_name != Pipelines.spec.namespace for team in tenants):
            tenants = (*tenants, _existing(Pipelines.spec.namespace))
        return tenants or ((_existing("default"),) if self.has_kueue else ())

    def uses_queues(self, team: Team) -> bool:
        """Return whether a team has queues."""
        return self.has_kueue and any(team.queues_used(queue.name) for queue in self.resolved_queues)

    def requires_queue(self, team: Team) -> bool:
        """Return whether workloads in a team's namespace need a queue name: by default, if the stack creates
        the namespace and the team has queues."""
        return self.uses_queues(team) and (
            team.creates_namespace if team.require_queue is None else team.require_queue
        )

    @property
    def members(self) -> tuple[str, ...]:
        """The members of all teams, without duplicates."""
        return tuple(dict.fromkeys(member for team in self.teams for member in team.members))

    @property
    def fallback_queues(self) -> tuple[Queue, ...]:
        """The queues that fall back to the next pool when the cloud has no stock of the previous one."""
        return tuple(queue for queue in self.queues if queue.fallback)

    def fallback_of(self, pool: str) -> str:
        """Return the queue in which a pool has alternatives, the pool's only queue; empty for none."""
        return next((queue.name for queue in self.fallback_queues if pool in queue.pools), "")

    @property
    def has_kueue(self) -> bool:
        """True if Kueue admits work: with queues, a queued pool or the add-on."""
        return bool(
            self.queues
            or self.addons.kueue is not None
            or any(isinstance(pool.capacity, Queued) for pool in self.pools)
        )

    @property
    def add_ons(self) -> tuple[AddOn, ...]:
        """The declared add-ons, and Kueue if it admits work."""
        implied = (Kueue(),) if self.has_kueue and self.addons.kueue is None else ()
        return (*implied, *self.addons.declared)

    @property
    def installed(self) -> tuple[AddOn, ...]:
        """The add-ons that the stack installs."""
        return tuple(add_on for add_on in self.add_ons if add_on.is_installed)


def _existing(namespace: str, queues: Sequence[QueueUse] = ()) -> Team:
    """Return the tenant of a namespace without a team, which the stack does not create."""
    return Team(name=namespace, namespace=Namespace(name=namespace, create=False), queues=tuple(queues))


@cache
def reserved_owner(namespace: str, cloud: CloudKind | None = None) -> str | None:
    """Return the component of Kubernetes or of a cloud that a namespace is reserved for; None for any other
    namespace.

    Args:
        namespace: its name.
        cloud: the cloud; None for all clouds.
    """
    for row in rows("namespaces"):
        if row["cloud"] in ("", cloud or row["cloud"]) and any(
            fnmatchcase(namespace, name) for name in row["names"].split()
        ):
            return row["owner"]
    return None


def system_owner(cluster: Cluster, namespace: str) -> str | None:
    """Return the owner of a namespace that is not for work: Kubernetes, the cloud, or an add-on; None for any
    other namespace."""
    if (owner := reserved_owner(namespace, cluster.cloud.kind)) is not None:
        return owner
    if namespace == OPERATOR_NAMESPACE and cluster.addons.drivers == "gpu-operator":
        return "NVIDIA's operator"
    own = (add_on.spec for add_on in cluster.add_ons if not add_on.spec.runs_work)
    return next((spec.title for spec in own if spec.namespace == namespace), None)


def pod_security_of(cluster: Cluster, team: Team) -> str | None:
    """Return the Pod Security Standard to enforce in a tenant's namespace; None to keep its own labels.

    Kubeflow Pipelines' own manifests set `baseline` (2.17.0, manifests/kustomize, cluster-scoped-resources).
    """
    comes_with_it = (
        team.namespace_name == PIPELINES_NAMESPACE and cluster.addons.installed_pipelines is not None
    )
    return team.pod_security or ("baseline" if comes_with_it else None)


def pending_jobs(cluster: Cluster) -> int:
    """Return the number of Jobs that may wait at once: the limits of all tenants together."""
    return sum((tenant.object_limits or Limits()).jobs for tenant in cluster.tenants)


def kueue_memory(cluster: Cluster) -> tuple[int, int]:
    """Return the memory that Kueue's controller requests, and its limit, in MiB.

    The request holds as many pending Jobs as the tenants may have, if their pods have one container: Kueue
    0.19.2 takes 138 MiB without Jobs, and 347 MiB with 5,000 such Jobs. The limit holds as many large ones:
    643 MiB with 3,000 Jobs of four containers and 18 kB (measured in rehearsals, 2026-11); 512 MiB were too
    little for about 2,000 Workloads (marin-community/marin, PR 7502).
    """
    request, limit = kueue_mib(pending_jobs(cluster))
    return max(round(Kueue.spec.footprint.requests.memory_mib), request), max(_LEAST_LIMIT_MIB, limit)


def kueue_mib(jobs: int) -> tuple[int, int]:
    """Return the memory of Kueue's controller in MiB with a number of pending Jobs: of one container, and of
    several."""
    request, limit = (_in_steps(_EMPTY_MIB + jobs * size / 1024) for size in (_JOB_KIB, _LARGE_JOB_KIB))
    return request, limit


def _in_steps(mib: float) -> int:
    return math.ceil(mib / 64) * 64
