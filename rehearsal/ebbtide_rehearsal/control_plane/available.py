"""Available programs whose pods really run."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbtide_rehearsal.control_plane.katib import KATIB
from ebbtide_rehearsal.control_plane.kueue import KUEUE
from ebbtide_rehearsal.control_plane.plan import Tools
from ebbtide_rehearsal.control_plane.program import Program
from ebbtide_rehearsal.control_plane.trainer import JOBSET, TRAINER

PROGRAMS: Final = (KUEUE, TRAINER, JOBSET, KATIB)
"""All known programs."""


@dataclass(frozen=True, slots=True)
class AvailableProgram:
    """An available program.

    Attributes:
        program: the program.
        binary: its file.
    """

    program: Program
    binary: Path


def available_programs(tools: Tools) -> tuple[AvailableProgram, ...]:
    """Return the programs among the tools. Pods of other programs become ready like any pod, and answer no
    requests.
    """
    programs: list[AvailableProgram] = []
    for program in PROGRAMS:
        with contextlib.suppress(KeyError):
            programs.append(AvailableProgram(program, tools.path(program.tool)))
    return tuple(programs)
