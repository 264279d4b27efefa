"""Errors of tools."""

from ebbtide.errors import EbbtideError


class ToolError(EbbtideError):
    """A program or data that can be neither found nor built; the message is for the user."""
