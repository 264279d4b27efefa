"""Errors for users: their base, and the one of a file that cannot be extended."""

from typing import ClassVar, Final

EXTENDS: Final = "extends"
"""Field of a declaration with the file that it extends, relative to the directory of `Pulumi.yaml`."""


class EbbtideError(Exception):
    """An error with a message for the user: what is wrong, and what to do.

    Attributes:
        rule: id of the error's kind in documents.
    """

    rule: ClassVar[str] = "command"


class ExtendsError(EbbtideError):
    """A base file is missing, malformed or extends itself, or lacks an item that the declaration removes."""

    rule = EXTENDS
