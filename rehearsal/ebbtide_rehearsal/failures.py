"""Errors that end a rehearsal before it has a result."""


class RehearsalError(Exception):
    """The rehearsal could not run; the message has the reason and the fix."""
