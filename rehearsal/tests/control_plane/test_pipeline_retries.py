"""Retried steps of a pipeline: Argo's real controller with the settings of Kubeflow Pipelines and of Ebbtide,
and pods that end as in the clouds."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Final, Literal

import pytest

from components.addons.pipeline_retries import CONFIG, retrying, spec_patch
from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.installed import install_definitions
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.argo import (
    GROUP,
    NODE_ID,
    NODES,
    WORKFLOW,
    Kubelet,
    controllers,
    workflow,
)
from rehearsal.tests.control_plane.cluster import Object, namespace, node
from rehearsal.tests.control_plane.endings import (
    LOSSES,
    Ending,
    cannot_report,
    evicted_before_it_began,
    fails,
    out_of_memory,
    shut_down,
    succeeds,
)
from tests.manifests import PIPELINES, upstream

pytestmark = [
    pytest.mark.rehearsal,
    pytest.mark.long,
    pytest.mark.released(PIPELINES),
]

_PATIENCE: Final = 100.0
LOST_BY_STOCK: Final = ("shut_down", "drained", "low_on_resources", "preempted", "lost_while_reporting")


@dataclass(slots=True)
class Run:
    """A pipeline of one step, and what became of it.

    Attributes:
        endings: of the step's pods, one after the other; the last one for all that come after.
        limit: of `set_retry`.
        backoff: seconds, of `set_retry`.
        factor: of `set_retry`.
        starts: when each pod was made, by its uid.
        begun: the pods whose containers run.
        ended: the pods that have come to their ending.
        phase: how the pipeline ended; empty until then.
        messages: of its steps and graphs.
    """

    endings: Sequence[Ending]
    limit: int = 2
    backoff: int = 0
    factor: int = 1
    starts: dict[str, datetime] = field(default_factory=dict[str, datetime])
    begun: set[str] = field(default_factory=set[str])
    ended: set[str] = field(default_factory=set[str])
    phase: str = ""
    messages: list[str] = field(default_factory=list[str])

    def turn(self, kubelet: Kubelet, pod: Object, phase: str) -> None:
        """Play a pod's kubelet for a moment; `phase` is what the controller has recorded for it."""
        uid = pod["metadata"]["uid"]
        if uid in self.ended or not pod["spec"].get("nodeName"):
            return
        if uid not in self.starts:
            self.starts[uid] = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
        ending = self.endings[min(list(self.starts).index(uid), len(self.endings) - 1)]
        if uid not in self.begun and ending is not evicted_before_it_began:
            kubelet.begin(pod)
            self.begun.add(uid)
            return
        if uid in self.begun and phase != "Running":
            return
        self.ended.add(uid)
        ending(kubelet, pod)

    @property
    def outcome(self) -> tuple[int, str]:
        """Return the number of the step's pods, and the phase in which the pipeline ended."""
        return len(self.starts), self.phase


Played = dict[str, dict[str, Run]]
Configured = Literal["stock", "disruptions", "any", "existing"]


def _runs() -> dict[str, Run]:
    """The runs of each configuration."""
    return {
        **{ending.__name__: Run([ending, succeeds]) for ending in LOSSES},
        "fails": Run([fails]),
        "out_of_memory": Run([out_of_memory]),
        "fails_once": Run([fails, succeeds]),
        "reports_never": Run([cannot_report], limit=0),
        "always_shut_down": Run([shut_down], limit=1),
        "not_begun": Run([evicted_before_it_began, succeeds], limit=0),
        "waits": Run([shut_down, shut_down, shut_down, succeeds], limit=3, backoff=3, factor=2),
    }


@pytest.fixture(scope="module")
def played(
    control_plane: ControlPlane, argo_tools: ControlPlaneTools, tmp_path_factory: pytest.TempPathFactory
) -> Played:
    """Every pipeline to its end, by configuration and by what happened to it: all at once."""
    api = control_plane.api
    stock = next(item for item in upstream(PIPELINES) if item["metadata"]["name"] == CONFIG)
    configured = {
        "stock": stock,
        "disruptions": retrying("disruptions")(stock),
        "any": retrying("any")(stock),
        # An installation that is not ours: stock, and its API server patches each workflow that it compiles.
        "existing": stock,
    }
    install_definitions(api, argo_tools.path("argo-crds"), "argoproj.io_*.yaml")
    node(api, "steady", labels={NODES: "steady"})
    runs = {name: _runs() for name in configured}
    for name in configured:
        namespace(api, name)
        node(api, f"short-lived-{name}", labels={NODES: name})
    with controllers(control_plane, argo_tools, tmp_path_factory.mktemp("argo"), configured):
        for name, of in runs.items():
            for what, run in of.items():
                nodes = name if what == "node_gone" else "steady"
                made = workflow(
                    what.replace("_", "-"),
                    limit=run.limit,
                    backoff=run.backoff,
                    factor=run.factor,
                    nodes=nodes,
                )
                if name == "existing":
                    made["spec"] |= json.loads(spec_patch("disruptions"))
                api.create(f"{GROUP}/{name}/workflows", made)
        _play(api, runs)
    return runs


