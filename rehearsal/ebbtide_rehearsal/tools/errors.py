"""Errors of tools."""


class ToolError(Exception):
    """A program or data that can be neither found nor built; the message is for the user."""
