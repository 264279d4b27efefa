"""A proxy between the engine and the clouds' providers, which records their calls.

The engine attaches to it as to a provider that already runs (`PULUMI_DEBUG_PROVIDERS`), with a connection for
each provider resource. For each, the proxy starts the provider's plugin as the engine would: with the
engine's address as argument and the plugin's directory in the handshake. Calls are forwarded as they are:
methods and fields of other versions of the protocol pass too. The proxy itself requests the provider's
version, which the engine does not in an update. Source: pulumi 3.259,
pkg/resource/plugin/provider_plugin.go (`NewProvider`) and plugin.go (`newPlugin`).

The engine's own log of calls (`PULUMI_DEBUG_GRPC`) has of an error its text alone, not the resource that a
failed creation left, no provider resource of a call, and secrets in plain text
(sdk/go/pulumi-internal/rpcdebug/interceptors.go).
"""

import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent import futures
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from ebbtide.analysis.recording.provider_calls import Recorder

_SERVICE: Final = "/pulumirpc.ResourceProvider/"
_CALLS_AT_ONCE: Final = 256
_ENDING: Final = 10.0  # seconds
_VERSION_TIMEOUT: Final = 10.0  # seconds
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 400 * 1024 * 1024),  # the engine's own limit
    ("grpc.max_send_message_length", 400 * 1024 * 1024),
)
_OWN: Final = ("grpc-", "user-agent", "content-type", "te")
"""Beginnings of the metadata that gRPC sets itself in requests."""
_DETAILS: Final = "grpc-status-details-bin"
"""Metadata of an answer with the details of an error."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed plugin, of which each connection gets a process.

    Attributes:
        program: its file.
        directory: the working directory.
    """

    program: Path
    directory: Path


Upstream = Plugin | int
"""A plugin, or the port of a provider that runs already."""


@dataclass(slots=True)
class _Connection:
    """The engine's connection for a provider resource.

    Attributes:
        channel: connection to its provider; None before the first call.
    """

    number: int
    channel: grpc.Channel | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Proxy(grpc.GenericRpcHandler):
    """The proxy of a package's provider."""

    def __init__(self, package: str, upstream: Upstream, recorder: Recorder, ending: ExitStack) -> None:
        self._package, self._upstream, self._recorder, self._ending = package, upstream, recorder, ending
        self._connections: dict[str, _Connection] = {}
        self._has_version = False
        self._lock = threading.Lock()

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Return the handler of a method, which gets and returns bytes."""
        method = str(handler_call_details.method)
        if not method.startswith(_SERVICE):
            return None
        return grpc.unary_unary_rpc_method_handler(partial(self._call, method.removeprefix(_SERVICE)))

    def _call(self, method: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        if method == "Attach" and isinstance(self._upstream, Plugin):
            # It was started with the engine's address.
            return empty_pb2.Empty().SerializeToString()
        connection = self._connection(context.peer())
        if method == "Handshake":
            request = self._handshake(request)
        try:
            channel = self._channel(connection, request if method == "Handshake" else b"")
        except OSError as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        record = partial(self._recorder.record, self._package, connection.number, method, request)
        started = time.monotonic()
        metadata = tuple(item for item in context.invocation_metadata() if not item[0].startswith(_OWN))
        send = cast("Any", channel.unary_unary(_SERVICE + method))
        sent = send.future(request, metadata=metadata)
        context.add_callback(lambda: _cancel(sent))
        try:
            answer: bytes = sent.result()
        except grpc.RpcError:
            trailing = tuple((name, value) for name, value in sent.trailing_metadata() or ())
            details = dict(trailing).get(_DETAILS)
            record(None, sent.details() or str(sent.code()), time.monotonic() - started, details)
            context.set_trailing_metadata(trailing)
            context.abort(sent.code(), sent.details() or "")
        except grpc.FutureCancelledError:
            record(None, "The engine has cancelled the call.", time.monotonic() - started)
            context.abort(grpc.StatusCode.CANCELLED, "")
        record(answer, None, time.monotonic() - started)
        if method == "Configure":
            self._record_version(connection.number, channel)
        return answer

    def _record_version(self, connection: int, channel: grpc.Channel) -> None:
        """Record the version of the provider, once."""
        with self._lock:
            if self._has_version:
                return
            self._has_version = True
        request, method = empty_pb2.Empty().SerializeToString(), "GetPluginInfo"
        record = partial(self._recorder.record, self._package, connection, method, request)
        started = time.monotonic()
        send = cast("Any", channel.unary_unary(_SERVICE + method))
        try:
            answer: bytes = send(request, timeout=_VERSION_TIMEOUT)
        except grpc.RpcError as error:
            failed = cast("grpc.Call", error)
            record(None, failed.details() or str(failed.code()), time.monotonic() - started)
        else:
            record(answer, None, time.monotonic() - started)

    def _connection(self, peer: str) -> _Connection:
        with self._lock:
            return self._connections.setdefault(peer, _Connection(len(self._connections) + 1))

    def _handshake(self, request: bytes) -> bytes:
        if isinstance(self._upstream, int):
            return request
        handshake = provider_pb2.ProviderHandshakeRequest.FromString(request)
        handshake.root_directory = handshake.program_directory = str(self._upstream.program.parent)
        return handshake.SerializeToString()

    def _channel(self, connection: _Connection, handshake: bytes) -> grpc.Channel:
        with connection.lock:
            if connection.channel is None:
                port = self._upstream
                if isinstance(port, Plugin):
                    engine = provider_pb2.ProviderHandshakeRequest.FromString(handshake).engine_address
                    port = self._start(port, engine)
                # Else channels to one port share a connection, and with it the settings of its provider.
                options = (*_OPTIONS, ("grpc.use_local_subchannel_pool", 1))
                connection.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options)
                self._close(connection.channel.close)
            return connection.channel

    def _start(self, plugin: Plugin, engine: str) -> int:
        process = subprocess.Popen(  # noqa: S603 - the user's own plugin
            [plugin.program, engine],
            cwd=plugin.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a terminal's Ctrl-C is for the engine, which then ends its calls
        )
        self._close(partial(_end, process))
        assert process.stdout is not None  # noqa: S101 - a pipe
        port = process.stdout.readline()
        threading.Thread(target=process.stdout.read, daemon=True).start()  # a full pipe would stop the plugin
        if not port.strip().isdecimal():
            raise OSError(f"The plugin of {self._package} has ended before it was ready.")
        return int(port)

    def _close(self, function: Callable[[], object]) -> None:
        with self._lock:
            self._ending.callback(function)


def _cancel(sent: Any) -> None:
    sent.cancel()


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


@contextmanager
def proxied(upstreams: Mapping[str, Upstream], recorder: Recorder) -> Generator[str]:
    """Serve proxies of providers, and end what they have started; yield `PULUMI_DEBUG_PROVIDERS`.

    Args:
        upstreams: the providers, by package.
        recorder: writer of their calls.
    """
    with ExitStack() as ending:
        ports: dict[str, int] = {}
        for package, upstream in upstreams.items():
            workers = futures.ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix=f"record-{package}")
            server = grpc.server(workers, [_Proxy(package, upstream, recorder, ending)], options=_OPTIONS)
            ports[package] = server.add_insecure_port("127.0.0.1:0")
            server.start()
            ending.callback(_stop, server)
        yield ",".join(f"{package}:{port}" for package, port in ports.items())


def _stop(server: grpc.Server) -> None:
    server.stop(grace=None).wait()
