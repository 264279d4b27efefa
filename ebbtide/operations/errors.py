"""Errors of operations."""


class OperationError(Exception):
    """The operation was not performed; the message has the reason and the fix."""
