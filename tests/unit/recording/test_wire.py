"""Plain data to protobuf and back."""

from typing import Any

import pulumi
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime import rpc

from ebbtide.analysis.recording.values import UNKNOWN, Plain, Secret
from ebbtide.analysis.recording.wire import fill_struct, properties

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
