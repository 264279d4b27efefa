"""Resource hooks and transforms of a program, recorded and never called.

The SDK would start a gRPC server for the engine's calls. No engine runs, and a preview opens no port.
"""

from pulumi.runtime._callbacks import _CallbackServicer  # pyright: ignore[reportPrivateUsage] - no public form

from ebbtide.recording.monitor import RecordingMonitor


class Callbacks(_CallbackServicer):
    """The SDK's callback registry, without its server."""

    def __init__(self, monitor: RecordingMonitor) -> None:
        # Skips the base class's constructor, which starts the server.
        self._callbacks = {}
        self._transforms = {}
        self._state_migrations = {}
        self._monitor = monitor  # pyright: ignore[reportAttributeAccessIssue] - a mock monitor stands for the stub
        self._target = "none"

    async def serve(self) -> None:
        """Start no server."""
