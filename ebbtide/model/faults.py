"""What is wrong with a declaration, said so that it can be mended."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong, or worth a warning.

    Attributes:
        path: where in the declaration, as `pools[2].taints[0].effect`; empty for the whole of it.
        problem: what is wrong.
        consequence: what would have happened.
        fix: what to write instead.
    """

    path: str
    problem: str
    consequence: str
    fix: str

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.problem} {self.consequence} {self.fix}"


class DeclarationError(ValueError):
    """A declaration that was refused, with every fault found in it.

    Attributes:
        faults: all of them, in the order of the declaration.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


def did_you_mean(written: str, known: Iterable[str], likeness: float = 0.7) -> str:
    """A clause that names the nearest known name, such as `; did you mean n1-highmem-8?`; a full stop where
    none is near."""
    near = get_close_matches(written, list(known), n=1, cutoff=likeness)
    return f"; did you mean {near[0]}?" if near else "."
