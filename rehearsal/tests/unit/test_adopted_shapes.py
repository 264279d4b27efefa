"""Clusters of public examples, adopted through the fake clouds' providers alone.

The engine's part of it runs in rehearsal/tests/engine/test_adopted_shapes.py.
"""

import copy
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from ebbtide.analysis.recording.recording import Resource
from ebbtide.analysis.recording.values import revealed
from ebbtide.operations.adopting import google
from ebbtide.operations.adopting.found import Adoption, Found
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import path_keys
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.ids import PACKAGES
from ebbtide_rehearsal.cloud.provider import Call, Provider, Read
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.fake_clouds import make_found
from tests.synth import synth
from tests.unit.adopting import aks_shapes, gke_shapes, test_aks, test_gke
from tests.unit.adopting.gke_shapes import Document

_LOWER: Final = json.loads(json.dumps(aks_shapes.CILIUM).replace("Standard_", "standard_"))
SHAPES: Final[dict[str, list[Document]]] = {
    **{f"gke {shape.__name__}": [shape()] for shape in gke_shapes.SHAPES},
    "gke queued_with_kueue": [gke_shapes.queued_gpus(), {"kind": "ResourceFlavor"}],
    **{f"aks {name}": getattr(aks_shapes, name) for name in aks_shapes.SHAPES},
    "aks LOWER_CASE": _LOWER,
}
"""Documents about a cluster, by its cloud and name."""
ALONE: Final = {"aks SPOT_DOCS": "pools", "aks RAY": "pools", "aks VERIFIED": "whole"}
"""The level of adoption of shapes of which one level alone is possible."""
CASES: Final = [
    f"{shape} {level}" for shape in SHAPES for level in ("whole", "pools") if level in ALONE.get(shape, level)
]
MACHINES: Final = {"gke": "n2-standard-4", "aks": "Standard_D4s_v5"}


def _adopted(shape: str, level: str) -> tuple[Adoption, Found]:
    documents, pools_only = SHAPES[shape], level == "pools"
    if shape.startswith("gke"):
        found = google.read(documents[0], "cluster.json")
        assert found
        return test_gke.adopted(documents[0], *documents[1:], pools_only=pools_only), found
    return test_aks.adopted(documents, pools_only=pools_only), test_aks.found(documents)


def _inputs(resource: Resource) -> dict[str, Any]:
    return {key: revealed(value) for key, value in resource.inputs.items()}


def _ignoring(new: Mapping[str, Any], old: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return inputs with the old values of ignored properties, as the engine sends them."""
    result = copy.deepcopy(dict(new))
    for path in paths:
        *above, last = path_keys(path)
        inside: Any = result
        before: Any = old
        for key in above:
            inside, before = (
                part[key] if isinstance(key, int) else part.get(key, {}) for part in (inside, before)
            )
        inside.pop(last, None)
        if last in before:
            inside[last] = before[last]
    return result


def _updated(provider: Provider, resource: Resource, identity: str) -> None:
    """Import a resource and update it."""
    call = Call(resource.type, resource.name, resource.urn)
    read = provider.read(call, identity, {})
    assert read is not None, identity
    assert provider.check(call, read.inputs, read.inputs)[1] == []
    declared = _ignoring(_inputs(resource), read.inputs, resource.ignore_changes)
    new, failures = provider.check(call, read.inputs, declared)
    assert failures == []
    assert provider.diff(call, read.id, read, new).replaces == ()
    state = provider.update(call, read.id, read, new)
    assert provider.diff(call, read.id, Read(read.id, new, state), new).changed == ()


@pytest.mark.parametrize("case", CASES)
def test_a_public_shape(tmp_path: Path, case: str) -> None:
    """The providers accept the import of each resource as it is, and the first update in place, after which
    nothing changes; a label of a pool and a new pool are accepted as well."""
    shape, _, level = case.rpartition(" ")
    adoption, found = _adopted(shape, level)
    store, planes = Store(tmp_path / "cloud.sqlite"), FakeControlPlanes()
    make_found(found, adoption.declaration, store, planes)
    provider = FakeProvider(PACKAGES[CloudKind(shape[:3])], store, planes, {"subscriptionId": found.account})
    ids = {(item["type"], item["name"]): item["id"] for item in adoption.resources}
    first = {(item.type, item.name): item for item in adoption.recording}
    for key, identity in ids.items():
        _updated(provider, first[key], identity)

    declaration = copy.deepcopy(adoption.declaration)
    *_, last = declaration["pools"]
    last["labels"] = {**last.get("labels", {}), "stage": "two"}
    declaration["pools"].append({"name": "added", "machine": MACHINES[shape[:3]], "nodes": {"max": 1}})
    for item in synth(declaration):
        old = first.get((item.type, item.name))
        if old is None and item.type.startswith(provider.package):
            call = Call(item.type, item.name, item.urn)
            inputs, failures = provider.check(call, {}, _inputs(item))
            assert failures == []
            assert provider.create(call, inputs).id
        elif old is not None and (item.type, item.name) in ids and item.inputs != old.inputs:
            _updated(provider, item, ids[item.type, item.name])
