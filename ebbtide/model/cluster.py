"""The whole declaration: one cluster."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from ebbtide.model.add_on import AddOn
from ebbtide.model.addons import Addons, Kueue
from ebbtide.model.base import Converted, Declared, Name, default
from ebbtide.model.capacity import Queued
from ebbtide.model.cloud import Cloud
from ebbtide.model.pool import Pool
from ebbtide.model.site import Site
from ebbtide.model.tenancy import Queue, Team


class Lifetime(Declared):
    """Intended lifetime of an ephemeral cluster."""

    hours: Annotated[int, Field(strict=True, ge=1)]
    """Hours from the first `pulumi up` to the expiry, which is the label or tag `ebbtide-expires` of all
    that is billed."""


class Cluster(Declared):
    """A cluster for ML work: where it is, its node pools, who uses it and what runs on it."""

    name: Name
    """Name, and prefix of its resources' names. Default in a stack's file: `<project>-<stack>`, so that two
    review stacks never collide."""
    owner: Name
    """Owner of the bill, a label on every billable resource."""
    cloud: Cloud
    """Cloud, location, network and access."""
    lifetime: Lifetime | None = None
    """For an ephemeral cluster. Default: the cluster is permanent, and guarded against deletion."""
    pools: Converted[tuple[Pool, ...], Sequence[Pool]] = Field(min_length=1)
    queues: Converted[tuple[Queue, ...], Sequence[Queue]] = default(())
    """Queues over the pools. Default: one for the CPU pools and one for each accelerator type, where
    queueing is wanted."""
    teams: Converted[tuple[Team, ...], Sequence[Team]] = default(())
    addons: Addons = Addons()

    @property
    def site(self) -> Site:
        """Surroundings of its pools."""
        return self.cloud.site

    @property
    def physical_name(self) -> str:
        """Name of the cluster in its cloud."""
        return self.cloud.existing.name if self.cloud.existing else self.name

    @property
    def is_ephemeral(self) -> bool:
        """True for a cluster with a lifetime, which is never protected from deletion."""
        return self.lifetime is not None

    @property
    def work_pools(self) -> tuple[Pool, ...]:
        """Every pool but the system pool."""
        return tuple(pool for pool in self.pools if not pool.is_system)

    @property
    def system_pool(self) -> Pool | None:
        """The system pool; None where the cluster is there already and brings its own."""
        return next((pool for pool in self.pools if pool.is_system), None)

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
        """The declared add-ons, and Kueue where it admits work."""
        implied = (Kueue(),) if self.has_kueue and self.addons.kueue is None else ()
        return (*implied, *self.addons.declared)

    @property
    def installed(self) -> tuple[AddOn, ...]:
        """The add-ons that the stack installs."""
        return tuple(add_on for add_on in self.add_ons if add_on.is_installed)
