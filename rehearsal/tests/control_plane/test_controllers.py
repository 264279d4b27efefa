"""Controllers that really run while a pod of theirs is on a node: Katib's, from what is declared."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.addons.katib import DATABASE_SECRET, INJECTED, NAMESPACE, patches
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import condition
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from ebbtide.work.experiments import Categorical, Discrete, Double, Int, Space, experiment
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane, ControlPlaneSettings
from ebbtide_rehearsal.control_plane.plan import NAMES
from ebbtide_rehearsal.tools.find import Tools
from ebbtide_rehearsal.tools.progress import narrated
from rehearsal.tests.control_plane.cluster import Object, namespace, node, pod, priority_class, wait
from rehearsal.tests.control_plane.commands import Kubectl, run
from rehearsal.tests.control_plane.kueue import GKE_PORTS
from tests.manifests import HOME, KATIB, RELEASED, after, render
from tests.repository import ROOT, declaration

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

CREDENTIALS = {DATABASE_SECRET: {"MYSQL_ROOT_PASSWORD": "b3Vycw=="}}
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/katib-controller"
EXPERIMENTS = "/apis/kubeflow.org/v1beta1/namespaces/team/experiments"
LIBRARY = ROOT / "rehearsal" / "ebbtide_rehearsal" / "scenarios" / "library"


def _cluster(directory: Path, tools: Tools, installed: Tools) -> Iterator[ControlPlane]:
    """A control plane of some tools, with Katib as we declare it on a node, and the namespace of a team."""
    manifests = installed.path("katib-manifests") / "installs" / "katib-standalone"
    written = run(installed.path("kubectl"), "kustomize", manifests)
    objects = after([item for item in yaml.safe_load_all(written) if item], patches(HOME, CREDENTIALS))
    settings = ControlPlaneSettings(name="tuned", cloud="gke", open_ports=GKE_PORTS)
    with ControlPlane.start(directory, tools, settings) as started:
        node(started.api, "system", labels=dict(HOME.node_selector))
        priority_class(started.api, HOME.priority_class)
        kubectl = Kubectl(installed, started)
        kubectl.apply(item for item in objects.values() if item["kind"] == "Namespace")
        kubectl.apply(item for item in objects.values() if item["kind"] == "CustomResourceDefinition")
        kubectl.apply(objects.values())
        wait(lambda: started.api.get(DEPLOYMENT), _ready)
        namespace(started.api, "team", **{INJECTED: "enabled"})
        yield started


def _tools(*more: str) -> Tools:
    return narrated([*NAMES, *more])


@pytest.fixture(scope="module")
def installed() -> Tools:
    """Tools that install Katib."""
    return _tools("kubectl", "katib-manifests")


@pytest.fixture(scope="module")
def katib(tmp_path_factory: pytest.TempPathFactory, installed: Tools) -> Iterator[ControlPlane]:
    """A cluster in which its controller really runs."""
    yield from _cluster(tmp_path_factory.mktemp("katib"), _tools("katib-controller"), installed)


def test_the_released_manifests_are_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make manifests` renders Katib's kustomization to the digest of its release."""
    monkeypatch.setattr("tests.manifests.rendered", lambda: tmp_path)
    render(KATIB)
    content = (tmp_path / KATIB).read_bytes()
    assert hashlib.sha256(content).hexdigest() == RELEASED[KATIB].sha256


def _ready(deployment: Object) -> bool:
    return deployment["status"].get("readyReplicas", 0) == deployment["spec"]["replicas"]


def _pod(api: Api, name: str) -> Object:
    template = pod({})
    manifest = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": name}}
    return api.create("/api/v1/namespaces/team/pods", manifest)


