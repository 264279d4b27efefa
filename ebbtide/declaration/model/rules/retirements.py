"""Rules for machine types and accelerators that the cloud has retired or will retire."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import Retirement, retired_names, retirement, short_for
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import PoolIn, Severity, pool_rule, service_name

_TABLE = "catalog/data/retirements.csv, a source in each row"


def _retirements(pool: PoolIn) -> Iterator[tuple[str, str, Retirement]]:
    """Yield the path, name and retirement of a pool's machine type and accelerators."""
    shape, accelerator = pool.pool.machine, pool.pool.accelerator
    declared = [("machine", shape.type)] if shape else []
    if accelerator is not None:
        names = short_for(accelerator.type, retired_names(pool.site.cloud))
        declared += [("accelerator.type", name) for name in names[:1]]
    for field, name in declared:
        announced = retirement(pool.site.cloud, name)
        if announced is not None:
            yield pool.at(field), name, announced


@pool_rule("no retired hardware", _TABLE)
def _retired(pool: PoolIn) -> Iterator[Fault]:
    for path, name, announced in _retirements(pool):
        if announced.is_past:
            yield Fault(
                path,
                f"{name} was retired on {announced.date}.",
                f"{service_name(pool.site.cloud)} no longer offers it, and the node pool could not be "
                "created.",
                f"Write {announced.successor}.",
            )


@pool_rule("no hardware near retirement", _TABLE, severity=Severity.WARNED)
def _to_be_retired(pool: PoolIn) -> Iterator[Fault]:
    for path, name, announced in _retirements(pool):
        if not announced.is_past:
            yield Fault(
                path,
                f"{name} will be retired on {announced.date}.",
                "Its nodes are stopped that day, and new subscriptions may not get it before.",
                f"Write a newer type, such as {announced.successor}.",
            )
