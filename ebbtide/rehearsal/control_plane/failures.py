"""What can go wrong with a control plane, in words for whoever rehearses."""


class ControlPlaneError(Exception):
    """A program of the control plane would not start, or ended. The message says which, and ends with the
    last lines of its log."""


class AddressTakenError(ControlPlaneError):
    """Someone else took a port between its choice and its use: another port will do."""
