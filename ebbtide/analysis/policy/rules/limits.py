"""Rules for limits of the policy: cost, regions, machine types, lifetime."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from ebbtide.analysis.policy.rules.protection import is_ephemeral
from ebbtide.analysis.policy.rules.rule import WHOLE, Reviewed, Violation, of_cluster, of_pool, rule
from ebbtide.analysis.policy.settings import Level
from ebbtide.analysis.reading.inputs import Inputs
from ebbtide.declaration.catalog.amounts import total
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.model.expiry import COMPONENT
from ebbtide.text import bound

LONGEST_LIFETIME: Final = "longest-lifetime"
"""Id of the rule for the maximum lifetime."""
_SET: Final = "Mandatory, because it has no effect until its limit is set."


def _cost(stack: Reviewed, name: str, limit: float | None, words: str) -> Iterator[Violation]:
    if limit is None:
        return
    amount = total(getattr(charge, name) for charge in stack.charges)
    if round(amount.known, 6) > limit:
        least = bound(amount.unknown, amount.estimated)
        message = (
            f"The stack costs {least}{amount.known:.2f} USD per hour {words}; the limit is {limit:g}. "
            "Lower node counts or choose cheaper machines, or raise the limit."
        )
        yield Violation(WHOLE, message)
    elif amount.unknown:
        message = (
            f"The cost {words} cannot be compared with the limit of {limit:g} USD per hour: "
            f"no price is known for {', '.join(amount.unknown)}."
        )
        yield Violation(WHOLE, message, is_undecided=True)


@rule(
    "idle-cost",
    title="The cost without work is within limits.idleUsdPerHour.",
    level=Level.MANDATORY,
    reason=f"Idle cost is paid all the time. {_SET}",
    source="list prices of the catalog, each with its date",
)
def _idle_cost(stack: Reviewed) -> Iterator[Violation]:
    return _cost(stack, "idle", stack.limits.idle_usd_per_hour, "without work")


@rule(
    "maximum-cost",
    title="The cost at the maximum node counts is within limits.maximumUsdPerHour.",
    level=Level.MANDATORY,
    reason=f"The maximum node counts are the only bound of an autoscaled cluster's bill. {_SET}",
    source="list prices of the catalog, each with its date",
)
def _maximum_cost(stack: Reviewed) -> Iterator[Violation]:
    return _cost(stack, "maximum", stack.limits.maximum_usd_per_hour, "at the maximum node counts")


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


@rule(
    "approved-regions",
    title="Clusters and pools are in limits.regions.",
    level=Level.MANDATORY,
    reason=f"Data residency, quota and price depend on the region. {_SET}",
    source="the policy's own list",
)
def _approved_regions(stack: Reviewed) -> Iterator[Violation]:
    approved = stack.limits.regions
    if approved is None:
        return
    places = [
        *((of_cluster(cluster), cluster.location) for cluster in stack.clusters),
        *((of_pool(pool), zone) for pool in stack.pools for zone in pool.zones or (pool.site.location,)),
    ]
    clusters = {cluster.location for cluster in stack.clusters}
    for subject, location in places:
        # AKS writes zones as numbers; the cluster's own region is reported once.
        is_repeated = subject.kind == "pool" and location in clusters
        if not location or location.isdigit() or is_repeated:
            continue
        if not (_matches(location, approved) or _matches(region_of(location), approved)):
            yield Violation(subject, f"{location} is not approved; approved: {', '.join(approved)}.")


@rule(
    "approved-machines",
    title="Machine types are in limits.machines.",
    level=Level.MANDATORY,
    reason=f"Quota and budget are granted by machine family. {_SET}",
    source="the policy's own list",
)
def _approved_machines(stack: Reviewed) -> Iterator[Violation]:
    approved = stack.limits.machines
    if approved is None:
        return
    for pool in stack.pools:
        if not _matches(pool.machine_type, approved):
            message = (
                f"The machine type {pool.machine_type} is not approved; approved: {', '.join(approved)}."
            )
            yield Violation(of_pool(pool), message)


@rule(
    "lifetime",
    title="Stacks named in limits.ephemeralStacks have a lifetime.",
    level=Level.MANDATORY,
    reason="A forgotten cluster of a review keeps being billed.",
    source="the label ebbtide-expires, by which expired clusters are found",
)
def _lifetime(stack: Reviewed) -> Iterator[Violation]:
    if not _matches(stack.recording.stack, stack.limits.ephemeral_stacks):
        return
    for cluster in stack.clusters:
        if not is_ephemeral(stack.recording[cluster.urn]):
            message = f"The stack {stack.recording.stack} is ephemeral by its name, and has no lifetime. "
            yield Violation(of_cluster(cluster), f"{message}Write lifetime: {{hours: 8}}, for example.")


@rule(
    LONGEST_LIFETIME,
    title="Lifetimes are within limits.lifetimeHours.",
    level=Level.MANDATORY,
    reason=f"A cluster that never expires is not ephemeral. {_SET}",
    source="the policy's own limit",
)
def _longest_lifetime(stack: Reviewed) -> Iterator[Violation]:
    limit = stack.limits.lifetime_hours
    if limit is None:
        return
    for lifetime in stack.recording.of_type(COMPONENT):
        hours = Inputs(lifetime.inputs).number("hours")
        if hours is not None and hours > limit:
            message = f"The lifetime is {hours} hours; the limit is {limit}. Declare a shorter one."
            yield Violation(WHOLE, message)
