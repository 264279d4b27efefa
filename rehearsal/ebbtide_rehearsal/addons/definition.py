"""Definition of an add-on in a rehearsal."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ebbtide_rehearsal.control_plane.program import Program
from ebbtide_rehearsal.tools.items import Data, Item, Tool


@dataclass(frozen=True, slots=True)
class Revision:
    """A git repository, as `github.com/kubeflow/katib`, at a tag or a commit."""

    repository: str
    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """An add-on in a rehearsal.

    Attributes:
        tools: its programs.
        data: its charts and manifests.
        programs: those of its programs that really run, while a pod of them is on a node.
        charts: names of its data by the addresses of charts in the component.
        directories: repository and directory that its data is, by the data's name.
    """

    tools: tuple[Tool, ...] = ()
    data: tuple[Data, ...] = ()
    programs: tuple[Program, ...] = ()
    charts: Mapping[str, str] = field(default_factory=dict[str, str])
    directories: Mapping[str, tuple[Revision, str]] = field(default_factory=dict[str, tuple[Revision, str]])

    @property
    def items(self) -> tuple[Item, ...]:
        """Data and programs."""
        return (*self.data, *self.tools)
