"""Names of the quotas that a pool's nodes count towards."""

from functools import cache

from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.cloud_kind import CloudKind


@cache
def _quotas() -> dict[tuple[str, str, str], tuple[str, str]]:
    return {
        (row["cloud"], row["family"], row["accelerator"]): (row["on_demand"], row["spot"])
        for row in rows("quotas")
    }


def quota_names(
    cloud: CloudKind, family: str, accelerator: str = "", *, spot: bool = False
) -> tuple[str, ...]:
    """Return the quota metrics of a machine family and of an accelerator on it, cores first.

    Args:
        cloud: cloud with the quotas.
        family: machine family of the catalog (`n1`, `NCasT4_v3`).
        accelerator: accelerator type; empty for none.
        spot: True for spot, preemptible, flex-start and queued nodes, which have separate quotas.

    Returns:
        The metric names, without quotas that the cloud does not check (a g2's cores) or that have no source.
    """
    keys = [(cloud.value, family, "")] + ([(cloud.value, family, accelerator)] if accelerator else [])
    names = [_quotas()[key][1 if spot else 0] for key in keys if key in _quotas()]
    return tuple(name for name in names if name)
