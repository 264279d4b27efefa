"""The proxy that records the calls of a provider's plugin."""

import json
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from ebbtide.analysis.recording.provider_calls import ProviderCallError, Recorder
from ebbtide.analysis.recording.provider_proxy import Plugin, proxied
from ebbtide.analysis.recording.values import Secret
from ebbtide.analysis.recording.wire import fill_struct
from ebbtide.operations import provider_plugins
from ebbtide.operations.failures import OperationError

_PLUGIN = (Path(__file__).parent / "provider_plugin.py.txt").read_text(encoding="utf-8")


def _plugin(directory: Path, text: str = _PLUGIN) -> Plugin:
    program = directory / "pulumi-resource-gcp"
    program.write_text(dedent(text).format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    return Plugin(program, directory)


@contextmanager
def _engine(port: int | str) -> Generator[Any]:
    """A connection of the engine to a provider that runs already."""
    with grpc.insecure_channel(f"127.0.0.1:{port}", (("grpc.use_local_subchannel_pool", 1),)) as channel:
        yield provider_pb2_grpc.ResourceProviderStub(channel)


def _attach(stub: Any, project: str) -> None:
    """Do what the engine does with a new connection."""
    stub.Handshake(provider_pb2.ProviderHandshakeRequest(engine_address="127.0.0.1:9"))
    assert stub.Attach(plugin_pb2.PluginAttach(address="127.0.0.1:9")) == empty_pb2.Empty()
    stub.Configure(provider_pb2.ConfigureRequest(args=_struct({"project": project})))


def _struct(values: dict[str, Any]) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    fill_struct(struct, values)
    return struct


def _calls(recorder: Recorder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in recorder.file.read_text(encoding="utf-8").splitlines()]


def test_each_provider_resource_has_a_plugin(tmp_path: Path) -> None:
    """Each connection gets a process with the engine's address and the plugin's directory, and keeps its own
    settings; calls are recorded with their connection, and secrets reach the plugin alone."""
    recorder = Recorder(tmp_path / "recording", "up")
    made: list[Any] = []
    with proxied({"gcp": _plugin(tmp_path)}, recorder) as providers:
        port = providers.removeprefix("gcp:")
        with _engine(port) as first, _engine(port) as second:
            _attach(first, "acme-ml")
            _attach(second, "other-ml")
            for stub in (first, second):
                request = provider_pb2.CreateRequest(urn="u", properties=_struct({"a": Secret("s3cr3t-1")}))
                made.append(stub.Create(request))
    assert [answer.id for answer in made] == ["projects/acme-ml/x", "projects/other-ml/x"]
    assert made[0].properties.fields["argument"].string_value == "127.0.0.1:9"
    assert made[0].properties.fields["engine_address"].string_value == "127.0.0.1:9"
    assert made[0].properties.fields["root_directory"].string_value == str(tmp_path)
    assert made[0].properties.fields["program_directory"].string_value == str(tmp_path)
    calls = _calls(recorder)
    assert [(call["method"], call["connection"]) for call in calls] == [
        ("Configure", 1),
        ("GetPluginInfo", 1),
        ("Configure", 2),
        ("Create", 1),
        ("Create", 2),
    ]
    assert calls[4]["answer"]["id"] == "projects/project-2/x"
    assert calls[4]["request"]["properties"] == {"a": "[secret]"}
    assert "s3cr3t" not in recorder.file.read_text(encoding="utf-8")
    assert stat.S_IMODE(recorder.file.stat().st_mode) == 0o600


def test_the_version_of_the_provider_is_recorded(tmp_path: Path) -> None:
    """The proxy requests the version after the first configuration; a provider without one works too."""
    plugins = {"gcp": _PLUGIN, "azure-native": _PLUGIN.replace("GetPluginInfo", "Other")}
    recorders = {package: Recorder(tmp_path / package, "up") for package in plugins}
    for package, text in plugins.items():
        with (
            proxied({package: _plugin(tmp_path, text)}, recorders[package]) as providers,
            _engine(providers.rpartition(":")[2]) as stub,
        ):
            _attach(stub, "acme-ml")
    (_, known), (_, unknown) = map(_calls, recorders.values())
    assert (known["method"], known["answer"], known["error"]) == (
        "GetPluginInfo",
        {"version": "10.1.0"},
        None,
    )
    assert (unknown["method"], unknown["answer"]) == ("GetPluginInfo", None)
    assert unknown["error"] == "Method not implemented!"


def test_an_error_passes_as_it_is(tmp_path: Path) -> None:
    """The engine gets the plugin's code, message and details; the recording gets the message, scrubbed."""
    recorder = Recorder(tmp_path / "recording", "up")
    with proxied({"gcp": _plugin(tmp_path)}, recorder) as providers, _engine(providers[4:]) as stub:
        _attach(stub, "acme-ml")
        with pytest.raises(grpc.RpcError) as caught:
            stub.Create(provider_pb2.CreateRequest(urn="u"))
    failed: Any = caught.value
    assert (failed.code(), failed.details()) == (grpc.StatusCode.UNKNOWN, "project acme-ml has no room")
    assert ("why-bin", b"empty") in [tuple(item) for item in failed.trailing_metadata()]
    call = _calls(recorder)[-1]
    assert (call["answer"], call["error"]) == (None, "project project-1 has no room")
    assert call["partial"] is None


def test_a_call_that_fails_halfway(tmp_path: Path) -> None:
    """The recording has what a failed call has left, scrubbed, and the engine gets the details."""
    recorder = Recorder(tmp_path / "recording", "up")
    with proxied({"gcp": _plugin(tmp_path)}, recorder) as providers, _engine(providers[4:]) as stub:
        _attach(stub, "acme-ml")
        properties = _struct({"unready": True, "key": Secret("s3cr3t-1"), "owner": "ann@acme.com"})
        with pytest.raises(grpc.RpcError) as caught:
            stub.Create(provider_pb2.CreateRequest(urn="u", properties=properties))
    failed: Any = caught.value
    assert b"ErrorResourceInitFailed" in dict(failed.trailing_metadata())["grpc-status-details-bin"]
    call = _calls(recorder)[-1]
    assert (call["answer"], call["error"]) == (None, "x is not ready, key [secret]")
    assert call["partial"] == {
        "id": "projects/project-1/x",
        "properties": {"unready": True, "key": "[secret]", "owner": "user-1@example.com"},
        "inputs": {},
        "reasons": ["x of project-1 is not ready"],
    }


def test_methods_of_other_versions_pass(tmp_path: Path) -> None:
    """A method that the plugin lacks is answered by the plugin, and is not recorded."""
    recorder = Recorder(tmp_path / "recording", "up")
    proxy = proxied({"gcp": _plugin(tmp_path)}, recorder)
    with proxy as providers, _engine(providers[4:]) as stub, pytest.raises(grpc.RpcError) as caught:
        stub.GetMapping(provider_pb2.GetMappingRequest(key="terraform"))
    failed: Any = caught.value
    assert failed.code() is grpc.StatusCode.UNIMPLEMENTED
    assert _calls(recorder) == []


def test_a_plugin_that_does_not_start(tmp_path: Path) -> None:
    """The engine shows why."""
    recorder = Recorder(tmp_path / "recording", "up")
    plugin = _plugin(tmp_path, "#!/bin/sh\nexit 1\n")
    proxy = proxied({"gcp": plugin}, recorder)
    with proxy as providers, _engine(providers[4:]) as stub, pytest.raises(grpc.RpcError) as caught:
        stub.Handshake(provider_pb2.ProviderHandshakeRequest())
    failed: Any = caught.value
    assert failed.details() == "The plugin of gcp has ended before it was ready."


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """A recording has a file for each command; a path that is a file is refused."""
    assert Recorder(tmp_path / "a" / "b", "up").file.name == "001-up.jsonl"
    assert Recorder(tmp_path / "a" / "b", "destroy").file.name == "002-destroy.jsonl"
    (tmp_path / "file").touch()
    with pytest.raises(ProviderCallError, match=r"--record cannot write to .*file: File exists"):
        Recorder(tmp_path / "file", "up")


class _Pulumi:
    """A stack's `pulumi`, which installs plugins into a home."""

    def __init__(self, home: Path, *resources: dict[str, Any]) -> None:
        self.directory, self._home, self._resources = home, home, resources
        self.commands: list[tuple[str, ...]] = []

    def exported(self) -> dict[str, Any]:
        """Return a state with the resources."""
        return {"deployment": {"resources": list(self._resources)}}

    def run_globally(self, *command: str) -> str:
        """Install a plugin."""
        self.commands.append(command)
        _, _, _, package, version = command
        program = self._home / "plugins" / f"resource-{package}-v{version}" / f"pulumi-resource-{package}"
        program.parent.mkdir(parents=True)
        program.touch()
        return ""


def test_the_plugins_that_a_stack_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's version of each cloud's plugin is installed, or attached to if it runs already."""
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path))
    monkeypatch.delenv("PULUMI_DEBUG_PROVIDERS", raising=False)
    monkeypatch.setattr(provider_plugins.metadata, "version", {"pulumi-gcp": "10.2.0"}.__getitem__)
    monkeypatch.setattr(provider_plugins.metadata, "PackageNotFoundError", KeyError)
    provider = {"type": "pulumi:providers:azure-native", "inputs": {"version": "3.1.0"}}
    pulumi = _Pulumi(tmp_path, provider, {"type": "azure-native:network:Subnet"})
    found = provider_plugins.upstreams(pulumi, ["gcp:storage/bucket:Bucket", "kubernetes:core/v1:Secret"])
    programs = {name: str(item.program) for name, item in found.items() if isinstance(item, Plugin)}
    assert programs == {
        "gcp": f"{tmp_path}/plugins/resource-gcp-v10.2.0/pulumi-resource-gcp",
        "azure-native": f"{tmp_path}/plugins/resource-azure-native-v3.1.0/pulumi-resource-azure-native",
    }
    assert pulumi.commands[0] == ("plugin", "install", "resource", "gcp", "10.2.0")
    monkeypatch.setenv("PULUMI_DEBUG_PROVIDERS", "gcp:4711,kubernetes:1")
    assert provider_plugins.upstreams(_Pulumi(tmp_path), ["gcp:a:B"]) == {"gcp": 4711}
    with pytest.raises(OperationError, match=r"which neither the state nor this environment has"):
        provider_plugins.upstreams(_Pulumi(tmp_path, {"type": "azure-native:a:B"}), [])
    monkeypatch.delenv("PULUMI_DEBUG_PROVIDERS")
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "other"))
    with pytest.raises(OperationError, match=r"there is none at .*other/plugins"):
        provider_plugins.upstreams(_Pulumi(tmp_path / "home"), ["gcp:a:B"])
