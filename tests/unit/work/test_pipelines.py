"""Steps of pipelines: placement, nodes, storage and retries."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examined
from kfp import dsl, kubernetes

from ebbtide.placement import PoolProfile, Profile, ProfileError
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.work.errors import WorkloadError
from ebbtide.work.jobs import job
from ebbtide.work.pipelines import (
    every_step,
    retry_disruptions,
    use_identity,
    use_pool,
    use_queue,
    use_secrets,
    use_volume,
)
from tests.declarations import GKE, Declaration, changed, declarations
from tests.examples.workloads import compiled
from tests.unit.work.clusters import DEV, DEV_AKS, PROFILES, derived, problems_of
from tests.unit.work.steps import (
    KINDS,
    container_step,
    defining,
    led,
    resources_of,
    retries,
    settings,
    step,
    tolerated,
    warnings_of,
)

_T4 = DEV.pool("t4-spot")
_CPU = DEV.pool("cpu-spot")
_PREEMPTIBLE = PROFILES["examples/preemptible-pipelines/Pulumi.preemptible-pipelines.yaml"]


@pytest.mark.parametrize("kind", KINDS)
def test_hard_placement_of_every_kind_of_step(kind: str) -> None:
    """Steps from functions, containers and component files get tolerations and one required term."""
    task = use_pool(step(kind), _T4, gpus=4, cpu="4", memory="40G")
    (term,) = settings(task)["nodeAffinity"]
    assert "weight" not in term
    assert {item["key"] for item in term["matchExpressions"]} == {label.key for label in _T4.affinity}
    assert settings(task)["tolerations"] == [item.manifest() for item in _T4.tolerations]
    resources = resources_of(task)
    assert (resources.accelerator_type, resources.accelerator_count) == ("nvidia.com/gpu", "4")
    assert (resources.cpu_limit, resources.memory_limit) == ("4", "40G")


def test_soft_placement_prefers() -> None:
    """A soft step prefers its pool, tolerates the fallback's taints too, and is required nowhere."""
    task = use_pool(step(), DEV_AKS.pool("cpuspot"), hard=False, fallback=[DEV_AKS.pool("cpu")])
    (term,) = settings(task)["nodeAffinity"]
    assert term["weight"] == 50
    assert tolerated(DEV_AKS.pool("cpuspot"), settings(task))
    assert tolerated(DEV_AKS.pool("cpu"), settings(task))
    assert not tolerated(DEV_AKS.pool("t4spot"), settings(task))


def test_a_pool_by_name_is_of_the_profile_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`EBBTIDE_PROFILE` is the default profile, and without it there is an error."""
    monkeypatch.setenv("EBBTIDE_PROFILE", DEV.json())
    assert led(_CPU, settings(use_pool(step(), "cpu-spot"))["nodeAffinity"])
    monkeypatch.delenv("EBBTIDE_PROFILE")
    with pytest.raises(ProfileError, match="EBBTIDE_PROFILE is not set"):
        use_pool(step(), "cpu-spot")


def test_what_kfp_was_told_counts() -> None:
    """Limits that were set through kfp are held against the node, and get the kind of their accelerator."""
    task = use_pool(step().set_accelerator_limit(2), _T4)
    assert resources_of(task).accelerator_type == "nvidia.com/gpu"
    limited = step().set_accelerator_limit(8).set_memory_limit("480G").set_cpu_request("64")
    assert len(problems_of(lambda: use_pool(limited, _T4))) == 3


def test_limits_that_a_run_says() -> None:
    """A limit that is a parameter of the run is left to the run, and is of the pool's kind."""

    @dsl.pipeline
    def pipeline(gpus: int, memory: str) -> None:
        task = container_step(rate=0.1).set_accelerator_limit(gpus).set_memory_limit(memory)
        use_pool(task, _T4)
        assert resources_of(task).accelerator_type == "nvidia.com/gpu"

    assert pipeline.name == "pipeline"


