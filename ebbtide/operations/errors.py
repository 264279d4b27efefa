"""Errors of operations."""

from ebbtide.errors import EbbtideError


class OperationError(EbbtideError):
    """The operation was not performed; the message has the reason and the fix."""
