"""A fake provider as the engine calls it: over gRPC, with secrets, unknown values and faults."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from ebbtide.analysis.recording.values import UNKNOWN, Plain, Secret
from ebbtide.analysis.recording.wire import fill_struct, properties
from ebbtide_rehearsal.cloud.protocol import serve
from ebbtide_rehearsal.cloud.provider import (
    Call,
    Created,
    DiffResult,
    Failure,
    Properties,
    Read,
    RefusedError,
)
from ebbtide_rehearsal.cloud.store import API_ERROR, SLOW, InjectedFault, Store

URN = "urn:pulumi:dev::ebbtide::a:b:Parent$gcp:storage/bucket:Bucket::logs"


@dataclass
class RecordingProvider:
    """A provider that writes down what it is asked."""

    package: str = "gcp"
    version: str = "10.2.0"
    project: str = ""
    calls: list[tuple[str, Call, Properties]] = field(default_factory=list[tuple[str, Call, Properties]])

    def configured(self, variables: Properties) -> "RecordingProvider":
        """One that knows its project and writes to the same list."""
        return RecordingProvider(project=str(variables["project"]), calls=self.calls)

    def check_config(self, variables: Properties) -> Sequence[Failure]:
        """The project is needed."""
        return () if "project" in variables else (Failure("project", "is missing"),)

    def change_config(self, old: Properties, new: Properties) -> DiffResult:
        """Another project is another provider."""
        return DiffResult(("project",), ("project",)) if old != new else DiffResult()

    def check(self, call: Call, old: Properties, new: Properties) -> tuple[Properties, Sequence[Failure]]:
        """A name is given where there is none."""
        del call, old
        return {"name": "made-up", **new}, ()

    def diff(self, call: Call, identity: str, old: Read, new: Properties) -> DiffResult:
        """The name makes it another one."""
        del call, identity
        changed = tuple(key for key in new if new[key] != old.inputs.get(key))
        return DiffResult(changed, tuple(key for key in changed if key == "name"), delete_first=True)

    def create(self, call: Call, inputs: Properties) -> Created:
        """Create the resource, unless its name is `taken`."""
        self.calls.append(("create", call, inputs))
        if inputs.get("name") == "taken":
            raise RefusedError("googleapi: Error 409: taken, conflict")
        return Created("" if call.preview else f"{self.project}/logs", {**inputs, "url": UNKNOWN})

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """Return that the resource does not exist."""
        self.calls.append(("read", call, {"id": identity, **known}))
        return None

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:
        """Return the changed resource."""
        self.calls.append(("update", call, {"id": identity, "old": dict(old.inputs)}))
        return new

    def delete(self, call: Call, identity: str, known: Properties) -> None:
        """Return that the resource does not exist."""
        self.calls.append(("delete", call, {"id": identity, **known}))

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """Return the token and the arguments of the request."""
        return {"token": token, **arguments}


@dataclass
class Served:
    """A provider that is served, and a connection to it as the engine has one."""

    provider: RecordingProvider
    store: Store
    port: int

    def connect(self) -> Any:
        """A connection of its own."""
        options = [("grpc.use_local_subchannel_pool", 1)]
        channel = grpc.insecure_channel(f"127.0.0.1:{self.port}", options=options)
        return provider_pb2_grpc.ResourceProviderStub(channel)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A provider that writes down what it is asked."""
    provider, store = RecordingProvider(), Store(tmp_path / "s")
    server, port = serve(provider, store)
    yield Served(provider, store, port)
    server.stop(grace=None).wait()


def _struct(**values: Plain) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    fill_struct(struct, values)
    return struct


def _create(stub: Any, *, preview: bool = False, **inputs: Plain) -> Any:
    request = provider_pb2.CreateRequest(urn=URN, properties=_struct(**inputs), preview=preview)
    return stub.Create(request)


