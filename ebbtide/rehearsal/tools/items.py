"""What a thing that a rehearsal needs is, and where it comes from."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ebbtide.catalog import PINS

BUILD_FLAGS: Final = ("-mod=readonly", "-trimpath", "-pgo=off", "-buildvcs=false")
"""How everything is built: from what go.sum has, the same wherever it is built, without the
profiles that make it take twice as long."""


class Suits(StrEnum):
    """Which versions on PATH will do."""

    SAME_MINOR = "the same minor version"
    """Of Kubernetes, whose components work together within a minor version (kubernetes.io, version skew
    policy) and whose fields are those of a minor version."""

    NO_OLDER = "the same major version, no older"


class When(StrEnum):
    """When a rehearsal asks for something; add-ons by their names in the declaration."""

    ALWAYS = "always"
    TRAINER = "trainer"
    KATIB = "katib"
    BY_NAME = "by name"
    """Never by itself: a test asks for it, or a scenario that runs a pipeline."""


@dataclass(frozen=True, slots=True)
class OnPath:
    """When a program on PATH will do.

    Attributes:
        suits: in which versions.
        ask: arguments that make it print its version, the first `1.2.3` of its standard output.
    """

    suits: Suits
    ask: tuple[str, ...] = ("--version",)


@dataclass(frozen=True, slots=True)
class Change:
    """Words of a module's source that are others in what is built of it: a constant that only holds in a
    container, where it cannot be set otherwise.

    Attributes:
        file: in the module.
        before: the words, which are there once.
        after: the others.
    """

    file: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program.

    Attributes:
        name: the file's name.
        group: the directory below `modules` that pins it.
        module: the Go module that it is in, whose version it has.
        package: its main package.
        pin: its version's name in the catalogue.
        why: what a rehearsal needs it for.
        minutes: a cold build on 2 cores, once what is before it in the table is built (measured, 2026-11).
        when: when it is asked for.
        stamps: linker variables (`-X`) with their values.
        tags: build tags.
        changes: of its source.
        on_path: when one on PATH will do; None for never, since nobody has it there for this.
    """

    name: str
    group: str
    module: str
    package: str
    pin: str
    why: str
    minutes: float
    when: When = When.ALWAYS
    stamps: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    on_path: OnPath | None = None

    @property
    def version(self) -> str:
        """As `1.36.2`."""
        return PINS[self.pin].version

    @property
    def flags(self) -> tuple[str, ...]:
        """Arguments of `go build`; a binary without symbols is a third smaller."""
        linked = " ".join(("-s -w", *(f"-X {variable}={value}" for variable, value in self.stamps)))
        tags = (f"-tags={','.join(self.tags)}",) if self.tags else ()
        return (*BUILD_FLAGS, *tags, f"-ldflags={linked}")

    @property
    def recipe(self) -> tuple[str, ...]:
        """What, beside go.mod and go.sum, decides what comes of it."""
        return (self.package, *self.flags, *map(repr, self.changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A directory of a Go module.

    Attributes:
        module: the module.
        pin: its version's name in the catalogue.
        source: the directory in the module.
        into: where it goes in the data; empty for the top.
    """

    module: str
    pin: str
    source: str
    into: str = ""

    @property
    def version(self) -> str:
        """As Go asks for it."""
        return f"v{PINS[self.pin].version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Files that modules carry: kinds, charts, manifests.

    Attributes:
        name: what it is asked for by.
        group: the directory below `modules` that pins it.
        parts: what it is put together from; the first is what it is named after.
        why: what a rehearsal needs it for.
        when: when it is asked for.
        minutes: copying takes none; downloading was not measured apart.
    """

    name: str
    group: str
    parts: tuple[Part, ...]
    why: str
    when: When = When.ALWAYS
    minutes: float = 0

    @property
    def version(self) -> str:
        """As `0.19.2`."""
        return PINS[self.parts[0].pin].version

    @property
    def recipe(self) -> tuple[str, ...]:
        """What, beside go.mod and go.sum, decides what comes of it."""
        return tuple(map(repr, self.parts))


Item = Tool | Data
