"""A recording of a fake cloud by the real engine, as of a real cloud: its provider is an installed plugin."""

import json
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide_rehearsal.cloud.protocol import Servicer
from ebbtide_rehearsal.tools import find
from rehearsal.tests.engine.sites import Site, site_on
from rehearsal.tests.engine.terminal import Terminal
from tests.declarations import pool

pytestmark = pytest.mark.engine


class _Falsified(Servicer):
    """A cloud in which one answer is not what ours would be."""

    def Update(  # noqa: N802
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        """Answer with another minimum number of nodes of the pool `cpu`."""
        answer = super().Update(request, context)
        if "autoscaling" in answer.properties.fields:
            answer.properties.fields["autoscaling"].struct_value.fields["minNodeCount"].number_value = 1
        elif "minCount" in answer.properties.fields:
            answer.properties.fields["minCount"].number_value = 1
        return answer


_FALSE = {"gke": "properties.autoscaling.minNodeCount", "aks": "properties.minCount"}
_OF_THIS_MACHINE = {
    "gke": ["properties.controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint"],
    "aks": [],
}
"""The address of the test's API server, which has not the form of Google's."""


def _with_plugin(site: Site) -> Site:
    """Install a plugin that leads to the fake cloud, which no environment variable names any more."""
    environment = dict(site.terminal.environment)
    package, _, port = environment.pop("PULUMI_DEBUG_PROVIDERS").partition(":")
    plugin = find.plugin_file(Path(environment["PULUMI_HOME"]), package)
    plugin.parent.mkdir(parents=True)
    plugin.write_text(f"#!/bin/sh\necho {port}\nexec sleep 3600\n", encoding="utf-8")
    plugin.chmod(0o755)
    return replace(site, terminal=Terminal(site.terminal.root, environment))


@pytest.fixture(params=["gke", pytest.param("aks", marks=pytest.mark.long)])
def recorded(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[tuple[str, Path]]:
    """The recording of a stack that is created, updated and destroyed, with its cloud."""
    for site in site_on(request.param, tmp_path, request, _Falsified):
        real, directory = _with_plugin(site), tmp_path / "recording"
        for command in ("up", "up", "destroy"):
            status, out = real.run(command, "--record", str(directory))
            # No cloud's API answers what is left of the cluster.
            assert (status == 0 or command == "destroy", "error:" in out) == (True, False), out
            declared = real.declared()
            pool(declared, "cpu")["nodes"] = {"max": 7}
            real.declare(declared)
        assert site.pools() == set()
        yield request.param, directory


def test_a_false_answer_of_a_real_cloud_is_found(recorded: tuple[str, Path]) -> None:
    """The comparison names the answer that was falsified, and no other; nothing recorded identifies the
    project or subscription."""
    cloud, directory = recorded
    files = sorted(path.name for path in directory.iterdir())
    assert files == ["001-up.jsonl", "002-up.jsonl", "003-destroy.jsonl"]
    text = "".join(path.read_text(encoding="utf-8") for path in directory.iterdir())
    assert [
        secret for secret in ("acme-ml", "PRIVATE KEY", "00000000-0000-0000-0000") if secret in text
    ] == []
    methods = {json.loads(line)["method"] for line in text.splitlines()}
    assert methods == {"GetPluginInfo", "Configure", "Check", "Diff", "Create", "Update", "Delete"}

    done = CliRunner().invoke(app, ["rehearse", "--compare", str(directory), "--format", "json"])
    comparison: dict[str, Any] = json.loads(done.stdout)
    found = [item["path"] for item in comparison["differences"]]
    assert found == [*_OF_THIS_MACHINE[cloud], _FALSE[cloud]], done.stdout
    assert (done.exit_code, comparison["skipped"]) == (1, 0)
    assert comparison["differences"][-1]["file"] == "002-up.jsonl"