def test_memory_as_kfp_takes_it() -> None:
    """An amount that kfp has no form for is written in bytes."""
    task = use_pool(step(), _CPU, memory="1.5Gi")
    assert resources_of(task).memory_limit == "1610612736"


def test_every_fault_of_a_call_is_reported() -> None:
    """Unknown pool with its near miss, too many GPUs, too much memory, no duration: each in a sentence."""
    problems = problems_of(
        lambda: use_pool(
            step(),
            "t4-spto",
            profile=DEV,
            hard=True,
            fallback=["t4-spot"],
            gpus=8,
            cpu="64",
            memory="480G",
            lasts="long",
        )
    )
    assert all(text.startswith("Step container-step: ") for text in problems)
    message = "\n".join(problems)
    assert "has no pool t4-spto; did you mean t4-spot?" in message
    assert "gpus is 8, and a node of pool t4-spot has 4 nvidia-tesla-t4." in message
    assert "cpu is 64, and a node of pool t4-spot (n1-highmem-8) offers pods 7510m." in message
    assert "memory is 480G, and" in message
    assert "lasts is 'long', which is not a duration" in message
    assert "fallback is for a soft placement" in message
    assert len(problems) == 6


def test_a_fallback_must_fit_too() -> None:
    """A step with GPUs does not fall back to nodes without."""
    (problem,) = problems_of(lambda: use_pool(step(), _T4, hard=False, fallback=[_CPU], gpus=1))
    assert "gpus is 1, and a node of pool cpu-spot has no accelerators." in problem


def test_accelerators_of_one_kind() -> None:
    """A pod asks for one kind: pools of two kinds, and a kind that the pool has not, are refused."""
    assert _T4.accelerator is not None
    other = replace(_T4, name="tpu", accelerator=replace(_T4.accelerator, resource="google.com/tpu"))
    (problem,) = problems_of(lambda: use_pool(step(), _T4, hard=False, fallback=[other], gpus=1))
    assert "google.com/tpu and nvidia.com/gpu" in problem
    old = step().set_accelerator_type("NVIDIA_TESLA_K80")
    (problem,) = problems_of(lambda: use_pool(old, _T4))
    assert "omit set_accelerator_type" in problem


def test_a_step_is_placed_once() -> None:
    """Neither twice by us nor after kfp's own: each affinity would do alone."""
    once = use_pool(step(), _CPU)
    with_affinity = kubernetes.add_node_affinity(step(), [{"key": "a", "operator": "Exists", "values": []}])
    with_selector = kubernetes.add_node_selector(step(), "a", "b")
    for task in (once, with_affinity, with_selector):
        (problem,) = problems_of(lambda task=task: use_pool(task, _T4, gpus=1))
        assert "already placed" in problem
    assert problems_of(lambda: use_queue(once, "t4", profile=DEV, namespace="vision", cpu="1", memory="1Gi"))


def test_a_queue() -> None:
    """A queued step carries the local queue's name and limits, and neither tolerations nor an affinity."""
    task = use_queue(
        step(), DEV.queue("a100"), profile=DEV, namespace="vision", gpus=1, cpu="4", memory="16Gi"
    )
    assert settings(task) == {
        "podMetadata": {
            "labels": {"kueue.x-k8s.io/queue-name": "big"},
            "annotations": {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "604800"},
        }
    }
    assert resources_of(task).accelerator_type == "nvidia.com/gpu"


def test_scale_down_waits_for_a_step_that_keeps_its_node() -> None:
    """The annotation is the same on a pool and in a queue."""
    on_pool = use_pool(step(), _CPU, keep_node=True)
    queued = use_queue(
        step(), "t4", profile=DEV, namespace="vision", gpus=1, cpu="4", memory="16Gi", keep_node=True
    )
    for task in (on_pool, queued):
        annotations = settings(task)["podMetadata"]["annotations"]
        assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


