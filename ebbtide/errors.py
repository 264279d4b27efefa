"""The base of errors for users."""

from typing import ClassVar


class EbbtideError(Exception):
    """An error with a message for the user: what is wrong, and what to do.

    Attributes:
        rule: id of its kind in documents of errors.
    """

    rule: ClassVar[str] = "command"
