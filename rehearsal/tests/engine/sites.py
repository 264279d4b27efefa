"""A project with a stack on a fake cloud, for commands that a user types."""

import base64
import copy
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from ebbtide.analysis.recording.recording import urn_name
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.control_planes import write_credential_plugins
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.ids import PACKAGES
from ebbtide_rehearsal.cloud.pools import is_stopped
from ebbtide_rehearsal.cloud.protocol import Servicer, serving
from ebbtide_rehearsal.cloud.provider import Clusters, Endpoint
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.api_servers import ApiServer, api_server
from rehearsal.tests.engine.terminal import Terminal, terminal_in
from tests.declarations import AKS, GKE, Declaration, pool
from tests.repository import ROOT


class _ControlPlanes(FakeControlPlanes):
    """Control planes whose API server is the test's, and silent while the cluster is stopped."""

    def __init__(self, api: ApiServer, store: Store) -> None:
        authority = base64.b64encode(api.authority.read_bytes()).decode()
        super().__init__(Endpoint(api.origin, authority))
        self._api, self._store = api, store

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        """Give the cluster the address of the API server."""
        self._api.is_stopped = lambda: is_stopped(self._store, identity)
        return super().create(identity, cloud)


@dataclass(frozen=True, slots=True)
class Checkout:
    """A project whose stack `dev` is on a fake cloud.

    Attributes:
        terminal: a shell in it.
        store: the cloud's.
    """

    terminal: Terminal
    store: Store

    def declare(self, declaration: Declaration, **policy: Any) -> None:
        """Write the stack's file, with limits of a policy; what the engine has put there stays."""
        file = self.terminal.root / "Pulumi.dev.yaml"
        settings: dict[str, Any] = yaml.safe_load(file.read_text() if file.exists() else "{}")
        settings["config"] = {"ebbtide:cluster": declaration, "ebbtide:policy": {"limits": policy}}
        file.write_text(yaml.safe_dump(settings), encoding="utf-8")

    def declared(self) -> Declaration:
        """The declaration in the stack's file."""
        file = self.terminal.root / "Pulumi.dev.yaml"
        return yaml.safe_load(file.read_text())["config"]["ebbtide:cluster"]

    def start(self, command: str = "up", *args: str, confirmed: bool = True) -> subprocess.Popen[str]:
        """Start a command on the stack: `ebbtide up dev --yes`."""
        return subprocess.Popen(
            [sys.executable, "-m", "ebbtide", command, "dev", *(["--yes"] if confirmed else []), *args],
            cwd=self.terminal.root,
            env=self.terminal.environment | {"COLUMNS": "80"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def up(self) -> tuple[int, str]:
        """Exit status and output of `ebbtide up dev --yes`."""
        return self.run()

    def run(self, command: str = "up", *args: str, confirmed: bool = True) -> tuple[int, str]:
        """Exit status and output of a command on the stack."""
        process = self.start(command, *args, confirmed=confirmed)
        out, _ = process.communicate(timeout=900)
        assert "Traceback" not in out, out
        return process.returncode, out

    def state(self) -> list[dict[str, Any]]:
        """The resources in the state."""
        return json.loads(self.terminal.run("pulumi stack export --stack dev"))["deployment"]["resources"]

    def autoscaled(self) -> dict[str, bool]:
        """Tell of each work pool if the autoscaler sets its size."""
        resources = [item for item in self.store.resources("nodes") if "autoscaled" in item.state]
        pools = {item.id.rpartition("/")[2]: bool(item.state["autoscaled"]) for item in resources}
        return {name: autoscaled for name, autoscaled in pools.items() if name != "system"}

    def pools(self) -> set[str]:
        """Names in the cloud of the node pools."""
        resources = self.store.resources("nodes")
        return {item.id.rpartition("/")[2] for item in resources if "autoscaled" in item.state}


@dataclass(frozen=True, slots=True)
class Site(Checkout):
    """The same, with a cluster of nodes and pods alone.

    Attributes:
        api: its API server.
        planes: the control planes of the cloud.
    """

    api: ApiServer
    planes: Clusters


def checkout_in(directory: Path) -> Path:
    """Copy the program into a directory, and return the project's."""
    root = directory / "checkout"
    for name in ("components", "ebbtide", "stacks"):
        shutil.copytree(ROOT / name, root / name)  # with what is compiled, of which times and sizes are kept
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, root)
    return root


def site_on(
    cloud: str, directory: Path, request: pytest.FixtureRequest, servicer: type[Servicer] = Servicer
) -> Generator[Site]:
    store = Store(directory / "cloud.sqlite")
    with api_server(directory) as api:
        planes = _ControlPlanes(api, store)
        with checkout_on(cloud, directory, request, store, planes, api.authority, "token", servicer) as made:
            yield Site(made.terminal, store, api, planes)


@contextmanager
def checkout_on(
    cloud: str,
    directory: Path,
    request: pytest.FixtureRequest,
    store: Store,
    planes: Clusters,
    authority: Path,
    token: str,
    servicer: type[Servicer] = Servicer,
) -> Generator[Checkout]:
    """A copy of the checkout whose stack `dev` declares a system pool and a pool of spot machines, and has no
    resources yet.

    Args:
        cloud: `gke` or `aks`.
        directory: for its files.
        request: of the test.
        store: the cloud's.
        planes: the control planes of its clusters.
        authority: file with the authority of their certificates.
        token: their administrator's.
        servicer: the cloud's answers.
    """
    root = checkout_in(directory)
    provider = FakeProvider(PACKAGES[CloudKind(cloud)], store, planes)
    with serving(store, provider, servicers={provider.package: servicer}) as providers:
        terminal = terminal_in(directory, root, providers, request.node)
        write_credential_plugins(directory / "plugins", token)
        path = os.pathsep.join((str(directory / "plugins"), terminal.environment["PATH"]))
        trusted = {"PATH": path, "SSL_CERT_FILE": str(authority)}
        site = Checkout(Terminal(root, terminal.environment | trusted), store)
        declared = copy.deepcopy(GKE if cloud == "gke" else AKS) | {"lifetime": {"hours": 8}}
        declared["pools"] = [pool(declared, name) for name in ("system", "cpu")]
        site.declare(declared)
        site.terminal.run("pulumi stack init dev")
        yield site


def as_of_others(site: Site) -> int:
    """Forget the stack's state, and adopt all that it had in the cloud; return the number of resources."""
    resources = [
        {"type": item["type"], "name": urn_name(item["urn"]), "id": item["id"]}
        for item in site.state()
        if item.get("custom") and not item["type"].startswith("pulumi:") and not item.get("external")
    ]
    (site.terminal.root / "adopt.dev.json").write_text(json.dumps({"resources": resources}))
    for item in site.store.resources():
        site.store.put(replace(item, urn=""))
    site.terminal.run("pulumi stack rm dev --force --yes --preserve-config && pulumi stack init dev")
    site.declare(site.declared() | {"adopt": "adopt.dev.json"})
    return len(resources)


def with_work(site: Site) -> None:
    """Create the stack, with a pod of a Job, a service and a DaemonSet on a node of the pool `cpu`."""
    assert site.up()[0] == 0
    labels = {"cloud.google.com/gke-nodepool": "cpu", "kubernetes.azure.com/agentpool": "cpu"}
    site.api.nodes["n1"] = {"metadata": {"name": "n1", "labels": labels}, "spec": {}}
    site.api.add_pod("train", "n1")
    site.api.add_pod("web", "n1", restart="Always", owner="ReplicaSet")
    site.api.add_pod("agent", "n1", restart="Always", owner="DaemonSet")


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a command with the engine and all that they have started."""
    os.killpg(process.pid, signal.SIGKILL)
    with process:
        process.communicate()


def until(process: subprocess.Popen[str], text: str) -> str:
    """Read a command's output until a line has a text."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError("".join(lines))
