"""Namespaces whose pods all run as processes of this machine, and the command line in a terminal."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from ebbtide.kubernetes_api import Api
from ebbtide.placement import Profile
from ebbtide_rehearsal.control_plane import RUNS
from rehearsal.tests.control_plane.cluster import Object, namespace, wait
from tests.repository import ROOT

_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_NAME: Final = "pods-as-processes"
_POLICY: Final[Object] = {
    "matchConstraints": {
        "resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
        ]
    },
    "reinvocationPolicy": "Never",
    "mutations": [
        {
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {
                "expression": f'Object{{metadata: Object.metadata{{annotations: {{"{RUNS}": "process"}}}}}}'
            },
        }
    ],
}
_BINDING: Final[Object] = {
    "policyName": _NAME,
    "matchResources": {"namespaceSelector": {"matchLabels": {_NAME: "yes"}}},
}


def install_policy(api: Api) -> None:
    """Install the policy that adds the annotation to pods of `process_namespace`."""
    for kind, plural, spec in (
        ("MutatingAdmissionPolicy", "mutatingadmissionpolicies", _POLICY),
        ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", _BINDING),
    ):
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "spec": spec}
        api.apply(f"{_ADMISSION}/{plural}/{_NAME}", {**body, "metadata": {"name": _NAME}})


def process_namespace(api: Api, name: str, **labels: str) -> str:
    """Create a namespace whose pods run as processes, and wait until the policy applies."""
    namespace(api, name, **{_NAME: "yes"}, **labels)
    security: Object = {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    containers = [{"name": "probe", "image": "probe", "securityContext": security}]
    pod: Object = {"metadata": {"name": "probe"}, "spec": {"containers": containers}}

    def annotations() -> Object:
        path = f"/api/v1/namespaces/{name}/pods"
        made = api.create(path, {"apiVersion": "v1", "kind": "Pod", **pod}, dryRun="All")
        return made["metadata"].get("annotations") or {}

    wait(annotations, lambda found: RUNS in found)
    return name


class Terminal:
    """A terminal in which the command line runs."""

    def __init__(self, kubectl: Path, kubeconfig: Path, profile: Profile, *words: str) -> None:
        """Start a command.

        Args:
            kubectl: the program.
            kubeconfig: the user's kubeconfig.
            profile: the cluster's profile.
            *words: the command's words.
        """
        self._outer, inner = pty.openpty()
        self.output: str = ""
        environment = {
            "PATH": f"{kubectl.parent}:{os.environ['PATH']}",
            "HOME": "/nonexistent",
            "KUBECONFIG": str(kubeconfig),
            "EBBTIDE_PROFILE": profile.json(),
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

    def read(self, words: str, *, seconds: float = 90) -> str:
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
        status = self.process.wait(60)
        os.close(self._outer)
        return status
