"""Connections of inline programs to their engines."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc
from pulumi.runtime.settings import Settings

import_module("ebbtide_rehearsal.engine")  # sets the options of the SDK's channels


class _Engine(engine_pb2_grpc.EngineServicer):
    def Log(self, request: engine_pb2.LogRequest, context: grpc.ServicerContext) -> Empty:  # noqa: N802
        del request, context
        return Empty()


@contextmanager
def _engine(port: int = 0) -> Generator[int]:
    """An engine's log, at a port."""
    server = grpc.server(ThreadPoolExecutor(1))
    engine_pb2_grpc.add_EngineServicer_to_server(_Engine(), server)
    try:
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        yield bound
    finally:
        server.stop(0).wait()


def _log_of_a_program(port: int) -> Any:
    """The SDK's client for the engine's log."""
    settings: Any = Settings("project", "stack", engine=f"127.0.0.1:{port}")
    return settings.engine.Log


def test_an_engine_at_the_port_of_an_earlier_one_is_reached() -> None:
    """Although a program of the earlier one was refused there a moment ago."""
    message = engine_pb2.LogRequest()
    with _engine() as port:
        log = _log_of_a_program(port)
        log(message)
    with pytest.raises(grpc.RpcError, match="Connection refused"):
        log(message)
    with _engine(port):
        _log_of_a_program(port)(message)
