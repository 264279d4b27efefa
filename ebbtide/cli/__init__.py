"""The command line."""

from ebbtide.cli.entry_point import app, main

__all__ = ["app", "main"]
