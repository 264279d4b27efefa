"""Recorded values: JSON, extended with secret and unknown values."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, TypeAlias, final

from ebbtide.values.paths import child_path, path_keys


class Unknown(Enum):
    """The type of `UNKNOWN`: a single-member enum, so that `value is UNKNOWN` narrows and copies are
    identical.
    """

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN
"""A value that only the cloud knows, without an assumed response."""

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
    if isinstance(value, Secret):
        return revealed(value.value)
    if isinstance(value, dict):
        return {key: revealed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [revealed(item) for item in value]
    return value


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
