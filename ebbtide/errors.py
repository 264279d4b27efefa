"""The base of errors for users."""

from typing import ClassVar


class EbbtideError(Exception):
    """An error with a message for the user: what is wrong, and what to do.

    Attributes:
        rule: id of the error's kind in documents.
    """

    rule: ClassVar[str] = "command"
