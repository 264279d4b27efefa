"""The real kubectl and helm, on objects that stand in files."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from ebbtide_rehearsal.control_plane import ControlPlane, ControlPlaneTools

Object = dict[str, Any]


def run(*command: str | Path, stdin: str = "") -> str:
    """Return the output of a program; fail the test with its error output if it fails."""
    ended = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


class Kubectl:
    """kubectl on a control plane, as its administrator."""

    def __init__(self, tools: ControlPlaneTools, control_plane: ControlPlane) -> None:
        self._command = (tools.path("kubectl"), "--kubeconfig", control_plane.plan.kubeconfig)

    def __call__(self, *arguments: str, objects: Iterable[Object] = ()) -> str:
        """Run it; objects go to its standard input."""
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return run(*self._command, *arguments, stdin=manifest)

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
