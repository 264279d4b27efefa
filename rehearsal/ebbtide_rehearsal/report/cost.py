"""Node cost of a rehearsal, over each node's lifetime in simulated time."""

from collections import defaultdict
from collections.abc import Iterable

from ebbtide_rehearsal.cloud.store import Event

_HOUR = 3600


def spent(events: Iterable[Event], now: float) -> dict[str, float]:
    """Return the cost of each pool's nodes in US dollars.

    Args:
        events: the whole timeline.
        now: simulated seconds since the start; existing nodes cost until then.
    """
    start: dict[str, tuple[str, float, float]] = {}
    total: defaultdict[str, float] = defaultdict(float)
    for event in events:
        if event.kind == "node-added":
            start[event.facts["node"]] = event.facts["pool"], event.facts["hourly"], event.at
        elif event.kind == "node-removed" and event.facts["node"] in start:
            pool, hourly, came = start.pop(event.facts["node"])
            total[pool] += hourly * (event.at - came) / _HOUR
    for pool, hourly, came in start.values():
        total[pool] += hourly * (now - came) / _HOUR
    return dict(total)
