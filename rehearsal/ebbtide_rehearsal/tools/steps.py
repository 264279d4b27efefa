"""Progress events of tool lookup and builds."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another process builds or downloads items, which are reused.

    Attributes:
        name: the names of the items.
        seconds: how long it has done so.
        minutes: duration of a cold build on 2 cores; 0 for a download.
    """

    name: str
    seconds: float
    minutes: float


@dataclass(frozen=True, slots=True)
class Started:
    """A build or download has started.

    Attributes:
        name: the names of the items.
        number: its position among the pending builds, from 1.
        of: the number of pending builds.
        minutes: duration of a cold build on 2 cores; 0 for a download.
    """

    name: str
    number: int
    of: int
    minutes: float


@dataclass(frozen=True, slots=True)
class Worked:
    """A line of Go's output, a downloaded module or a compiled package, or the progress of a download.

    Attributes:
        name: the names of the items.
        line: the line.
    """

    name: str
    line: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The items are in the cache.

    Attributes:
        name: their names.
        seconds: the duration.
    """

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NotDownloaded:
    """Released binaries could not be downloaded; they are built.

    Attributes:
        names: the tools.
        reason: why, as the beginning of a sentence.
    """

    names: tuple[str, ...]
    reason: str


Step = Waiting | Started | Worked | Finished | NotDownloaded
OnStep = Callable[[Step], None]
