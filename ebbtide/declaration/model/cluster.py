"""The declaration of one cluster."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated

from pydantic import Field

from ebbtide.declaration.catalog import AMD64, vendor
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.add_on import AddOn
from ebbtide.declaration.model.addons import Addons, Kueue, Pipelines
from ebbtide.declaration.model.base import Converted, Declared, Name, default
from ebbtide.declaration.model.capacity import Queued
from ebbtide.declaration.model.cloud import Cloud
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import ResolvedPool, resolve
from ebbtide.declaration.model.site import Site
from ebbtide.declaration.model.tenancy import Cohort, Namespace, Preemption, Queue, QueueUse, Team

_CPU_QUEUE = "cpu"


class Lifetime(Declared):
    """Intended lifetime of an ephemeral cluster."""

    hours: Annotated[int, Field(strict=True, ge=1, le=87600)]
    """Hours from the first `pulumi up` to the expiry. Every billable resource has the expiry as the label or
    tag `ebbtide-expires`. At most ten years."""


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