def test_what_a_queue_refuses() -> None:
    """A namespace without the queue, by default that of pipelines, is refused."""
    (problem,) = problems_of(lambda: use_queue(step(), "t4", profile=DEV, gpus=1, cpu="1", memory="1Gi"))
    assert "Queue t4 is not in namespace kubeflow; it is in: vision." in problem


@pytest.mark.parametrize("hard", [True, False])
def test_a_step_without_gpus_on_nodes_with_gpus(hard: bool) -> None:  # noqa: FBT001
    """Is refused unless gpus=0 is given, to use_pool or kfp; kfp's own limit is enough."""
    (problem,) = problems_of(lambda: use_pool(step(), _T4, hard=hard))
    assert problem.startswith("Step container-step: gpus is missing, and pool t4-spot has only nodes with 4")
    zero = use_pool(step(), _T4, hard=hard, gpus=0)

    assert resources_of(zero) is None
    use_pool(step().set_accelerator_limit(0), _T4, hard=hard)
    use_pool(step().set_accelerator_limit(1), _T4, hard=hard)
    (problem,) = problems_of(
        lambda: use_queue(step(), "t4", profile=DEV, namespace="vision", cpu="1", memory="1Gi")
    )
    assert "gpus is missing, and queue t4 has only nodes with" in problem
    assert problems_of(lambda: use_pool(step(), _CPU, hard=False, fallback=[_T4]))


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_of_a_step(kind: str) -> None:
    """Are references for the driver: a variable from a key, and a mounted Secret."""
    task = use_secrets(
        step(kind), env={"WANDB_API_KEY": "tracker/api-key"}, volumes={"tracker": "/secrets/tracker"}
    )
    (variable,) = settings(task)["secretAsEnv"]
    assert variable["secretName"] == "tracker"
    assert variable["keyToEnv"] == [{"secretKey": "api-key", "envVar": "WANDB_API_KEY"}]
    (volume,) = settings(task)["secretAsVolume"]
    assert (volume["secretName"], volume["mountPath"]) == ("tracker", "/secrets/tracker")


def test_what_is_wrong_with_the_secrets_of_a_step() -> None:
    """All of it, without a value, and nothing is set."""
    task = step()
    problems = problems_of(lambda: use_secrets(task, env={"KEY": "s3cret"}, volumes={"tracker": "here"}))
    assert [text.partition(": ")[2].partition(" at ")[0][:26] for text in problems] == [
        "secret_env has KEY without",
        "secret_volumes has tracker",
    ]
    assert "s3cret" not in "".join(problems)
    assert settings(task) == {}
    (problem,) = problems_of(lambda: use_secrets(step()))
    assert "no Secret is named" in problem


def test_a_step_is_no_tpu_slice() -> None:
    """One pod cannot use TPUs that are spread over several nodes."""
    assert _T4.accelerator is not None
    tpus = replace(_T4.accelerator, type="tpu-v5-lite-podslice", resource="google.com/tpu", slice_nodes=4)
    pool = replace(_T4, accelerator=tpus)
    slice_of = "a TPU slice of pool t4-spot is 4 nodes, and a step has one pod: use a TrainJob."
    message = f"Step container-step: {slice_of}"
    assert problems_of(lambda: use_pool(step(), pool, gpus=4)) == (message,)
    pools = (pool, *(item for item in DEV.pools if item.name != "t4-spot"))
    needs: dict[str, Any] = {"gpus": 4, "cpu": "1", "memory": "1Gi", "namespace": "vision"}
    assert problems_of(lambda: use_queue(step(), "t4", profile=replace(DEV, pools=pools), **needs)) == (
        message,
    )


def _admitted(profile: Profile, pool: PoolProfile) -> set[str]:
    """Pools whose nodes a step takes that was sent to one of them."""
    count = pool.accelerator.count if pool.accelerator else 0
    pod = settings(use_pool(step(), pool, gpus=count))
    return {item.name for item in profile.pools if tolerated(item, pod) and led(item, pod["nodeAffinity"])}


