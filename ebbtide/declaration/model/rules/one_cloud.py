"""Fields that only one cloud has, from the metadata of each field (`ebbtide/declaration/model/pool.py`)."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool_fields import PoolField, pool_fields
from ebbtide.declaration.model.provider_inputs import OnlyOn
from ebbtide.declaration.model.rules.rule import PoolIn, PoolRule, service_name

_OTHER = {CloudKind.GKE: CloudKind.AKS, CloudKind.AKS: CloudKind.GKE}


def _rule(field: PoolField, only: OnlyOn) -> PoolRule:
    name, service = field.path.rpartition(".")[2], service_name(only.cloud)
    called = only.what or name

    def check(pool: PoolIn) -> Iterator[Fault]:
        if field.is_written(pool.pool):
            problem = f"{service_name(pool.site.cloud)} does not support {called}, which only {service} has."
            yield Fault(pool.at(field.path), problem, only.reason, only.fix or f"Remove {name}.")

    return PoolRule(f"{called} only on {service}", only.source, check, _OTHER[only.cloud])


RULES: tuple[PoolRule, ...] = tuple(_rule(field, field.only) for field in pool_fields() if field.only)
