"""Errors of a control plane, for the user of a rehearsal."""

from ebbtide.errors import EbbtideError


class ControlPlaneError(EbbtideError):
    """A program of the control plane failed to start, or ended. The message names it and has the last lines
    of its log.
    """


class AddressTakenError(ControlPlaneError):
    """Another process took a port between its selection and its use; a retry with another port succeeds."""
