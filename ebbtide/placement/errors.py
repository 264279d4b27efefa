"""Errors of placement profiles."""

from ebbtide.errors import EbbtideError


class ProfileError(EbbtideError, ValueError):
    """An unreadable profile, or one without the requested pool or queue."""
