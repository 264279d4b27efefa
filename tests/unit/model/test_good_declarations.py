"""Good declarations: accepted, completed once and for all, and the same when they are read back."""

import copy
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import advice, declaration_schema, declare
from ebbtide.declaration.model.faults import DeclarationError
from tests.unit.model.cases import (
    Case,
    aks_pools,
    base,
    cases,
    many_pools,
    many_ranges,
    many_tags,
    paths,
    put,
)

_GOOD = cases("good")
_BASES = [Case(name=cloud, written=base(cloud), faults=()) for cloud in ("gke", "aks")]
_IN_BASES = {keys for case in _BASES for keys in paths(case.written)}


@cache
def _validator() -> Draft202012Validator:
    schema = declaration_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _says_no(written: Any) -> bool:
    return not _validator().is_valid(written)  # pyright: ignore[reportUnknownMemberType]  # jsonschema has no types


@pytest.mark.parametrize("case", _GOOD, ids=str)
def test_accepted(case: Case) -> None:
    """A good declaration is accepted, also by the JSON Schema of editors, left as it was, complete at once,
    and the same when it is written out as YAML has it and read again."""
    before = copy.deepcopy(case.written)
    declared = declare(case.written)
    assert case.written == before
    assert declared.resolved() == declared
    assert declare(declared.model_dump(mode="json", by_alias=True, exclude_none=True)) == declared
    assert not _says_no(case.written)


@pytest.mark.parametrize(
    "written",
    [many_tags(64), many_pools(64), many_ranges(2000), aks_pools(100)],
    ids=["tags", "pools", "ranges", "AKS pools"],
)
def test_the_largest_are_accepted(written: Any) -> None:
    """A node may have its most network tags, a queue and a cluster their most pools, an API server its most
    ranges."""
    assert isinstance(declare(written), Cluster)


def test_the_schema_knows_every_key() -> None:
    """The JSON Schema refuses a key that the model does not have."""
    unknown = [case for case in cases("bad") if case.name.startswith("unknown_keys")]
    assert [case.name for case in unknown if not _says_no(case.written)] == []


@pytest.mark.parametrize("case", [*_BASES, *_GOOD], ids=str)
def test_null_is_no_value(case: Case) -> None:
    """Neither the model nor the JSON Schema accepts null in place of a value, wherever it is."""
    for keys in paths(case.written):
        is_known = case not in _BASES and keys in _IN_BASES
        if not is_known and not {"overrides", "labels"} & set(keys):
            written = put(case.written, keys, None)
            with pytest.raises(DeclarationError):
                declare(written)
            assert _says_no(written), keys


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_the_bases_are_worth_no_warning(cloud: str) -> None:
    """The declarations that the others are edits of cause no warning."""
    assert advice(declare(base(cloud))) == ()
