"""Validation errors of a declaration, each with a suggested fix."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from ebbtide.errors import EbbtideError


@dataclass(frozen=True, slots=True)
class Fault:
    """One validation error, or one warning.

    Attributes:
        path: where in the declaration, as `pools[2].taints[0].effect`; empty for the whole of it.
        problem: what is wrong.
        consequence: what would have happened.
        fix: what to write instead.
        rule: id of the rule that found it, such as `known-machine-type`; what two faults say makes them
            equal, not which rule says it.
    """

    path: str
    problem: str
    consequence: str
    fix: str
    rule: str = field(default="", compare=False)

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.problem} {self.consequence} {self.fix}"


class DeclarationError(EbbtideError, ValueError):
    """A refused declaration, with all its faults.

    Attributes:
        faults: all of them, in the order of the declaration.
        declared: the object that was read, in which the faults' paths lead somewhere; `...` for objects that
            a program made in Python.
        subject: what has the faults, to begin a sentence with.
    """

    def __init__(
        self, faults: Iterable[Fault], *, declared: object = ..., subject: str = "The declaration"
    ) -> None:
        self.faults = tuple(faults)
        self.declared = declared
        self.subject = subject
        super().__init__("\n".join(str(fault) for fault in self.faults))


def did_you_mean(written: str, known: Iterable[str], likeness: float = 0.7) -> str:
    """Return a clause with the nearest known name, such as `; did you mean n1-highmem-8?`; a full stop
    without one."""
    names = {name.lower(): name for name in known}
    near = get_close_matches(written.lower(), names, n=1, cutoff=likeness)
    return f"; did you mean {names[near[0]]}?" if near else "."
