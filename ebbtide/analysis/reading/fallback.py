"""Fallback node pools for a stockout, from GKE's ComputeClasses (cloud.google.com, v1) and the ConfigMap of
AKS's priority expander.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

import yaml
from pydantic import TypeAdapter, ValidationError

from ebbtide.analysis.reading.inputs import Inputs
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.model.resolved_pool import ResolvedPool

_CLASS: Final = "kubernetes:cloud.google.com/v1:ComputeClass"
_MAP: Final = "kubernetes:core/v1:ConfigMap"
_EXPANDER: Final = "cluster-autoscaler-priority-expander"
_PRIORITIES: Final = TypeAdapter(dict[int, list[str]])


def read_fallbacks(
    recording: Recording, pools: Sequence[ResolvedPool], queues: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Return the names of each pool's fallback pools, next first.

    Args:
        recording: the recorded resources.
        pools: the pools.
        queues: the queues of each pool (see `read_queues`): pools of different queues are never fallbacks for
            one another, whatever the autoscaler's priorities.
    """
    chains = [*_classes(recording), *_expanded(recording, pools, queues)]
    return [
        next((chain[chain.index(pool.name) + 1 :] for chain in chains if pool.name in chain), ())
        for pool in pools
    ]


def _classes(recording: Recording) -> Iterator[tuple[str, ...]]:
    for resource in recording.of_type(_CLASS):
        rules = Inputs(resource.inputs).parts("spec.priorities")
        yield tuple(pool for rule in rules for pool in rule.texts("nodepools"))


def _expanded(
    recording: Recording, pools: Sequence[ResolvedPool], queues: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    for resource in recording.of_type(_MAP):
        inputs = Inputs(resource.inputs)
        if inputs.text("metadata.name") != _EXPANDER:
            continue
        ranks = _ranks(_priorities(inputs.text("data.priorities")), pools)
        queued = [(pool.name, names) for pool, names in zip(pools, queues, strict=True) if names]
        for _, group in groupby(sorted(queued, key=_queues), _queues):
            chain = sorted((name for name, _ in group), key=lambda name: -ranks[name])
            if len({ranks[name] for name in chain}) == len(chain):
                yield tuple(chain)


def _priorities(text: str) -> dict[int, list[str]]:
    """Return patterns by priority; none if the expander could not parse the text, which it then ignores."""
    try:
        return _PRIORITIES.validate_python(yaml.safe_load(text))
    except (yaml.YAMLError, ValidationError):
        return {}


def _queues(pool: tuple[str, tuple[str, ...]]) -> tuple[str, ...]:
    return pool[1]


def _ranks(priorities: Mapping[int, list[str]], pools: Sequence[ResolvedPool]) -> dict[str, int]:
    """Return the highest priority whose pattern matches the name of the pool's scale set."""
    return {
        pool.name: max(
            (rank for rank, patterns in priorities.items() if _any_matches(patterns, pool.name)), default=0
        )
        for pool in pools
    }


def _any_matches(patterns: list[str], pool: str) -> bool:
    return any(re.search(pattern, f"aks-{pool}-00000000-vmss") for pattern in patterns)
