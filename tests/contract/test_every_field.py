"""Every public field of the declaration reaches a resource or a message; `test_what_changes` has which."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args
from unittest.mock import patch

import pulumi
import pytest
from pulumi_azure_native import containerservice
from pulumi_gcp import container
from pydantic import BaseModel

from components import aks, gke
from ebbtide.analysis.recording.record import record
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import advice, declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.values.cloud_kind import CloudKind
from tests.contract.cluster_flips import CHECKED
from tests.contract.flips import Flip, beside
from tests.contract.pool_flips import AKS_POOL, GKE_POOL
from tests.contract.test_what_changes import FLIPS
from tests.declarations import Declaration

_OF_OTHERS = {
    *("MachineShape.vcpus", "MachineShape.memory_gib", "Reservation.from_", "Reservation.until"),
    "Pool.protect",
}
"""Fields of a pool that reach the quotas of queues, the pool's reservation or its options alone."""


@pytest.mark.parametrize("flips", [GKE_POOL, AKS_POOL], ids=["gke", "aks"])
def test_a_changed_field_changes_the_pool_beside_every_other(flips: list[Flip]) -> None:
    """No field of a pool is accepted and then ignored where another one is set; one that states a default
    changes nothing."""
    cases = [case for case in flips if case.field not in _OF_OTHERS]
    others = [
        case for case in flips if case.field.startswith(("Pool.", "Nodes.")) or case.field.endswith(".kind")
    ]
    combined = filter(None, (beside(case, other) for case in cases for other in others))
    pairs = [(case.field, _work_pool(case.before), _work_pool(case.after)) for case in combined]
    valid = [(field, before, after) for field, before, after in pairs if before and after and before != after]
    assert len(valid) > 200
    inputs = _inputs([pool for _, *both in valid for pool in both])
    assert [field for field, before, after in valid if inputs[repr(before)] == inputs[repr(after)]] == []


def _work_pool(written: Declaration) -> ResolvedPool | None:
    """Return the work pool of a declaration; None for an invalid one."""
    return _of_text(json.dumps(written, sort_keys=True))


@cache
def _of_text(written: str) -> ResolvedPool | None:
    try:
        return declare(json.loads(written)).resolved_pools[-1]
    except DeclarationError:
        return None


def _inputs(pools: list[ResolvedPool]) -> dict[str, str]:
    """Return the inputs of each pool's component and resource, by the pool's representation."""
    inputs: dict[str, str] = {}

    def program() -> None:
        with (
            patch.object(pulumi.ComponentResource, "__init__") as component,
            patch.object(pulumi.ComponentResource, "register_outputs"),
            patch.object(container, "NodePool") as leaf,
            patch.object(containerservice, "AgentPool", leaf),
        ):
            for pool in pools:
                fields: Any = {"pool": pool, "site": pool.site, "cluster": "train"}
                if pool.site.cloud is CloudKind.GKE:
                    interfaces = (gke.Interface("vpc1", "vpc1"),)
                    gke.NodePool("pool", gke.NodePoolArgs(**fields, project="acme-ml", interfaces=interfaces))
                else:
                    args = aks.NodePoolArgs(**fields, resource_group="train", reservation="group")
                    aks.NodePool("pool", args)
                inputs[repr(pool)] = repr(
                    (component.call_args.args[2], {**leaf.call_args.kwargs, "opts": None})
                )

    record(program, project="train", stack="test")
    return inputs


def _messages(written: Declaration) -> set[str]:
    try:
        return {str(warning) for warning in advice(declare(written))}
    except DeclarationError as refused:
        return {str(fault) for fault in refused.faults}


@pytest.mark.parametrize("case", CHECKED, ids=[case.field for case in CHECKED])
def test_a_changed_field_changes_the_messages(case: Flip) -> None:
    """No field that only the rules read is ignored by them."""
    assert _messages(case.before) != _messages(case.after)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _fields(model: type[BaseModel], visited: set[type[BaseModel]]) -> Iterator[tuple[str, bool]]:
    """Yield each field, and whether its own fields follow."""
    visited.add(model)
    for name, field in model.model_fields.items():
        parts = [part for part in _models(field.annotation) if part not in visited]
        yield f"{model.__name__}.{name}", bool(parts)
        for part in parts:
            if part not in visited:
                yield from _fields(part, visited)


def test_no_field_is_left_out() -> None:
    """A field that is added to the declaration is added here too, or its own fields are, or this fails."""
    fields, changed = dict(_fields(Cluster, set())), {case.field for case in (*FLIPS, *CHECKED)}
    assert changed - fields.keys() == set()
    assert [name for name, has_parts in fields.items() if name not in changed and not has_parts] == []
