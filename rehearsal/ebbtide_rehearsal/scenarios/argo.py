"""Argo's workflow controller for a rehearsal's cluster, with its prerequisites from Kubeflow Pipelines.

A cluster with Kubeflow Pipelines has its own ConfigMap with the retries, CRDs, namespace and service account.
Missing prerequisites are installed as in Kubeflow Pipelines 2.17.0, and removed at the end.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.values.paths import Object
from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.cloud.existing import NAME, SPEC_PATCH
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.control_plane.processes import Process, Processes
from ebbtide_rehearsal.pipelines.workflow import SERVICE_ACCOUNT

TOOLS: Final = ("argo-crds", "workflow-controller")
NAMESPACE: Final = "kubeflow"
WORKFLOWS: Final = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/workflows"
_KINDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CONFIG: Final = "workflow-controller-configmap"
_OWN_CONFIG: Final = "rehearsal-workflow-controller"
_STOCK: Final = {
    # Argo parses a value without a trailing newline as a word.
    "workflowDefaults": "spec: {templateDefaults: {retryStrategy: {limit: '2', retryPolicy: OnError}}}\n"
}
"""The retry strategy of Kubeflow Pipelines 2.17.0."""
_ENVIRONMENT: Final = {
    "LEADER_ELECTION_DISABLE": "true",
    "TRANSIENT_ERROR_PATTERN": (
        "(?i)(imminent node shutdown|node is shutting down|preempt|evict|spot|pod deleted)"
    ),
    # The defaults delay each requeue and each check for a missing pod by 10 s.
    "DEFAULT_REQUEUE_TIME": "1s",
    "RECENTLY_STARTED_POD_DURATION": "2s",
}
_SECONDS: Final = 60


@dataclass(slots=True)
class Argo:
    """A running controller.

    Attributes:
        processes: its process group.
        made: paths of the installed prerequisites, in order.
    """

    api: Api
    processes: Processes
    process: Process
    created: list[str] = field(default_factory=list[str])

    def check(self) -> None:
        """Raise an error if the controller has ended.

        Raises:
            ControlPlaneError: with the last lines of its log.
        """
        if not self.process.running:
            raise self.process.ended()

    def remove(self) -> None:
        """Stop the controller and remove its prerequisites.

        Raises:
            RehearsalError: something of it stays.
        """
        for workflow in self.api.items(WORKFLOWS):
            self.api.delete(f"{WORKFLOWS}/{workflow['metadata']['name']}", propagationPolicy="Foreground")
        self._gone([f"{WORKFLOWS}/{run['metadata']['name']}" for run in self.api.items(WORKFLOWS)])
        self.processes.stop(self.process)
        for path in reversed(self.created):
            self.api.delete(path)
        self._gone(self.created)

    def _gone(self, paths: list[str]) -> None:
        deadline = time.monotonic() + _SECONDS
        while remaining := [path for path in paths if self.api.find(path) is not None]:
            if time.monotonic() > deadline:
                raise RehearsalError(f"{', '.join(remaining)} cannot be removed.")
            time.sleep(0.5)


def start(
    api: Api, kubeconfig: Path, tools: ControlPlaneTools, processes: Processes, directory: Path
) -> Argo:
    """Start the controller of a cluster, with its prerequisites.

    Args:
        kubeconfig: an administrator's kubeconfig.
        tools: with `TOOLS`.
        processes: its process group.
        directory: for its log.
    """
    created = list(_installed(api, tools))
    command = [
        tools.path("workflow-controller"),
        f"--kubeconfig={kubeconfig}",
        "--namespaced",
        f"--namespace={NAMESPACE}",
        f"--configmap={_OWN_CONFIG}",
        f"--executor-image=quay.io/argoproj/argoexec:v{PINS['argo-workflows'].version}",
    ]
    log = directory / "workflow-controller.log"
    process = processes.start(
        "workflow-controller", command, log=log, directory=directory, environment=_ENVIRONMENT
    )
    return Argo(api, processes, process, created)


def spec_patch(api: Api) -> Object:
    """Return the patch that an installed Kubeflow Pipelines merges into the spec of every compiled Workflow;
    empty without one (kubeflow/pipelines 2.17.0, argocompiler/spec_patch.go).
    """
    server = api.find(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}")
    containers: list[Object] = server["spec"]["template"]["spec"]["containers"] if server else []
    values = [
        variable.get("value", "")
        for container in containers
        for variable in container.get("env") or ()
        if variable["name"] == SPEC_PATCH
    ]
    return json.loads(values[0] or "{}") if values else {}


def _installed(api: Api, tools: ControlPlaneTools) -> Iterator[str]:
    """Install missing prerequisites, and yield their paths."""
    for file in sorted(tools.path("argo-crds").glob("argoproj.io_*.yaml")):
        kind: Object = yaml.safe_load(file.read_text(encoding="utf-8"))
        yield from _create_missing(api, _KINDS, kind)
    yield from _create_missing(api, "/api/v1/namespaces", _object("Namespace", NAMESPACE))
    within = f"/api/v1/namespaces/{NAMESPACE}"
    yield from _create_missing(api, f"{within}/serviceaccounts", _object("ServiceAccount", SERVICE_ACCOUNT))
    existing = api.find(f"{within}/configmaps/{_CONFIG}")
    config = _object("ConfigMap", _OWN_CONFIG)
    # Metrics would use a fixed port of this machine.
    config["data"] = {**(existing["data"] if existing else _STOCK), "metricsConfig": "enabled: false\n"}
    yield from _create_missing(api, f"{within}/configmaps", config)


def _object(kind: str, name: str) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def _create_missing(api: Api, collection: str, body: Object) -> Iterator[str]:
    path = f"{collection}/{body['metadata']['name']}"
    if api.find(path) is None:
        api.create(collection, body)
        yield path
