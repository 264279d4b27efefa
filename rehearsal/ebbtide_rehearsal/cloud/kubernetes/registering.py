"""Making resources from within a provider: the engine's resource monitor, as a program speaks to it.

The engine hands each child to the transforms that the program has on what it is in. Source: pulumi 3.259,
proto/pulumi/resource.proto and pkg/resource/deploy/source_eval.go.
"""

from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf import struct_pb2
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc

from ebbtide.recording.values import Plain, Secret
from ebbtide.recording.wire import SIGNATURE, fill_struct
from ebbtide_rehearsal.cloud.kubernetes.kinds import kind_of
from ebbtide_rehearsal.cloud.kubernetes.objects import Object
from ebbtide_rehearsal.cloud.kubernetes.ordering import Key, key
from ebbtide_rehearsal.cloud.provider import Construction, Properties, RefusedError

_PACKAGE: Final = "kubernetes"
_REFERENCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"  # sdk/go/common/resource/properties.go
_BIGGEST_MESSAGE: Final = 400 * 1024 * 1024  # the engine's own limit
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class Child:
    """An object of a chart or a kustomization, as a resource.

    Attributes:
        name: in the engine.
        manifest: the object.
        needs: what of the same component is made before.
        keep: whether it stays when the resource goes.
    """

    name: str
    manifest: Object
    needs: tuple[Key, ...]
    keep: bool = False


class Monitor:
    """The engine, for one component."""

    def __init__(self, stub: resource_pb2_grpc.ResourceMonitorStub, construction: Construction) -> None:
        """Speak for a component, to the engine that asked for it."""
        self._stub: Any = stub
        self._construction = construction

    def component(self) -> str:
        """Register the component itself; its URN.

        Raises:
            RefusedError: the engine does not take it.
        """
        asked = self._construction
        request = resource_pb2.RegisterResourceRequest(
            type=asked.type,
            name=asked.name,
            parent=asked.parent,
            dependencies=asked.depends_on,
            providers={_PACKAGE: asked.provider} if asked.provider else {},
            protect=asked.protect,
            retainOnDelete=asked.retain,
            deletedWith=asked.deleted_with,
            acceptSecrets=True,
            acceptResources=True,
            supportsPartialValues=True,
        )
        return self._register(request).urn

    def made(self, urn: str, found: Sequence[Child]) -> Properties:
        """Register the component's children, each after what it needs, and then its outputs.

        Raises:
            RefusedError: the engine does not make one of them.
        """
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="child") as pool:
            futures: dict[Key, Future[resource_pb2.RegisterResourceResponse]] = {}
            for child in found:  # in order: what a child waits for is running by then
                needs = [futures[name] for name in child.needs]
                futures[key(child.manifest)] = pool.submit(self._child, urn, child, needs)
            answers = [future.result() for future in futures.values()]
        state: dict[str, Plain] = {"resources": [_reference(answer) for answer in answers]}
        outputs = struct_pb2.Struct()
        fill_struct(outputs, state)
        request = resource_pb2.RegisterResourceOutputsRequest(urn=urn, outputs=outputs)
        try:
            self._stub.RegisterResourceOutputs(request)
        except grpc.RpcError as error:
            raise RefusedError(_said(error)) from None
        return state

    def _child(
        self, urn: str, child: Child, needs: Sequence["Future[resource_pb2.RegisterResourceResponse]"]
    ) -> resource_pb2.RegisterResourceResponse:
        properties = struct_pb2.Struct()
        fill_struct(properties, _hidden(child.manifest))
        request = resource_pb2.RegisterResourceRequest(
            type=kind_of(child.manifest).token,
            name=child.name,
            parent=urn,
            custom=True,
            object=properties,
            dependencies=[need.result().urn for need in needs],
            provider=self._construction.provider,
            retainOnDelete=True if child.keep else None,
            acceptSecrets=True,
            acceptResources=True,
            supportsPartialValues=True,
        )
        return self._register(request)

    def _register(
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        try:
            return self._stub.RegisterResource(request)
        except grpc.RpcError as error:
            raise RefusedError(_said(error)) from None


@contextmanager
def monitor_of(construction: Construction) -> Generator[Monitor]:
    """The engine that asked for a component."""
    size = [(f"grpc.max_{way}_message_length", _BIGGEST_MESSAGE) for way in ("receive", "send")]
    with grpc.insecure_channel(construction.monitor, options=size) as channel:
        yield Monitor(resource_pb2_grpc.ResourceMonitorStub(channel), construction)


def _hidden(manifest: Object) -> Properties:
    """An object with the data of a Secret marked so."""
    if (manifest["apiVersion"], manifest["kind"]) != ("v1", "Secret"):
        return manifest
    return {key: Secret(item) if key in ("data", "stringData") else item for key, item in manifest.items()}


def _reference(answer: resource_pb2.RegisterResourceResponse) -> Plain:
    return {SIGNATURE: _REFERENCE, "urn": answer.urn, "id": answer.id}


def _said(error: grpc.RpcError) -> str:
    return error.details() or str(error) if isinstance(error, grpc.Call) else str(error)
