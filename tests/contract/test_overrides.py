"""Overrides: an input that nothing is derived from reaches the recorded resource, and no other changes it."""

import copy
from ast import literal_eval
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.analysis.changes.property_path import merged
from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import at, masked
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.model.rules.overridable import CLUSTERS, POOLS, Overridable
from ebbtide.declaration.model.rules.overrides import combinations
from ebbtide.declaration.model.site import CloudKind
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.declaration.providers.schema import alternatives, properties, properties_of, word
from tests.declarations import BASES, Declaration, changed
from tests.synth import synth

_SAMPLES: dict[str, Any] = {"string": "sample", "bool": True, "int": 7, "number": 0.5}
_CLOUDS = list(CloudKind)
_ANYTHING: st.SearchStrategy[Any] = st.one_of(st.booleans(), st.text(), st.integers(), st.just([]))


_BY_MACHINE = {
    "confidentialNodes",
    "nodeConfig.confidentialNodes",
    "nodeConfig.linuxNodeConfig.hugepagesConfig.hugepageSize1g",
}
"""Inputs that only some machines have."""
_TEXTS = ("10", "0.5", "10s", "10m", "1024 60999")


def _scalars(known: Any, of: Overridable, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar input that can be overridden, with a value within its limits."""
    for name, schema in known.items():
        here = f"{path}.{name}" if path else name
        if here in of.derived or here in of.relied_on or here in _with_another(of) | _BY_MACHINE:
            continue
        kind = alternatives(schema.hint)[-1]
        if word(kind) == "object":
            yield from _scalars(properties_of(kind), of, here)
        elif word(kind) in _SAMPLES:
            yield here, _words(kind)[0] if _words(kind) else _within_limits(of, here, _SAMPLES[word(kind)])


def _with_another(of: Overridable) -> set[str]:
    """Inputs that cannot be set alone."""
    return {row.when.name for row in combinations() if row.when.is_of_pool == (of in POOLS.values())}


def _within_limits(of: Overridable, path: str, sample: Any) -> Any:
    limits = [limit for limit in constraints_of(of.token).limits if limit.path == path]
    bounds = [limit.value for limit in limits if limit.name in {"minimum", "maximum"}]
    others = [*(_TEXTS if isinstance(sample, str) else ()), *(type(sample)(bound) for bound in bounds)]
    words = [word for limit in limits if limit.name == "enum" for word in limit.choices]
    return next(value for value in (sample, *words, *others) if all(limit.allows(value) for limit in limits))


def _words(kind: Any) -> list[Any]:
    return [member.value for member in kind] if isinstance(kind, type) and issubclass(kind, Enum) else []


@cache
def _overridable(token: str) -> tuple[tuple[str, Any], ...]:
    of = next(
        overridable for overridable in (*POOLS.values(), *CLUSTERS.values()) if overridable.token == token
    )
    return tuple(_scalars(properties(token), of))


def _nested(path: str, value: Any) -> Declaration:
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def _made(recording: Recording, token: str, name: str) -> Resource:
    resources = [
        item
        for item in recording.of_type(token)
        if name
        in (item.inputs.get("name"), item.inputs.get("agentPoolName"), item.inputs.get("resourceName"))
    ]
    (resource,) = resources
    return resource


@pytest.mark.parametrize("cloud", _CLOUDS)
def test_every_scalar_of_a_pool_reaches_its_resource(cloud: CloudKind) -> None:
    """A scalar override reaches the resource under the engine's name and the preview, and no other input
    changes."""
    token = POOLS[cloud].token
    declaration = copy.deepcopy(BASES[cloud])
    system, plain, *_ = declaration["pools"]
    overrides = {f"p{number}": override for number, override in enumerate(_overridable(token))}
    own = [{**plain, "name": name, "overrides": _nested(*override)} for name, override in overrides.items()]
    recording = synth(changed(declaration, pools=[system, plain, *own]))
    reports = {pool.name: pool.overrides for pool in preview_of(recording).pools}
    old = repr(_made(recording, token, "cpu").inputs)
    for name, (path, value) in overrides.items():
        inputs = _made(recording, token, name).inputs
        assert at(dict(inputs), path) == value
        assert reports[name] == {path: masked(value, path)}
        top = path.split(".")[0]
        before = literal_eval(old.replace("'cpu'", repr(name)))
        assert {**inputs, top: None} == {**before, top: None}


@pytest.mark.parametrize("cloud", _CLOUDS)
def test_every_scalar_of_a_cluster_reaches_its_resource(cloud: CloudKind) -> None:
    """A scalar override reaches the resource under the engine's name, and the preview."""
    token = CLUSTERS[cloud].token
    declaration = copy.deepcopy(BASES[cloud])
    overrides: Declaration = {}
    for path, value in _overridable(token):
        overrides = merged(overrides, _nested(path, value))
    declaration["cloud"]["overrides"] = overrides
    recording = synth(declaration)
    inputs = dict(_made(recording, token, "train").inputs)
    (report,) = preview_of(recording).clusters
    for path, value in _overridable(token):
        assert at(inputs, path) == value
        assert report.overrides[path] == masked(value, path)


def test_the_system_pool_inside_an_aks_cluster_has_its_overrides() -> None:
    """The overrides of the system pool are part of the cluster's resource, where the SDK has other names."""
    declaration = copy.deepcopy(BASES["aks"])
    declaration["pools"][0]["overrides"] = {"kubeletConfig": {"podMaxPids": 4096}, "enableFIPS": True}
    recording = synth(declaration)
    token = CLUSTERS[CloudKind.AKS].token
    inputs = dict(_made(recording, token, "train").inputs)
    assert at(inputs, "agentPoolProfiles[0].kubeletConfig.podMaxPids") == 4096
    assert at(inputs, "agentPoolProfiles[0].enableFIPS") is True
    report = next(pool for pool in preview_of(recording).pools if pool.name == "system")
    assert report.overrides == {"kubeletConfig.podMaxPids": 4096, "enableFIPS": True}


def test_mappings_are_merged_and_lists_are_replaced() -> None:
    """Derived values besides an override are unchanged."""
    declaration = copy.deepcopy(BASES["gke"])
    declaration["pools"][1]["overrides"] = {
        "nodeConfig": {
            "kubeletConfig": {"podPidsLimit": 4096},
            "oauthScopes": ["https://www.googleapis.com/auth/devstorage.read_only"],
            "metadata": {"serial-port-logging-enable": "true"},
        }
    }
    config = dict(_made(synth(declaration), POOLS[CloudKind.GKE].token, "cpu").inputs)["nodeConfig"]
    assert at(config, "kubeletConfig") == {
        "cpuCfsQuota": True,
        "insecureKubeletReadonlyPortEnabled": "FALSE",
        "podPidsLimit": 4096,
    }
    assert at(config, "oauthScopes") == ["https://www.googleapis.com/auth/devstorage.read_only"]
    assert at(config, "metadata") == {
        "disable-legacy-endpoints": "true",
        "serial-port-logging-enable": "true",
    }


@pytest.mark.parametrize("cloud", _CLOUDS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_what_is_derived_is_never_overridden(cloud: CloudKind, data: st.DataObject) -> None:
    """Every such input is refused, with any value; that of an optional field if the field is declared."""
    path = data.draw(st.sampled_from(sorted(POOLS[cloud].beside(()).derived)))
    declaration = copy.deepcopy(BASES[cloud])
    declaration["pools"][1]["overrides"] = _nested(path, data.draw(_ANYTHING))
    with pytest.raises(DeclarationError) as refused:
        declare(declaration)
    assert [
        fault.path.partition(".overrides.")[2].replace('["', ".").replace('"]', "")
        for fault in refused.value.faults
    ] == [path]


@pytest.mark.parametrize("of", [*POOLS.values(), *CLUSTERS.values()], ids=lambda of: of.token)
def test_derived_inputs_are_inputs(of: Overridable) -> None:
    """A table that a newer provider has outgrown is found."""
    aks_item = (
        {"name", "virtualMachineNodesStatus", "nodeInitializationTaints"}
        if of is POOLS[CloudKind.AKS]
        else set[str]()
    )
    for path in {*of.derived, *of.relied_on} - aks_item:
        known = properties(of.token)
        for key in path.split("."):
            if known is None:
                break
            assert key in known or key.startswith("ebbtide-"), path
            if key in known:
                hint = known[key].hint
                known = properties_of(hint) if word(hint) == "object" else None
