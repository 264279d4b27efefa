"""A resource monitor for the SDK that answers from assumptions and records every request, and an engine that
records messages.

The SDK leaves some resource options to the engine. They are applied here as in the engine's
`inheritFromParent` and `generateURN` (pulumi `pkg/resource/deploy/source_eval.go` and `step_generator.go`),
so that a recording matches a real run: a child inherits `protect`, `deletedWith` and `retainOnDelete` unless
it sets them, and nothing else; a resource that is only read has none of them. The SDK passes on only
`protect` and providers.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NoReturn, TypeAlias, cast

from google.protobuf import empty_pb2
from pulumi.runtime.mocks import MockCallArgs, MockEngine, MockMonitor, MockResourceArgs, Mocks
from pulumi.runtime.proto import alias_pb2, callback_pb2, engine_pb2, resource_pb2, source_pb2

from ebbtide.analysis.recording.assumption_tables import Assumptions, Question, assumed_paths, overlaid
from ebbtide.analysis.recording.recording import (
    STACK_TYPE,
    Invocation,
    Message,
    Recording,
    Resource,
    Severity,
    urn_of,
)
from ebbtide.analysis.recording.values import SECRET_TEXT, Plain, Secret, fill_struct, mapped, properties

_MIN_SECRET_LENGTH: Final = 6
"""Shorter secrets are not masked: masking every `a` or `true` would garble the text and hide nothing."""
_SEVERITIES: Final[dict[int, Severity]] = {
    engine_pb2.INFO: "info",
    engine_pb2.WARNING: "warning",
    engine_pb2.ERROR: "error",
}
NEEDS_STATE: Final = "state"
"""Target of the callbacks of transforms that need a state, which a preview does not have."""
_GET_RESOURCE: Final = "pulumi:pulumi:getResource"
_RESOURCE_MARK: Final = "@isPulumiResource"  # the SDK's marker on exported resources
_Request: TypeAlias = "resource_pb2.RegisterResourceRequest | resource_pb2.ReadResourceRequest"
Frames = tuple[tuple[str, int], ...]
_EVENTS: Final = (
    "before_create",
    "after_create",
    "before_update",
    "after_update",
    "before_delete",
    "after_delete",
    "on_error",
)


class MessageLog:
    """The messages of a run, with the configuration's secrets masked, as the engine does."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted(
            {text for text in secrets if len(text) >= _MIN_SECRET_LENGTH}, key=len, reverse=True
        )
        self.messages: list[Message] = []

    def clean(self, text: str) -> str:
        """Mask the configuration's secrets in a text."""
        for secret in self._secrets:
            text = text.replace(secret, SECRET_TEXT)
        return text

    def cleaned(self, value: Plain) -> Plain:
        """Mask the configuration's secrets in a value that reaches the monitor unwrapped."""
        return mapped(value, lambda leaf: self.clean(leaf) if isinstance(leaf, str) else leaf)

    def add(self, severity: Severity, text: str, urn: str = "") -> None:
        """Record a message."""
        self.messages.append(Message(severity=severity, text=self.clean(text), urn=urn or None))


class RecordingEngine(MockEngine):
    """Record `pulumi.log` messages. Debug messages, some six for each resource, are dropped."""

    def __init__(self, log: MessageLog) -> None:
        super().__init__(None)
        self._log = log

    def Log(self, request: engine_pb2.LogRequest) -> None:  # noqa: N802 - the protocol's name
        """Record a message."""
        severity = _SEVERITIES.get(request.severity)
        if severity is not None:
            self._log.add(severity, request.message, request.urn)

    def RequirePulumiVersion(self, request: engine_pb2.RequirePulumiVersionRequest) -> None:  # noqa: N802
        """Accept every version: no engine runs."""


class DuplicateResourceError(Exception):
    """Two resources with the same URN, which the engine rejects and the SDK's mocks accept.

    Attributes:
        frames: files and lines of each resource's stack trace in the program, the deepest first.
    """

    def __init__(self, urn: str, *frames: Frames) -> None:
        self.urn = urn
        self.frames = frames
        super().__init__(urn)


