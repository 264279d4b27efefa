"""Errors of the fake cloud in the form that the engine expects."""

from typing import NoReturn

import grpc
from google.protobuf import struct_pb2

# Not the SDK's own copy: both define the same names, and kfp loads this one.
from google.rpc import status_pb2  # pyright: ignore[reportMissingTypeStubs]
from pulumi.runtime.proto import provider_pb2

from ebbtide_rehearsal.cloud.provider import UnfinishedError

_DETAILS = "grpc-status-details-bin"  # metadata key for the details of a gRPC error


def refuse(context: grpc.ServicerContext, message: str) -> NoReturn:
    """Abort a call that changed nothing."""
    context.abort(grpc.StatusCode.UNKNOWN, message)
    raise AssertionError(message)  # abort has raised


def refuse_unfinished(
    context: grpc.ServicerContext,
    error: UnfinishedError,
    state: struct_pb2.Struct,
    inputs: struct_pb2.Struct | None,
) -> NoReturn:
    """Abort a call that left a resource behind, which the engine records with the reason.

    Source: pulumi 3.259, proto/pulumi/provider.proto, `ErrorResourceInitFailed`.
    """
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    failed = provider_pb2.ErrorResourceInitFailed(
        id=error.identity, properties=state, reasons=[str(error)], inputs=inputs
    )
    status.details.add().Pack(failed)
    context.set_trailing_metadata(((_DETAILS, status.SerializeToString()),))
    refuse(context, str(error))
