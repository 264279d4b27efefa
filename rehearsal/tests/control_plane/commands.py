"""The real kubectl and helm on objects that stand in files, and Ebbtide's command line on a cluster."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import Profile
from ebbtide.values.paths import Object
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.tools import download
from tests.repository import ROOT, declaration

_DEV = {"gke": ("Pulumi.dev.yaml", "cpu-spot"), "aks": ("Pulumi.dev-aks.yaml", "cpuspot")}


def dev(cloud: str = "gke", **declared: object) -> tuple[Cluster, str]:
    """A development cluster with what else is declared, and the name of its pool of CPUs on spot nodes."""
    stack, pool = _DEV[cloud]
    return declare({**declaration(ROOT / stack), **declared}, default_name="dev"), pool


def run(*command: str | Path, stdin: str = "") -> str:
    """Return the output of a program; fail the test with its error output if it fails."""
    ended = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def shell_status(returncode: int) -> int:
    """Return the exit status that a shell has for a process.

    An interrupt within `exec` of a text, as while a dataclass is made, makes `python -m` end by the signal
    although it was handled (CPython 3.11); a shell has 130 for both.
    """
    return returncode if returncode >= 0 else 128 - returncode


class Kubectl:
    """kubectl on a control plane, as its administrator."""

    def __init__(self, tools: ControlPlaneTools, control_plane: ControlPlane) -> None:
        self._command = (tools.path("kubectl"), "--kubeconfig", control_plane.plan.kubeconfig)

    def __call__(self, *arguments: str, objects: Iterable[Object] = ()) -> str:
        """Run it; objects go to its standard input."""
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return run(*self._command, *arguments, stdin=manifest)

    def tried(self, item: Object, place: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Create an object in a namespace by a server-side dry run, which may be refused."""
        command = [*self._command, "create", "--dry-run=server", "--namespace", place, "-f", "-", *arguments]
        return subprocess.run(command, input=json.dumps(item), capture_output=True, text=True, check=False)

    def apply(self, objects: Iterable[Object]) -> None:
        """Server-side apply, unknown fields refused."""
        self("apply", "--server-side", "--validate=strict", "-f", "-", objects=objects)


def rendered(tools: ControlPlaneTools, values: Object, namespace: str, directory: Path) -> list[Object]:
    """Kueue's chart as it is installed with values."""
    file = directory / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    chart = tools.path("kueue-chart")
    text = run(tools.path("helm"), "template", "kueue", chart, "-n", namespace, "-f", file)
    return [item for item in yaml.safe_load_all(text) if item]


class Ebbtide:
    """The command line, as the user of a kubeconfig."""

    def __init__(
        self, kubeconfig: Path, profile: Profile, environment: Mapping[str, str] | None = None
    ) -> None:
        self._kubeconfig, self._profile, self._environment = kubeconfig, profile, environment or {}

    def start(self, *args: str, stdin: int | None = None) -> subprocess.Popen[str]:
        """Start a command, with the standard input of a file descriptor if there is one."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._kubeconfig.parent),
            "KUBECONFIG": str(self._kubeconfig),
            "EBBTIDE_CACHE": str(download.directory().parent),
            **self._environment,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "ebbtide", *args],
            cwd=ROOT,
            env=environment | {"EBBTIDE_PROFILE": self._profile.json(), "COLUMNS": "80"},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def output(self, *args: str) -> str:
        """Return what a command prints; fail the test with its error output if it fails."""
        started = self.start(*args)
        out, errors = started.communicate(timeout=600)
        assert started.returncode == 0, out + errors
        return out

    def refused(self, *args: str) -> str:
        """Return the error message of a refused command."""
        started = self.start(*args)
        out, error = started.communicate(timeout=300)
        assert (started.returncode, out) == (2, ""), error
        assert "Traceback" not in error
        assert len(error.splitlines()) == 1
        return error.rstrip()
