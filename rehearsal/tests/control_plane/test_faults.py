"""Faults between a command that creates work and the API server: at every request, of every kind.

Afterwards no pod waits for what does not exist, and `ebbtide cancel` removes what remains.
"""

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.placement.derive import profile
from ebbtide.work.errors import ClusterError
from ebbtide.work.runs.existing import cancel
from ebbtide.work.submission import CREATED_FOR
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.cluster import namespace, wait
from rehearsal.tests.control_plane.commands import Ebbtide, dev
from rehearsal.tests.control_plane.fault_proxy import ONCE, Fault, FaultProxy

pytestmark = [pytest.mark.rehearsal, pytest.mark.timeout(7200)]

_PLACE = "faulty"
_ON = ("-n", _PLACE, "--image", "python", "--pool", "cpu-spot", "--run-as-user", "1000")
_JOBS = f"/apis/batch/v1/namespaces/{_PLACE}/jobs"
_CORE = f"/api/v1/namespaces/{_PLACE}"
_EXISTING = frozenset({"replacement", "rerun", "cancel"})
"""Commands on an existing Job of two nodes."""


class _User:
    """A user whose commands go through the proxy."""

    def __init__(self, plane: ControlPlane, proxy: FaultProxy, tools: ControlPlaneTools, files: Path) -> None:
        path = f"{tools.path('kubectl').parent}:{os.environ['PATH']}"
        self._ebbtide = Ebbtide(proxy.kubeconfig(files / "kubeconfig"), profile(dev()[0]), {"PATH": path})
        self.api, self.proxy = plane.api, proxy
        self.keyboard, self.terminal = pty.openpty()
        folder = files / "my_model"
        folder.mkdir()
        (folder / "train.py").write_text("print('trained')")
        code, command = ("--code", str(folder)), ("--", "python", "train.py")
        self._words = {
            "run": ("run", "train", *_ON, *code, *command),
            "nodes": ("run", "train", *_ON, *code, "--nodes", "2", *command),
            "replacement": ("run", "train", *_ON, *code, "--nodes", "2", "--replace", *command),
            "sweep": ("sweep", "train", *_ON, *code, "--set", "lr=1,2", *command),
            "job": ("job", "train", *_ON, "--nodes", "2", "--submit", "--", "true"),
            "notebook": ("notebook", "train", *_ON, *code),
            "shell": ("shell", "train", *_ON, *code),
            "reader": ("cp", "train:", str(files / "copied"), *_ON, "--volume", "outputs"),
            "rerun": ("rerun", "train", "-n", _PLACE),
            "cancel": ("cancel", "train", "-n", _PLACE),
        }

    def start(self, case: str) -> subprocess.Popen[str]:
        """Start a command, without a fault."""
        self.proxy.inject()
        terminal = self.terminal if case == "shell" else None
        return self._ebbtide.start(*self._words[case], stdin=terminal)

    def run(self, case: str, fault: Fault | None = None, at: int = -1) -> tuple[int, str]:
        """Run a command until it has created its work, or has ended; return its exit status, or 0, and its
        output."""
        started = self.start(case)
        self.proxy.inject(fault, at, started.kill)
        stream = started.stderr if case == "reader" else started.stdout
        assert stream is not None
        output = ""
        for line in stream:
            output += line
            if " is created" in line or " reads its outputs" in line:
                break
        else:
            out, errors = started.communicate(timeout=300)
            return started.returncode, output + out + errors
        started.kill()
        started.communicate()
        return 0, output

    def prepare(self, case: str) -> str:
        """Empty the namespace, create the Job that a command needs, and return its UID."""
        for path in (_JOBS, f"{_CORE}/pods", f"{_CORE}/configmaps", f"{_CORE}/services"):
            for item in self.api.items(path):
                if item["metadata"]["name"] != "kube-root-ca.crt":
                    path_of = f"{path}/{item['metadata']['name']}"
                    self.api.delete(path_of, gracePeriodSeconds=0, propagationPolicy="Background")
        wait(self.left, lambda left: not left)
        if case not in _EXISTING:
            return ""
        assert self.run("nodes")[0] == 0
        return self.api.get(f"{_JOBS}/train")["metadata"]["uid"]

    def left(self) -> list[str]:
        """Return paths of the namespace's objects."""
        paths = (_JOBS, f"{_CORE}/pods", f"{_CORE}/configmaps", f"{_CORE}/services")
        names = [f"{path}/{item['metadata']['name']}" for path in paths for item in self.api.items(path)]
        return [name for name in names if not name.endswith("/kube-root-ca.crt")]

    def waits_in_vain(self) -> list[str]:
        """Return what pods of the namespace's Jobs need, and does not exist."""
        existing = self.left()
        needed: list[str] = []
        for job in self.api.items(_JOBS):
            if "deletionTimestamp" in job["metadata"]:
                continue
            pod = part(job, "spec", "template", "spec")
            maps = [text(volume, "configMap", "name") for volume in parts(pod, "volumes")]
            needed += [f"{_CORE}/configmaps/{name}" for name in maps if name]
            needed += [f"{_CORE}/services/{name}" for name in [text(pod, "subdomain")] if name]
        return [path for path in needed if path not in existing]

    def requests(self, case: str) -> int:
        """Return the number of requests of a command up to its last change."""
        self.prepare(case)
        status, output = self.run(case)
        assert status == 0, output
        writes = [number for number, line in enumerate(self.proxy.requests) if not line.startswith("GET ")]
        return writes[-1] + 1

    def remove_remains(self) -> None:
        """Remove all with `ebbtide cancel` alone."""
        for name in ("train", "train-2", *(item["metadata"]["name"] for item in self.api.items(_JOBS))):
            with suppress(ClusterError):
                cancel(self.api, name, _PLACE)
        wait(self.left, lambda left: not left)


