"""The declaration of one cluster."""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated

from pydantic import Field

from ebbtide.declaration.model.add_on import AddOn
from ebbtide.declaration.model.addons import Addons, Kueue
from ebbtide.declaration.model.base import Converted, Declared, Name, default
from ebbtide.declaration.model.capacity import Queued
from ebbtide.declaration.model.cloud import Cloud
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import ResolvedPool, resolve
from ebbtide.declaration.model.site import Site
from ebbtide.declaration.model.tenancy import Cohort, Queue, Team


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