def _assert_exact(profile: Profile) -> None:
    for pool in profile.pools:
        if pool.capacity != "queued":
            assert _admitted(profile, pool) == {pool.name}


@examined(max_examples=20, deadline=None)
@given(declarations())
def test_a_step_goes_to_its_pool_whatever_is_declared(declaration: Declaration) -> None:
    """A step is scheduled only on nodes of its pool, regardless of other pools and taints."""
    _assert_exact(derived(declaration))


_ON_GKE = PROFILES["examples/research-cluster/Pulumi.research-cluster.yaml"]
AKS = PROFILES["examples/aks-spot/Pulumi.aks-spot.yaml"]


@dsl.component(base_image="python:3.12")
def work() -> None:
    """Do nothing."""


def _settings(profile: Profile, **volume: Any) -> dict[str, Any]:
    """The Kubernetes settings of a step that mounts a volume and uses its identity."""

    @dsl.pipeline
    def pipeline() -> None:
        use_identity(use_volume(work(), **volume, profile=profile), profile=profile)

    _, settings = compiled(pipeline)
    return settings["exec-work"]


def test_a_bucket_is_mounted_on_gke_as_in_a_job() -> None:
    """The pod has the annotation without which the mount is never ready, and needs no label."""
    settings = _settings(_ON_GKE)
    (mounted,) = settings["pvcMount"]
    assert (mounted["constant"], mounted["mountPath"]) == ("shared", "/checkpoints")
    created = job(_ON_GKE, name="work", image="busybox", pool="gpu", gpus=1, volume="shared")
    assert settings["podMetadata"] == created["spec"]["template"]["metadata"]


def test_a_volume_is_mounted_on_aks() -> None:
    """Nothing runs beside the step there; its pod gets a token of its identity."""
    settings = _settings(AKS, volume="data", mount_path="/data")
    (mounted,) = settings["pvcMount"]
    assert (mounted["constant"], mounted["mountPath"]) == ("data", "/data")
    assert settings["podMetadata"] == {"labels": {"azure.workload.identity/use": "true"}}


def _room(profile: Profile, *, mounts: bool, cloud: CloudKind = CloudKind.GKE) -> None:
    """Place a step that needs all of a node's CPU."""
    pool = profile.pool("gpu")
    cluster = replace(profile, cloud=cloud)

    @dsl.pipeline
    def pipeline() -> None:
        task = use_volume(work(), profile=cluster) if mounts else work()
        use_pool(task, pool, gpus=1, cpu=f"{pool.cpu_m}m")

    compiled(pipeline)


def test_what_the_mount_takes_of_a_node_is_counted() -> None:
    """A step that just fits its node does not fit beside a bucket mount, as a Job would not."""
    _room(_ON_GKE, mounts=False)
    _room(_ON_GKE, mounts=True, cloud=CloudKind.AKS)
    with pytest.raises(WorkloadError, match="beside the bucket mount"):
        _room(_ON_GKE, mounts=True)


def test_what_the_mount_takes_is_counted_in_a_queue() -> None:
    """The queue's pools are held against the step with its mount."""
    profile = PROFILES["examples/queued-gpus/Pulumi.queued-gpus.yaml"]
    pool = profile.pool("dws-t4-nodepool")
    needs: Any = {"gpus": 1, "cpu": f"{pool.cpu_m}m", "memory": "1Gi", "namespace": "default"}
    only = replace(profile, queues=(replace(profile.queues[0], pools=(pool.name,)),))

    def pipeline() -> None:
        use_queue(use_volume(work(), profile=only), "dws", profile=only, **needs)

    with pytest.raises(WorkloadError, match="beside the bucket mount"):
        dsl.pipeline(pipeline)


