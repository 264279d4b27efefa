"""The programs of which pods really run, as far as they are at hand."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbtide.rehearsal.control_plane.katib import KATIB
from ebbtide.rehearsal.control_plane.kueue import KUEUE
from ebbtide.rehearsal.control_plane.plan import Tools
from ebbtide.rehearsal.control_plane.program import Program
from ebbtide.rehearsal.control_plane.trainer import JOBSET, TRAINER

PROGRAMS: Final = (KUEUE, TRAINER, JOBSET, KATIB)
"""All that are known."""


@dataclass(frozen=True, slots=True)
class AtHand:
    """A program that can be run.

    Attributes:
        program: which.
        binary: its file.
    """

    program: Program
    binary: Path


def at_hand(tools: Tools) -> tuple[AtHand, ...]:
    """The programs that the tools have. The pods of others are like any pods: they become ready, and nothing
    answers."""
    found: list[AtHand] = []
    for program in PROGRAMS:
        with contextlib.suppress(KeyError):
            found.append(AtHand(program, tools.path(program.tool)))
    return tuple(found)
