"""The engine's side of a run: what the SDK talks to, answering from assumptions and writing everything down.

The SDK leaves some of a resource's options to the engine. What the engine does with them is done here, after
its `inheritFromParent` and `generateURN` (pulumi `pkg/resource/deploy/source_eval.go` and
`step_generator.go`), so that a recording says what a real run would do: `protect`, `deletedWith` and
`retainOnDelete` flow from a parent to a child that has none, nothing else does, and a resource that is only
read has none of them. Of these the SDK itself passes on `protect` alone, besides providers.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn, cast

from google.protobuf import empty_pb2
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs, Mocks
from pulumi.runtime.proto import alias_pb2, callback_pb2, resource_pb2

from ebbtide.recording.asking import Assumptions, Question, assumed_paths, overlaid
from ebbtide.recording.notes import Notes
from ebbtide.recording.recording import Invocation, Recording, Resource
from ebbtide.recording.values import Plain, Secret
from ebbtide.recording.wire import fill_struct, properties

_STACK: Final = "pulumi:pulumi:Stack"
_GET_RESOURCE: Final = "pulumi:pulumi:getResource"
_RESOURCE_MARK: Final = "@isPulumiResource"  # the SDK's note to the engine on exported resources


class DuplicateResourceError(Exception):
    """Two resources of one URN, which the engine refuses and mocks let pass."""

    def __init__(self, urn: str) -> None:
        self.urn = urn
        super().__init__(
            f"Two resources have the URN {urn}. Pulumi would refuse the second: a URN is made of the types "
            "above a resource, its type and its name. Give one of them another name."
        )


class UnsupportedCallError(Exception):
    """A method of a resource, which only its running provider could answer."""

    def __init__(self, token: str) -> None:
        super().__init__(
            f"The program calls the resource method {token}. Its provider would answer it, and the preview "
            "runs none."
        )


class _NoMocks(Mocks):
    """The base class wants mocks; every method of it that would ask them is replaced below."""

    def call(self, args: MockCallArgs) -> NoReturn:
        raise AssertionError(args.token)

    def new_resource(self, args: MockResourceArgs) -> NoReturn:
        raise AssertionError(args.typ)


@dataclasses.dataclass(frozen=True, slots=True)
class _Goal:
    """The options that children inherit; None where neither the resource nor any parent says."""

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
    """Registers resources and answers functions for one run of a program."""

    def __init__(
        self,
        project: str,
        stack: str,
        *,
        assumptions: Assumptions,
        notes: Notes,
        config: Mapping[str, str],
    ) -> None:
        super().__init__(_NoMocks())
        self._project = project
        self._stack = stack
        self._assumptions = assumptions
        self._notes = notes
        self._config = config
        self._ambient: dict[str, dict[str, Plain]] = {}
        self._recorded: dict[str, Resource] = {}
        self._goals: dict[str, _Goal] = {}
        self._stack_urn = self._urn("", _STACK, f"{project}-{stack}")
        self._outputs: dict[str, Plain] = {}
        self._invocations: list[Invocation] = []

    def recording(self) -> Recording:
        """What has been registered so far."""
        return Recording(
            project=self._project,
            stack=self._stack,
            resources=tuple(self._recorded.values()),
            outputs=self._outputs,
            invocations=tuple(self._invocations),
            messages=tuple(self._notes.messages),
        )

    def RegisterResource(  # noqa: N802 - the protocol's name
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        """Record a resource and answer for its cloud.

        Raises:
            DuplicateResourceError: when its URN is taken.
        """
        urn = self._urn(request.parent, request.type, request.name)
        if request.type == _STACK:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        if urn in self._recorded:
            raise DuplicateResourceError(urn)
        # Those of a component that its provider makes are for parts that are not in a recording anyway.
        if request.transforms and not request.remote:  # pyright: ignore[reportUnknownMemberType]
            self._notes.say("warning", "Its transforms are not run in an offline preview.", urn)

        inputs = properties(request.object)
        provider = _provider(request.provider)
        id_: str | None = None
        outputs: dict[str, Plain] = {}
        assumed: tuple[str, ...] = ()
        if request.custom:
            question = Question(
                token=request.type,
                name=request.name,
                inputs=inputs,
                provider=self._settings(provider, request.type),
                id=request.importId or None,
            )
            id_, outputs, assumed = self._answer(question, request.additionalSecretOutputs)

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
            provider=provider,
            protect=bool(goal.protect),
            deleted_with=goal.deleted_with,
            retain_on_delete=bool(goal.retain_on_delete),
            ignore_changes=tuple(request.ignoreChanges),
            replace_on_changes=tuple(request.replaceOnChanges),
            delete_before_replace=request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
            replace_with=tuple(request.replace_with),
            aliases=_aliases(request),
            hooks=_hooks(request.hooks),
            timeouts=_timeouts(request),
            import_id=request.importId or None,
            version=request.version or None,
        )

        # What was sent is copied as it is, in C; only what the answer adds is written field by field.
        response = resource_pb2.RegisterResourceResponse(urn=urn, id=id_ or "", object=request.object)
        fill_struct(response.object, _changed(inputs, outputs))
        return response

    def ReadResource(  # noqa: N802
        self, request: resource_pb2.ReadResourceRequest
    ) -> resource_pb2.ReadResourceResponse:
        """Record a resource that exists already, and answer for its cloud.

        Raises:
            DuplicateResourceError: when its URN is taken.
        """
        urn = self._urn(request.parent, request.type, request.name)
        if urn in self._recorded:
            raise DuplicateResourceError(urn)
        inputs = properties(request.properties)
        provider = _provider(request.provider)
        question = Question(
            token=request.type,
            name=request.name,
            inputs=inputs,
            provider=self._settings(provider, request.type),
            id=request.id,
        )
        id_, outputs, assumed = self._answer(question, request.additionalSecretOutputs)
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
            provider=provider,
            version=request.version or None,
        )
        response = resource_pb2.ReadResourceResponse(urn=urn, id=id_, properties=request.properties)
        fill_struct(response.properties, _changed(inputs, outputs))
        return response

    def RegisterResourceOutputs(  # noqa: N802
        self, request: resource_pb2.RegisterResourceOutputsRequest
    ) -> empty_pb2.Empty:
        """Record the outputs of a component, or of the stack."""
        outputs = properties(request.outputs)
        if request.urn == self._stack_urn:
            self._outputs = {key: _unmarked(value) for key, value in outputs.items()}
        else:
            self._recorded[request.urn] = dataclasses.replace(self._recorded[request.urn], outputs=outputs)
        return empty_pb2.Empty()

    def Invoke(  # noqa: N802
        self, request: resource_pb2.ResourceInvokeRequest
    ) -> resource_pb2.ResourceInvokeResponse:
        """Answer a function of a provider, and record that it was asked.

        Raises:
            UnansweredInvokeError: when there is no assumed answer.
        """
        args = properties(request.args)
        response = resource_pb2.ResourceInvokeResponse()
        result = getattr(response, "return")
        if request.tok == _GET_RESOURCE:
            fill_struct(result, self._state(str(args["urn"])))
            return response
        provider = _provider(request.provider)
        answer = self._assumptions.invoke(
            Question(token=request.tok, inputs=args, provider=self._settings(provider, request.tok))
        )
        # The SDK unwraps secrets before it calls.
        shown = {key: self._notes.cleaned(value) for key, value in args.items()}
        self._invocations.append(Invocation(token=request.tok, args=shown, answer=answer, provider=provider))
        fill_struct(result, answer)
        return response

    def Call(self, request: resource_pb2.ResourceCallRequest) -> NoReturn:  # noqa: N802
        """Refuse a method of a resource.

        Raises:
            UnsupportedCallError: always.
        """
        raise UnsupportedCallError(request.tok)

    def RegisterStackTransform(self, request: callback_pb2.Callback) -> empty_pb2.Empty:  # noqa: ARG002, N802
        """Say that a transform of the whole stack is not run."""
        self._notes.say("warning", "The stack's resource transforms are not run in an offline preview.")
        return empty_pb2.Empty()

    def RegisterStackInvokeTransform(self, request: callback_pb2.Callback) -> empty_pb2.Empty:  # noqa: ARG002, N802
        """Say that an invoke transform of the whole stack is not run."""
        self._notes.say("warning", "The stack's invoke transforms are not run in an offline preview.")
        return empty_pb2.Empty()

    def _urn(self, parent: str, type_: str, name: str) -> str:
        """A URN as the engine makes it: with the types of all parents but the stack's."""
        above = parent.split("::")[2] if parent else _STACK
        qualified = type_ if above == _STACK else f"{above}${type_}"
        return f"urn:pulumi:{self._stack}::{self._project}::{qualified}::{name}"

    def _parent(self, urn: str) -> str | None:
        return None if urn in ("", self._stack_urn) else urn

    def _settings(self, provider: str | None, token: str) -> Mapping[str, Plain]:
        """What the provider knows: an explicit one's inputs, or the configuration of the package's default
        one.
        """
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
        self, question: Question, secret_outputs: Iterable[str]
    ) -> tuple[str, dict[str, Plain], tuple[str, ...]]:
        """The id, the outputs, and which paths in them are assumed."""
        answer = self._assumptions.answer(question)
        outputs = {
            **question.inputs,
            **{key: overlaid(question.inputs.get(key), value) for key, value in answer.outputs.items()},
        }
        for key in secret_outputs:
            if key in outputs and not isinstance(outputs[key], Secret):
                outputs[key] = Secret(outputs[key])
        return answer.id, outputs, assumed_paths(question, answer)

    def _state(self, urn: str) -> dict[str, Plain]:
        """What the engine answers when a program looks up a resource of its own by URN.

        Raises:
            LookupError: when there is no such resource.
        """
        if urn not in self._recorded:
            raise LookupError(f"The program looks up the resource {urn}, and there is none.")
        resource = self._recorded[urn]
        return {"urn": urn, "id": resource.id or "", "state": dict(resource.outputs)}


