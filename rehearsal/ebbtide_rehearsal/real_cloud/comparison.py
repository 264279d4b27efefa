"""The comparison of a recording as a document."""

from typing import Final

from ebbtide.documents import DocumentPart

VERSION: Final = "ebbtide.dev/real-cloud/v1"


class Difference(DocumentPart):
    """A field in which a recorded answer and ours differ."""

    type: str
    """The resource's type."""
    resource: str
    """The resource's logical name."""
    call: str
    """The call, such as `Create`."""
    path: str
    """The field's property path in the answer; `error` for a call that one of both refuses."""
    real: object
    """The recorded value; null for none."""
    ours: object
    """Our value; null for none."""
    source: str
    """The source of our value: a table, or the fake cloud's code."""
    file: str
    """The recording's file."""


class Comparison(DocumentPart):
    """Differences between a recording and the fake clouds."""

    version: str
    """The version of this format."""
    recording: str
    """The directory of the recording."""
    compared: int
    """The number of calls that were compared."""
    skipped: int
    """The number of calls about resources whose creation was not recorded."""
    differences: tuple[Difference, ...]
    """The fields that differ, in the order of the calls."""
