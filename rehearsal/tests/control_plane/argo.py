"""Argo's real workflow controller, and a fake kubelet for its pods."""

import copy
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ebbtide.clients.kubernetes import Api
from ebbtide.values.paths import Object
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.control_plane.processes import Processes
from ebbtide_rehearsal.control_plane.stages import RUNS

NODES = "rehearsal.ebbtide.dev/nodes"
"""A label of nodes, by which a workflow's pods find theirs."""
GROUP = "/apis/argoproj.io/v1alpha1/namespaces"
NODE_ID = "workflows.argoproj.io/node-id"
WORKFLOW = "workflows.argoproj.io/workflow"
_REPORTED = "workflows.argoproj.io/report-outputs-completed"
_ENVIRONMENT = {
    "LEADER_ELECTION_DISABLE": "true",
    # Left out, the controller waits 10 s each before it looks again and before it misses a pod.
    "DEFAULT_REQUEUE_TIME": "1s",
    "RECENTLY_STARTED_POD_DURATION": "2s",
}


@contextmanager
def controllers(
    control_plane: ControlPlane, tools: ControlPlaneTools, directory: Path, configured: dict[str, Object]
) -> Generator[None]:
    """A controller for each namespace, on the same API server.

    Args:
        control_plane: where.
        tools: with `workflow-controller`.
        directory: for what they say.
        configured: each namespace's ConfigMap.
    """
    with Processes() as processes:
        for namespace, config in configured.items():
            made = copy.deepcopy(config)
            made["metadata"] = {"name": config["metadata"]["name"], "namespace": namespace}
            # Each would serve its metrics on the same port of this machine.
            made["data"]["metricsConfig"] = "enabled: false\n"  # without its end, it is taken for a word
            control_plane.api.create(f"/api/v1/namespaces/{namespace}/configmaps", made)
            command = [
                tools.path("workflow-controller"),
                f"--kubeconfig={control_plane.plan.kubeconfig}",
                "--namespaced",
                f"--namespace={namespace}",
                f"--configmap={config['metadata']['name']}",
                "--executor-image=quay.io/argoproj/argoexec:v4.0.5",
            ]
            log = directory / f"{namespace}.log"
            processes.start(namespace, command, log=log, directory=directory, environment=_ENVIRONMENT)
        yield


def workflow(name: str, *, limit: int, backoff: int, factor: int, nodes: str) -> Object:
    """A pipeline of one step with `set_retry`, as Kubeflow Pipelines compiles it: a graph in a graph in a
    graph, and in the innermost a template with a limit and a backoff, and no policy (kubeflow/pipelines,
    test_data/compiled-workflows/pipeline_with_retry.yaml). The drivers are left out: they fail in no way of
    their own."""
    given = {
        "max-count": limit,
        "backoff-duration": backoff,
        "backoff-factor": factor,
        "backoff-max-duration": 3600,
    }
    names = [f"retry-{key}" for key in given]
    passed = [{"name": key, "value": f"{{{{inputs.parameters.{key}}}}}"} for key in names]
    arguments = [{"name": key, "value": str(value)} for key, value in zip(names, given.values(), strict=True)]
    step = {
        "name": "retry-system-container-impl",
        "inputs": {"parameters": [{"name": key} for key in names]},
        "container": {"image": "busybox", "command": ["train"]},
        "retryStrategy": {
            "limit": "{{inputs.parameters.retry-max-count}}",
            "backoff": {
                "duration": "{{inputs.parameters.retry-backoff-duration}}",
                "factor": "{{inputs.parameters.retry-backoff-factor}}",
                "maxDuration": "{{inputs.parameters.retry-backoff-max-duration}}",
            },
        },
    }
    executor = {
        "name": "retry-system-container-executor",
        "inputs": {"parameters": [{"name": key} for key in names]},
        "dag": {"tasks": [_task("executor", step["name"], passed)]},
    }
    root = {"name": "root", "dag": {"tasks": [_task("train", executor["name"], arguments)]}}
    entry = {"name": "entrypoint", "dag": {"tasks": [_task("root", "root", [])]}}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {
            "entrypoint": "entrypoint",
            "podMetadata": {"annotations": {RUNS: "process"}},
            "nodeSelector": {NODES: nodes},
            "templates": [step, executor, root, entry],
        },
    }


def _task(name: str, template: Any, parameters: Sequence[Object]) -> Object:
    return {"name": name, "template": template, "arguments": {"parameters": list(parameters)}}


class Kubelet:
    """Reports of a kubelet, and of the executor in a pod, to the API server."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def begin(self, pod: Object) -> None:
        """Report all containers as running, and that the executor's report will follow."""
        now = _now()
        containers = [_container(item, {"running": {"startedAt": now}}) for item in pod["spec"]["containers"]]
        initial = [_container(item, _terminated(0)) for item in pod["spec"]["initContainers"]]
        self.status(
            pod, phase="Running", startTime=now, containerStatuses=containers, initContainerStatuses=initial
        )
        metadata = pod["metadata"]
        labels = {WORKFLOW: metadata["labels"][WORKFLOW], _REPORTED: "false"}
        result: Object = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "WorkflowTaskResult",
            "metadata": {"name": metadata["annotations"][NODE_ID], "labels": labels},
        }
        self.api.apply(
            f"{GROUP}/{metadata['namespace']}/workflowtaskresults/{result['metadata']['name']}", result
        )

    def end(self, pod: Object, code: int, *, wait: int = 0, why: str = "", **status: Any) -> None:
        """The container ends with an exit code, and so does the executor beside it."""
        states = {"main": _terminated(code, why), "wait": _terminated(wait)}
        containers = [_container(item, states[item["name"]]) for item in pod["spec"]["containers"]]
        if wait == 0:
            self.report(pod)
        phase = "Failed" if code or wait else "Succeeded"
        self.status(pod, phase=phase, containerStatuses=containers, **status)

    def report(self, pod: Object) -> None:
        """Add the executor's report."""
        metadata = pod["metadata"]
        self.api.patch(
            f"{GROUP}/{metadata['namespace']}/workflowtaskresults/{metadata['annotations'][NODE_ID]}",
            {"metadata": {"labels": {_REPORTED: "true"}}},
        )

    def status(self, pod: Object, **status: Any) -> None:
        """Write a pod's status."""
        self.api.patch(f"{path(pod)}/status", {"status": status})


def path(pod: Object) -> str:
    """A pod's."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def disruption(reason: str) -> list[Object]:
    """The condition of a pod that is ended for no fault of its own."""
    return [{"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": _now()}]


def _container(item: Object, state: Object) -> Object:
    fixed: Object = {"imageID": "", "restartCount": 0, "ready": "running" in state}
    return {"name": item["name"], "image": item["image"], "state": state, **fixed}


def _terminated(code: int, why: str = "") -> Object:
    reason = why or ("Error" if code else "Completed")
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": _now(), "finishedAt": _now()}}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