def test_faults_are_reported_together() -> None:
    """Each with what to write."""

    def pipeline() -> None:
        task = use_pool(work(), "gpu", profile=_ON_GKE, gpus=1)
        use_volume(task, "Not a name", "relative", profile=_ON_GKE)

    with pytest.raises(WorkloadError) as caught:
        dsl.pipeline(pipeline)
    message = str(caught.value)
    assert "is not a valid name of a PersistentVolumeClaim" in message
    assert "absolute path" in message
    assert "call use_volume before it is placed" in message


def test_a_pipeline_has_no_volume() -> None:
    """A pipeline has no volume; its steps do."""

    @dsl.pipeline
    def inner() -> None:
        work()

    def volume() -> None:
        use_volume(inner(), profile=AKS)

    def identity() -> None:
        use_identity(inner(), profile=AKS)

    for outer in (volume, identity):
        with pytest.raises(WorkloadError, match="has no pod"):
            dsl.pipeline(outer)


_CONFIGURED = replace(DEV, pipeline_retries="disruptions")


@pytest.fixture(autouse=True)
def _profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile of a cluster that retries disrupted steps."""
    monkeypatch.setenv("EBBTIDE_PROFILE", _CONFIGURED.json())


def test_retries_that_the_cluster_does_not_honor() -> None:
    """A stack that does not configure Kubeflow Pipelines is warned about, whichever way its profile comes."""
    stock = replace(DEV, pipeline_retries="unconfigured")
    (warning,) = warnings_of(lambda: retry_disruptions(step(), profile=stock))
    assert "they may not survive preemption" in warning
    assert "existing: true" in warning
    for retry in ("disruptions", "any"):
        configured = replace(DEV, pipeline_retries=retry)
        assert warnings_of(lambda profile=configured: retry_disruptions(step(), profile=profile)) == []


def test_retries_of_an_unknown_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a profile, or with one of an older Ebbtide, the warning says that it is unknown."""
    older = DEV.data()
    del older["pipeline_retries"]
    (warning,) = warnings_of(lambda: retry_disruptions(step(), profile=Profile.load(older)))
    assert "an older Ebbtide wrote it" in warning
    monkeypatch.delenv("EBBTIDE_PROFILE")
    (warning,) = warnings_of(lambda: retry_disruptions(step()))
    assert "no profile records whether the cluster retries a preempted step" in warning


def test_retries_with_a_profile_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that names nothing is refused, as where a pool is looked up."""
    monkeypatch.setenv("EBBTIDE_PROFILE", "nowhere.json")
    with pytest.raises(ProfileError, match=r"nowhere\.json"):
        retry_disruptions(step())


@pytest.mark.parametrize(
    ("addons", "retries_of"),
    [({}, "unconfigured"), ({"pipelines": {}}, "disruptions"), ({"pipelines": {"retry": "any"}}, "any")],
)
def test_the_profile_records_the_retries(addons: dict[str, Any], retries_of: str) -> None:
    """The declaration decides, and the profile that is read again holds the same."""
    assert Profile.load(derived(changed(GKE, addons=addons)).data()).pipeline_retries == retries_of


def test_retries_by_default() -> None:
    """Equal waits, and a week in which they may be used up: kfp's own defaults end after an hour."""
    assert retries(retry_disruptions(step())) == {
        "max_retry_count": 5,
        "backoff_duration": "30s",
        "backoff_factor": 1.0,
        "backoff_max_duration": "604800s",
    }


def test_what_retries_refuse() -> None:
    """All that is wrong at once, and waits that would go past the time in which a step is retried."""
    problems = problems_of(lambda: retry_disruptions(step(), 0, "soon", factor=0.5, longest="x"))
    assert len(problems) == 4
    (problem,) = problems_of(lambda: retry_disruptions(step(), 5, "5m", factor=2, longest="1h"))
    assert "3 of 5 attempts begin within the 1h" in problem
    retry_disruptions(step(), 5, "5m", factor=2, longest="3h")


