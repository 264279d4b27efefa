"""Errors that end a rehearsal before it has a result."""

from ebbtide.errors import EbbtideError


class RehearsalError(EbbtideError):
    """The rehearsal could not run; the message has the reason and the fix."""
