"""Paths of work to node pools, for the pictures of a review."""

from collections.abc import Sequence
from dataclasses import dataclass

from ebbtide.analysis.preview.report import PoolReport


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of work into node pools.

    Attributes:
        label: a LocalQueue, as `namespace/name`, or the admitted pods.
        is_queue: True for a LocalQueue.
        pools: indexes of the pools, in order of preference.
    """

    label: str
    is_queue: bool
    pools: tuple[int, ...]


def entries(pools: Sequence[PoolReport]) -> list[Entry]:
    """Return the entries of each cluster's pools: LocalQueues, or the admitted pods without a queue."""
    indexes: dict[tuple[str, str, bool], list[int]] = {}
    for index, pool in enumerate(pools):
        for label in pool.queues or (pool.admits,):
            indexes.setdefault((pool.cluster, label, bool(pool.queues)), []).append(index)
    return [Entry(label, is_queue, tuple(pools)) for (_, label, is_queue), pools in indexes.items()]


def fallbacks(pools: Sequence[PoolReport]) -> list[tuple[int, int]]:
    """Return the indexes of each pool with a fallback, and of the first pool that it falls back to."""
    numbers = {(pool.cluster, pool.name): number for number, pool in enumerate(pools)}
    return [
        (number, numbers[pool.cluster, pool.falls_back_to[0]])
        for number, pool in enumerate(pools)
        if pool.falls_back_to and (pool.cluster, pool.falls_back_to[0]) in numbers
    ]
