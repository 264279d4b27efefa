"""Connections of inline programs to their engines."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc
from pulumi.runtime.settings import Settings

import ebbtide_rehearsal.engine  # noqa: F401 - sets the options of the channels


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


def test_an_engine_at_the_port_of_an_earlier_one_is_reached() -> None:
    """Although a program of the earlier one was refused there a moment ago."""
    with _engine() as port:
        before = Settings("p", "s", engine=f"127.0.0.1:{port}")
        before.engine.Log(engine_pb2.LogRequest())
    with pytest.raises(grpc.RpcError, match="Connection refused"):
        before.engine.Log(engine_pb2.LogRequest())
    with _engine(port):
        Settings("p", "s", engine=f"127.0.0.1:{port}").engine.Log(engine_pb2.LogRequest())
