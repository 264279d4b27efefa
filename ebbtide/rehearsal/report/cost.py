"""What nodes cost in a rehearsal: from when they come to when they go, in simulated time."""

from collections import defaultdict
from collections.abc import Iterable

from ebbtide.rehearsal.cloud.store import Event

_HOUR = 3600


def spent(events: Iterable[Event], now: float) -> dict[str, float]:
    """US dollars that each pool's nodes have cost.

    Args:
        events: the whole timeline.
        now: simulated seconds since the start; nodes that are still there cost until then.
    """
    since: dict[str, tuple[str, float, float]] = {}
    total: defaultdict[str, float] = defaultdict(float)
    for event in events:
        if event.kind == "node-added":
            since[event.facts["node"]] = event.facts["pool"], event.facts["hourly"], event.at
        elif event.kind == "node-removed" and event.facts["node"] in since:
            pool, hourly, came = since.pop(event.facts["node"])
            total[pool] += hourly * (event.at - came) / _HOUR
    for pool, hourly, came in since.values():
        total[pool] += hourly * (now - came) / _HOUR
    return dict(total)
