"""Recorded values: JSON, extended with secret and unknown values, and their conversion from and to the SDK's
protobuf structures.

The SDK's own conversion (`pulumi.runtime.rpc`) builds an object for each asset and reference and moves a
secret up to its property: slower, and less exact than a recording requires.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ebbtide.values.paths import child_path, path_keys

if TYPE_CHECKING:  # commands that record nothing work without protobuf
    from google.protobuf import struct_pb2

# Part of the engine's protocol: sdk/go/common/resource/properties.go and sdk/go/common/resource/asset.go of
# pulumi.
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - no password
ASSET: Final = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE: Final = "0def7320c3a5731c473e5ecbe6d01bc7"
SECRET_TEXT: Final = "[secret]"  # noqa: S105 - no password
"""The display text of a secret."""
UNKNOWN_TEXT: Final = "[unknown]"
"""The display text of an unknown value."""
Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | Secret | Unknown | None"
"""A recorded value: JSON, with secrets wrapped and unknown values marked."""
_LOGIN: Final = re.compile(r"://[^/?#@\s]+:[^/?#@\s]*@")
"""User and password in a URL, such as a proxy's."""
_OF_USERS: Final = re.compile(r"(?i)(labels|tags|annotations)\b")
_NAMED: Final = re.compile(
    r"(?i)((password|passphrase|secret|token|(private|client|access|account|api)_?key)"
    r"|headers\[\d+\]\.values?(\[\d+\])?)(\"\])?$"
)
"""Paths of text that is a secret: passwords, keys, and values of HTTP headers, such as a registry's."""
_REFERENCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class Unknown(Enum):
    """The type of `UNKNOWN`: a single-member enum, so that `value is UNKNOWN` narrows and copies are
    identical.
    """

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN
"""A value that only the cloud knows, without an assumed response."""


@final
class Secret:
    """A value that Pulumi encrypts; `repr`, `str` and format strings never reveal it.

    Not a dataclass: `dataclasses.asdict` would copy the value out of it.
    """

    __slots__ = ("value",)

    def __init__(self, value: "Plain") -> None:
        self.value = value

    def __repr__(self) -> str:
        return SECRET_TEXT

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.value == other.value

    __hash__ = None  # pyright: ignore[reportAssignmentType] - the value may be a dict


def is_secret(path: str, value: Plain) -> bool:
    """Return whether a value is a secret: marked or encrypted as one, of such a name, or a URL with a
    login."""
    if isinstance(value, str):
        named = _NAMED.search(path) is not None and _OF_USERS.search(path) is None
        return bool(value) and (named or _LOGIN.search(value) is not None)
    return isinstance(value, Secret) or value is UNKNOWN


def masked(value: Plain, path: str = "") -> Any:
    """Convert a recorded value to JSON for display: `[secret]` for secrets, `[unknown]` for unknown
    values.

    Args:
        value: the value.
        path: its property path.
    """
    if value is UNKNOWN:
        return UNKNOWN_TEXT
    if isinstance(value, dict):
        return {key: masked(item, child_path(path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item, child_path(path, index)) for index, item in enumerate(value)]
    return SECRET_TEXT if is_secret(path, value) else value


def revealed(value: Plain) -> Plain:
    """Unwrap a value's secrets for computation; never for display."""
    return mapped(value, lambda leaf: revealed(leaf.value) if isinstance(leaf, Secret) else leaf)


def mapped(value: Plain, change: Callable[[Plain], Plain]) -> Plain:
    """Return a value in which each scalar, secret and unknown value is changed."""
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [mapped(item, change) for item in value]
    return change(value)


def at(value: Plain, path: str) -> Plain:
    """Return the value at a Pulumi property path: `nodeConfig.taints[0].key`, `labels["ebbtide.dev/pool"]`.

    None if it does not exist. Values inside secrets are returned; everything below an unknown value is
    unknown.
    """
    for key in path_keys(path):
        if isinstance(value, Secret):
            value = value.value
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(key, int):
            value = value[key] if isinstance(value, list) and key < len(value) else None
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return None
    return value


def leaves(value: Plain, path: str = "") -> Iterator[tuple[str, Plain]]:
    """Yield every scalar in a value with its property path; secrets are leaves."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, child_path(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, child_path(path, index))
    else:
        yield path, value


def properties(struct: "struct_pb2.Struct") -> dict[str, Plain]:
    """Return a resource's properties in alphabetical order (protobuf keeps none)."""
    fields = struct.fields
    return {key: _plain(fields[key]) for key in sorted(fields)}


def _plain(value: "struct_pb2.Value") -> Plain:
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


def _signed(struct: "struct_pb2.Struct") -> Plain:
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


def fill(target: "struct_pb2.Value", value: Plain) -> None:
    """Write a plain value into a protobuf value, encoding secrets and unknown values per the protocol."""
    if value is None:
        from google.protobuf.struct_pb2 import NULL_VALUE  # noqa: PLC0415 - see above

        target.null_value = NULL_VALUE
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


def fill_struct(target: "struct_pb2.Struct", values: Mapping[str, Plain]) -> None:
    """Write plain properties into a protobuf structure, over existing ones."""
    for key, value in values.items():
        target.fields[key].Clear()
        fill(target.fields[key], value)