def _experiment(**spec: Any) -> Object:
    """The wrong experiment of the library, with other fields."""
    file = LIBRARY / "scale-to-zero" / "experiment.yaml"
    experiment: Object = yaml.safe_load(file.read_text())
    experiment["metadata"] = {"name": "tried"}
    experiment["spec"] |= spec
    return experiment


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "failed to find suggestion config for algorithm: randomly"),
        ({"parallelTrialCount": 9}, "should be less than or equal to spec.maxTrialCount"),
    ],
)
def test_a_wrong_experiment_is_refused(katib: ControlPlane, wrong: Object, words: str) -> None:
    """The message is Katib's; its schema has no rule for this."""
    with pytest.raises(ApiError, match=words):
        katib.api.create(EXPERIMENTS, _experiment(**wrong))


@pytest.mark.parametrize(
    "target", [{"pool": "t4-spot", "namespace": "team"}, {"queue": "a100", "cpu": "1", "memory": "1Gi"}]
)
def test_an_experiment_of_ours_is_admitted(katib: ControlPlane, target: dict[str, Any]) -> None:
    """By Katib's webhook, on a pool and in a queue, with every kind of parameter; the controller takes it up,
    and no trial comes, since what suggests one is a program in an image."""
    cluster = profile(declare(declaration(ROOT / "Pulumi.dev.yaml")))
    spaces: dict[str, Space] = {
        "rate": Double(0.001, 0.1, distribution="logUniform"),
        "layers": Int(2, 8, step=2),
        "optimizer": Categorical(["adam", "sgd"]),
        "width": Discrete([64, 128]),
    }
    fields: Any = {
        "name": f"ours-{next(iter(target))}",
        "image": "busybox",
        "command": ["python", "train.py", *(f"--{name}=${{trialParameters.{name}}}" for name in spaces)],
        "gpus": 1,
        "retries": 2,
        "fail_on": [42],
        "max_run": "2h",
        "secret_env": {"WANDB_API_KEY": "tracker/api-key"},
        **target,
    }
    made = experiment(
        cluster,
        spaces,
        objective_metric_name="loss",
        objective_type="minimize",
        algorithm_name="tpe",
        max_trial_count=6,
        **fields,
    )
    place = made["metadata"]["namespace"]
    if katib.api.find(f"/api/v1/namespaces/{place}") is None:
        namespace(katib.api, place, **{INJECTED: "enabled"})
    experiments = EXPERIMENTS.replace("/team/", f"/{place}/")
    admitted = katib.api.create(experiments, made)
    template = admitted["spec"]["trialTemplate"]
    assert template["trialSpec"] == made["spec"]["trialTemplate"]["trialSpec"]
    path = f"{experiments}/{made['metadata']['name']}"
    wait(lambda: katib.api.get(path), lambda item: bool(condition(item, "Created")))
    katib.api.delete(path)
    wait(lambda: katib.api.find(path), lambda item: item is None)


def test_it_ends_with_its_pod(katib: ControlPlane) -> None:
    """Without one, no pod of a team gets in, as in a cluster; with the next one they do."""
    for replicas in (0, 1):
        katib.api.patch(DEPLOYMENT, {"spec": {"replicas": replicas}})
        wait(lambda: _answered(katib.api), lambda answers, wanted=replicas: answers == bool(wanted))


def _answered(api: Api) -> bool:
    """Return whether a pod is admitted; the pod is deleted at once."""
    try:
        _pod(api, "next")
    except ApiError as error:
        if "mutator.pod.katib.kubeflow.org" not in str(error):
            raise
        return False
    api.delete("/api/v1/namespaces/team/pods/next", gracePeriodSeconds=0)
    return True


def test_without_the_program_nothing_answers(tmp_path: Path, installed: Tools) -> None:
    """A controller without its program has ready pods, and webhooks that reject everything."""
    for started in _cluster(tmp_path, _tools(), installed):
        with pytest.raises(ApiError, match=r"mutator\.pod\.katib\.kubeflow\.org.*no ready pod behind port"):
            _pod(started.api, "first")
        assert _names(started.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods"))


def _names(pods: Sequence[Object]) -> list[str]:
    return [item["metadata"]["name"] for item in pods if condition(item, "Ready")]
