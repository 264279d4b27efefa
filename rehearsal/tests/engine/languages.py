"""Projects in YAML, on the real engine with the provider of the package `ebbtide`.

The provider is a directory with an executable that runs `plugin/__main__.py` with the Python of this process.
The Python language host that can be built, 3.79 of 2023, rejects the options of `plugin/PulumiPlugin.yaml`.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
import yaml
from pulumi.runtime.proto import provider_pb2

from ebbtide_rehearsal.cloud.azure import AzureProvider
from ebbtide_rehearsal.cloud.gcp import Gcp
from ebbtide_rehearsal.cloud.protocol import Servicer, serve
from ebbtide_rehearsal.cloud.provider import Provider
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.tools import ensure
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.any_objects import AnyObjects, ObjectsServicer
from rehearsal.tests.engine.terminal import Terminal, terminal_in
from tests.repository import ROOT

_HOST: Final = "pulumi-language-yaml"
_COMPARED: Final = ("custom", "inputs", "protect", "ignoreChanges", "deletedWith", "retainOnDelete")
_CHOSEN: Final = re.compile(
    r"20\d\d-\d\d-\d\d[tT]\d\d[:-]\d\d[zZ]|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
"""Times of an update, and UUIDs that a cloud chooses."""


class GcpServicer(Servicer):
    """The fake of Google Cloud, with the schema of the one resource that programs here create themselves."""

    def GetSchema(  # noqa: N802 - the protocol's name
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        """Return a part of the provider's schema: programs in YAML are checked against it."""
        del request, context
        text = {"type": "string"}
        account = {
            "inputProperties": {"accountId": text, "project": text},
            "properties": {"accountId": text, "project": text, "email": text},
            "required": ["email"],
        }
        schema = {
            "name": "gcp",
            "version": self._provider.version,
            "resources": {"gcp:serviceaccount/account:Account": account},
        }
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema))


@dataclass(frozen=True, slots=True)
class Project:
    """A project with its stack `test`, the fake clouds, and the provider.

    Attributes:
        terminal: a shell in its directory.
        store: of the fake clouds.
        planes: the control planes of the clusters there.
        provider: the executable of the package's provider.
    """

    terminal: Terminal
    store: Store
    planes: FakeControlPlanes
    provider: Path

    @property
    def root(self) -> Path:
        """Its directory."""
        return self.terminal.root

    def write(self, resources: dict[str, Any], outputs: dict[str, Any] | None = None) -> None:
        """Write its YAML program."""
        program = {
            "name": "ebbtide",
            "runtime": "yaml",
            "packages": {"ebbtide": str(self.provider)},
            "resources": resources,
            "outputs": outputs or {},
        }
        (self.root / "Pulumi.yaml").write_text(yaml.safe_dump(program), encoding="utf-8")

    def fails(self, command: str) -> str:
        """Return everything that a command prints which must fail, without line breaks."""
        done = subprocess.run(
            ["bash", "-c", command],  # noqa: S607 - the one that is first on PATH
            cwd=self.root,
            env=self.terminal.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        text = done.stdout + done.stderr
        assert done.returncode != 0, text
        assert "Traceback" not in text
        return " ".join(text.split())

    def state(self) -> list[dict[str, Any]]:
        """The resources in the stack's state."""
        exported = json.loads(self.terminal.run("pulumi stack export --show-secrets"))
        return exported["deployment"].get("resources", [])


@contextmanager
def project_in(directory: Path, test: pytest.FixtureRequest) -> Generator[Project]:
    """An empty project, with fakes of both clouds and of Kubernetes."""
    store, planes = Store(directory / "cloud.sqlite"), FakeControlPlanes()
    served: list[tuple[Provider, type[Servicer]]] = [
        (Gcp(store, planes), GcpServicer),
        (AzureProvider(store, planes), Servicer),
        (AnyObjects(), ObjectsServicer),
    ]
    root, provider = directory / "project", directory / "plugin"
    root.mkdir()
    provider.mkdir()
    program = provider / "pulumi-resource-ebbtide"
    program.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/plugin/__main__.py" "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    with ExitStack() as stack:
        addresses: list[str] = []
        for cloud, servicer in served:
            server, port = serve(cloud, store, servicer)
            stack.callback(_stop, server)
            addresses.append(f"{cloud.package}:{port}")
        terminal = terminal_in(directory, root, ",".join(addresses), test.node)
        shutil.copy(ensure([_HOST], on_step=lambda _: None).path(_HOST), directory / "bin")
        yield Project(terminal, store, planes, provider)


def _stop(server: grpc.Server) -> None:
    server.stop(grace=None).wait()


def graph(resources: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the resources of a state without the component of the package: by URN their inputs and options.

    The component is taken from the types of parents, and what an update or the cloud chooses from inputs.
    """
    text = json.dumps(resources).replace("ebbtide:index:Cluster$", "")
    items: list[dict[str, Any]] = json.loads(_CHOSEN.sub("", text))
    found: dict[str, Any] = {}
    for item in items:
        if item["type"] not in ("pulumi:pulumi:Stack", "pulumi:providers:ebbtide", "ebbtide:index:Cluster"):
            found[item["urn"]] = {key: item.get(key) for key in _COMPARED} | {
                "dependencies": sorted(item.get("dependencies", ())),
                "propertyDependencies": {
                    key: sorted(urns or ()) for key, urns in item.get("propertyDependencies", {}).items()
                },
            }
    return found
