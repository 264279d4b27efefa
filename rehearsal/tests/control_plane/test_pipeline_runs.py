"""The stories' compiled pipelines on Argo's real controller, with the steps' own code, on node pools that
grow from zero, lose their nodes and go back to zero."""

import re
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from kfp import compiler, dsl

from components.addons.pipeline_retries import CONFIG, retrying
from ebbtide.autoscaler.nodes import NodePool
from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import NodeTaint
from ebbtide.placement.derive import profile
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.installed import install_definitions
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.control_plane.processes import Processes
from ebbtide_rehearsal.control_plane.stages import RUNS
from ebbtide_rehearsal.pipelines.workflow import SERVICE_ACCOUNT, read, workflow
from ebbtide_rehearsal.scenarios.argo import WORKFLOWS, start
from ebbtide_rehearsal.stage import inventory
from rehearsal.tests.control_plane.argo import GROUP, controllers
from rehearsal.tests.control_plane.cluster import Object, namespace, wait
from rehearsal.tests.control_plane.commands import Ebbtide
from rehearsal.tests.control_plane.node_pools import Running, running, work_pool
from tests.examples.workloads import EXAMPLES, module
from tests.repository import declaration

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

STOCK: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": CONFIG},
    "data": {
        "workflowDefaults": "spec: {templateDefaults: {retryStrategy: {limit: '2', retryPolicy: OnError}}}"
    },
}
"""The retry strategy of Kubeflow Pipelines 2.17.0."""

NOTHING: Final[Object] = {
    "metadata": {"name": "nothing"},
    "spec": {"entrypoint": "none", "templates": [{"name": "none", "dag": {"tasks": []}}]},
}
"""A Workflow without tasks."""


class Pipelines:
    """A namespace with Argo's controller, and the node pools of a story.

    Attributes:
        cloud: the node pools.
        namespace: where runs are.
    """

    def __init__(self, cloud: Running, name: str) -> None:
        self.cloud, self.namespace = cloud, name

    def submit(self, pipeline: Any, *, speed: float = 1, **arguments: Any) -> str:
        """Compile a pipeline and start a run of it, with shorter waits at a speed; return the run's name."""
        file = self.cloud.directory / "pipeline.yaml"
        compiler.Compiler().compile(pipeline, str(file))
        made = workflow(read(file.read_text()), arguments, {RUNS: "process"}, speed=speed)
        return self.cloud.api.create(f"{GROUP}/{self.namespace}/workflows", made)["metadata"]["name"]

    def ended(self, run: str, *, seconds: float) -> Object:
        """Return a run once it has ended."""
        return wait(
            lambda: self.cloud.api.get(f"{GROUP}/{self.namespace}/workflows/{run}"),
            lambda workflow: bool(workflow.get("status", {}).get("finishedAt")),
            seconds=seconds,
        )

    def pods(self, run: str) -> dict[str, list[Object]]:
        """Return the pods of a run by the path of their task below the root, drivers included."""
        pods: dict[str, list[Object]] = {}
        for pod in self.cloud.api.items(f"/api/v1/namespaces/{self.namespace}/pods"):
            # Every graph and step has a number of its own for each attempt.
            name = re.sub(r"\(\d+\)", "", pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"])
            task = name.removeprefix(f"{run}.").removeprefix("root.").removesuffix(".executor")
            pods.setdefault(task, []).append(pod)
        return pods

    def pool(self, pod: Object) -> str:
        """Return the node pool that a pod ran on: its node may be gone."""
        name: str = pod["spec"]["nodeName"]
        (event,) = [
            event for event in self.cloud.store.events(kind="node-added") if event.facts["node"] == name
        ][-1:]
        return str(event.facts["pool"])


def _pools(story: str) -> list[NodePool]:
    """The declared pools of a story, and an untainted one: drivers tolerate nothing."""
    cluster = declare(declaration(EXAMPLES / story / f"Pulumi.{story}.yaml"))
    made = [
        work_pool(
            pool.name,
            machine=pool.machine,
            capacity=pool.capacity,
            labels={**pool.labels, "cloud.google.com/gke-nodepool": pool.name},
            taints=tuple(NodeTaint(taint.key, taint.value, taint.effect) for taint in pool.taints),
            allocatable={"cpu": f"{pool.cpu_m}m", "memory": f"{pool.memory_mib}Mi"},
            accelerator=(pool.accelerator.type, pool.accelerator.count) if pool.accelerator else None,
            accelerator_resource=pool.accelerator.resource if pool.accelerator else "",
            driver_installed=True,
            maximum=pool.max_nodes,
        )
        for pool in profile(cluster).pools
        if pool.role != "system"
    ]
    plain = {"cloud.google.com/gke-nodepool": "default-pool"}
    return [*made, work_pool("default-pool", labels=plain, taints=(), capacity="on-demand", minimum=1)]


@contextmanager
def pipelines(
    control_plane: ControlPlane, tools: ControlPlaneTools, directory: Path, story: str
) -> Generator[Pipelines]:
    """The node pools of a story, and Argo's controller with our retries, in a namespace of their own."""
    api: Api = control_plane.api
    install_definitions(api, tools.path("argo-crds"), "argoproj.io_*.yaml")
    name = namespace(api, f"{story}-{uuid.uuid4().hex[:6]}")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SERVICE_ACCOUNT}}
    api.create(f"/api/v1/namespaces/{name}/serviceaccounts", account)
    configured = {name: retrying("disruptions")(STOCK)}
    with (
        running(control_plane, directory, *_pools(story)) as cloud,
        controllers(control_plane, tools, directory, configured),
    ):
        yield Pipelines(cloud, name)


