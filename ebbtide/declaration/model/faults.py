"""Validation errors of a declaration, each with a suggested fix."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ebbtide.errors import EbbtideError
from ebbtide.text import printable


@dataclass(frozen=True, slots=True)
class Fault:
    """One validation error, or one warning. Control characters of its texts are escaped.

    Attributes:
        path: path in the declaration, such as `pools[2].taints[0].effect`; empty for the whole of it.
        problem: what is wrong.
        consequence: what would have happened.
        fix: what to write instead.
        rule: id of the broken rule, such as `known-machine-type`; ignored when faults are compared.
    """

    path: str
    problem: str
    consequence: str
    fix: str
    rule: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in ("path", "problem", "consequence", "fix"):
            object.__setattr__(self, name, printable(getattr(self, name), one_line=True))

    def __str__(self) -> str:
        prefix = f"{self.path}: " if self.path else ""
        return f"{prefix}{self.problem} {self.consequence} {self.fix}"


class DeclarationError(EbbtideError, ValueError):
    """An invalid declaration, with all its faults.

    Attributes:
        faults: every fault, in the order of the declaration.
        declared: the object that the faults' paths refer to; `...` for objects that a Python program
            constructed.
        subject: subject of the message's first sentence.
    """

    def __init__(
        self, faults: Iterable[Fault], *, declared: object = ..., subject: str = "The declaration"
    ) -> None:
        self.faults = tuple(faults)
        self.declared = declared
        self.subject = subject
        super().__init__("\n".join(str(fault) for fault in self.faults))
