"""`ebbtide up` on the real engine, with the real language host and fake clouds."""

import base64
import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from ebbtide_rehearsal.cloud.azure import AzureProvider
from ebbtide_rehearsal.cloud.clusters import Endpoint
from ebbtide_rehearsal.cloud.credential_plugins import write_credential_plugins
from ebbtide_rehearsal.cloud.faults import API_ERROR, InjectedFault
from ebbtide_rehearsal.cloud.gcp import Gcp
from ebbtide_rehearsal.cloud.protocol import serve
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.api_servers import ApiServer, api_server
from rehearsal.tests.engine.terminal import Terminal, terminal_in
from tests.declarations import AKS, GKE, Declaration, pool
from tests.repository import ROOT

pytestmark = pytest.mark.engine


class _ControlPlanes(FakeControlPlanes):
    """Control planes whose API server is the test's."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__()
        self._api = api

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        """Give the cluster the address of the API server."""
        super().create(identity, cloud)
        authority = base64.b64encode(self._api.authority.read_bytes()).decode()
        self.running[identity] = Endpoint(self._api.origin, authority)
        return self.running[identity]


@dataclass(frozen=True, slots=True)
class Site:
    """A project whose stack `dev` is on a fake cloud."""

    terminal: Terminal
    store: Store
    api: ApiServer

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

    def start(self, *, confirmed: bool = True) -> subprocess.Popen[str]:
        """Start `ebbtide up dev --yes`."""
        return subprocess.Popen(
            [sys.executable, "-m", "ebbtide", "up", "dev", *(["--yes"] if confirmed else [])],
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
        process = self.start()
        out, _ = process.communicate(timeout=300)
        assert "Traceback" not in out, out
        return process.returncode, out

    def state(self) -> list[dict[str, Any]]:
        """The resources in the state."""
        return json.loads(self.terminal.run("pulumi stack export --stack dev"))["deployment"]["resources"]

    def autoscaled(self) -> dict[str, bool]:
        """Whether the autoscaler sets the size of each work pool."""
        resources = [item for item in self.store.resources("nodes") if "autoscaled" in item.state]
        pools = {item.id.rpartition("/")[2]: bool(item.state["autoscaled"]) for item in resources}
        return {name: autoscaled for name, autoscaled in pools.items() if name != "system"}

    def pools(self) -> set[str]:
        """Names in the cloud of the node pools."""
        resources = self.store.resources("nodes")
        return {item.id.rpartition("/")[2] for item in resources if "autoscaled" in item.state}


def _site(cloud: str, directory: Path, request: pytest.FixtureRequest) -> Generator[Site]:
    root = directory / "checkout"
    for name in ("components", "ebbtide", "stacks"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, root)
    store = Store(directory / "cloud.sqlite")
    with api_server(directory) as api:
        planes = _ControlPlanes(api)
        provider = Gcp(store, planes) if cloud == "gke" else AzureProvider(store, planes)
        server, port = serve(provider, store)
        try:
            terminal = terminal_in(directory, root, f"{provider.package}:{port}", request.node)
            write_credential_plugins(directory / "plugins", "token")
            path = os.pathsep.join((str(directory / "plugins"), terminal.environment["PATH"]))
            trusted = {"PATH": path, "SSL_CERT_FILE": str(api.authority)}
            site = Site(Terminal(root, terminal.environment | trusted), store, api)
            declared = copy.deepcopy(GKE if cloud == "gke" else AKS) | {"lifetime": {"hours": 8}}
            declared["pools"] = [pool(declared, name) for name in ("system", "cpu")]
            site.declare(declared)
            site.terminal.run("pulumi stack init dev")
            yield site
        finally:
            server.stop(grace=None).wait()


@pytest.fixture(params=["gke", pytest.param("aks", marks=pytest.mark.long)])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Site]:
    """A cluster with a system pool and a pool of spot machines, not yet created."""
    yield from _site(request.param, tmp_path, request)


@pytest.fixture
def gke(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Site]:
    """The same on GKE alone."""
    yield from _site("gke", tmp_path, request)


def _changed(site: Site, **fields: Any) -> None:
    """Change the pool `cpu` in the declaration."""
    declared = site.declared()
    pool(declared, "cpu").update(fields)
    site.declare(declared)


def _with_work(site: Site) -> None:
    """Create the stack, with a pod of a Job, a service and a DaemonSet on a node of the pool `cpu`."""
    assert site.up()[0] == 0
    labels = {"cloud.google.com/gke-nodepool": "cpu", "kubernetes.azure.com/agentpool": "cpu"}
    site.api.nodes["n1"] = {"metadata": {"name": "n1", "labels": labels}, "spec": {}}
    site.api.add_pod("train", "n1")
    site.api.add_pod("web", "n1", restart="Always", owner="ReplicaSet")
    site.api.add_pod("agent", "n1", restart="Always", owner="DaemonSet")


def _until(process: subprocess.Popen[str], text: str) -> str:
    """Read a command's output until a line has a text."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError("".join(lines))


