"""Pods of Argo Workflows: their main container, and the results that Argo's executor reports.

Argo's controller wraps the main container's command in `argoexec emissary`, and adds a container `wait` that
writes a WorkflowTaskResult: first an incomplete one, then the output parameters of the template. In the
rehearsal the kubelet does both. Sources: argo-workflows 4.0.5, workflow/controller/workflowpod.go,
workflow/executor and cmd/argoexec/commands/emissary.go.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide_rehearsal.cloud.nodes.kubelet import End
from ebbtide_rehearsal.cloud.nodes.objects import Object
from ebbtide_rehearsal.control_plane.mounts import inside

MAIN: Final = "main"
SIGNALLED: Final = 137
"""Exit status of the emissary if a signal ends its child process."""

_NODE_ID: Final = "workflows.argoproj.io/node-id"
_WORKFLOW: Final = "workflows.argoproj.io/workflow"
_COMPLETED: Final = "workflows.argoproj.io/report-outputs-completed"
_EMISSARY: Final = "emissary"
_TEMPLATE: Final = "ARGO_TEMPLATE"
_PROGRAMS: Final = {
    "driver": "ebbtide_rehearsal.pipelines.driver",
    "/kfp-launcher/launch": "ebbtide_rehearsal.pipelines.launcher",
}
"""Programs of Kubeflow Pipelines' images, with the modules that replace them."""


def is_step(pod: Object) -> bool:
    """Return whether a pod is a node of a Workflow."""
    return _NODE_ID in part(pod, "metadata", "annotations")


def main_container(pod: Object) -> Object:
    """Return the container of a pod that runs: the main one for a Workflow's pod, else the first."""
    containers = parts(pod, "spec", "containers")
    return next(
        (container for container in containers if is_step(pod) and container["name"] == MAIN), containers[0]
    )


def command_of(pod: Object, command: Sequence[str]) -> list[str]:
    """Return the command that the emissary runs, with Kubeflow Pipelines' own programs replaced."""
    words = list(command)
    if is_step(pod) and _EMISSARY in words[:2]:
        words = words[words.index("--") + 1 :]
        if words and words[0] in _PROGRAMS:
            words[:1] = [sys.executable, "-m", _PROGRAMS[words[0]]]
    return words


def output_directories(pod: Object) -> list[str]:
    """Return the directories in the container for the output parameters of a step."""
    return sorted({str(PurePosixPath(path).parent) for _, path, _ in _outputs(pod)})


def ends(pod: Object, code: int) -> dict[str, End]:
    """Return how the containers of a Workflow's pod end once the main one has ended; empty for other pods."""
    if not is_step(pod):
        return {}
    main = End(SIGNALLED if code < 0 else code)
    return {
        container["name"]: main if container["name"] == MAIN else End(0)
        for container in parts(pod, "spec", "containers")
    }


def announce(api: Api, pod: Object) -> None:
    """Create a step's WorkflowTaskResult, as incomplete."""
    metadata = part(pod, "metadata")
    labels = {_WORKFLOW: text(metadata, "labels", _WORKFLOW), _COMPLETED: "false"}
    result: dict[str, Any] = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTaskResult",
        "metadata": {"name": text(metadata, "annotations", _NODE_ID), "labels": labels},
    }
    api.apply(_result(pod), result)


def report(api: Api, pod: Object, root: Path) -> None:
    """Write the output parameters of a step.

    Args:
        api: API server of the cluster.
        pod: the step's pod, whose main container has ended.
        root: directory that serves as the root of its file system.
    """
    parameters: list[dict[str, str]] = []
    for name, path, default in _outputs(pod):
        file = inside(root, path)
        value = file.read_text(encoding="utf-8") if file.exists() else default
        if value is not None:
            parameters.append({"name": name, "value": value})
    outputs = {"outputs": {"parameters": parameters}} if parameters else {}
    api.patch(_result(pod), {"metadata": {"labels": {_COMPLETED: "true"}}, **outputs})


def _result(pod: Object) -> str:
    metadata = part(pod, "metadata")
    name = text(metadata, "annotations", _NODE_ID)
    return f"/apis/argoproj.io/v1alpha1/namespaces/{text(metadata, 'namespace')}/workflowtaskresults/{name}"


def _outputs(pod: Object) -> list[tuple[str, str, str | None]]:
    """Return name, path and default of each output parameter of a step's template."""
    if not is_step(pod):
        return []
    (first, *_) = parts(pod, "spec", "initContainers")
    (content,) = [
        text(variable, "value") for variable in parts(first, "env") if variable["name"] == _TEMPLATE
    ]
    template: Mapping[str, Any] = json.loads(content)
    return [
        (parameter["name"], text(parameter, "valueFrom", "path"), part(parameter, "valueFrom").get("default"))
        for parameter in parts(template, "outputs", "parameters")
        if text(parameter, "valueFrom", "path")
    ]
