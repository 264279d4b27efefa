"""Pulumi's provider protocol over gRPC, for providers with plain data.

The engine attaches to a running provider if `PULUMI_DEBUG_PROVIDERS` has its port. It opens a separate
connection for each provider resource, which identifies the provider resource of a call. A provider gets
secrets in plain text, and an output with the name of a secret input is marked secret here. Sources:
pulumi 3.259, sdk/go/common/resource/plugin (`provider_plugin.go`, `NewProvider`) and
proto/pulumi/provider.proto.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent import futures
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Final, NoReturn, TypeVar

import grpc
from google.protobuf import empty_pb2, struct_pb2

# Not the copy of Pulumi's SDK: both define the same names, and kfp loads this one.
from google.rpc import status_pb2  # pyright: ignore[reportMissingTypeStubs]
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from ebbtide.analysis.recording.values import Plain, Secret, fill_struct, properties, revealed
from ebbtide_rehearsal.cloud.provider import (
    Call,
    DiffResult,
    Failure,
    Properties,
    Provider,
    Read,
    RefusedError,
    UnfinishedError,
)
from ebbtide_rehearsal.cloud.store import Store, failure

Answer = TypeVar("Answer")
_CALLS_AT_ONCE: Final = 32
_BIGGEST_MESSAGE: Final = 400 * 1024 * 1024  # the engine's own limit
_DEBUG_TAG: Final = "__internal"  # the SDK's metadata on inputs
_DETAILS = "grpc-status-details-bin"  # metadata key for the details of a gRPC error


def as_secret_as(value: Plain, example: Plain) -> Plain:
    """Mark the parts of a value secret that are secret in an example: by name in objects; a list is secret as
    a whole, since its order may change.

    The engine does the same for providers without support for secrets (pulumi 3.259,
    sdk/go/common/resource/plugin, `annotateSecrets`).
    """
    match value, example:
        case Secret(), _:
            return value
        case dict(), dict():
            return {key: as_secret_as(item, example.get(key)) for key, item in value.items()}
        case _:
            return Secret(value) if _holds_secret(example) else value


def _holds_secret(value: Plain) -> bool:
    match value:
        case Secret():
            return True
        case dict():
            return any(_holds_secret(item) for item in value.values())
        case list():
            return any(_holds_secret(item) for item in value)
        case _:
            return False


@contextmanager
def serving(
    store: Store, *providers: Provider, servicers: "Mapping[str, type[Servicer]] | None" = None
) -> Generator[str]:
    """Serve providers to the engine until the end of the block, on free ports of the loopback interface.

    Args:
        store: the fake cloud's store, with its injected faults.
        servicers: servicer classes by package; `Servicer` by default.

    Yields:
        The value of `PULUMI_DEBUG_PROVIDERS`: each package with its port.
    """
    with ExitStack() as ending:
        addresses: list[str] = []
        for provider in providers:
            server = grpc.server(
                futures.ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix=provider.package),
                options=[
                    ("grpc.max_receive_message_length", _BIGGEST_MESSAGE),
                    ("grpc.max_send_message_length", _BIGGEST_MESSAGE),
                ],
            )
            servicer = (servicers or {}).get(provider.package, Servicer)(provider, store)
            provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
            addresses.append(f"{provider.package}:{server.add_insecure_port('127.0.0.1:0')}")
            server.start()
            ending.callback(_stop, server)
        yield ",".join(addresses)


def _stop(server: grpc.Server) -> None:
    server.stop(grace=None).wait()


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Servicer of a provider, which applies injected faults of API calls."""

    def __init__(self, provider: Provider, store: Store) -> None:
        self._provider = provider
        self._store = store
        self._configured: dict[str, Provider] = {}
        self._lock = Lock()

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def Attach(self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=self._provider.version)

    def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        return provider_pb2.GetSchemaResponse(schema="{}")

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        news = _plain(request.news)
        failures = self._answer(context, lambda: self._provider.check_config(news))
        return _checked(request.news, news, failures)

    def DiffConfig(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        old, new = _plain(request.old_inputs), _plain(request.news)
        return _difference(self._answer(context, lambda: self._provider.change_config(old, new)))

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        variables = _plain(request.args)
        configured = self._answer(context, lambda: self._provider.configured(variables))
        with self._lock:
            self._configured[context.peer()] = configured
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Check(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        old, new = _plain(request.olds), _plain(request.news)
        call_provider = partial(self._of(context).check, _call(request.urn), old, new)
        return _checked(request.news, *self._answer(context, call_provider))

    def Diff(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        old = Read(request.id, _plain(request.old_inputs), _plain(request.olds))
        new = _plain(request.news)
        call = replace(_call(request.urn), ignored=tuple(request.ignoreChanges))
        return _difference(self._answer(context, lambda: self._of(context).diff(call, request.id, old, new)))

    def Create(
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        call = _call(request.urn, preview=request.preview)
        inputs = _plain(request.properties)
        self._strike("create", call, context)
        call_provider = partial(self._of(context).create, call, inputs)
        answer = self._answer(context, call_provider, request.properties)
        return provider_pb2.CreateResponse(id=answer.id, properties=_struct(answer.state, request.properties))

    def Read(
        self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ReadResponse:
        call = replace(_call(request.urn), inputs=_plain(request.inputs))
        known = _plain(request.properties)
        self._strike("read", call, context)
        call_provider = partial(self._of(context).read, call, request.id, known)
        read = self._answer(context, call_provider, request.properties)
        if read is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=read.id,
            properties=_struct(read.state, request.properties),
            inputs=_struct(read.inputs, request.inputs),
        )

    def Update(
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        call = replace(_call(request.urn, preview=request.preview), ignored=tuple(request.ignoreChanges))
        old = Read(request.id, _plain(request.old_inputs), _plain(request.olds))
        new = _plain(request.news)
        self._strike("update", call, context)
        call_provider = partial(self._of(context).update, call, request.id, old, new)
        state = self._answer(context, call_provider, request.news)
        return provider_pb2.UpdateResponse(properties=_struct(state, request.news))

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        call = _call(request.urn)
        known = _plain(request.properties)
        self._strike("delete", call, context)
        self._answer(context, lambda: self._of(context).delete(call, request.id, known))
        return empty_pb2.Empty()

    def Invoke(
        self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.InvokeResponse:
        arguments = _plain(request.args)
        answer = self._answer(context, lambda: self._of(context).invoke(request.tok, arguments))
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(_struct(answer))  # a keyword of Python
        return response

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def _of(self, context: grpc.ServicerContext) -> Provider:
        """Return the provider that was configured over the call's connection."""
        with self._lock:
            return self._configured.get(context.peer(), self._provider)

    def _strike(self, operation: str, call: Call, context: grpc.ServicerContext) -> None:
        if call.preview:
            return
        injected = failure(self._store, operation, call.type, call.name)
        time.sleep(injected.seconds)
        if injected.message is not None:
            refuse(context, injected.message)

    def _answer(
        self,
        context: grpc.ServicerContext,
        call_provider: Callable[[], Answer],
        inputs_struct: struct_pb2.Struct | None = None,
    ) -> Answer:
        """Return a provider's response. `inputs_struct` has the inputs of a resource that may be left
        unfinished."""
        try:
            return call_provider()
        except UnfinishedError as unfinished:
            refuse_unfinished(context, unfinished, _struct(unfinished.state, inputs_struct))
        except RefusedError as refused:
            refuse(context, str(refused))


def _call(urn: str, *, preview: bool = False) -> Call:
    """Parse a call from `urn:pulumi:STACK::PROJECT::TYPES::NAME`, where TYPES has the parents' types and its
    own."""
    _, _, types, name = urn.split("::", 3)
    return Call(types.split("$")[-1], name, urn, preview)


def _plain(struct: struct_pb2.Struct) -> dict[str, Plain]:
    return {key: revealed(value) for key, value in properties(struct).items() if key != _DEBUG_TAG}


def _struct(values: Properties, example_struct: struct_pb2.Struct | None = None) -> struct_pb2.Struct:
    """Build properties for the engine; those that are secret in the example by name are secret."""
    struct = struct_pb2.Struct()
    example = properties(example_struct) if example_struct is not None else {}
    fill_struct(struct, {key: as_secret_as(value, example.get(key)) for key, value in values.items()})
    return struct


def _checked(
    example: struct_pb2.Struct, inputs: Properties, failures: Sequence[Failure]
) -> provider_pb2.CheckResponse:
    return provider_pb2.CheckResponse(
        inputs=_struct(inputs, example),
        failures=[
            provider_pb2.CheckFailure(property=failure.property, reason=failure.reason)
            for failure in failures
        ],
    )


def _difference(change: DiffResult) -> provider_pb2.DiffResponse:
    kinds = provider_pb2.DiffResponse
    return provider_pb2.DiffResponse(
        changes=kinds.DIFF_SOME if change.changed else kinds.DIFF_NONE,
        diffs=change.changed,
        replaces=change.replaces,
        deleteBeforeReplace=change.delete_first,
    )


def refuse(context: grpc.ServicerContext, message: str) -> NoReturn:
    """Abort a call that changed nothing."""
    context.abort(grpc.StatusCode.UNKNOWN, message)
    raise AssertionError(message)  # abort has raised


def refuse_unfinished(
    context: grpc.ServicerContext, error: UnfinishedError, state: struct_pb2.Struct
) -> NoReturn:
    """Abort a call that left a resource behind, which the engine records with the reason.

    Source: pulumi 3.259, proto/pulumi/provider.proto, `ErrorResourceInitFailed`.
    """
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    failed = provider_pb2.ErrorResourceInitFailed(id=error.identity, properties=state, reasons=[str(error)])
    status.details.add().Pack(failed)
    context.set_trailing_metadata(((_DETAILS, status.SerializeToString()),))
    refuse(context, str(error))
