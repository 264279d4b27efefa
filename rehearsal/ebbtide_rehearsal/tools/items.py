"""Definition of a tool and its source, and the events and errors of its lookup and build."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.errors import EbbtideError

_RARELY_RUN: Final = (
    "cloud.google.com/go/...",
    "github.com/Azure/...",
    "github.com/aws/...",
    "google.golang.org/api/...",
    "google.golang.org/genproto/...",
    "k8s.io/client-go/applyconfigurations/...",
    "k8s.io/client-go/informers/...",
    "k8s.io/client-go/kubernetes/...",
    "k8s.io/client-go/listers/...",
)
"""Generated clients, most of them of clouds that a rehearsal never reaches."""


class ToolError(EbbtideError):
    """A program or data that can be neither found nor built; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another process builds or downloads items, which are reused.

    Attributes:
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
    """A line of Go's output, a downloaded module or a compiled package, or the progress of a download."""

    name: str
    line: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The items are in the cache.

    Attributes:
        name: their names.
    """

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NotDownloaded:
    """Released binaries could not be downloaded; they are built.

    Attributes:
        reason: why, as the beginning of a sentence.
    """

    names: tuple[str, ...]
    reason: str


Step = Waiting | Started | Worked | Finished | NotDownloaded
OnStep = Callable[[Step], None]


def _unoptimized(pattern: str) -> str:
    return f"-gcflags={pattern}=-N -l -dwarf=false"


BUILD_FLAGS: Final = (
    "-mod=readonly",
    "-trimpath",
    "-pgo=off",
    "-buildvcs=false",
    "-gcflags=all=-dwarf=false",
    *map(_unoptimized, _RARELY_RUN),
)
"""Flags of every build: reproducible, from go.sum alone, without the profiles that double its duration and
without the debugging information that the linker drops anyway (etcd: 64 s for 72 s, 2026-11).
"""


class VersionRule(StrEnum):
    """Accepted versions on PATH."""

    SAME_MINOR = "the same minor version"
    """For Kubernetes, whose components are compatible within a minor version (kubernetes.io, version skew
    policy) and whose fields depend on the minor version.
    """

    NO_OLDER = "the same major version, no older"
    NO_OLDER_MINOR = "the same major version, no older minor version"
    """For etcd: kubebuilder's assets for Kubernetes 1.36.2 have 3.6.8."""


class Condition(StrEnum):
    """Condition for a tool."""

    ALWAYS = "always"
    DECLARED = "declared"
    """With the add-on that it is of (`ebbtide_rehearsal.addons`)."""
    BY_NAME = "by name"
    """Only on explicit request: by a test, or by a scenario that runs a pipeline."""


@dataclass(frozen=True, slots=True)
class OnPath:
    """Acceptance of a program on PATH.

    Attributes:
        version_arguments: arguments that print its version, the first `1.2.3` of its standard output.
    """

    accepts: VersionRule
    version_arguments: tuple[str, ...] = ("--version",)


@dataclass(frozen=True, slots=True)
class SourcePatch:
    """A source patch: replaces behavior that is valid only in a container and has no option.

    Attributes:
        before: the text to replace, which occurs once.
    """

    file: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program.

    Attributes:
        group: the directory below `modules` that pins it.
        module: its Go module, which determines its version.
        package: its main package.
        pin: its version's name in the catalogue.
        minutes: a cold build on 2 cores, after the preceding tools of the table (measured, 2026-11).
        stamps: linker variables (`-X`) with their values.
        unoptimized: a pattern of packages to compile without optimization, a quarter faster: code that runs
            seldom, or controllers of a few objects.
        on_path: acceptance of a program on PATH; None for never, since users do not install it for this.
        plugin: for a Pulumi provider, its package: the plugin that Pulumi has installed for the version of
            the Python SDK is preferred. One on PATH does not tell its version.
    """

    name: str
    group: str
    module: str
    package: str
    pin: str
    minutes: float
    when: Condition = Condition.ALWAYS
    stamps: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    unoptimized: str | None = None
    changes: tuple[SourcePatch, ...] = ()
    on_path: OnPath | None = None
    plugin: str | None = None

    @property
    def version(self) -> str:
        """Return the version without its prefix."""
        return PINS[self.pin].version

    @property
    def compiler_flags(self) -> tuple[str, ...]:
        """Arguments of `go build` for each package."""
        tags = (f"-tags={','.join(self.tags)}",) if self.tags else ()
        unoptimized = (_unoptimized(self.unoptimized),) if self.unoptimized else ()
        return (*BUILD_FLAGS, *unoptimized, *tags)

    @property
    def linker_flags(self) -> str:
        """Arguments of the linker; a binary without symbols is a third smaller."""
        return " ".join(("-s -w", *(f"-X {variable}={value}" for variable, value in self.stamps)))

    @property
    def recipe(self) -> tuple[str, ...]:
        """Build inputs besides go.mod and go.sum."""
        linked = f"-ldflags={self.linker_flags}"
        return (self.package, *self.compiler_flags, linked, *map(repr, self.changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A directory of a Go module.

    Attributes:
        pin: its version's name in the catalogue.
        source: the directory in the module.
        into: its destination in the data; empty for the top.
    """

    module: str
    pin: str
    source: str
    into: str = ""

    @property
    def version(self) -> str:
        """The Go version string."""
        return f"v{PINS[self.pin].version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Files of Go modules: CRDs, charts, manifests.

    Attributes:
        group: the directory below `modules` that pins it.
        parts: its source directories; the first determines its version.
        minutes: zero: copying is instant, and downloads were not measured separately.
    """

    name: str
    group: str
    parts: tuple[Part, ...]
    when: Condition = Condition.ALWAYS
    minutes: float = 0

    @property
    def version(self) -> str:
        """Return the version without its prefix."""
        return PINS[self.parts[0].pin].version

    @property
    def recipe(self) -> tuple[str, ...]:
        """Build inputs besides go.mod and go.sum."""
        return tuple(map(repr, self.parts))


def from_module(
    name: str, group: str, module: str, pin: str, source: str, when: Condition = Condition.ALWAYS
) -> Data:
    """Return data that is a single directory."""
    part = Part(module=module, pin=pin, source=source)
    return Data(name=name, group=group, parts=(part,), when=when)


Item = Tool | Data


DATA: Final = (
    from_module("kwok-stages", "kueue", "sigs.k8s.io/kwok", "kwok", "kustomize/stage"),
    from_module(
        "pulumi-language-python-exec",
        "pulumi",
        "github.com/pulumi/pulumi/sdk/v3",
        "pulumi",
        "python/cmd",
        Condition.BY_NAME,
    ),
)
