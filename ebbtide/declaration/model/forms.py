"""Forms of a field's value in the inputs of a node pool, both ways: written by a component, and read from a
resource."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast

from ebbtide.values import durations

_SECONDS: Final = re.compile(r"^(\d+)(?:\.\d+)?s$")


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a value.

    Attributes:
        write: returns the input for the field's value; None to omit it.
        read: returns the field's value for an input; None for an absent or malformed one.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def text(value: object) -> str | None:
    """Return text; None for anything else, and if empty."""
    return value if isinstance(value, str) and value else None


def number(value: object) -> int | None:
    """Return an integer; None for anything else."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _items(value: object) -> list[Any]:
    """Return a list; empty for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def parts(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; none for anything else."""
    return [cast("dict[str, Any]", item) for item in _items(value) if isinstance(item, dict)]


def seconds(value: object) -> int | None:
    """Parse a duration such as `3600s`; None if malformed."""
    match = _SECONDS.match(value) if isinstance(value, str) else None
    return int(match[1]) if match else None


def duration(length: int | None) -> timedelta | None:
    """Return a duration of seconds."""
    return None if length is None else timedelta(seconds=length)


def _same(value: Any) -> Any:
    return value


def _count_or_share(value: object) -> int | str | None:
    share = text(value)
    return int(share) if share and share.isdecimal() else share


def _lower(value: object) -> str | None:
    word = text(value)
    return word and word.lower().replace("_", "-")


def _labels(value: object) -> dict[str, str]:
    labels = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    return {key: label for key, label in labels.items() if isinstance(label, str)}


TEXT: Final = Form(_same, text)
NUMBER: Final = Form(_same, number)
SIZE: Final = Form(_same, lambda value: number(value) or None)
"""A number of which 0 means the default."""
WHOLE: Final = Form(int, number)
"""A number of nodes. A share, which only AKS has, is refused by a rule."""
COUNT_OR_SHARE: Final = Form(str, _count_or_share)
"""A number of nodes or a share of them, as text."""
FLAG: Final = Form(_same, lambda value: value is True)
TEXTS: Final = Form(lambda value: list(value) or None, lambda value: tuple(filter(text, _items(value))))
LABELS: Final = Form(dict, _labels)
CONSTANT: Final = Form(lambda value: value.upper().replace("-", "_"), _lower)
"""A word in upper case: `TIME_SHARING` for `time-sharing`."""
CAPITALIZED: Final = Form(str.capitalize, _lower)
SECONDS: Final = Form(lambda value: int(value.total_seconds()), lambda value: duration(number(value)))
DURATION: Final = Form(durations.in_seconds, lambda value: duration(seconds(value)))
"""A duration as text: `3600s`."""


def words(names: Mapping[str, str]) -> Form:
    """Return the form of a word with another name in the provider, by the declaration's; of several with one
    name, the first is read."""
    read = {name.lower(): word for word, name in reversed([*names.items()])}
    return Form(names.__getitem__, lambda value: read.get((text(value) or "").lower()))
