"""What cannot be had, and what to do about it."""


class ToolError(Exception):
    """A program or data that this machine can neither find nor build; the text is for the user."""
