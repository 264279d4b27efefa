"""What ends a rehearsal before it could show anything."""


class RehearsalError(Exception):
    """A rehearsal that could not take place; the message says why and what to do."""
