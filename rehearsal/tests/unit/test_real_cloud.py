"""The comparison of a recording with the fake clouds, which are recorded as if they were real."""

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import grpc
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc
from typer.testing import CliRunner

from ebbtide.analysis.recording.provider_calls import Recorder
from ebbtide.analysis.recording.provider_proxy import proxied
from ebbtide.analysis.recording.values import revealed
from ebbtide.analysis.recording.wire import fill_struct, properties
from ebbtide.cli.entry_point import app
from ebbtide_rehearsal import real_cloud
from ebbtide_rehearsal.cloud.protocol import Servicer, serve
from ebbtide_rehearsal.cloud.provider import Call, Created, Endpoint, Failure, Properties, RefusedError
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.real_cloud import compare
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.fake_clouds import existing_cloud, refusals_of, settings_of
from tests.declarations import BASES, Declaration
from tests.pages import output
from tests.synth import synth


def _struct(values: Properties) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    fill_struct(struct, values)
    return struct


def _plain(struct: struct_pb2.Struct) -> dict[str, Any]:
    return {key: revealed(value) for key, value in properties(struct).items()}


class _Remote:
    """A provider behind the proxy, as the engine calls it: each resource is checked, created, compared, read
    and at the end deleted."""

    def __init__(self, port: str, settings: Properties) -> None:
        self._stub: Any = provider_pb2_grpc.ResourceProviderStub(grpc.insecure_channel(f"127.0.0.1:{port}"))
        self._stub.Configure(provider_pb2.ConfigureRequest(args=_struct(settings)))
        self._made: list[provider_pb2.DeleteRequest] = []

    def check(self, call: Call, old: Properties, new: Properties) -> tuple[Properties, Sequence[Failure]]:
        request = provider_pb2.CheckRequest(urn=call.urn, olds=_struct(old), news=_struct(new))
        answer = self._stub.Check(request)
        return _plain(answer.inputs), [Failure(item.property, item.reason) for item in answer.failures]

    def create(self, call: Call, inputs: Properties) -> Created:
        struct = _struct(inputs)
        try:
            made = self._stub.Create(provider_pb2.CreateRequest(urn=call.urn, properties=struct))
        except grpc.RpcError as error:
            raise RefusedError(str(error)) from None
        known: dict[str, Any] = {"urn": call.urn, "id": made.id}
        diff = provider_pb2.DiffRequest(**known, olds=made.properties, old_inputs=struct, news=struct)
        assert self._stub.Diff(diff).changes == provider_pb2.DiffResponse.DIFF_NONE
        read = provider_pb2.ReadRequest(**known, properties=made.properties, inputs=struct)
        assert self._stub.Read(read).id == made.id
        update = provider_pb2.UpdateRequest(**known, olds=made.properties, old_inputs=struct, news=struct)
        if call.type.endswith(("NodePool", "AgentPool")):
            self._stub.Update(update)
        self._made.append(provider_pb2.DeleteRequest(**known, properties=made.properties))
        return Created(made.id, _plain(made.properties))

    def invoke(self, token: str, arguments: Properties) -> Properties:
        answer = self._stub.Invoke(provider_pb2.InvokeRequest(tok=token, args=_struct(arguments)))
        return _plain(getattr(answer, "return"))

    def end(self) -> None:
        """Delete what was created, the last first."""
        while self._made:
            self._stub.Delete(self._made.pop())


class _ControlPlanes(FakeControlPlanes):
    """Control planes whose addresses have Google's form."""

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        """Give a cluster an address."""
        made = replace(
            super().create(identity, cloud), host="gke-0a1b-train-123456789012.us-central1.gke.goog"
        )
        self.running[identity] = made
        return made


def _recorded(directory: Path, declaration: Declaration, servicer: type[Servicer] = Servicer) -> Path:
    """Record the creation and deletion of a declared stack on a fake cloud."""
    store, recording = Store(directory / "cloud.sqlite", speed=1e6), directory / "recording"
    provider = existing_cloud(store, declaration, _ControlPlanes())
    server, port = serve(provider, store, servicer)
    try:
        with proxied({provider.package: port}, Recorder(recording, "up")) as providers:
            remote = _Remote(providers.partition(":")[2], settings_of(declaration))
            assert refusals_of(remote, synth(declaration)) == {}
            remote.end()
    finally:
        server.stop(grace=None).wait()
    return recording


