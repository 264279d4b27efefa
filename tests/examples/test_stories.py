"""The five stories: what is created has the names and parameters that their authors published."""

import re
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from ebbtide.analysis.recording.recording import Recording
from ebbtide.work.pipelines.placement import NAMESPACE
from tests.examples.workloads import compiled, module
from tests.repository import ROOT, STORIES
from tests.synth import synth_stack


def _recorded(story: str) -> Recording:
    return synth_stack(ROOT / "examples" / story / f"Pulumi.{story}.yaml")


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
