"""Hooks of a program that can stop an update, called as in the engine's preview.

Only hooks before an update that run in previews (`on_dry_run`) are called.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias

from google.protobuf.message import Message as Response
from pulumi.runtime.proto import resource_pb2

from ebbtide.analysis.recording.messages import MessageLog
from ebbtide.analysis.recording.recording import Message, Recording, Resource
from ebbtide.analysis.recording.wire import fill_struct

Hook: TypeAlias = Callable[[bytes], Awaitable[Response]]
Updates: TypeAlias = Callable[[Recording], Iterable[tuple[Resource, Resource]]]
"""Function that returns the updated resources of a recording, before and after."""


async def refusals(
    updates: Iterable[tuple[Resource, Resource]], hooks: Mapping[str, Hook], log: MessageLog
) -> tuple[Message, ...]:
    """Return the exceptions of a program's hooks before updates, as messages.

    Args:
        updates: the updated resources, before and after.
        hooks: the program's hooks, by name.
        log: masks the secrets of the configuration.
    """
    result: list[Message] = []
    for old, new in updates:
        for hook in (hooks[name] for name in new.hooks.get("before_update", ()) if name in hooks):
            request = resource_pb2.ResourceHookRequest(
                urn=new.urn, id=old.id or "", name=new.name, type=new.type
            )
            fill_struct(request.old_inputs, old.inputs)
            fill_struct(request.new_inputs, new.inputs)
            response = await hook(request.SerializeToString())
            if error := getattr(response, "error", ""):
                result.append(Message(severity="error", text=log.clean(error), urn=new.urn))
    return tuple(result)
