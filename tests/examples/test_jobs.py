"""The stories' Jobs: the samples that wait for their GPU, and the lab's sweep."""

import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from ebbtide.analysis.recording.recording import Recording
from tests.examples.workloads import EXAMPLES, module, profile_of
from tests.manifests import assert_valid
from tests.repository import ROOT, declaration, ran
from tests.running import manifest
from tests.synth import synth
from tests.unit.work.steps import led, tolerated

_SLEEP = "gcr.io/k8s-staging-perf-tests/sleep:v0.0.3"


@cache
def _made() -> Recording:
    return synth(declaration(EXAMPLES / "queued-gpus" / "Pulumi.queued-gpus.yaml"))


def _printed(story: str, name: str) -> list[dict[str, Any]]:
    """Return a file's output for kubectl."""
    environment = {"PYTHONPATH": str(ROOT), "EBBTIDE_PROFILE": profile_of(story).json()}
    done = ran(sys.executable, EXAMPLES / story / f"{name}.py", env=environment)
    return list(yaml.safe_load_all(done.stdout))


def test_the_queued_samples() -> None:
    """A Job for each GPU, as the story has it: suspended, in its queue, with its requests, asleep for two
    minutes."""
    jobs = _printed("queued-gpus", "jobs")
    assert [job["metadata"]["name"] for job in jobs] == ["sample-t4", "sample-a100", "sample-h100"]
    for job in jobs:
        assert_valid(job, "1.37")
        assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "dws-local-queue"}
        assert job["metadata"]["namespace"] == "default"
        assert job["spec"]["suspend"] is True
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert (container["image"], container["args"]) == (_SLEEP, ["120s"])
        assert container["resources"]["requests"] == {"cpu": "100m", "memory": "100Mi", "nvidia.com/gpu": "1"}
        assert "activeDeadlineSeconds" not in job["spec"]


@pytest.mark.parametrize("kind", ["t4", "a100", "h100"])
def test_a_sample_gets_the_flavor_of_its_gpu(kind: str) -> None:
    """A sample's node selector is a label of flavors, and matches the only pool of its kind."""
    profile = profile_of("queued-gpus")
    pool = profile.pool(f"dws-{kind}-nodepool")
    sample = module("queued-gpus", "jobs").sample(profile, pool)
    selector: dict[str, str] = sample["spec"]["template"]["spec"]["nodeSelector"]
    flavors = _made().of_type("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor")
    labels: list[dict[str, str]] = [manifest(item)["spec"]["nodeLabels"] for item in flavors]
    assert len(labels) == 3
    (flavor,) = [item for item in labels if selector.items() <= item.items()]
    assert flavor.items() <= pool.labels.items()
    fitting = [
        item.name
        for item in profile.pools
        if all(item.labels.get(key) == value for key, value in selector.items())
    ]
    assert fitting == [pool.name]


@pytest.mark.parametrize(("kind", "name"), [("t4", "sample-job"), ("a100", "sample-job-a100")])
def test_published_jobs_are_shipped_as_published(kind: str, name: str) -> None:
    """Name, queue, selector, toleration, image, arguments, requests and limits are those of the story, and
    Kueue finds one flavor for the selector."""
    (shipped,) = yaml.safe_load_all((EXAMPLES / "queued-gpus" / f"sample-{kind}.yaml").read_text())
    assert_valid(shipped, "1.37")
    assert shipped["metadata"] == {
        "name": name,
        "namespace": "default",
        "labels": {"kueue.x-k8s.io/queue-name": "dws-local-queue"},
    }
    template = shipped["spec"].pop("template")
    assert shipped["spec"] == {"parallelism": 1, "completions": 1, "suspend": True}
    pod = template["spec"]
    (container,) = pod.pop("containers")
    selector = {"cloud.google.com/gke-nodepool": f"dws-{kind}-nodepool"}
    assert pod == {
        "nodeSelector": selector,
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "restartPolicy": "Never",
    }
    assert (container["image"], container["args"]) == (_SLEEP, ["120s"])
    assert "command" not in container
    amounts = {"cpu": "100m", "memory": "100Mi", "nvidia.com/gpu": 1}
    assert container["resources"] == {"requests": amounts, "limits": amounts}
    flavors = [manifest(item) for item in _made().of_type("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor")]
    matching = [item for item in flavors if selector.items() <= item["spec"]["nodeLabels"].items()]
    assert [item["metadata"]["name"] for item in matching] == [f"dws-{kind}-nodepool"]


def test_the_sweep() -> None:
    """Twenty indexes on the GPU pool, as many at once as there are GPUs, with the project's volume."""
    (sweep,) = _printed("research-cluster", "sweep")
    assert_valid(sweep, "1.37")
    spec, pool = sweep["spec"], profile_of("research-cluster").pool("gpu")
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (
        20,
        pool.max_nodes,
        "Indexed",
    )
    pod = spec["template"]["spec"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert tolerated(pool, pod)
    assert led(pool, terms["nodeSelectorTerms"])
    assert pod["volumes"] == [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "shared"}}]
    assert pod["serviceAccountName"] == "worker"
    assert {
        "name": "WANDB_API_KEY",
        "valueFrom": {"secretKeyRef": {"name": "tracker", "key": "api-key"}},
    } in pod["containers"][0]["env"]


def test_the_experiments_of_the_sweep_run(tmp_path: Path) -> None:
    """Each index, run as its pod would run it, leaves its result once; run again, it leaves it alone."""
    (sweep,) = _printed("research-cluster", "sweep")
    (container,) = sweep["spec"]["template"]["spec"]["containers"]
    (points,) = [item["value"] for item in container["env"] if item["name"] == "EBBTIDE_SWEEP"]
    experiment = module("research-cluster", "experiment")
    results: list[dict[str, Any]] = []
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EBBTIDE_SWEEP", points)
        for index in range(sweep["spec"]["completions"]):
            environment.setenv("JOB_COMPLETION_INDEX", str(index))
            experiment.main(tmp_path)
            results.append(json.loads((tmp_path / f"{index}.json").read_text()))
            (tmp_path / f"{index}.json").chmod(0o400)
            experiment.main(tmp_path)
    assert [{"rate": item["rate"], "seed": item["seed"]} for item in results] == json.loads(points)
    by_rate = {
        rate: sum(item["loss"] for item in results if item["rate"] == rate) / 5
        for rate in (0.3, 0.1, 0.03, 0.01)
    }
    assert by_rate[0.3] < by_rate[0.01]
    assert len(os.listdir(tmp_path)) == 20  # noqa: PTH208
