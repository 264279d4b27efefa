"""Hooks of a program that would stop an update, called as the engine calls them in its preview.

Only hooks before an update that run in previews (`on_dry_run`) are called.
"""

from collections.abc import Awaitable, Callable, Mapping

from google.protobuf.message import Message as Response
from pulumi.runtime.proto import resource_pb2

from ebbtide.recording.identities import former_resources
from ebbtide.recording.messages import MessageLog
from ebbtide.recording.recording import Message, Recording
from ebbtide.recording.wire import fill_struct

Hook = Callable[[bytes], Awaitable[Response]]


async def refusals(
    before: Recording, after: Recording, hooks: Mapping[str, Hook], log: MessageLog
) -> tuple[Message, ...]:
    """Return what the program's hooks raise at the update of one recording to another.

    Args:
        before: the stack as it is.
        after: the stack as it would be.
        hooks: the program's hooks, by name.
        log: masks the secrets of the configuration.
    """
    result: list[Message] = []
    for urn, old in former_resources(before, after).items():
        new = after[urn]
        if old.inputs == new.inputs:
            continue
        for hook in (hooks[name] for name in new.hooks.get("before_update", ()) if name in hooks):
            request = resource_pb2.ResourceHookRequest(urn=urn, id=old.id or "", name=new.name, type=new.type)
            fill_struct(request.old_inputs, old.inputs)
            fill_struct(request.new_inputs, new.inputs)
            response = await hook(request.SerializeToString())
            if error := getattr(response, "error", ""):
                result.append(Message(severity="error", text=log.clean(error), urn=urn))
    return tuple(result)
