"""Options of a resource in the SDK's requests, as plain data."""

from typing import Final, cast

from pulumi.runtime.proto import alias_pb2, resource_pb2


def provider_of(reference: str) -> str | None:
    """Return the provider's URN from a provider reference, `URN::ID`."""
    return reference.rpartition("::")[0] or None


def aliases_of(request: resource_pb2.RegisterResourceRequest) -> tuple[str, ...]:
    """Return a resource's aliases: former URNs, or their parts."""
    # The type stubs lack messages of other files.
    return tuple(_alias(cast("alias_pb2.Alias", alias)) for alias in request.aliases)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _alias(alias: alias_pb2.Alias) -> str:
    if alias.urn:
        return alias.urn
    spec = alias.spec
    parts = {
        "parent": "the stack" if spec.noParent else spec.parentUrn,
        "type": spec.type,
        "name": spec.name,
        "project": spec.project,
        "stack": spec.stack,
    }
    return " ".join(f"{key}={value}" for key, value in parts.items() if value)


_EVENTS: Final = (
    "before_create",
    "after_create",
    "before_update",
    "after_update",
    "before_delete",
    "after_delete",
    "on_error",
)


def hooks_of(
    binding: resource_pb2.RegisterResourceRequest.ResourceHooksBinding,
) -> dict[str, tuple[str, ...]]:
    """Return the names of a resource's hooks, by event."""
    named = {event: tuple[str, ...](getattr(binding, event)) for event in _EVENTS}
    return {event: names for event, names in named.items() if names}


def timeouts_of(request: resource_pb2.RegisterResourceRequest) -> dict[str, str]:
    """Return the custom timeouts of a resource, by step."""
    custom = request.customTimeouts
    timeouts = {"create": custom.create, "update": custom.update, "delete": custom.delete}
    return {step: time for step, time in timeouts.items() if time}