class _Falsified(Servicer):
    """A cloud in which one answer is not what ours would be."""

    def Create(  # noqa: N802
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        """Answer with another disk type of GKE's node pool `cpu`, and another number of pods of AKS's."""
        answer = super().Create(request, context)
        if request.urn.endswith("NodePool::train-cpu"):
            answer.properties.fields["nodeConfig"].struct_value.fields["diskType"].string_value = "pd-ssd"
        elif request.urn.endswith("AgentPool::train-cpu"):
            answer.properties.fields["maxPods"].number_value = 110
        return answer


def _declared(cloud: str) -> Declaration:
    return BASES[cloud] | {"lifetime": {"hours": 8}, "pools": BASES[cloud]["pools"][:2]}


_FALSE = {
    "gke": (
        "gcp:container/nodePool:NodePool",
        "train-cpu",
        "Create",
        "properties.nodeConfig.diskType",
        "pd-ssd",
        "fake cloud",
    ),
    "aks": (
        "azure-native:containerservice:AgentPool",
        "train-cpu",
        "Create",
        "properties.maxPods",
        110,
        "noted.csv",
    ),
}


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_a_false_answer_is_found(tmp_path: Path, cloud: str) -> None:
    """Every recorded call is compared, and differs in nothing but the answer that was falsified."""
    comparison = compare(_recorded(tmp_path, _declared(cloud), _Falsified))
    assert [
        (item.type, item.resource, item.call, item.path, item.real, item.source)
        for item in comparison.differences
    ] == [_FALSE[cloud]], real_cloud.text(comparison)
    assert (comparison.compared > 40, comparison.skipped) == (True, 0)


_CREATED = {
    "package": "gcp",
    "connection": 1,
    "urn": "urn:pulumi:dev::train::gcp:storage/bucket:Bucket::data",
    "error": None,
    "seconds": 1.5,
}


def _write(directory: Path, *calls: dict[str, Any]) -> Path:
    """Write a recording of calls of Google's provider."""
    configured = {"method": "Configure", "request": {"args": {"project": "project-1"}}, "answer": {}}
    lines = (json.dumps(_CREATED | call) for call in (configured, *calls))
    (directory / "001-up.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return directory


def _bucket(**answer: Any) -> dict[str, Any]:
    inputs = {
        "name": "project-1-data",
        "location": "us-central1",
        "forceDestroy": False,
        "project": "project-1",
    }
    outputs = {"url": "gs://project-1-data", "selfLink": _LINK}
    made = {"id": "project-1-data", "properties": inputs | outputs | answer}
    return {"method": "Create", "request": {"properties": inputs}, "answer": made}


_LINK = "https://www.googleapis.com/storage/v1/b/project-1-data"


def _paths(directory: Path, *calls: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item.path, item.source) for item in compare(_write(directory, *calls)).differences]


def test_each_table_is_compared(tmp_path: Path) -> None:
    """A difference names the table that has our value: the templates of answers, what a cloud reads back, or
    the assumptions of a preview."""
    true = _bucket(location="US-CENTRAL1")
    assert _paths(tmp_path, true) == []
    assert _paths(tmp_path, _bucket(location="us-central1")) == [("properties.location", "read_back.csv")]
    other = _bucket(location="US-CENTRAL1", url="https://storage.googleapis.com/project-1-data")
    assert _paths(tmp_path, other) == [("properties.url", "assumed_gcp.py")]
    renamed = {**true, "answer": {**true["answer"], "id": "b/project-1-data"}}
    assert _paths(tmp_path, renamed) == [("id", "assumed_gcp.py")]


def test_refusals_are_compared(tmp_path: Path) -> None:
    """A call that the real cloud refuses and ours accepts differs, as the other way round."""
    true = _bucket(location="US-CENTRAL1")
    refused = {**true, "answer": None, "error": "googleapi: Error 403: Forbidden, forbidden"}
    assert _paths(tmp_path, refused) == [("error", "fake cloud")]
    assert _paths(tmp_path, true, true) == [("error", "fake cloud")]


def test_a_resource_that_a_failed_call_has_left(tmp_path: Path) -> None:
    """A resource whose creation failed halfway on the real cloud exists there: its deletion is compared."""
    true = _bucket(location="US-CENTRAL1")
    left: dict[str, Any] = {**true["answer"], "inputs": {}, "reasons": ["it is not ready"]}
    failed = {**true, "answer": None, "error": "it is not ready", "partial": left}
    deleted: dict[str, Any] = {
        "method": "Delete",
        "request": {"id": "project-1-data", "properties": left["properties"]},
        "answer": {},
    }
    comparison = compare(_write(tmp_path, failed, deleted))
    assert [(item.call, item.path) for item in comparison.differences] == [("Create", "error")]
    assert (comparison.compared, comparison.skipped) == (2, 0)


def test_another_version_of_the_provider(tmp_path: Path) -> None:
    """A recording of another version of the provider than the installed SDK's says so once for each version;
    the same version, and an unknown one, are not mentioned."""
    ours = metadata.version("pulumi-gcp")

    def versions(*recorded: str) -> str:
        infos = [
            {"method": "GetPluginInfo", "request": {}, "answer": {"version": version}} for version in recorded
        ]
        comparison = compare(_write(tmp_path, *infos, _bucket(location="US-CENTRAL1")))
        assert (comparison.differences, comparison.compared) == ((), 1)
        return real_cloud.text(comparison)

    counted = "1 recorded call compared: no field differs.\n"
    assert versions(ours, f"v{ours}", "") == counted
    assert versions("9.9.9", ours, "v9.9.9") == (
        f"{counted}The recording is of the provider gcp 9.9.9, and the fake cloud of {ours}: differences may "
        "come from the provider.\n"
    )


def test_what_was_there_before_is_not_compared(tmp_path: Path) -> None:
    """The fake cloud has no resource whose creation is not recorded; the calls about it are counted."""
    deleted: dict[str, Any] = {
        "method": "Delete",
        "request": {"id": "project-1-data", "properties": {}},
        "answer": {},
    }
    comparison = compare(_write(tmp_path, deleted))
    assert (comparison.differences, comparison.compared, comparison.skipped) == ((), 0, 1)


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_a_pool_of_an_older_cluster_is_not_compared(tmp_path: Path, cloud: str) -> None:
    """The creation of a pool is counted, where the recording lacks that of its cluster; the pool's disk
    type, which would differ, is not reported."""
    recording = _recorded(tmp_path, _declared(cloud), _Falsified)
    for file in recording.glob("*.jsonl"):
        calls = file.read_text(encoding="utf-8").splitlines()
        kept = [call for call in calls if not _creates_a_cluster(json.loads(call))]
        assert len(kept) == len(calls) - 1
        file.write_text("\n".join(kept), encoding="utf-8")
    comparison = compare(recording)
    assert comparison.differences == (), real_cloud.text(comparison)
    assert comparison.skipped > 0


def _creates_a_cluster(call: dict[str, Any]) -> bool:
    return call["method"] == "Create" and "Cluster::" in call["urn"]


def test_a_renamed_resource_is_the_same(tmp_path: Path) -> None:
    """After `ebbtide up` has replaced a pool, its replacement has the old URN: the id tells them apart."""
    made = _bucket(location="US-CENTRAL1")
    other: dict[str, Any] = json.loads(json.dumps(made).replace("project-1-data", "project-1-more"))
    old: dict[str, Any] = {"id": "project-1-data", "properties": {}}
    new: dict[str, Any] = {"id": "project-1-more", "properties": {}}
    renamed = f"{_CREATED['urn']}.old"
    calls: tuple[dict[str, Any], ...] = (
        made,
        {**other, "urn": f"{_CREATED['urn']}.next"},
        {"method": "Delete", "request": old, "answer": {}, "urn": renamed},
        {"method": "Delete", "request": new, "answer": {}},
        {"method": "Delete", "request": old, "answer": {}},
    )
    comparison = compare(_write(tmp_path, *calls))
    assert (comparison.differences, comparison.compared, comparison.skipped) == ((), 4, 1)


def test_the_command_compares(tmp_path: Path) -> None:
    """`ebbtide rehearse --compare` prints each field as on its page, or JSON, with exit status 1 if one
    differs; a directory without a recording is an error."""
    run = CliRunner().invoke
    compared = ("rehearse", "--compare", str(_write(tmp_path, _bucket(location="us-central1"))))
    done = run(app, compared)
    assert (done.exit_code, done.stderr) == (1, "")
    assert [done.stdout] == output("docs/real-cloud.md", "gcp:storage/bucket")
    done = run(app, [*compared, "--format", "json"])
    assert json.loads(done.stdout)["differences"][0]["ours"] == "US-CENTRAL1"
    _write(tmp_path, _bucket(location="US-CENTRAL1"))
    assert run(app, compared).stdout == "1 recorded call compared: no field differs.\n"
    (tmp_path / "001-up.jsonl").write_text("{}", encoding="utf-8")
    for arguments, message in (
        (compared, "001-up.jsonl, line 1: this is not a recorded call."),
        (
            ("rehearse", "--compare", str(tmp_path / "other")),
            "other has no recording, which `ebbtide up --record ",
        ),
        ((*compared, "--format", "html"), "--compare has no HTML page: "),
    ):
        done = run(app, arguments)
        assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
