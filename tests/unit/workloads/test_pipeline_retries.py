from dataclasses import replace
from typing import Any

import pytest
from kfp import dsl

from ebbtide.placement import Profile, ProfileError
from ebbtide.work.pipelines import every_step, retry_disruptions, use_pool, use_queue
from tests.declarations import GKE, changed
from tests.unit.workloads.clusters import DEV, DEV_AKS, PROFILES, derived
from tests.unit.workloads.steps import (
    container_step,
    defining,
    led,
    problems_of,
    retries,
    settings,
    step,
    warnings_of,
)

_T4 = DEV.pool("t4-spot")
_CPU = DEV.pool("cpu-spot")
_PREEMPTIBLE = PROFILES["examples/preemptible-pipelines/Pulumi.preemptible-pipelines.yaml"]


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
