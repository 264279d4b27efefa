"""Namespaces for pods that run as processes of this machine, and the command line in a terminal."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

from ebbtide.clients.kubernetes import Api
from ebbtide.placement import Profile
from ebbtide.placement.derive import ACCOUNT, CLAIM
from ebbtide.work.runs.code import DIRECTORY
from ebbtide.work.runs.run import MANAGED_BY
from ebbtide_rehearsal.control_plane.stages import RUNS
from rehearsal.tests.control_plane.cluster import Object, namespace, wait
from rehearsal.tests.control_plane.commands import shell_status
from tests.repository import ROOT


def process_namespace(api: Api, name: str, **labels: str) -> str:
    """Create a namespace, and wait until pods with code run as processes there: a new policy takes the API
    server some seconds."""
    namespace(api, name, **labels)
    security: Object = {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "probe", "image": "probe", "workingDir": DIRECTORY, "securityContext": security}
    pod: Object = {
        "metadata": {"name": "probe", "labels": {MANAGED_BY: "ebbtide"}},
        "spec": {"containers": [container]},
    }
    wait(lambda: annotations_of(api, name, pod), lambda found: RUNS in found)
    return name


def annotations_of(api: Api, place: str, pod: Object) -> Object:
    """Return the annotations that a new pod would have."""
    body = {"apiVersion": "v1", "kind": "Pod", **pod}
    made = api.create(f"/api/v1/namespaces/{place}/pods", body, dryRun="All")
    return made["metadata"].get("annotations") or {}


def team_volume(api: Api, name: str) -> None:
    """Create the claim and the service account of a team in its namespace, as a stack does."""
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    path = f"/api/v1/namespaces/{name}"
    for kind, plural, body in (
        ("PersistentVolumeClaim", "persistentvolumeclaims", {"metadata": {"name": CLAIM}, "spec": claim}),
        ("ServiceAccount", "serviceaccounts", {"metadata": {"name": ACCOUNT}}),
    ):
        api.create(f"{path}/{plural}", {"apiVersion": "v1", "kind": kind, **body})


class Terminal:
    """A terminal in which the command line runs."""

    def __init__(self, kubectl: Path, kubeconfig: Path, profile: Profile | None, *words: str) -> None:
        """Start a command.

        Args:
            kubectl: the program.
            kubeconfig: the user's kubeconfig.
            profile: the cluster's profile; None for that of the namespace.
            *words: the command's words.
        """
        self._outer, inner = pty.openpty()
        self.output: str = ""
        environment = {
            "PATH": f"{kubectl.parent}:{os.environ['PATH']}",
            "HOME": str(kubeconfig.parent),
            "KUBECONFIG": str(kubeconfig),
            **({"EBBTIDE_PROFILE": profile.json()} if profile else {}),
            "COLUMNS": "200",
            "TERM": "dumb",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ebbtide", *words],
            cwd=ROOT,
            env=environment,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        os.close(inner)

    def write(self, text: str) -> None:
        """Type a text."""
        os.write(self._outer, text.encode())

    def read(self, words: str, *, seconds: float = 300) -> str:
        """Read until the output has the words, and return all of it; fail on timeout."""
        deadline = time.monotonic() + seconds
        while words not in self.output:
            ready = select.select([self._outer], [], [], max(0.0, deadline - time.monotonic()))[0]
            assert ready, self.output
            try:
                self.output += os.read(self._outer, 4096).decode(errors="replace")
            except OSError:  # the command has ended
                assert words in self.output, self.output
        return self.output

    def end(self) -> int:
        """Return the exit status once the command has ended."""
        status = self.process.wait(300)
        os.close(self._outer)
        return shell_status(status)
