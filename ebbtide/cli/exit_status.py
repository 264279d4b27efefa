"""Exit statuses of all commands."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit statuses other than 0."""

    FOUND = 1
    """The command ended with a negative result, as in its help: a rejected stack, running work, leftovers."""
    WRONG = 2
    """Wrong input, or no access: nothing was changed."""
    BROKEN = 3
    """A bug in Ebbtide."""
    OUTPUT_CLOSED = 141
    """The reader of standard output ended, as in `| head`: 128 plus the signal's number, as in a shell."""
    INTERRUPTED = 130
    """Ctrl-C: 128 plus the signal's number, as in a shell."""