def test_a_call_arrives_in_plain_data(served: Served) -> None:
    """The type is the last of the URN's, secrets are opened, and what is unknown stays so; in the
    answer what was secret is."""
    made = _create(served.connect(), preview=True, name="logs", key=Secret("hunter22"), size=UNKNOWN)
    ((operation, call, inputs),) = served.provider.calls
    assert (operation, call.type, call.name, call.preview) == (
        "create",
        "gcp:storage/bucket:Bucket",
        "logs",
        True,
    )
    assert inputs == {"name": "logs", "key": "hunter22", "size": UNKNOWN}
    assert made.id == ""
    assert properties(made.properties)["key"] == Secret("hunter22")
    assert properties(made.properties)["url"] is UNKNOWN


def test_each_connection_has_the_provider_that_was_configured_over_it(served: Served) -> None:
    """Two provider resources of one package are distinct."""
    stubs = [served.connect(), served.connect()]
    for stub, project in zip(stubs, ("one", "two"), strict=True):
        stub.Configure(provider_pb2.ConfigureRequest(args=_struct(project=project)))
    assert [_create(stub, name="logs").id for stub in stubs] == ["one/logs", "two/logs"]


def test_a_refusal_reaches_the_engine_in_its_words(served: Served) -> None:
    """The message is the cloud's, without anything of ours."""
    with pytest.raises(grpc.RpcError) as refused:
        _create(served.connect(), name="taken")
    error: Any = refused.value
    assert error.details() == "googleapi: Error 409: taken, conflict"


def test_a_change_says_what_it_replaces(served: Served) -> None:
    """Properties that differ, those that need another resource, and in which order."""
    request = provider_pb2.DiffRequest(
        id="one/logs", urn=URN, old_inputs=_struct(name="a", size=1), news=_struct(name="b", size=1)
    )
    answer = served.connect().Diff(request)
    assert list(answer.diffs) == list(answer.replaces) == ["name"]
    assert answer.deleteBeforeReplace
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME


def test_what_is_gone_reads_as_nothing(served: Served) -> None:
    """An empty id is how the engine learns of it."""
    answer = served.connect().Read(provider_pb2.ReadRequest(id="one/logs", urn=URN, properties=_struct(a=1)))
    assert answer.id == ""


def test_functions_and_configuration_are_answered(served: Served) -> None:
    """An invoke returns what the provider says; a missing setting is a failure of that property."""
    stub = served.connect()
    answer = stub.Invoke(provider_pb2.InvokeRequest(tok="gcp:a:b", args=_struct(x=1)))
    assert properties(getattr(answer, "return")) == {"token": "gcp:a:b", "x": 1}
    checked = stub.CheckConfig(provider_pb2.CheckRequest(urn=URN, news=_struct()))
    assert [(failure.property, failure.reason) for failure in checked.failures] == [("project", "is missing")]


def test_an_api_error_strikes_as_often_as_it_was_asked_for(served: Served) -> None:
    """The operation and type decide; a preview asks no API; afterwards all is well again."""
    stub = served.connect()
    served.store.inject(
        InjectedFault(API_ERROR, "create gcp:storage/*", 1, {"message": "googleapi: Error 503: busy"})
    )
    _create(stub, preview=True, name="logs")
    with pytest.raises(grpc.RpcError, match="Error 503: busy"):
        _create(stub, name="logs")
    _create(stub, name="logs")
    assert [event.kind for event in served.store.events()] == ["api-error"]


def test_a_slow_answer_takes_longer(served: Served) -> None:
    """A delayed response takes the configured number of seconds longer, once."""
    stub = served.connect()
    served.store.inject(InjectedFault(SLOW, "delete *", 1, {"seconds": 0.3}))
    request = provider_pb2.DeleteRequest(id="one/logs", urn=URN, properties=_struct(a=1))
    began = time.monotonic()
    stub.Delete(request)
    assert time.monotonic() - began >= 0.3
    assert served.provider.calls[-1][2] == {"id": "one/logs", "a": 1}
