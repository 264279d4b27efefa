"""Every public field of the declaration reaches a resource: change it, and the graph changes."""

from collections.abc import Iterator
from typing import Any, cast, get_args

import pytest
from pydantic import BaseModel

from ebbtide.analysis.recording.recording import Recording, Secret
from ebbtide.declaration.model import Cluster, DeclarationError, advice, declare
from tests.contract.cloud_flips import AKS_CLOUD, CLUSTER, GKE_CLOUD
from tests.contract.flips import Flip
from tests.contract.pool_flips import AKS_POOL, GKE_POOL
from tests.contract.tenancy_flips import ADDONS, CHECKED, TENANCY
from tests.declarations import Declaration
from tests.synth import synth

FLIPS = [*CLUSTER, *GKE_CLOUD, *AKS_CLOUD, *GKE_POOL, *AKS_POOL, *TENANCY, *ADDONS]


def _graph(recording: Recording) -> list[tuple[Any, ...]]:
    """Return the resources' inputs and the kubeconfig, without the profile, which repeats the declaration."""
    kubeconfig = cast("Secret", recording.outputs["kubeconfig"])
    graph = [
        (
            item.urn,
            repr(item.inputs),
            item.provider,
            item.protect,
            item.deleted_with,
            item.retain_on_delete,
            item.dependencies,
        )
        for item in recording
    ]
    return [*graph, ("kubeconfig", kubeconfig.value)]


@pytest.mark.parametrize("case", FLIPS, ids=[f"{at}-{case.field}" for at, case in enumerate(FLIPS)])
def test_a_changed_field_changes_the_graph(case: Flip) -> None:
    """No field is accepted and then ignored."""
    assert _graph(synth(case.before)) != _graph(synth(case.after))


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


def _fields(model: type[BaseModel], visited: set[type[BaseModel]]) -> Iterator[str]:
    if model in visited:
        return
    visited.add(model)
    for name, field in model.model_fields.items():
        yield f"{model.__name__}.{name}"
        for part in _models(field.annotation):
            yield from _fields(part, visited)


def test_no_field_is_left_out() -> None:
    """A field that is added to the declaration is added here too, or this fails."""
    assert set(_fields(Cluster, set())) == {case.field for case in (*FLIPS, *CHECKED)}
