"""The five stories: what is created has the names and parameters that their authors published."""

import re
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from ebbtide.analysis.recording.recording import Recording
from ebbtide.placement import Profile
from ebbtide.work.pipelines.placement import NAMESPACE
from tests.examples.workloads import compiled, module
from tests.repository import ROOT, STORIES
from tests.synth import synth_stack

_GKE_POOL = "gcp:container/nodePool:NodePool"


def _recorded(story: str) -> Recording:
    return synth_stack(ROOT / "examples" / story / f"Pulumi.{story}.yaml")


def _profile(story: str) -> Profile:
    return Profile.load(cast("str", _recorded(story).outputs["placementProfile"]))


def _at(data: Any, path: str) -> Any:
    """The value at a path such as `nodeConfig.taints[0].key`; None where there is nothing."""
    for step in re.findall(r"[^.\[\]]+", path):
        if data is None:
            return None
        if isinstance(data, list):
            items = cast("list[Any]", data)
            data = items[int(step)] if int(step) < len(items) else None
        else:
            data = data.get(step)
    return data


def _inputs(story: str, type_: str, name: str) -> Any:
    """Inputs of the one resource of a type that has that name in its cloud."""
    matching = [
        resource.inputs
        for resource in _recorded(story).of_type(type_)
        if name in [resource.inputs.get(key) for key in ("name", "agentPoolName", "resourceName")]
    ]
    assert len(matching) == 1
    return matching[0]


PARAMETERS: list[tuple[str, str, str, dict[str, Any]]] = [
    (story, *resource.split(), parameters)
    for story, resources in yaml.safe_load((Path(__file__).parent / "stories.yaml").read_text()).items()
    for resource, parameters in resources.items()
]


@pytest.mark.parametrize(
    ("story", "type_", "name", "parameters"),
    PARAMETERS,
    ids=[f"{story}-{name}" for story, _, name, _ in PARAMETERS],
)
def test_has_its_parameters(story: str, type_: str, name: str, parameters: dict[str, Any]) -> None:
    """A resource of a story has what the story gives it, at the paths where the provider has it."""
    inputs = _inputs(story, type_, name)
    assert {path: _at(inputs, path) for path in parameters} == parameters


def test_every_story_is_checked() -> None:
    """No story is without a parameter that is looked at."""
    assert {story for story, *_ in PARAMETERS} == set(STORIES)


_STORAGE_OF_A_TEAM = {
    "gcp:artifactregistry/repository:Repository",
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
    "gcp:serviceaccount/account:Account",
    "gcp:serviceaccount/iAMMember:IAMMember",
    "gcp:storage/bucket:Bucket",
    "gcp:storage/bucketIAMMember:BucketIAMMember",
    "kubernetes:core/v1:ConfigMap",
    "kubernetes:core/v1:NamespacePatch",
    "kubernetes:core/v1:PersistentVolume",
    "kubernetes:core/v1:PersistentVolumeClaim",
    "kubernetes:core/v1:ServiceAccount",
    "kubernetes:core/v1:ServiceAccountPatch",
}


@pytest.mark.parametrize(
    ("story", "besides"),
    [("preemptible-pipelines", set[str]()), ("checkpointed-training", _STORAGE_OF_A_TEAM)],
)
def test_existing_cluster_is_left_alone(story: str, besides: set[str]) -> None:
    """A story that adds pools to a cluster makes neither cluster nor network nor namespace, and patches one
    Deployment."""
    made = {
        resource.type
        for resource in _recorded(story)
        if resource.custom and not resource.read and not resource.type.startswith("pulumi:")
    }
    assert made == {_GKE_POOL, "kubernetes:apps/v1:DeploymentPatch", *besides}


def test_the_volume_of_the_training_story_is_declared() -> None:
    """The claim that its steps mount is made by its own stack, in the namespace where they run, on a bucket
    that they may write."""
    (claim,) = _recorded("checkpointed-training").of_type("kubernetes:core/v1:PersistentVolumeClaim")
    document, settings = compiled(module("checkpointed-training", "pipeline").checkpointed_training)
    assert document["pipelineInfo"]["name"] == "checkpointed-training"
    for step in ("exec-copydata", "exec-train"):
        (mounted,) = settings[step]["pvcMount"]
        assert (_at(claim.inputs, "metadata.name"), NAMESPACE) == (mounted["constant"], "kubeflow")
    assert _at(claim.inputs, "metadata.namespace") == NAMESPACE
    (volume,) = _recorded("checkpointed-training").of_type("kubernetes:core/v1:PersistentVolume")
    assert _at(volume.inputs, "spec.csi.driver") == "gcsfuse.csi.storage.gke.io"
    acting = [
        _at(item.inputs, "member")
        for item in _recorded("checkpointed-training").of_type("gcp:serviceaccount/iAMMember:IAMMember")
    ]
    assert "serviceAccount:acme-ml.svc.id.goog[kubeflow/pipeline-runner]" in acting


@pytest.mark.parametrize("story", ["preemptible-pipelines", "checkpointed-training", "aks-spot"])
def test_retries_of_pipelines_survive_preemption(story: str) -> None:
    """The five retries that a story promises are configured on its cluster, and its profile records it."""
    assert _profile(story).pipeline_retries == "disruptions"


def test_job_of_the_queue_story_finds_its_queue() -> None:
    """The local queue is called `dws-local-queue` and lies in `default`, over every GPU pool."""
    assert _profile("queued-gpus").data()["queues"] == [
        {
            "name": "dws",
            "pools": ["dws-t4-nodepool", "dws-a100-nodepool", "dws-h100-nodepool"],
            "local_queues": [
                {
                    "team": "default",
                    "namespace": "default",
                    "name": "dws-local-queue",
                    "required": False,
                    "restricted": False,
                }
            ],
        }
    ]


def test_plain_tasks_of_the_spot_story_have_a_home() -> None:
    """A task without toleration lands on the default pool, and one for spot tolerates and requires it."""
    home, spot = _profile("aks-spot").data()["pools"]
    assert home["taints"] == []
    key = "kubernetes.azure.com/scalesetpriority"
    assert spot["tolerations"] == [{"key": key, "operator": "Equal", "value": "spot", "effect": "NoSchedule"}]
    assert {"key": key, "operator": "In", "values": ["spot"]} in spot["affinity"]


def test_drivers_of_the_research_story_come_from_a_daemon_set() -> None:
    """The DaemonSet is for Container-Optimized OS, only on the GPU pool, whose taint it tolerates."""
    (installer,) = _recorded("research-cluster").of_type("kubernetes:apps/v1:DaemonSet")
    pod = _at(installer.inputs, "spec.template.spec")
    assert _at(pod, "initContainers[0].image") == "cos-nvidia-installer:fixed"
    terms = _at(pod, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
    assert terms == [{"matchExpressions": [{"key": "ebbtide.dev/pool", "operator": "In", "values": ["gpu"]}]}]
    keyword = {"key": "gpu-jobs", "operator": "Equal", "value": "only", "effect": "NoSchedule"}
    assert keyword in pod["tolerations"]
