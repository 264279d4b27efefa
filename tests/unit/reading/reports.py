"""Read pools in the document of a preview."""

from collections.abc import Iterable

from ebbtide.analysis.preview.build_preview import pool_report
from ebbtide.analysis.preview.preview_document import AmountReport, ChargeReport, PoolReport
from ebbtide.analysis.reading.facts import RecordedPool

_NOTHING = AmountReport(usd=0)
NO_CHARGE = ChargeReport(
    item="pool", pool="pool", idle=_NOTHING, maximum=_NOTHING, on_demand=_NOTHING, note=""
)
"""A charge of nothing."""


def reports(pools: Iterable[RecordedPool]) -> tuple[PoolReport, ...]:
    """Return pools without queues and charges."""
    return tuple(pool_report(pool, (), (), NO_CHARGE) for pool in pools)
