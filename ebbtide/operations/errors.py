"""What keeps an operation from being done."""


class OperationError(Exception):
    """The operation was not done; the message says why, and what to do."""
