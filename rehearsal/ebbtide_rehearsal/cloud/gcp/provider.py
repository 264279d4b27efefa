"""The stand-in of the provider for Google Cloud, pulumi-gcp 10.2: what all of its types have in common."""

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from ebbtide.recording.values import UNKNOWN, Plain
from ebbtide_rehearsal.cloud.clusters import Clusters
from ebbtide_rehearsal.cloud.gcp import checking, difference
from ebbtide_rehearsal.cloud.gcp.asked import CLOUD, Asked, Settings, World, api_error, last
from ebbtide_rehearsal.cloud.gcp.functions import FUNCTIONS
from ebbtide_rehearsal.cloud.gcp.kind import Kind
from ebbtide_rehearsal.cloud.gcp.kinds import KINDS
from ebbtide_rehearsal.cloud.gcp.paths import laid_over
from ebbtide_rehearsal.cloud.provider import (
    Call,
    Change,
    Failure,
    Made,
    Properties,
    Read,
    RefusedError,
    UnfinishedError,
)
from ebbtide_rehearsal.cloud.schema import misfits
from ebbtide_rehearsal.cloud.store import Resource, Store


class Gcp:
    """Google Cloud as its Pulumi provider shows it: resources of the types in `KINDS`, kept in the store.

    Creating a cluster starts a control plane, and creating a node pool makes it known to the controllers of
    nodes. What the real provider or API refuses is refused with its kind of message.
    """

    package = "gcp"
    version = metadata.version("pulumi-gcp")

    def __init__(self, store: Store, clusters: Clusters, settings: Settings | None = None) -> None:
        """Args:
        store: where what is made is kept.
        clusters: what has the control planes.
        settings: of the provider resource that it is; none are set where it is left out.
        """
        self._world = World(store, clusters)
        self._settings = settings or Settings()

    def configured(self, variables: Properties) -> "Gcp":
        """The same cloud, with a provider resource's settings."""
        return Gcp(self._world.store, self._world.clusters, Settings.of(variables))

    def check_config(self, variables: Properties) -> Sequence[Failure]:
        """The settings that the provider does not have."""
        return [
            Failure(one.path, f'Invalid or unknown key. An argument named "{one.path}" is not expected here.')
            for one in misfits(f"pulumi:providers:{self.package}", variables)
            if one.problem == "unknown" and one.path != "version"
        ]

    def change_config(self, old: Properties, new: Properties) -> Change:
        """No change of the provider's settings replaces anything: what it made keeps its own project."""
        return Change(tuple(key for key in sorted({*old, *new}) if old.get(key) != new.get(key)))

    def check(self, call: Call, old: Properties, new: Properties) -> tuple[Properties, Sequence[Failure]]:
        """The inputs with names and defaults, and what the schema does not have."""
        kind = _kind(call.type)
        inputs = checking.completed(kind, call, old, new)
        return inputs, checking.failures(kind, call, inputs)

    def diff(self, call: Call, identity: str, old: Read, new: Properties) -> Change:  # noqa: ARG002
        """What new inputs mean."""
        return difference.change(_kind(call.type), old.inputs, old.state, new)

    def create(self, call: Call, inputs: Properties) -> Made:
        """Make a resource.

        Raises:
            RefusedError: the cloud refuses it.
            UnfinishedError: it was made, and is not as it should be.
        """
        kind, asked = _kind(call.type), self._asked(call, inputs)
        if call.preview:
            return Made("", _unknown_over(inputs, kind.outputs(asked)))
        identity = kind.identity(asked)
        there = self._world.get(identity)
        if there is not None and kind.taken is not None:
            raise RefusedError(kind.taken(identity))
        _refuse(kind, asked)
        state = self._take_effect(kind, asked, identity, "created")
        wrong = kind.unfinished(asked, identity)
        if wrong is not None:
            raise UnfinishedError(wrong, identity, state)
        return Made(identity, state)

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:  # noqa: ARG002
        """A resource as the store has it."""
        resource = self._world.get(identity)
        if resource is None:
            return None
        kind = _kind(call.type)
        # What is read is what the next update is compared with.
        resource = resource.having(**kind.current(self._world, resource))
        self._world.store.put(resource)
        return Read(identity, difference.read_back(kind, resource.inputs, resource.state), resource.state)

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:  # noqa: ARG002
        """Change a resource; its new state. Raises RefusedError."""
        kind = _kind(call.type)
        there = self._world.get(identity)
        asked = self._asked(call, new, there)
        if call.preview:
            return laid_over(new, kind.outputs(asked))
        if there is None:
            raise RefusedError(api_error(404, f"Not found: {identity}.", "notFound"))
        _refuse(kind, asked)
        return self._take_effect(kind, asked, identity, "changed")

    def delete(self, call: Call, identity: str, known: Properties) -> None:  # noqa: ARG002
        """Remove a resource; raises RefusedError where something keeps it."""
        kind = _kind(call.type)
        resource = self._world.get(identity)
        if resource is None:
            return
        reason = kind.leaving(self._world, resource)
        if reason is not None:
            raise RefusedError(reason)
        self._world.store.remove(CLOUD, identity)
        kind.gone(self._world, resource)
        self._say(kind, identity, "deleted")

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """Answer a function; raises RefusedError."""
        answer = FUNCTIONS.get(token)
        if answer is None:
            raise RefusedError(f"The rehearsal has no stand-in for the function {token}.")
        return answer(Asked(self._world, self._settings, token, "", arguments))

    def _asked(self, call: Call, inputs: Properties, old: Resource | None = None) -> Asked:
        return Asked(self._world, self._settings, call.type, call.urn, inputs, old)

    def _take_effect(self, kind: Kind, asked: Asked, identity: str, what: str) -> dict[str, Any]:
        kind.happens(asked, identity)
        state = laid_over(asked.inputs, kind.outputs(asked))
        self._world.store.put(Resource(CLOUD, identity, asked.type, asked.urn, asked.inputs, state))
        self._say(kind, identity, what)
        return state

    def _say(self, kind: Kind, identity: str, what: str) -> None:
        if kind.events:
            text = f"The {kind.events.replace('-', ' ')} {last(identity)} was {what}."
            self._world.store.say(f"{kind.events}-{what}", text, id=identity)


def _kind(type_: str) -> Kind:
    kind = KINDS.get(type_)
    if kind is None:
        raise RefusedError(f"The rehearsal has no stand-in for resources of type {type_}.")
    return kind


def _refuse(kind: Kind, asked: Asked) -> None:
    for rule in kind.refusals:
        message = rule.says(asked)
        if message is not None:
            failing = "" if asked.old is not None or not kind.failing else f"{kind.failing}: "
            raise RefusedError(f"{failing}{message}")


def _unknown_over(inputs: Properties, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs, and unknown whatever only the cloud will say."""
    told: dict[str, Plain] = {
        key: _unknown(item) for key, item in outputs.items() if key not in inputs or _is_object(item)
    }
    return laid_over(inputs, told)


def _is_object(value: Plain) -> bool:
    return isinstance(value, dict)


def _unknown(value: Plain) -> Plain:
    return {key: _unknown(item) for key, item in value.items()} if isinstance(value, dict) else UNKNOWN
