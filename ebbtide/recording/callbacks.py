"""Hooks and transforms of a program, noted and never called.

The SDK would start a gRPC server for the engine to call them on. No engine runs, and a preview opens no port.
"""

from pulumi.runtime._callbacks import _CallbackServicer  # pyright: ignore[reportPrivateUsage] - no public form

from ebbtide.recording.monitor import RecordingMonitor


class Callbacks(_CallbackServicer):
    """The SDK's register of callbacks, without its server."""

    def __init__(self, monitor: RecordingMonitor) -> None:
        # Deliberately not the base class's, which makes the server.
        self._callbacks = {}
        self._transforms = {}
        self._state_migrations = {}
        self._monitor = monitor  # pyright: ignore[reportAttributeAccessIssue] - a mock monitor stands for the stub
        self._target = "none"

    async def serve(self) -> None:
        """Serve nobody."""
