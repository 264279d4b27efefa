"""A proved adoption: the declaration, every field that was read, and what the first update does."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ebbtide.analysis.adopting.found import LeftOut
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import Plain, masked

Status: TypeAlias = Literal["declared", "overridden", "left"]
DECLARED: Final = "declared"
OVERRIDDEN: Final = "overridden"
LEFT: Final = "left"
_TOTAL: Final = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """A field that was read.

    Attributes:
        resource: name of its cluster or pool.
        path: path in the provider's inputs.
        value: the found value.
        status: `declared`, `overridden` or `left`.
        reason: why it is left; empty otherwise.
    """

    resource: str
    path: str
    value: Plain
    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRow:
    """An input that the first update changes.

    Attributes:
        resource: name of its cluster or pool.
        path: path in the provider's inputs.
        old: the found value; None if there is none.
        new: the declared value; None if there is none.
        recreates: whether the change recreates nodes, and evicts their pods.
        reason: why the found value does not stay; empty if Ebbtide always sets its own.
    """

    resource: str
    path: str
    old: Plain
    new: Plain
    recreates: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A proved adoption.

    Attributes:
        declaration: the object under `ebbtide:cluster`.
        fields: every field that was read.
        updates: inputs that the first update changes in place.
        created: resources that the first update creates, as type and name.
        left_out: parts that are not adopted.
        resources: type, logical name and import id of each adopted resource.
        output_only: number of attributes that are not inputs, by resource.
        before: the found resources that are adopted, as a recording.
        recording: the program's recording with the declaration.
    """

    declaration: dict[str, Any]
    fields: tuple[FieldRow, ...]
    updates: tuple[UpdateRow, ...]
    created: tuple[tuple[str, str], ...]
    left_out: tuple[LeftOut, ...]
    resources: tuple[Mapping[str, str], ...]
    output_only: Mapping[str, int]
    before: Recording
    recording: Recording

    def counts(self) -> dict[str, tuple[int, int, int, int]]:
        """Return the numbers of fields that were read, declared, overridden and left, by resource, and their
        sums under `total`."""
        names = [*dict.fromkeys(row.resource for row in self.fields), _TOTAL]
        return {name: self._counts(name) for name in names}

    def _counts(self, name: str) -> tuple[int, int, int, int]:
        own = [row.status for row in self.fields if name in (row.resource, _TOTAL)]
        return len(own), own.count(DECLARED), own.count(OVERRIDDEN), own.count(LEFT)


def shown(value: Plain) -> str:
    """Return a value for display, in one line."""
    return "nothing" if value is None else json.dumps(masked(value), ensure_ascii=False, default=str)
