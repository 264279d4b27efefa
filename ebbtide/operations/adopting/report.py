"""The document of `ebbtide adopt --format json`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, Literal

from ebbtide.analysis.recording.values import masked
from ebbtide.operations.adopting.found import Adoption, LeftOut, Status
from ebbtide.operations.adopting.kueue import AdoptedQueues
from ebbtide.values.documents import DocumentPart

VERSION: Final = "ebbtide.dev/adopt/v1"


class ReadField(DocumentPart):
    """A field of the cluster or a pool."""

    resource: str
    """Name of its cluster, pool or maintenance schedule."""
    path: str
    """Path in the provider's inputs, such as `nodeConfig.machineType`."""
    value: Any
    """The found value; `[secret]` for a secret."""
    status: Status
    """`declared`, `overridden`, `changed` by the first update, or `left` without a word in the
    declaration."""
    reason: str
    """Why it is changed or left, as a sentence; empty otherwise."""


class FirstUpdate(DocumentPart):
    """An input that the first update changes."""

    resource: str
    """Name of its cluster or pool."""
    path: str
    """Path in the provider's inputs."""
    old: Any
    """The found value; null if there is none."""
    new: Any
    """The declared value; null if there is none."""
    recreates: bool
    """True if the change recreates nodes, and evicts their pods."""
    reason: str
    """Why the found value does not stay; empty if Ebbtide always sets its own."""


class QueueDifference(DocumentPart):
    """A field of one of Kueue's objects that differs from the declared object."""

    name: str
    """Kind and name, such as `ClusterQueue research`."""
    path: str
    """Path of the field; empty for an object that does not exist."""
    found: Any
    """The existing value; null if it is missing."""
    declared: Any
    """The declared value; null if the existing one stays."""
    reason: str
    """Why they differ, as a sentence."""


class NotAdopted(DocumentPart):
    """A part of the cluster that is not adopted."""

    name: str
    """Kind and name, such as `pool windows`."""
    reason: str
    """Why, as a sentence."""


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
    fields: tuple[ReadField, ...]
    """Every field that was read."""
    updates: tuple[FirstUpdate, ...]
    """Inputs that the first update changes."""
    created: tuple[ResourceName, ...]
    """Resources that the first update creates."""
    left_out: tuple[NotAdopted, ...]
    """Parts of the cluster that are not adopted."""
    queues: tuple[QueueDifference, ...]
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
    left: tuple[LeftOut, ...] = (*adoption.left_out, *(queues.left if queues else ()))
    return AdoptionReport(
        cluster=cluster,
        place=place,
        fields=tuple(
            ReadField(**{**asdict(row), "value": masked(row.value, row.path)}) for row in adoption.fields
        ),
        updates=tuple(
            FirstUpdate(**{**asdict(row), "old": masked(row.old, row.path), "new": masked(row.new, row.path)})
            for row in adoption.updates
        ),
        created=tuple(ResourceName(type=token, name=name) for token, name in adoption.created),
        left_out=tuple(NotAdopted(**asdict(part)) for part in left),
        queues=tuple(QueueDifference(**asdict(item)) for item in (queues.differences if queues else ())),
        output_only=adoption.output_only,
        **other,
    )