@pytest.fixture(scope="module")
def user(
    control_plane: ControlPlane, tools: ControlPlaneTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[_User]:
    """A user of a namespace on a cluster without nodes."""
    files = tmp_path_factory.mktemp("faults")
    namespace(control_plane.api, _PLACE)
    proxy = FaultProxy(control_plane, Store(files / "store"), control_plane.plan.name)
    made = _User(control_plane, proxy, tools, files)
    yield made
    proxy.stop()
    for descriptor in (made.keyboard, made.terminal):
        os.close(descriptor)


def _check(user: _User, case: str, fault: Fault, at: int) -> None:
    """Run a command with a fault, and check what it leaves."""
    uid = user.prepare(case)
    status, output = user.run(case, fault, at)
    title = f"{case}, {at}: {fault}: {user.proxy.requests[at : at + 1]}: {output}"
    assert "Traceback" not in output, title
    assert user.waits_in_vain() == [], title
    # With its code stored, a Job stands: a later creation makes it the owner.
    met = user.proxy.requests[at : at + 1]  # none if the command has polled less often this time
    stands = fault is Fault.GONE and any(line.startswith("PATCH ") for line in met)
    ends = bool(met) and fault in (Fault.KILLED, Fault.KILLED_AFTER, Fault.GONE)
    assert (status == 0) is (stands or not ends), title
    unowned = user.api.items(f"{_CORE}/configmaps", labelSelector=CREATED_FOR)
    if status == 0 and not stands:
        assert unowned == [], title
    if status == 2:
        assert " cancel train" in output or not (unowned or (user.left() and not uid)), title
    if uid and not any(line.startswith("DELETE ") for line in user.proxy.requests):
        assert user.api.get(f"{_JOBS}/train")["metadata"]["uid"] == uid, title
    user.remove_remains()


@pytest.mark.parametrize("case", ["replacement", "cancel"])
def test_a_fault_at_each_request(user: _User, case: str) -> None:
    """Each request of a replacement and of a cancellation meets one fault, the kinds in turn."""
    for at in range(user.requests(case)):
        _check(user, case, ONCE[at % len(ONCE)], at)


@pytest.mark.long
@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize(
    "case",
    ["run", "nodes", "replacement", "sweep", "job", "notebook", "shell", "reader", "rerun", "cancel"],
)
def test_every_fault_at_every_request(user: _User, case: str, fault: Fault) -> None:
    """Each request of each command that creates or deletes work meets every fault."""
    for at in range(user.requests(case)):
        _check(user, case, fault, at)
