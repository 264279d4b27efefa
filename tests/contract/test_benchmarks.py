"""Each default on the page of benchmarks is a property of what a stack creates."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from ebbtide.analysis.policy.benchmarks import BENCHMARKS, Item, RequiredProperty
from ebbtide.analysis.preview.build_report import preview_of
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import at
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from ebbtide.work.jobs import job
from tests.declarations import BASES, Declaration
from tests.running import full, manifest
from tests.synth import synth

CLOUDS = dict(zip(BENCHMARKS, BASES, strict=True))


def declaration(cloud: str) -> Declaration:
    """Every add-on and all that a team can have; no queued pool, which GKE does not repair."""
    whole = full(cloud)
    return {**whole, "pools": [pool for pool in whole["pools"] if pool["name"] != "a100"]}


@pytest.fixture(scope="module")
def recordings() -> Mapping[str, Recording]:
    """A stack on each cloud."""
    return {cloud: synth(declaration(cloud)) for cloud in BASES}


def inputs_of(recording: Recording, cloud: str, type_: str) -> Iterator[Mapping[str, Any]]:
    """Inputs of all resources of a type."""
    if type_ == "Job":
        made = profile(declare(declaration(cloud)))
        yield job(made, name="train", image="busybox", queue="cpu", cpu="1", memory="1Gi", namespace="audio")
    for item in recording.of_type(type_):
        yield manifest(item)


def _items(*, options: bool = False) -> list[Any]:
    return [
        pytest.param(name, item, id=f"{name.split()[1]}-{item.number}")
        for name, items in BENCHMARKS.items()
        for item in items
        if (item.option if options else item.default)
    ]


@pytest.mark.parametrize(("benchmark", "item"), _items())
def test_a_default_is_what_every_resource_has(
    benchmark: str, item: Item, recordings: Mapping[str, Recording]
) -> None:
    """The type occurs, and none of its resources has another value."""
    cloud, decides = CLOUDS[benchmark], cast("RequiredProperty", item.default)
    values = [
        at(dict(inputs), decides.path)
        for inputs in inputs_of(recordings[cloud], cloud, decides.type)
        if not decides.exempts(inputs)
    ]
    assert values, decides.type
    assert [value for value in values if not decides.expected.holds(value)] == []


@pytest.mark.parametrize(("benchmark", "item"), _items(options=True))
def test_an_option_is_a_field(benchmark: str, item: Item) -> None:
    """An option is a field of the declaration or of a Job."""
    assert benchmark
    if item.option.startswith("--"):
        assert item.option == "--secret-volume"
        return
    schema: Any = Cluster.model_json_schema(by_alias=True)
    types: list[Any] = [schema]
    for name in item.option.replace("[]", "").split("."):
        fields = [type_["properties"][name] for type_ in types if name in type_.get("properties", {})]
        assert fields, item.option
        types = [schema["$defs"][definition] for definition in re.findall(r"#/\$defs/(\w+)", str(fields))]


def test_numbers_are_in_order_and_once() -> None:
    """The numbers of a benchmark are unique and in order."""
    for items in BENCHMARKS.values():
        numbers = [tuple(map(int, item.number.split("."))) for item in items]
        assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("cloud", BASES)
def test_a_default_breaks_no_rule(cloud: str, recordings: Mapping[str, Recording]) -> None:
    """Defaults violate no rule of a benchmark, whose rules are in the same table."""
    findings = preview_of(recordings[cloud]).findings
    assert [item for item in findings if item.rule.startswith("cis-")] == []
