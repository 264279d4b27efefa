"""Cloud quotas that a stack needs at its maximum node counts, compared with the cloud's limits.

The names are the clouds' own (catalog/data/quotas.csv). Further sources: Compute Engine docs,
allocation-quotas (2026), for `GPUS_ALL_REGIONS`, which is 0 in a new project, and `SSD_TOTAL_GB`;
azure-aks-docs, quotas-skus-regions (2026), for `cores`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, assert_never

from ebbtide.clients.clouds.interfaces import QuotaLimit
from ebbtide.declaration.catalog.gpu_direct import networks_of, vpcs_of
from ebbtide.declaration.catalog.machines import quota_names
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.documents import DocumentPart

GLOBAL: Final = "global"
"""Region of a global quota."""

_SHARED: Final = {"spot", "preemptible", "flex-start", "queued"}
"""Capacity types with separate quotas."""

_SSD: Final = {"pd-balanced", "pd-ssd"}
_COUNTS_ACCELERATORS: Final = ("GPU", "TPU")
Limits: TypeAlias = Mapping[str, Mapping[str, QuotaLimit]]
"""Limits by region or `global`, and by name of the quota."""
Verdict: TypeAlias = Literal["enough", "in use", "too low", "unknown"]
_NOT_GRANTED: Final = {"PREEMPTIBLE_CPUS": "CPUS"}
"""Quotas of spot machines that Compute Engine ignores until they are granted, and the quotas that it uses
instead (Compute Engine docs, preemptible, 2026; catalog/data/quotas.csv)."""


class Quota(DocumentPart):
    """A cloud quota that the stack needs at the maximum node counts."""

    cloud: CloudKind
    """`gke` or `aks`."""
    region: str
    """The region, or `global`."""
    name: str
    """Name in the cloud."""
    amount: int
    """vCPUs, accelerators, GB of disks, or networks."""
    pools: tuple[str, ...]
    """Pools that count towards it."""


def quotas(pools: Iterable[ResolvedPool]) -> list[Quota]:
    """Return the quotas that pools need at their maximum node counts, in the order of first use."""
    pools = tuple(pools)
    needs: dict[tuple[CloudKind, str, str], dict[str, int]] = {}
    for pool in pools:
        for region, name, amount in _of_pool(pool):
            if amount:
                needs.setdefault((pool.site.cloud, region, name), {})[pool.name] = amount
    found = [
        Quota(cloud=cloud, region=region, name=name, amount=sum(own.values()), pools=tuple(own))
        for (cloud, region, name), own in needs.items()
    ]
    return [*found, *_networks(pools)]


def _networks(pools: Iterable[ResolvedPool]) -> Iterator[Quota]:
    """Yield the quotas of GPU networks, which pools share, of a project (Compute Engine docs,
    allocation-quotas; VPC docs, quota, 2026)."""
    names = tuple(pool.name for pool in pools if pool.gpu_direct is not None)
    networks = networks_of(pool.gpu_direct for pool in pools)
    vpcs = vpcs_of(networks)
    firewalls = sum(vpc[0].mode == "NetDevice" for vpc in vpcs.values())
    amounts = {"NETWORKS": len(vpcs), "SUBNETWORKS": len(networks), "FIREWALLS": firewalls}
    for name, amount in amounts.items():
        if amount:
            yield Quota(cloud=CloudKind.GKE, region=GLOBAL, name=name, amount=amount, pools=names)


def without_quota(pools: Iterable[ResolvedPool]) -> tuple[str, ...]:
    """Return the machine types whose quotas are unknown: those that the catalog does not have, and A4X and
    TPU7x, whose names are not documented (Compute Engine docs, allocation-quotas, 2026-11)."""
    needed = (pool for pool in pools if pool.capacity.kind != "reservation" or pool.reserves_machines)
    unknown = (
        pool.machine_type
        for pool in needed
        if pool.hardware is None
        or not quota_names(pool.site.cloud, pool.hardware.family, pool.accelerator_type)
    )
    return tuple(dict.fromkeys(unknown))


def _of_pool(pool: ResolvedPool) -> Iterator[tuple[str, str, int]]:
    """Yield region, name and amount of a pool's quotas; none for machines of an existing reservation, which
    are already counted.
    """
    machine, accelerator, kind = pool.hardware, pool.accelerator, pool.capacity.kind
    if machine is None or (kind == "reservation" and not pool.reserves_machines):
        return
    region, nodes, shared = pool.site.region, pool.max_nodes, kind in _SHARED
    accelerators = accelerator.count if accelerator else 0
    family_names = quota_names(pool.site.cloud, machine.family, pool.accelerator_type, spot=shared)
    for name in family_names:
        counted = accelerators if any(word in name for word in _COUNTS_ACCELERATORS) else machine.vcpus
        yield region, name, counted * nodes
    match pool.site.cloud:
        case CloudKind.GKE:
            if accelerator and "GPU" in "".join(family_names):
                yield GLOBAL, "GPUS_ALL_REGIONS", accelerators * nodes
            if pool.disk.type in _SSD:
                yield region, "SSD_TOTAL_GB", (pool.disk.size_gib or 0) * nodes
        case CloudKind.AKS:
            if not shared:
                yield region, "cores", machine.vcpus * nodes
        case _:
            assert_never(pool.site.cloud)


@dataclass(frozen=True, slots=True)
class QuotaCheck:
    """A needed quota and its limit.

    Attributes:
        quota: the quota and the needed amount.
        limit: its limit and usage.
    """

    quota: Quota
    limit: QuotaLimit

    @property
    def verdict(self) -> Verdict:
        """Compare the limit with the need: `too low` for the stack alone, `in use` with the current usage.

        The usage may be the stack's own; an unknown usage is not counted.
        """
        if self.limit.limit is None:
            return "unknown"
        if self.limit.limit < self.quota.amount:
            return "too low"
        free = self.limit.limit - (self.limit.usage or 0)
        return "in use" if free < self.quota.amount else "enough"

    @property
    def request(self) -> int | None:
        """Limit that suffices with the current usage; None if the present limit suffices or is unknown."""
        if self.verdict in ("unknown", "enough"):
            return None
        return math.ceil(self.quota.amount + (self.limit.usage or 0))


def check_quotas(needs: Sequence[Quota], limits: Limits) -> list[QuotaCheck]:
    """Compare needs with limits.

    Args:
        needs: needed quotas of one cloud.
        limits: limits for each region of the needs.
    """
    return [
        QuotaCheck(quota, limits.get(quota.region, {}).get(quota.name, QuotaLimit()))
        for quota in _granted(needs, limits)
    ]


def _granted(needs: Iterable[Quota], limits: Limits) -> Iterable[Quota]:
    """Add the needs of quotas that are not granted to the quotas that replace them."""
    granted: dict[tuple[str, str], Quota] = {}
    for quota in needs:
        limit = limits.get(quota.region, {}).get(quota.name)
        name = _NOT_GRANTED.get(quota.name, "") if limit is not None and limit.limit == 0 else ""
        actual = quota.model_copy(update={"name": name or quota.name})
        key = (actual.region, actual.name)
        if earlier := granted.get(key):
            pools = tuple(dict.fromkeys((*earlier.pools, *actual.pools)))
            actual = earlier.model_copy(update={"amount": earlier.amount + actual.amount, "pools": pools})
        granted[key] = actual
    return granted.values()
