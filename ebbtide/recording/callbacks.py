"""Resource hooks and transforms of a program, recorded. Transforms are never called.

The SDK would start a gRPC server for the engine's calls. No engine runs, and a preview opens no port.
"""

from pulumi import ResourceHook, ResourceTransform
from pulumi.runtime._callbacks import _CallbackServicer  # pyright: ignore[reportPrivateUsage] - no public form
from pulumi.runtime.proto import callback_pb2

from ebbtide.recording.monitor import NEEDS_STATE, RecordingMonitor
from ebbtide.recording.update_hooks import Hook


class Callbacks(_CallbackServicer):
    """The SDK's callback registry, without its server."""

    def __init__(self, monitor: RecordingMonitor) -> None:
        # Skips the base class's constructor, which starts the server.
        self._callbacks = {}
        self._transforms = {}
        self._state_migrations = {}
        self._monitor = monitor  # pyright: ignore[reportAttributeAccessIssue] - a mock monitor stands for the stub
        self._target = "none"
        self.hooks: dict[str, Hook] = {}
        """The hooks that run in previews, by name."""

    def register_transform(self, transform: ResourceTransform) -> callback_pb2.Callback:
        """Register a transform. One with the attribute `needs_state` has no effect without a state."""
        callback = super().register_transform(transform)
        if getattr(transform, "needs_state", False):
            callback.target = NEEDS_STATE
        return callback

    def register_resource_hook(self, hook: ResourceHook) -> None:
        """Register a hook."""
        request = self.do_register_resource_hook(hook)
        if request.on_dry_run:
            self.hooks[hook.name] = self._callbacks[request.callback.token]  # pyright: ignore[reportUnknownMemberType] # no stubs of another file's messages

    async def serve(self) -> None:
        """Start no server."""
