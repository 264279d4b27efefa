"""Recorded values: access and masking, and plain data to protobuf and back."""

import copy
import json
import pickle
from dataclasses import asdict, dataclass
from typing import Any

import pulumi
import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime import rpc

from ebbtide.analysis.recording.values import (
    UNKNOWN,
    Plain,
    Secret,
    at,
    fill_struct,
    leaves,
    masked,
    properties,
    revealed,
)

VALUE: Plain = {
    "name": "t4-spot",
    "password": Secret("hunter22"),
    "config": Secret({"users": [{"token": "abc"}]}),
    "pools": [{"taints": [{"key": "a"}, {"key": UNKNOWN}]}],
    "later": UNKNOWN,
    "labels": {"ebbtide.dev/pool": "t4", 'a "quoted" [0] key': ["x"]},
}


def test_a_secret_is_never_shown() -> None:
    """Neither conversion to text nor formatting nor copying into a dict shows what a secret holds."""
    secret = Secret("hunter22")

    @dataclass
    class Holder:
        value: Secret

    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>20}",
        repr(VALUE),
        str(asdict(Holder(secret))),
    ]
    assert not any("hunter22" in text for text in shown)
    assert repr(secret) == "[secret]"


def test_a_secret_is_no_json() -> None:
    """A forgotten mask fails loudly and does not leak."""
    with pytest.raises(TypeError):
        json.dumps({"password": Secret("hunter22")})


def test_secrets_compare_by_what_they_hold() -> None:
    """Two recordings of one program are equal, secrets included."""
    assert Secret({"a": [1]}) == Secret({"a": [1]})
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"


def test_unknown_stays_itself_when_copied() -> None:
    """`is UNKNOWN` holds after a copy and after pickling, as for a recording from another process."""
    assert copy.deepcopy(UNKNOWN) is UNKNOWN
    assert pickle.loads(pickle.dumps(UNKNOWN)) is UNKNOWN  # noqa: S301 - our own bytes


def test_masked_is_json_without_secrets() -> None:
    """The masked form has words in place of values that cannot be shown."""
    assert masked(VALUE) == {
        "name": "t4-spot",
        "password": "[secret]",
        "config": "[secret]",
        "pools": [{"taints": [{"key": "a"}, {"key": "[unknown]"}]}],
        "later": "[unknown]",
        "labels": {"ebbtide.dev/pool": "t4", 'a "quoted" [0] key': ["x"]},
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("name", "t4-spot"),
        ("pools[0].taints[0].key", "a"),
        ("pools[0].taints[1].key", UNKNOWN),
        ("pools[0].taints[2].key", None),
        ("pools[1].taints", None),
        ("later.on", UNKNOWN),
        ("config.users[0].token", "abc"),
        ("name.first", None),
        ("nothing", None),
        ('labels["ebbtide.dev/pool"]', "t4"),
    ],
)
def test_a_path_leads_to_a_value(path: str, expected: Plain) -> None:
    """Paths go through lists and secrets; below what is unknown all is unknown, and what is absent is
    None.
    """
    assert at(VALUE, path) == expected


def test_leaves_have_paths_that_lead_back() -> None:
    """`at` finds every value that `leaves` yields."""
    by_path = dict(leaves(VALUE))
    assert set(by_path) == {
        "name",
        "password",
        "config",
        "pools[0].taints[0].key",
        "pools[0].taints[1].key",
        "later",
        'labels["ebbtide.dev/pool"]',
        'labels["a \\"quoted\\" [0] key"][0]',
    }
    assert all(at(VALUE, path) == leaf for path, leaf in by_path.items())


def test_revealed_has_no_wrappers() -> None:
    """For computing, secrets inside secrets come out whole."""
    assert revealed({"a": Secret([Secret("x"), 1])}) == {"a": ["x", 1]}


_keys = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer()),
    st.text(max_size=20),
    st.just(UNKNOWN),
)


def _nested(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(children, max_size=4),
        st.dictionaries(_keys, children, max_size=4),
        st.builds(Secret, children),
    )


values = st.recursive(_scalars, _nested, max_leaves=12)


@given(st.dictionaries(_keys, values, max_size=5))
def test_what_is_written_is_read(written: dict[str, Plain]) -> None:
    """Every plain value survives a round trip, secrets and unknown values included."""
    struct = struct_pb2.Struct()
    fill_struct(struct, written)
    assert properties(struct) == written


def test_the_sdk_reads_our_secrets() -> None:
    """The forms are the SDK's own: what we mark, it recognises."""
    struct = struct_pb2.Struct()
    fill_struct(struct, {"key": Secret("value"), "later": UNKNOWN, "none": []})
    read: dict[str, Any] = rpc.deserialize_properties(struct, keep_unknowns=True)
    assert rpc.is_rpc_secret(read["key"])
    assert rpc.unwrap_rpc_secret(read["key"]) == "value"
    assert isinstance(read["later"], pulumi.output.Unknown)
    assert read["none"] == []


def test_writing_over_a_value_replaces_it() -> None:
    """A list is not appended to, an object not merged: the answer says all."""
    struct = struct_pb2.Struct()
    fill_struct(struct, {"list": [1, 2], "object": {"a": 1}})
    fill_struct(struct, {"list": [3], "object": {"b": 2}})
    assert properties(struct) == {"list": [3], "object": {"b": 2}}