def _play(api: Api, runs: Played) -> None:
    kubelet = Kubelet(api)
    deadline = time.monotonic() + _PATIENCE
    endless = runs["stock"]["reports_never"]  # it comes to an end after 27 pods
    awaited = [run for of in runs.values() for run in of.values() if run is not endless]
    while time.monotonic() < deadline and not all(run.phase for run in awaited):
        for name, of in runs.items():
            phases: dict[str, str] = {}
            for item in api.items(f"{GROUP}/{name}/workflows"):
                status = item.get("status", {})
                nodes: dict[str, Object] = status.get("nodes", {})
                phases |= {key: it["phase"] for key, it in nodes.items()}
                run = of[_name(item["metadata"]["name"])]
                run.messages = [
                    f"{it['displayName']} {it['phase']}: {it.get('message', '')}" for it in nodes.values()
                ]
                if status.get("finishedAt"):
                    run.phase = status["phase"]
            for pod in api.items(f"/api/v1/namespaces/{name}/pods"):
                metadata = pod["metadata"]
                run = of[_name(metadata["labels"][WORKFLOW])]
                run.turn(kubelet, pod, phases.get(metadata["annotations"][NODE_ID], ""))
        time.sleep(0.5)


def _name(workflow_name: str) -> str:
    return workflow_name.replace("-", "_")


def _expected() -> Iterator[tuple[Configured, str, tuple[int, str]]]:
    """Yield the outcome of each run: Kubeflow Pipelines 2.17.0 as it ships retries no pod that says how it
    ended, nor what failed by itself or had not even begun; ours runs a disrupted step once more, also without
    retries if its pod had not begun, a failed one under `any` alone, and no enclosing graph."""
    for what in (*LOST_BY_STOCK, "fails_once", "not_begun"):
        yield "stock", what, (1, "Failed")
    for retry in ("disruptions", "any", "existing"):
        for ending in LOSSES:
            yield retry, ending.__name__, (2, "Succeeded")
        # With its own limit, and not with that of every graph around it once more.
        yield retry, "always_shut_down", (2, "Failed")
        yield retry, "reports_never", (1, "Error")
        # Three retries where every workflow inherits two.
        yield retry, "waits", (4, "Succeeded")
        fails = {"fails": 3, "out_of_memory": 3} if retry == "any" else {"fails": 1, "out_of_memory": 1}
        for what, pods in fails.items():
            yield retry, what, (pods, "Failed")
        yield retry, "fails_once", (2, "Succeeded") if retry == "any" else (1, "Failed")
    for retry in ("disruptions", "any"):
        yield retry, "not_begun", (2, "Succeeded")


@pytest.mark.parametrize(("configured", "what", "outcome"), list(_expected()))
def test_pods_and_phase_of_a_pipeline(
    played: Played, configured: Configured, what: str, outcome: tuple[int, str]
) -> None:
    """The number of pods and the end of a pipeline follow from its configuration and the ends of its pods."""
    run = played[configured][what]
    assert run.outcome == outcome, run.messages


def test_upstreams_policy_runs_graphs_again(played: Played) -> None:
    """Upstream's policy runs each of three graphs three times for a step without retries."""
    assert len(played["stock"]["reports_never"].starts) > 3


@pytest.mark.parametrize("retry", ["disruptions", "any", "existing"])
def test_a_step_has_its_own_backoff(played: Played, retry: Configured) -> None:
    """Each retry comes after twice the wait."""
    run = played[retry]["waits"]
    waits = [(later - earlier).total_seconds() for earlier, later in pairwise(run.starts.values())]
    # Kubernetes writes whole seconds.
    assert all(waited >= backoff - 1 for waited, backoff in zip(waits, (3, 6, 12), strict=True)), waits
