"""What happens while things are found or built, as whoever waits is told."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another rehearsal is building; what it builds need not be built again."""


@dataclass(frozen=True, slots=True)
class Started:
    """Something is being built or fetched.

    Attributes:
        name: what.
        version: which.
        number: its place among what has to be built, from 1.
        of: how much has to be built.
        minutes: what it takes from nothing on 2 cores; 0 for a download.
    """

    name: str
    version: str
    number: int
    of: int
    minutes: float


@dataclass(frozen=True, slots=True)
class Worked:
    """Go said a line: a module that is downloaded, or a package that is compiled."""

    line: str


@dataclass(frozen=True, slots=True)
class Finished:
    """It is in the cache.

    Attributes:
        name: what.
        seconds: what it took.
    """

    name: str
    seconds: float


Step = Waiting | Started | Worked | Finished
Say = Callable[[Step], None]