def _provider(reference: str) -> str | None:
    """The URN in a provider reference, which is a URN and an id joined by `::`."""
    return reference.rpartition("::")[0] or None


def _changed(inputs: Mapping[str, Plain], outputs: Mapping[str, Plain]) -> dict[str, Plain]:
    return {key: value for key, value in outputs.items() if inputs.get(key) is not value}


def _unmarked(value: Plain) -> Plain:
    """A stack output without the SDK's mark on exported resources."""
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != _RESOURCE_MARK}
    return value


def _aliases(request: resource_pb2.RegisterResourceRequest) -> tuple[str, ...]:
    # The stubs do not know the messages of other files.
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


_MOMENTS: Final = (
    "before_create",
    "after_create",
    "before_update",
    "after_update",
    "before_delete",
    "after_delete",
    "on_error",
)


def _hooks(binding: resource_pb2.RegisterResourceRequest.ResourceHooksBinding) -> dict[str, tuple[str, ...]]:
    named = {moment: tuple[str, ...](getattr(binding, moment)) for moment in _MOMENTS}
    return {moment: names for moment, names in named.items() if names}


def _timeouts(request: resource_pb2.RegisterResourceRequest) -> dict[str, str]:
    given = request.customTimeouts
    timeouts = {"create": given.create, "update": given.update, "delete": given.delete}
    return {step: time for step, time in timeouts.items() if time}