def _nodes(run: Object) -> dict[str, str]:
    """The phases of a run's nodes, by their display names."""
    return {node["displayName"]: node["phase"] for node in run["status"]["nodes"].values()}


def test_tails(control_plane: ControlPlane, argo_tools: ControlPlaneTools, tmp_path: Path) -> None:
    """The other branch requests no GPU, and a soft placement leaves the preemptible pool at zero."""
    with pipelines(control_plane, argo_tools, tmp_path, "preemptible-pipelines") as on:
        run = on.submit(module("preemptible-pipelines", "pipeline").coin_flip, seed=5)
        ended = on.ended(run, seconds=600)
        assert ended["status"]["phase"] == "Succeeded", _nodes(ended)
        assert "condition-branches-1.condition-3.say" in on.pods(run)
        assert "It was tails." in on.cloud.messages("pod-log")
        assert {event.facts["pool"] for event in on.cloud.store.events(kind="node-added")} == {"default-pool"}


def test_training_goes_on(control_plane: ControlPlane, argo_tools: ControlPlaneTools, tmp_path: Path) -> None:
    """The training step is preempted with and without notice, runs again each time from its latest
    checkpoint, and the step after it runs once; the copy is not repeated."""
    with pipelines(control_plane, argo_tools, tmp_path, "checkpointed-training") as on:
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "shared"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        on.cloud.api.create(f"/api/v1/namespaces/{on.namespace}/persistentvolumeclaims", claim)
        pipeline = module("checkpointed-training", "pipeline").checkpointed_training
        story = EXAMPLES / "checkpointed-training"
        run = on.submit(
            pipeline,
            initial=str(story / "initial"),
            data=str(story / "data"),
            steps=60_000_000,
            every=300_000,
        )

        def begun() -> list[int]:
            return [
                int(line.split()[4]) for line in on.cloud.messages("pod-log") if line.startswith("Going on")
            ]

        for attempt, graceful in enumerate((True, False), start=1):
            wait(begun, lambda steps: len(steps) == attempt)  # noqa: B023 - at once
            (node,) = on.cloud.nodes("preemptible-gpu-pool")
            wait(lambda: None, lambda _: _saved(on.cloud.directory) > begun()[-1])
            on.cloud.reclaim("preemptible-gpu-pool", count=1, graceful=graceful)
            wait(lambda: on.cloud.nodes("preemptible-gpu-pool"), lambda names: node not in names)  # noqa: B023
        ended = on.ended(run, seconds=300)
        assert ended["status"]["phase"] == "Succeeded", _nodes(ended)
        first, second, third = begun()
        assert first == 0 < second < third
        pods = on.pods(run)
        assert {on.pool(pod) for pod in pods["train"]} == {"preemptible-gpu-pool"}
        assert len(pods["copydata"]) == 1
        (trained,) = [pod for pod in pods["train"] if pod["status"]["phase"] == "Succeeded"]
        main = next(container for container in trained["spec"]["containers"] if container["name"] == "main")
        assert main["resources"]["limits"] == {"memory": "48G", "nvidia.com/gpu": "4"}
        assert trained["metadata"]["labels"]["step"] == "train"
        assert any("from the line." in line for line in on.cloud.messages("pod-log"))
        wait(lambda: on.cloud.nodes("preemptible-gpu-pool"), lambda names: not names)


