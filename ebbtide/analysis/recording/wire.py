"""Conversion between the SDK's protobuf structures and plain data.

The SDK's own conversion (`pulumi.runtime.rpc`) builds an object for each asset and reference and moves a
secret up to its property: slower, and less exact than a recording requires.
"""

from collections.abc import Mapping
from typing import Final

from google.protobuf import struct_pb2

from ebbtide.analysis.recording.values import ARCHIVE, ASSET, SECRET, SIGNATURE, UNKNOWN, Plain, Secret

_REFERENCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def properties(struct: struct_pb2.Struct) -> dict[str, Plain]:
    """Return a resource's properties in alphabetical order (protobuf keeps none)."""
    fields = struct.fields
    return {key: _plain(fields[key]) for key in sorted(fields)}


def _plain(value: struct_pb2.Value) -> Plain:
    match value.WhichOneof("kind"):
        case "string_value":
            text = value.string_value
            return UNKNOWN if text == _UNKNOWN else text
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() else number
        case "bool_value":
            return value.bool_value
        case "struct_value":
            struct = value.struct_value
            return _signed(struct) if SIGNATURE in struct.fields else properties(struct)
        case "list_value":
            return [_plain(item) for item in value.list_value.values]
        case _:
            return None


def _signed(struct: struct_pb2.Struct) -> Plain:
    fields = struct.fields
    rest = {key: _plain(fields[key]) for key in sorted(fields) if key != SIGNATURE}
    match fields[SIGNATURE].string_value:
        case signature if signature == SECRET:
            return Secret(rest.get("value"))
        case signature if signature == _REFERENCE:
            # Providers without reference support, such as the clouds', receive the id; components have only a
            # URN.
            return rest["id"] if "id" in rest else rest.get("urn")
        case signature if signature == _OUTPUT:
            value = rest.get("value", UNKNOWN)
            return Secret(value) if rest.get("secret") else value
        case signature if signature == ASSET:
            return {"asset": rest}
        case signature if signature == ARCHIVE:
            return {"archive": rest}
        case _:
            return rest


def fill(target: struct_pb2.Value, value: Plain) -> None:
    """Write a plain value into a protobuf value, encoding secrets and unknown values per the protocol."""
    if value is None:
        target.null_value = struct_pb2.NULL_VALUE
    elif value is UNKNOWN:
        target.string_value = _UNKNOWN
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, str):
        target.string_value = value
    elif isinstance(value, int | float):
        target.number_value = value
    elif isinstance(value, Secret):
        target.struct_value.fields[SIGNATURE].string_value = SECRET
        fill(target.struct_value.fields["value"], value.value)
    elif isinstance(value, dict):
        target.struct_value.SetInParent()
        fill_struct(target.struct_value, value)
    else:
        target.list_value.SetInParent()
        for item in value:
            fill(target.list_value.values.add(), item)


def fill_struct(target: struct_pb2.Struct, values: Mapping[str, Plain]) -> None:
    """Write plain properties into a protobuf structure, over existing ones."""
    for key, value in values.items():
        target.fields[key].Clear()
        fill(target.fields[key], value)
