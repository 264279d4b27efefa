"""A Kubernetes provider that accepts every object, for tests of the cloud below it."""

from collections.abc import Sequence
from typing import Any

import grpc
from pulumi.runtime.proto import provider_pb2, resource_pb2, resource_pb2_grpc

from ebbtide_rehearsal.cloud.protocol import Servicer
from ebbtide_rehearsal.cloud.provider import Call, Created, DiffResult, Failure, Properties, Read


class AnyObjects:
    """A Kubernetes provider that takes what it is given: these tests are about the cloud below it."""

    package = "kubernetes"
    version = "4.32.0"

    def configured(self, variables: Properties) -> "AnyObjects":
        """See `Provider.configured`."""
        del variables
        return self

    def check_config(self, variables: Properties) -> Sequence[Failure]:
        """See `Provider.check_config`."""
        del variables
        return ()

    def change_config(self, old: Properties, new: Properties) -> DiffResult:
        """See `Provider.change_config`."""
        return DiffResult(tuple(name for name in {**old, **new} if old.get(name) != new.get(name)))

    def check(self, call: Call, old: Properties, new: Properties) -> tuple[Properties, Sequence[Failure]]:
        """See `Provider.check`."""
        del call, old
        return new, ()

    def diff(self, call: Call, identity: str, old: Read, new: Properties) -> DiffResult:
        """See `Provider.diff`."""
        del call, identity
        return self.change_config(old.inputs, new)

    def create(self, call: Call, inputs: Properties) -> Created:
        """See `Provider.create`."""
        return Created("" if call.preview else call.name, inputs)

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """See `Provider.read`."""
        return Read(identity, call.inputs, known)

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:
        """See `Provider.update`."""
        del call, identity, old
        return new

    def delete(self, call: Call, identity: str, known: Properties) -> None:
        """See `Provider.delete`."""
        del call, identity, known

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """See `Provider.invoke`."""
        raise NotImplementedError(token, arguments)


class ObjectsServicer(Servicer):
    """The same to the engine, with components that have no children."""

    def Construct(  # noqa: N802 - the protocol's name
        self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConstructResponse:
        """Register a component, as a chart is."""
        del context
        with grpc.insecure_channel(request.monitorEndpoint) as channel:
            monitor: Any = resource_pb2_grpc.ResourceMonitorStub(channel)
            registered = monitor.RegisterResource(
                resource_pb2.RegisterResourceRequest(
                    type=request.type,
                    name=request.name,
                    parent=request.parent,
                    object=request.inputs,
                    acceptSecrets=True,
                    acceptResources=True,
                )
            )
        return provider_pb2.ConstructResponse(urn=registered.urn)