class UnsupportedCallError(Exception):
    """A call to a resource method, which only a running provider can answer."""

    def __init__(self, token: str) -> None:
        super().__init__(
            f"The program calls the resource method {token}. Only its provider can respond, and the preview "
            "runs no providers."
        )


class _NoMocks(Mocks):
    """Satisfies the base class, which requires mocks; every method that would use them is overridden
    below.
    """

    def call(self, args: MockCallArgs) -> NoReturn:
        raise AssertionError(args.token)

    def new_resource(self, args: MockResourceArgs) -> NoReturn:
        raise AssertionError(args.typ)


@dataclasses.dataclass(frozen=True, slots=True)
class _Goal:
    """Inherited resource options; None if neither the resource nor any parent sets them."""

    protect: bool | None = None
    deleted_with: str | None = None
    retain_on_delete: bool | None = None

    def of_child(self, request: resource_pb2.RegisterResourceRequest) -> "_Goal":
        return _Goal(
            request.protect if request.HasField("protect") else self.protect,
            request.deletedWith or self.deleted_with,
            request.retainOnDelete if request.HasField("retainOnDelete") else self.retain_on_delete,
        )


_NO_GOAL: Final = _Goal()


class RecordingMonitor(MockMonitor):
    """Register resources and answer function calls for a single run of a program."""

    def __init__(
        self,
        project: str,
        stack: str,
        *,
        assumptions: Assumptions,
        log: MessageLog,
        config: Mapping[str, str],
        deployed: Recording | None = None,
    ) -> None:
        super().__init__(_NoMocks())
        self._project = project
        self._stack = stack
        self._assumptions = assumptions
        self._log = log
        self._config = config
        self._deployed = {resource.urn: resource.inputs for resource in deployed or ()}
        self._ambient: dict[str, dict[str, Plain]] = {}
        self._recorded: dict[str, Resource] = {}
        self.traces: list[Frames] = [()]
        """The program's own frames at the construction of each resource, by its number; the first is of
        resources without one."""
        self._numbers: dict[str, int] = {}  # in the order of construction
        self._goals: dict[str, _Goal] = {}
        self._stack_urn = urn_of(stack, project, None, STACK_TYPE, f"{project}-{stack}")
        self._outputs: dict[str, Plain] = {}
        self._invocations: list[Invocation] = []

    def recording(self) -> Recording:
        """Return everything registered so far."""
        return Recording(
            project=self._project,
            stack=self._stack,
            resources=tuple(sorted(self._recorded.values(), key=lambda item: self._numbers[item.urn])),
            outputs=self._outputs,
            invocations=tuple(self._invocations),
            messages=tuple(self._log.messages),
        )

    def RegisterResource(  # noqa: N802 - the protocol's name
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        """Record a resource and respond with its assumed outputs.

        Raises:
            DuplicateResourceError: its URN already exists.
        """
        urn = urn_of(self._stack, self._project, request.parent, request.type, request.name)
        if request.type == STACK_TYPE:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        self._remember(urn, request)
        # Transforms of a remote component apply to its children, which are not recorded.
        transforms = cast("Iterable[callback_pb2.Callback]", request.transforms)  # pyright: ignore[reportUnknownMemberType]
        if not request.remote and any(item.target != NEEDS_STATE for item in transforms):
            self._log.add("warning", "Its transforms do not run in an offline preview.", urn)

        sent = properties(request.object)
        inputs = self._with_ignored(urn, sent, request.ignoreChanges)
        id_: str | None = None
        outputs: dict[str, Plain] = {}
        assumed: tuple[str, ...] = ()
        if request.custom:
            id_, outputs, assumed = self._answer(request, inputs, request.importId or None)

        goal = self._goals.get(request.parent, _NO_GOAL).of_child(request)
        self._goals[urn] = goal
        self._recorded[urn] = Resource(
            urn=urn,
            type=request.type,
            name=request.name,
            custom=request.custom,
            remote=request.remote,
            parent=self._parent(request.parent),
            id=id_,
            inputs=inputs,
            outputs=outputs,
            assumed=assumed,
            dependencies=tuple(sorted(request.dependencies)),
            property_dependencies={
                key: tuple(sorted(request.propertyDependencies[key].urns))
                for key in sorted(request.propertyDependencies)
                if request.propertyDependencies[key].urns
            },
            provider=provider_of(request.provider),
            protect=bool(goal.protect),
            deleted_with=goal.deleted_with,
            retain_on_delete=bool(goal.retain_on_delete),
            ignore_changes=tuple(request.ignoreChanges),
            hide_diffs=tuple(request.hideDiffs),
            replace_on_changes=tuple(request.replaceOnChanges),
            delete_before_replace=request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
            replace_with=tuple(request.replace_with),
            aliases=aliases_of(request),
            hooks=hooks_of(request.hooks),
            timeouts=timeouts_of(request),
            import_id=request.importId or None,
            version=request.version or None,
        )

        # The request's object is copied in C; only the answer's additions are written field by field.
        response = resource_pb2.RegisterResourceResponse(urn=urn, id=id_ or "", object=request.object)
        fill_struct(response.object, _changed(sent, outputs))
        return response

    def _remember(self, urn: str, request: _Request) -> None:
        trace = cast("source_pb2.StackTrace", request.stackTrace)  # pyright: ignore[reportUnknownMemberType]
        number = trace.frames[0].pc.line if trace.frames else 0
        if urn in self._numbers:
            raise DuplicateResourceError(urn, self.traces[self._numbers[urn]], self.traces[number])
        self._numbers[urn] = number

    def ReadResource(  # noqa: N802
        self, request: resource_pb2.ReadResourceRequest
    ) -> resource_pb2.ReadResourceResponse:
        """Record an existing resource and respond with its assumed outputs.

        Raises:
            DuplicateResourceError: its URN already exists.
        """
        urn = urn_of(self._stack, self._project, request.parent, request.type, request.name)
        self._remember(urn, request)
        inputs = properties(request.properties)
        id_, outputs, assumed = self._answer(request, inputs, request.id)
        self._recorded[urn] = Resource(
            urn=urn,
            type=request.type,
            name=request.name,
            read=True,
            parent=self._parent(request.parent),
            id=id_,
            inputs=inputs,
            outputs=outputs,
            assumed=assumed,
            dependencies=tuple(sorted(request.dependencies)),
            provider=provider_of(request.provider),
            version=request.version or None,
        )
        response = resource_pb2.ReadResourceResponse(urn=urn, id=id_, properties=request.properties)
        fill_struct(response.properties, _changed(inputs, outputs))
        return response

    def RegisterResourceOutputs(  # noqa: N802
        self, request: resource_pb2.RegisterResourceOutputsRequest
    ) -> empty_pb2.Empty:
        """Record the outputs of a component or of the stack."""
        outputs = properties(request.outputs)
        if request.urn == self._stack_urn:
            self._outputs = {key: _unmarked(value) for key, value in outputs.items()}
        else:
            self._recorded[request.urn] = dataclasses.replace(self._recorded[request.urn], outputs=outputs)
        return empty_pb2.Empty()

    def Invoke(  # noqa: N802
        self, request: resource_pb2.ResourceInvokeRequest
    ) -> resource_pb2.ResourceInvokeResponse:
        """Answer a provider function and record the call.

        Raises:
            UnansweredInvokeError: there is no assumed response.
        """
        args = properties(request.args)
        response = resource_pb2.ResourceInvokeResponse()
        result = getattr(response, "return")
        if request.tok == _GET_RESOURCE:
            fill_struct(result, self._state(str(args["urn"])))
            return response
        provider = provider_of(request.provider)
        answer = self._assumptions.invoke(
            Question(token=request.tok, inputs=args, provider=self._settings(provider, request.tok))
        )
        # The SDK unwraps secrets before the call.
        masked_args = {key: self._log.cleaned(value) for key, value in args.items()}
        self._invocations.append(
            Invocation(token=request.tok, args=masked_args, answer=answer, provider=provider)
        )
        fill_struct(result, answer)
        return response

    def Call(self, request: resource_pb2.ResourceCallRequest) -> NoReturn:  # noqa: N802
        """Reject a resource method.

        Raises:
            UnsupportedCallError: always.
        """
        raise UnsupportedCallError(request.tok)

    def RegisterStackTransform(self, request: callback_pb2.Callback) -> empty_pb2.Empty:  # noqa: ARG002, N802
        """Warn that stack transforms are not run."""
        self._log.add("warning", "The stack's resource transforms do not run in an offline preview.")
        return empty_pb2.Empty()

    def RegisterStackInvokeTransform(self, request: callback_pb2.Callback) -> empty_pb2.Empty:  # noqa: ARG002, N802
        """Warn that invoke transforms are not run."""
        self._log.add("warning", "The stack's invoke transforms do not run in an offline preview.")
        return empty_pb2.Empty()

    def _parent(self, urn: str) -> str | None:
        return None if urn in ("", self._stack_urn) else urn

    def _with_ignored(self, urn: str, inputs: dict[str, Plain], ignored: Collection[str]) -> dict[str, Plain]:
        """Return inputs with the deployed values of those whose changes are ignored (pulumi 3.259,
        `processIgnoreChanges`)."""
        deployed = self._deployed.get(urn)
        if deployed is None or not ignored:
            return inputs
        others = {key: value for key, value in inputs.items() if key not in ignored}
        return others | {key: value for key, value in deployed.items() if key in ignored}

    def _settings(self, provider: str | None, token: str) -> Mapping[str, Plain]:
        """Return an explicit provider's inputs, or the configuration of the package's default provider."""
        if provider is not None:
            return self._recorded[provider].inputs
        package = token.partition(":")[0]
        if package not in self._ambient:
            prefix = f"{package}:"
            self._ambient[package] = {
                key.removeprefix(prefix): value
                for key, value in self._config.items()
                if key.startswith(prefix)
            }
        return self._ambient[package]

    def _answer(
        self, request: _Request, inputs: Mapping[str, Plain], existing: str | None
    ) -> tuple[str, dict[str, Plain], tuple[str, ...]]:
        """Return the id of a resource, which may exist, its outputs, and the assumed paths in them."""
        provider = self._settings(provider_of(request.provider), request.type)
        question = Question(
            token=request.type, name=request.name, inputs=inputs, provider=provider, id=existing
        )
        answer = self._assumptions.answer(question)
        outputs = {
            **question.inputs,
            **{key: overlaid(question.inputs.get(key), value) for key, value in answer.outputs.items()},
        }
        for key in request.additionalSecretOutputs:
            if key in outputs and not isinstance(outputs[key], Secret):
                outputs[key] = Secret(outputs[key])
        return answer.id, outputs, assumed_paths(question, answer)

    def _state(self, urn: str) -> dict[str, Plain]:
        """Return the state of a resource that the program looks up by URN.

        Raises:
            LookupError: there is no such resource.
        """
        if urn not in self._recorded:
            raise LookupError(f"The program looks up the resource {urn}, which does not exist.")
        resource = self._recorded[urn]
        return {"urn": urn, "id": resource.id or "", "state": dict(resource.outputs)}


def _changed(inputs: Mapping[str, Plain], outputs: Mapping[str, Plain]) -> dict[str, Plain]:
    return {key: value for key, value in outputs.items() if inputs.get(key) is not value}


def _unmarked(value: Plain) -> Plain:
    """Remove the SDK's marker for exported resources from a stack output."""
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != _RESOURCE_MARK}
    return value


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
