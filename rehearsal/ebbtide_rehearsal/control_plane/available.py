"""Available programs whose pods really run."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from ebbtide_rehearsal.addons import rehearsed
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.control_plane.program import Program


@dataclass(frozen=True, slots=True)
class AvailableProgram:
    """An available program.

    Attributes:
        program: the program.
        binary: its file.
    """

    program: Program
    binary: Path


def available_programs(tools: ControlPlaneTools) -> tuple[AvailableProgram, ...]:
    """Return the programs among the tools. Pods of other programs become ready like any pod, and answer no
    requests.
    """
    programs: list[AvailableProgram] = []
    for program in (program for add_on in rehearsed().values() for program in add_on.programs):
        with contextlib.suppress(KeyError):
            programs.append(AvailableProgram(program, tools.path(program.tool)))
    return tuple(programs)
