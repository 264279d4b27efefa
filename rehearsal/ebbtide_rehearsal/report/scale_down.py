"""Time from the end of the last Job to a pool without nodes."""

from collections.abc import Iterable, Sequence

from ebbtide_rehearsal.cloud.node_pools.scale_down import UNNEEDED
from ebbtide_rehearsal.cloud.store import Event
from ebbtide_rehearsal.report.document import JobsReport

_MINUTE = 60


def minutes_to_zero(events: Iterable[Event], jobs: Sequence[JobsReport]) -> dict[str, float]:
    """Return the simulated minutes from the end of the last Job until each pool had no node.

    Only pools that the autoscaler emptied before a cluster was deleted are included.

    Args:
        events: the timeline.
        jobs: counts of Jobs over time, by the clock of the timeline.
    """
    if not jobs or jobs[-1].waiting or jobs[-1].running or not jobs[-1].ended:
        return {}
    last = jobs[-1].at
    nodes: dict[str, set[str]] = {}
    emptied: dict[str, float] = {}
    for event in events:
        if event.kind == "cluster-deleted":
            break
        if event.kind not in {"node-added", "node-removed"}:
            continue
        pool = nodes.setdefault(event.facts["pool"], set())
        if event.kind == "node-added":
            pool.add(event.facts["node"])
            emptied.pop(event.facts["pool"], None)
            continue
        pool.discard(event.facts["node"])
        if not pool and event.at >= last and event.facts["why"].startswith(UNNEEDED):
            emptied[event.facts["pool"]] = round((event.at - last) / _MINUTE, 1)
    return emptied
