"""The command line."""

import sys

try:
    from ebbtide.cli.entry_point import app, main
except (KeyboardInterrupt, RuntimeError) as error:  # as in `interrupts`, which is not loaded yet
    if isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt):
        sys.exit(130)
    raise

__all__ = ["app", "main"]
