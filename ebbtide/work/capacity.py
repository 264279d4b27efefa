"""Capacity of pools for pods that only make progress together."""

from collections.abc import Iterable

from ebbtide.placement import PoolProfile
from ebbtide.work.amounts import MEBIBYTE
from ebbtide.work.errors import Problems
from ebbtide.work.tasks import Task


def check_capacity(pools: Iterable[PoolProfile], task: Task, nodes: int, problems: Problems) -> None:
    """Report more pods than can run at once: they would wait for each other while occupying nodes.

    A queue admits all of them to one of its pools. Its quota is the maximum capacity of its pools, so no
    other limit applies.

    Args:
        pools: the pools that can run one of the pods.
        task: the requests of each pod.
        nodes: number of pods.
        problems: collects the problems.
    """
    pools = list(pools)
    for pool in pools:
        together = pool.accelerator.slice_nodes if pool.accelerator and task.gpu_count else 1
        problems.check(
            together in (1, nodes),
            f"nodes is {nodes}, and a TPU slice of pool {pool.name} is {together} nodes, which run one Job "
            f"together: write {together} nodes (--nodes).",
        )
    most = {pool.name: _most_pods(pool, task) for pool in pools}
    known = {name: count for name, count in most.items() if count is not None}
    largest = max(known, key=lambda name: known[name], default="")
    problems.check(
        len(known) < len(most) or nodes <= known[largest],
        f"nodes is {nodes}, and pool {largest} has capacity for {known.get(largest)} such pods: the pods "
        "would wait for each other. Write fewer nodes, or raise the pool's largest size.",
    )


def _most_pods(pool: PoolProfile, task: Task) -> int | None:
    """Return the number of such pods that fit on a pool at its maximum; None if their requests are
    unknown."""
    offered = (
        (pool.accelerator.count if pool.accelerator else 0, task.gpu_count),
        (pool.cpu_m, task.cpu_m),
        (pool.memory_mib * MEBIBYTE, task.memory_b),
    )
    per_node = [have // request for have, request in offered if have and request > 0]
    return pool.max_nodes * min(per_node) if per_node else None