def test_a_long_step_with_neither_checkpoints_nor_retries() -> None:
    """On nodes that are taken away it is warned of; retries, checkpoints, or steady nodes are well."""

    def long(**more: Any) -> list[str]:
        return warnings_of(lambda: use_pool(step(), _CPU, lasts="6h", **more))

    (warning,) = long()
    assert warning.startswith("Step container-step lasts 6h on spot pool cpu-spot without retries or")
    assert long(checkpoints=True) == []
    assert warnings_of(lambda: use_pool(retry_disruptions(step()), _CPU, lasts="6h")) == []
    assert warnings_of(lambda: use_pool(step(), _CPU, lasts="10m")) == []
    assert warnings_of(lambda: use_pool(step(), DEV_AKS.pool("cpu"), lasts="6h")) == []


def test_a_step_longer_than_its_nodes_live() -> None:
    """A preemptible node lives a day: a longer step without checkpoints never completes."""
    pool = _PREEMPTIBLE.pool("preemptible-cpu-pool")
    task = retry_disruptions(step())
    (warning,) = warnings_of(lambda: use_pool(task, pool, lasts="30h"))
    assert "lasts 30h, and a node of pool preemptible-cpu-pool lives at most 1d" in warning
    assert warnings_of(lambda: use_pool(retry_disruptions(step()), pool, lasts="30h", checkpoints=True)) == []
    (warning,) = warnings_of(
        lambda: use_queue(
            step(), "a100", profile=DEV, namespace="vision", gpus=1, cpu="1", memory="1Gi", lasts="8d"
        )
    )
    assert "a node of pool a100-queued lives at most 7d" in warning


def test_retries_that_end_before_the_step() -> None:
    """The hour that is kfp's own is warned of where the step lasts longer."""
    (warning,) = warnings_of(lambda: use_pool(step().set_retry(5), _CPU, lasts="3h"))
    assert "is retried no longer than 1h after its first attempt began" in warning
    assert len(warnings_of(lambda: use_pool(retry_disruptions(step(), longest="2h"), _CPU, lasts="3h"))) == 1


def test_a_whole_pipeline_of_which_one_step_differs() -> None:
    """Every step of a block is treated, but for those that were by themselves, in branches too."""
    with defining() as tasks:
        container_step(rate=0.0)
        with every_step(use_pool, "cpu-spot", profile=DEV), every_step(retry_disruptions, 3):
            container_step(rate=0.1)
            with dsl.ParallelFor([1, 2]):
                retry_disruptions(use_pool(container_step(rate=0.2), _T4, gpus=1), 7)
    outside, first, other = tasks.values()
    assert settings(outside) == {}
    assert retries(outside) == {}
    assert led(_CPU, settings(first)["nodeAffinity"])
    assert led(_T4, settings(other)["nodeAffinity"])
    assert [retries(task)["max_retry_count"] for task in (first, other)] == [3, 7]


def test_faults_of_every_step_are_said_together() -> None:
    """Each step of a pipeline that does not fit is reported, by its name."""
    with defining():
        problems = problems_of(_too_large)
    assert [text.split(":")[0] for text in problems] == ["Step container-step", "Step container-step-2"]


def _too_large() -> None:
    with every_step(use_pool, _CPU, memory="1T"):
        container_step(rate=0.1)
        container_step(rate=0.2)


def test_a_whole_pipeline_is_a_pipeline() -> None:
    """Outside of a pipeline's definition there is no step to treat."""
    (problem,) = problems_of(_treated_outside)
    assert "below dsl.pipeline" in problem


def _treated_outside() -> None:
    with every_step(retry_disruptions):
        pass


def test_what_has_no_pod() -> None:
    """A pipeline used as a step is placed where it is made: by itself refused, in a whole left alone."""

    @dsl.pipeline
    def inner() -> None:
        use_pool(container_step(rate=0.1), _CPU)

    with defining():
        task = inner()
        for call in (lambda: use_pool(task, _CPU), lambda: retry_disruptions(task)):
            assert "it is a pipeline or an importer" in problems_of(call)[0]
        with every_step(use_pool, _CPU):
            left = inner()
    assert left.platform_config == {}
