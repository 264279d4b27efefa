"""The document of `ebbtide adopt --format json`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from ebbtide.analysis.recording.values import masked
from ebbtide.operations.adopting.found import Adoption, FieldRow, LeftOut, UpdateRow
from ebbtide.operations.adopting.kueue import AdoptedQueues
from ebbtide.operations.adopting.kueue_objects import ObjectDifference
from ebbtide.values.documents import DocumentPart

VERSION: Final = "ebbtide.dev/adopt/v1"


class ResourceName(DocumentPart):
    """A resource of the stack's program."""

    type: str
    """Type token."""
    name: str
    """Logical name."""


class AdoptionReport(DocumentPart):
    """An adopted cluster: its declaration, and the proof that it is the same cluster."""

    version: Literal["ebbtide.dev/adopt/v1"] = VERSION
    """Version of the document format."""
    cluster: str
    """Name of the cluster."""
    place: str
    """Its project or subscription, and its location."""
    declaration: Mapping[str, Any]
    """The value of `ebbtide:cluster`."""
    fields: tuple[FieldRow, ...]
    """Every field that was read."""
    updates: tuple[UpdateRow, ...]
    """Inputs that the first update changes."""
    created: tuple[ResourceName, ...]
    """Resources that the first update creates."""
    left_out: tuple[LeftOut, ...]
    """Parts of the cluster that are not adopted."""
    queues: tuple[ObjectDifference, ...]
    """Differences of Kueue's objects."""
    drivers: tuple[str, ...]
    """Drivers and device plugins of GPUs that others install on its nodes, as sentences; empty without a
    document of its DaemonSets."""
    exceptions: tuple[Mapping[str, str], ...]
    """Exceptions of the policy that the stack's file has for the cluster as it is."""
    output_only: Mapping[str, int]
    """Numbers of attributes that no program sets, by resource."""
    written: tuple[str, ...]
    """Names of the files that were written."""


def report(
    cluster: str,
    place: str,
    adoption: Adoption,
    queues: AdoptedQueues | None,
    **other: Any,
) -> AdoptionReport:
    """Return the document of an adoption.

    Args:
        place: its account and location.
        queues: Kueue's objects; None without any.
        other: the fields of the document that the proof does not have.
    """
    return AdoptionReport(
        cluster=cluster,
        place=place,
        fields=tuple(replace(row, value=masked(row.value, row.path)) for row in adoption.fields),
        updates=tuple(
            replace(row, old=masked(row.old, row.path), new=masked(row.new, row.path))
            for row in adoption.updates
        ),
        created=tuple(ResourceName(type=token, name=name) for token, name in adoption.created),
        left_out=(*adoption.left_out, *(queues.left if queues else ())),
        queues=tuple(queues.differences) if queues else (),
        output_only=adoption.output_only,
        **other,
    )
