"""Exit statuses of all commands."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit statuses, besides 0."""

    FOUND = 1
    """The command ended and found something, as its help says: a refused stack, work that runs, leftovers."""
    WRONG = 2
    """Wrong input, or no access: nothing was changed."""
    BROKEN = 3
    """A defect of Ebbtide."""
    INTERRUPTED = 130
    """Ctrl-C: that of a shell, 128 and the signal's number."""