def _killed(process: subprocess.Popen[str]) -> None:
    """Kill a command with the engine and all that they have started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_stack_is_created_and_stays(gke: Site) -> None:
    """Nothing happens against the policy or without confirmation. The first update has a line per resource;
    the second changes nothing."""
    declared = gke.declared()
    gke.declare(declared, lifetimeHours=1)
    status, out = gke.up()
    assert (status, "The policy forbids it: " in out, gke.pools()) == (1, True, set()), out
    gke.declare(declared)
    with gke.start(confirmed=False) as process:
        out, _ = process.communicate(timeout=300)
    assert (process.returncode, gke.pools()) == (1, set())
    assert "Update stack dev? There is no terminal to confirm" in out
    status, out = gke.up()
    assert status == 0, out
    assert "created: gcp:container/nodePool:NodePool train-cpu" in out
    status, out = gke.up()
    assert status == 0, out
    assert "Stack dev: no change." in out
    assert "created:" not in out


def test_a_pool_is_replaced_beside_the_old_one(site: Site) -> None:
    """A Job on it ends by itself, a service moves, and the old pool does not grow meanwhile; in the end the
    state has the same URNs, and nothing to change."""
    _with_work(site)
    before = {item["urn"] for item in site.state()}
    _changed(site, capacity="on-demand")
    with site.start() as process:
        out = _until(process, "research/train")
        assert "Pool cpu is replaced by a new one beside it: its work has 1 day" in out
        assert site.api.nodes["n1"]["spec"] == {"unschedulable": True}
        assert site.autoscaled() == {"cpu": False, **dict.fromkeys(site.pools() - {"cpu", "system"}, True)}
        del site.api.pods["train"]
        rest, _ = process.communicate(timeout=300)
    assert process.returncode == 0, rest
    assert (site.api.evicted, list(site.api.pods)) == (["web"], ["agent"])
    assert {item["urn"] for item in site.state()} == before
    assert len(site.pools()) == 2
    assert "cpu" not in site.pools()
    assert "Stack dev: no change." in site.up()[1]


@pytest.mark.long
def test_a_killed_update_continues(site: Site) -> None:
    """Killed with its engine while the new pool is created, while work ends, and while the old pool is
    deleted, it ends as if nothing had happened."""
    _with_work(site)
    before = {item["urn"] for item in site.state()}
    _changed(site, capacity="on-demand")
    process = site.start()
    _until(process, "Beside the present ones")
    time.sleep(2)
    _killed(process)
    process = site.start()
    _until(process, "research/train")
    _killed(process)
    del site.api.pods["train"]
    process = site.start()
    _until(process, "is deleted.")
    time.sleep(1)
    _killed(process)
    status, out = site.up()
    assert status == 0, out
    assert {item["urn"] for item in site.state()} == before
    assert len(site.pools()) == 2
    assert "Stack dev: no change." in site.up()[1]


@pytest.mark.long
def test_a_declaration_that_changes_meanwhile(gke: Site) -> None:
    """Taken back, the replacement is drained in turn and the old pool stays; changed again, the pool becomes
    what is declared last."""
    _with_work(gke)
    _changed(gke, capacity="on-demand")
    process = gke.start()
    _until(process, "research/train")
    _killed(process)
    (new,) = gke.pools() - {"system", "cpu"}

    _changed(gke, capacity="spot")
    gke.api.nodes["n1"]["spec"] = {}
    gke.api.nodes["n2"] = {
        "metadata": {"name": "n2", "labels": {"cloud.google.com/gke-nodepool": new}},
        "spec": {},
    }
    gke.api.add_pod("web-again", "n2", restart="Always", owner="ReplicaSet")
    status, out = gke.up()
    assert status == 0, out
    assert gke.api.evicted == ["web", "web-again"]
    assert gke.autoscaled() == {"cpu": True}

    gke.api.pods.clear()
    gke.api.add_pod("train", "n1")
    _changed(gke, capacity="on-demand")
    process = gke.start()
    _until(process, "research/train")
    _killed(process)
    del gke.api.pods["train"]
    _changed(gke, capacity="preemptible")
    status, out = gke.up()
    assert status == 0, out
    assert "Stack dev: no change." in gke.up()[1]
    (last,) = gke.pools() - {"system"}
    assert last not in ("cpu", new)


@pytest.mark.long
def test_a_pool_that_cannot_be_created(gke: Site) -> None:
    """The cloud's message, the cause and the next command; the work stays where it is. The next update
    continues."""
    _with_work(gke)
    message = (
        "googleapi: Error 403: Insufficient regional quota to satisfy request: resource CPUS., forbidden"
    )
    target = "create gcp:container/nodePool:NodePool train-cpu.next"
    fault = gke.store.ask(InjectedFault(API_ERROR, target, details={"message": message}))
    _changed(gke, capacity="on-demand")
    status, out = gke.up()
    assert status == 1, out
    assert message in out
    assert "A quota is too low. `" in out
    assert "Continue with: " in out
    assert gke.api.nodes["n1"]["spec"] == {}
    gke.store.lift(fault)
    gke.api.pods.clear()
    status, out = gke.up()
    assert status == 0, out
    assert "cpu" not in gke.pools()


@pytest.mark.long
def test_a_creation_that_was_not_recorded(gke: Site) -> None:
    """What the cloud has is imported, and what it does not have is created."""
    assert gke.up()[0] == 0
    (file,) = gke.terminal.root.parent.glob("state/.pulumi/stacks/*/dev.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    latest = document["checkpoint"]["latest"]
    (created,) = [item for item in latest["resources"] if item["urn"].endswith("NodePool::train-cpu")][1:]
    latest["resources"].remove(created)
    del created["id"], created["outputs"]
    absent = {**created, "urn": f"{created['urn']}-2", "inputs": {**created["inputs"], "name": "cpu-2"}}
    latest["pending_operations"] = [
        {"resource": resource, "type": "creating"} for resource in (created, absent)
    ]
    file.write_text(json.dumps(document), encoding="utf-8")
    status, out = gke.up()
    assert status == 0, out
    assert "interrupted while it created train-cpu; the cloud has it." in out
    assert "interrupted before it created train-cpu-2." in out
    assert "created: " not in out
    assert "pending_operations" not in gke.terminal.run("pulumi stack export --stack dev")
    assert "Stack dev: no change." in gke.up()[1]