@dsl.component(base_image="python:3.12")
def leave(code: int) -> None:
    """Exit with a code."""
    raise SystemExit(code)


@dsl.pipeline(name="left")
def left(code: int) -> None:
    """A step that exits with a code."""
    leave(code=code).set_caching_options(enable_caching=False)


def test_runs_are_followed(
    control_plane: ControlPlane, argo_tools: ControlPlaneTools, tmp_path: Path
) -> None:
    """To their end: status 0 of one that completes; of one that fails status 1, the step's exit code, and its
    logs."""
    story = "aks-spot"
    cluster = profile(declare(declaration(EXAMPLES / story / f"Pulumi.{story}.yaml")))
    ebbtide = Ebbtide(control_plane.plan.kubeconfig, cluster)
    with pipelines(control_plane, argo_tools, tmp_path, story) as on:
        for code in (0, 3):
            run = on.submit(left, code=code)
            followed = ebbtide.start("follow", run, "-n", on.namespace)
            out, errors = followed.communicate(timeout=240)
            lines = out.splitlines()
            assert (followed.returncode, errors) == (min(code, 1), ""), out
            # A step that ends between two looks is never seen running.
            assert any(line.startswith(("starting", "running")) for line in lines), out
            if code == 0:
                assert lines[-2].startswith(f"Pipeline run {run} completed after "), out
                continue
            end = next(at for at, line in enumerate(lines) if line.startswith(f"Pipeline run {run} failed"))
            (step,) = on.pods(run)["leave"]
            assert lines[end + 1] == f"  pod {step['metadata']['name']}: exit code 3", out
            assert lines[end + 2].startswith("Logs"), out


def _saved(directory: Path) -> int:
    """The step of the latest checkpoint on any disk."""
    return max((int(file.parent.name.partition("-")[0]) for file in directory.rglob("model.json")), default=0)


def test_the_controller_leaves_nothing(
    control_plane: ControlPlane, argo_tools: ControlPlaneTools, tmp_path: Path
) -> None:
    """Missing parts are installed, with Kubeflow Pipelines' own retries, and all of it is removed."""
    api = control_plane.api
    before = inventory(api)
    with Processes() as processes:
        argo = start(api, control_plane.plan.kubeconfig, argo_tools, processes, tmp_path)
        argo.check()
        config = api.get("/api/v1/namespaces/kubeflow/configmaps/rehearsal-workflow-controller")
        assert "retryPolicy: OnError" in config["data"]["workflowDefaults"]
        api.create(WORKFLOWS, {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", **NOTHING})
        wait(lambda: api.get(f"{WORKFLOWS}/nothing"), lambda workflow: "status" in workflow)
        argo.remove()
        assert not argo.process.running
    assert inventory(api) == before
