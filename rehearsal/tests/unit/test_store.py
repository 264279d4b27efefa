"""State, schema and protocol of a fake cloud: as its file, the SDK and the engine have them."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from ebbtide.analysis.recording.values import UNKNOWN, Plain, Secret, fill_struct
from ebbtide.analysis.recording.values import properties as plain
from ebbtide_rehearsal.cloud.properties import SchemaViolation, schema_violations
from ebbtide_rehearsal.cloud.protocol import as_secret_as, serving
from ebbtide_rehearsal.cloud.provider import (
    Call,
    Created,
    Properties,
)
from ebbtide_rehearsal.cloud.store import API_ERROR, Clock, InjectedFault, Store
from rehearsal.tests.engine.any_objects import AnyObjects


def test_a_fault_strikes_only_what_it_is_meant_for_until_it_is_lifted(tmp_path: Path) -> None:
    """Kind and target decide; lifting ends it."""
    store = Store(tmp_path / "s")
    number = store.inject(InjectedFault("no-stock", "t4-*", details={"why": "sold out"}))
    assert store.strike("no-stock", "cpu") is None
    assert store.strike("reclaim", "t4-spot") is None
    assert store.strike("no-stock", "cpu", "t4-spot") == InjectedFault(
        "no-stock", "t4-*", None, {"why": "sold out"}
    )
    store.remove_fault(number)
    assert store.strike("no-stock", "t4-spot") is None


def test_threads_that_strike_at_once_never_share_a_stroke(tmp_path: Path) -> None:
    """The fault strikes exactly its number of times over all threads."""
    store = Store(tmp_path / "s")
    store.inject(InjectedFault("api-error", times=5))
    struck: list[bool] = []

    def strike() -> None:
        struck.extend(store.strike("api-error", "x") is not None for _ in range(4))

    threads = [threading.Thread(target=strike) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(struck) == 5


@given(speed=st.floats(1, 600), seconds=st.floats(0, 1e6))
def test_the_clock_runs_so_many_times_as_fast(speed: float, seconds: float) -> None:
    """Simulated seconds are those of the wall clock times the speed."""
    assert Clock(0.0, speed, wall=lambda: seconds).now() == pytest.approx(seconds * speed)


NODE_POOL = "gcp:container/nodePool:NodePool"
NETWORK = "azure-native:network:VirtualNetwork"


@pytest.mark.parametrize(
    ("inputs", "violation"),
    [
        ({"clutser": "c"}, SchemaViolation("clutser", "unknown")),
        ({"nodeConfig": {"spto": True}}, SchemaViolation("nodeConfig.spto", "unknown")),
        (
            {"nodeConfig": {"taints": [{"key": "a", "value": "b"}]}},
            SchemaViolation("nodeConfig.taints[0].effect", "missing", "string"),
        ),
        ({"nodeConfig": {"diskSizeGb": "large"}}, SchemaViolation("nodeConfig.diskSizeGb", "type", "int")),
        ({"initialNodeCount": 1.5}, SchemaViolation("initialNodeCount", "type", "int")),
        ({"autoscaling": []}, SchemaViolation("autoscaling", "type", "object")),
        ({"nodeLocations": "us-central1-a"}, SchemaViolation("nodeLocations", "type", "list")),
        ({"nodeConfig": {"labels": {"a": {}}}}, SchemaViolation("nodeConfig.labels.a", "type", "string")),
        ({"nodeConfig": {"spot": "yes"}}, SchemaViolation("nodeConfig.spot", "type", "bool")),
    ],
)
def test_what_does_not_fit(inputs: dict[str, Plain], violation: SchemaViolation) -> None:
    """Each is found where it stands, and nothing else is."""
    assert schema_violations(NODE_POOL, {"cluster": "c"} | inputs) == [violation]


@pytest.mark.parametrize(
    "inputs",
    [
        {"cluster": UNKNOWN, "nodeConfig": UNKNOWN},
        {"cluster": Secret("c"), "nodeConfig": {"taints": [UNKNOWN]}},
        {"cluster": "c", "initialNodeCount": "3", "nodeConfig": {"spot": "true", "labels": {"a": 1}}},
        {"cluster": "c", "nodeConfig": None},
    ],
)
def test_what_fits(inputs: dict[str, Plain]) -> None:
    """Unknown and secret values are accepted, and text of a number or a boolean."""
    assert schema_violations(NODE_POOL, inputs) == []


def test_either_of_two_types_fits() -> None:
    """Azure's enumerations may be given as text."""
    profile: dict[str, Plain] = {"name": "a", "mode": "System", "vmSize": "Standard_D4s_v5"}
    cluster = "azure-native:containerservice:ManagedCluster"
    assert schema_violations(cluster, {"resourceGroupName": "g", "agentPoolProfiles": [profile]}) == []
    wrong: Plain = [{**profile, "mode": ["System"]}]
    assert [
        violation.path
        for violation in schema_violations(cluster, {"resourceGroupName": "g", "agentPoolProfiles": wrong})
    ] == ["agentPoolProfiles[0].mode"]


URN = "urn:pulumi:dev::ebbtide::a:b:Parent$gcp:storage/bucket:Bucket::logs"


@dataclass
class RecordingProvider(AnyObjects):
    """A provider that knows its project, and writes down what it is asked."""

    project: str = ""
    calls: list[tuple[str, Call, Properties]] = field(default_factory=list[tuple[str, Call, Properties]])

    def configured(self, variables: Properties) -> "RecordingProvider":
        """One that writes to the same list."""
        return RecordingProvider(project=str(variables["project"]), calls=self.calls)

    def create(self, call: Call, inputs: Properties) -> Created:
        """Create the resource."""
        self.calls.append(("create", call, inputs))
        return Created("" if call.preview else f"{self.project}/logs", {**inputs, "url": UNKNOWN})

    def delete(self, call: Call, identity: str, known: Properties) -> None:
        """Delete the resource."""
        self.calls.append(("delete", call, {"id": identity, **known}))


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
    with serving(store, provider) as address:
        yield Served(provider, store, int(address.rpartition(":")[2]))


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
    assert plain(made.properties)["key"] == Secret("hunter22")
    assert plain(made.properties)["url"] is UNKNOWN


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


@pytest.mark.parametrize(
    ("value", "example", "expected"),
    [
        ("a", "b", "a"),
        ("a", Secret("b"), Secret("a")),
        ({"x": "a", "y": "b"}, {"x": Secret("c")}, {"x": Secret("a"), "y": "b"}),
        ({"x": {"z": 1}}, {"x": Secret({})}, {"x": Secret({"z": 1})}),
        (["a", "b"], [{"k": Secret("c")}], Secret(["a", "b"])),
        ({"x": Secret("a")}, {"x": Secret("b")}, {"x": Secret("a")}),
        ("a", None, "a"),
    ],
)
def test_an_answer_is_secret_where_the_question_was(value: Plain, example: Plain, expected: Plain) -> None:
    """By name in objects, a list as a whole; what is secret already is not so twice."""
    assert as_secret_as(value, example) == expected
