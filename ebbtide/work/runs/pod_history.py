"""The pods of a workload while it is followed, including deleted ones."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from ebbtide.values import clock
from ebbtide.work.objects import Object


class PodHistory:
    """The last state of each pod of a followed workload.

    A preempted node takes its pods along, and the queue deletes the pods of evicted work: without a history,
    their cost would be unknown at the end.
    """

    def __init__(self) -> None:
        self._pods: dict[str, Object] = {}
        self._deleted: dict[str, datetime] = {}

    def add(self, pods: Sequence[Object]) -> None:
        """Record the existing pods; the other ones have been deleted."""
        current = {pod["metadata"]["uid"]: pod for pod in pods}
        for uid in self._pods.keys() - current.keys():
            self._deleted.setdefault(uid, clock.now())
        self._pods |= current

    def deleted(self) -> Iterator[tuple[Object, datetime]]:
        """Yield the deleted pods, each with the time at which it was missing."""
        for uid, time in self._deleted.items():
            yield self._pods[uid], time
