"""Scenarios: their files, conditions, observation of the cluster, and submitted work."""

from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.declare import declare
from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.cloud.store import ClusterTime, Event, Store
from ebbtide_rehearsal.report.document import spent
from ebbtide_rehearsal.scenarios.conditions import Condition, Observation, ObservedJob, misses
from ebbtide_rehearsal.scenarios.model import (
    EveryPool,
    Scenario,
    ScenarioError,
    Submit,
    built_in,
    chosen,
    general,
    read,
)
from ebbtide_rehearsal.scenarios.observer import Observer, on_every_pool, submitted
from ebbtide_rehearsal.scenarios.runner import title
from tests.declarations import AKS, GKE
from tests.repository import ROOT, declaration
from tests.unit.work.clusters import DEV, derived


def _written(path: Path, **scenario: Any) -> Path:
    file = path / "scenario.yaml"
    file.write_text(yaml.safe_dump({"title": "t", "steps": [], **scenario}))
    return file


@pytest.mark.parametrize("name", built_in())
def test_ours_are_readable_and_declare_what_is_valid(name: str) -> None:
    """Every built-in scenario is readable, declares valid changes, names existing files, and describes each
    step."""
    scenario = read(built_in()[name])
    declare(scenario.declaration)
    titles = [title(step) for step in scenario.steps]
    assert all(titles)
    for step in scenario.steps:
        file = getattr(step, "manifests", None)
        assert file is None or (built_in()[name].parent / file).is_file()


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"do": "jump"}, "steps[1].do: There is no steps[1] do jump. "),
        (
            {"do": "up", "unchangd": True},
            "steps[1].unchangd: There is no unchangd here; did you mean unchanged?",
        ),
        (
            {"do": "fault", "kind": "reclaim"},
            "needs either share or count. The scenario cannot be read. Write exactly",
        ),
        (
            {"do": "fault", "kind": "reclaim", "share": 0.5, "count": 2},
            "needs either share or count. The scenario cannot be read. Write exactly",
        ),
        ({"do": "fault", "kind": "quota"}, "needs limit. The scenario cannot be read. Add limit."),
        ({"do": "fault", "kind": "slow"}, "needs seconds. The scenario cannot be read. Add seconds."),
        ({"do": "submit"}, "Either manifests, program, job or sweep is needed."),
        (
            {"do": "submit", "job": {"name": "a", "qeue": "b"}},
            "steps[1].job: There is no field qeue. The scenario cannot be read. Write one of args, ",
        ),
        ({"do": "expect", "that": {}}, "steps[1].that: Nothing is expected."),
        ({"do": "expect", "that": {"nodes": {"a": "many"}}}, 'steps[1].that.nodes.a: a is the text "many"'),
    ],
)
def test_a_faulty_step_is_refused_with_its_place(tmp_path: Path, step: dict[str, Any], says: str) -> None:
    """The message names the step and what is wrong with it."""
    with pytest.raises(ScenarioError) as refused:
        read(_written(tmp_path, steps=[{"do": "up"}, step]))
    assert "steps[1]" in str(refused.value)
    assert says in str(refused.value)


def test_all_faults_are_said_at_once(tmp_path: Path) -> None:
    """Two faults make two lines."""
    with pytest.raises(ScenarioError) as refused:
        read(_written(tmp_path, steps=[{"do": "up", "a": 1}, {"do": "destroy", "b": 2}], speed=0))
    assert {line.split(":")[0].strip() for line in str(refused.value).splitlines()[1:]} == {
        "speed",
        "steps[0].a",
        "steps[1].b",
    }


def test_one_that_is_not_there_is_refused_with_what_is(tmp_path: Path) -> None:
    """A near name is suggested; the error says whether a file is missing or is no YAML."""
    with pytest.raises(ScenarioError, match="Did you mean spot-storm"):
        chosen("spot-strom")
    with pytest.raises(ScenarioError, match="No such file"):
        read(tmp_path / "none.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    with pytest.raises(ScenarioError, match=r"broken\.yaml"):
        read(broken)


@pytest.mark.parametrize("declaration", [GKE, AKS], ids=["gke", "aks"])
def test_the_general_one_asks_for_every_work_pool(declaration: dict[str, Any]) -> None:
    """The default scenario runs work on all work pools, and expects them to scale back to their minimum."""
    scenario = general(declare(declaration))
    conditions = [step.that for step in scenario.steps if step.do == "expect"]
    work = {pool["name"] for pool in declaration["pools"] if pool.get("role") != "system"}
    assert conditions[0].jobs is not None
    assert str(conditions[0].jobs.succeeded) == str(len(work))
    assert set(conditions[1].nodes) == work


@pytest.mark.parametrize("permanent", [True, False])
def test_the_general_one_first_sees_a_permanent_cluster_protected(permanent: bool) -> None:  # noqa: FBT001
    """A cluster without a lifetime refuses to go, is given one, and goes."""
    declaration = {**GKE} if permanent else {**GKE, "lifetime": {"hours": 8}}
    steps = [step.do for step in general(declare(declaration)).steps]
    assert steps[-3:] == (["destroy", "up", "destroy"] if permanent else ["expect", "expect", "destroy"])


def test_the_schema_of_a_scenario_describes_every_field() -> None:
    """Every field has a description."""
    schema = Scenario.model_json_schema()
    for name, kind in {"Scenario": schema, **schema["$defs"]}.items():
        for key, field in kind["properties"].items():
            assert key == "do" or "description" in field or "$ref" in field, (name, key)


SEEN = Observation(
    jobs=[
        ObservedJob("train-0", succeeded=True),
        ObservedJob("train-1", active=True, failures=2),
        ObservedJob("sweep", suspended=True, indexes_succeeded=3, indexes_failed=1),
    ],
    nodes={"cpu": 2, "t4-spot": 1, "t4": 3},
    ran_on=frozenset({"cpu", "t4"}),
    waits=["0/3 nodes are available: 3 Insufficient nvidia.com/gpu."],
    logs="resumed at step 40",
    events=[Event(1, 0.0, "node-added", "A node of cpu.", {}), Event(2, 9.0, "reclaimed", "cpu", {})],
    cost=1.5,
    runs=["Succeeded", "Error", "Running", ""],
    steps={"train": {"a": "t4-spot", "b": "t4"}},
)


@pytest.mark.parametrize(
    ("holds", "fails", "says"),
    [
        ({"jobs": {"succeeded": 1}}, {"jobs": {"succeeded": 2}}, "1 Jobs succeeded, expected 2"),
        ({"jobs": {"name": "train-*", "active": 1}}, {"jobs": {"name": "x", "active": 1}}, "0 Jobs active"),
        ({"jobs": {"suspended": {"min": 1}}}, {"jobs": {"failed": {"min": 1}}}, "expected 1 or more"),
        ({"indexes": {"succeeded": 3, "failed": 1}}, {"indexes": {"failed": 0}}, "1 indexes failed"),
        ({"failuresCounted": {"max": 2}}, {"failuresCounted": 0}, "2 failures counted"),
        ({"nodes": {"t4*": 4, "cpu": 2}}, {"nodes": {"t4*": {"min": 5, "max": 6}}}, "4 nodes of t4*"),
        ({"ranOn": ["cpu", "t*"]}, {"ranOn": ["cpu"]}, "Pods ran on t4"),
        ({"waiting": "insufficient nvidia"}, {"waiting": "quota"}, "Insufficient nvidia"),
        ({"log": "resumed"}, {"log": "finished"}, "finished"),
        (
            {"happened": [{"kind": "node-*", "says": "CPU", "times": 1}]},
            {"happened": [{"kind": "node-*", "times": 2}]},
            "1 events node-*",
        ),
        ({"pipelines": {"succeeded": 1, "failed": 1}}, {"pipelines": {"running": 0}}, "2 pipelines running"),
        (
            {"steps": [{"name": "train", "ranOn": ["t4*"], "pods": 2}]},
            {"steps": [{"name": "train", "ranOn": ["t4"]}]},
            "Step train ran on t4-spot, not only on t4.",
        ),
        (
            {"steps": [{"name": "train", "ranOn": ["*"]}]},
            {"steps": [{"name": "report", "ranOn": ["*"]}]},
            "Step report has not run.",
        ),
        ({"costsAtMost": 1.5}, {"costsAtMost": 1}, "$1.50"),
    ],
)
def test_a_condition_holds_or_says_what_is_missing(
    holds: dict[str, Any], fails: dict[str, Any], says: str
) -> None:
    """Each kind of condition both ways."""
    assert misses(Condition.model_validate(holds), SEEN) == []
    (missed,) = misses(Condition.model_validate(fails), SEEN)
    assert says in missed


def test_all_that_is_missing_is_said() -> None:
    """Every condition must hold, and each failed one is reported."""
    condition = Condition.model_validate({"jobs": {"succeeded": 3}, "nodes": {"cpu": 0}, "log": "no"})
    assert len(misses(condition, SEEN)) == 3


@given(
    stays=st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.floats(0, 10),
            st.floats(0, 7200),
            st.floats(0, 7200),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_a_node_costs_from_when_it_comes_to_when_it_goes(
    stays: list[tuple[str, float, float, float, bool]],
) -> None:
    """The cost is the sum over nodes of price and time, those that are still there until now."""
    now, expected = 7200.0, 0.0
    events: list[Event] = []
    for number, (pool, hourly, moment, other, gone) in enumerate(stays):
        came, went = sorted((moment, other))
        facts = {"node": f"n{number}", "pool": pool, "hourly": hourly}
        events.append(Event(0, came, "node-added", "", facts))
        if gone:
            events.append(Event(0, went, "node-removed", "", facts))
        expected += hourly * ((went if gone else now) - came) / 3600
    events.sort(key=lambda event: (event.at, event.kind))
    assert sum(spent(events, now).values()) == pytest.approx(expected)


TRAINING = "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"


class _Cluster:
    """An API server that has these objects, by path, and knows no other kinds than these."""

    def __init__(self, objects: dict[str, list[dict[str, Any]]]) -> None:
        self._objects = objects

    def items(self, path: str, **_: str) -> list[dict[str, Any]]:
        """A list."""
        return self._objects.get(path, [])

    def find(self, path: str, **_: str) -> dict[str, Any] | None:
        """A list, where there is such a kind."""
        return {"items": self._objects[path]} if path in self._objects else None


def _looking(directory: Path, objects: dict[str, list[dict[str, Any]]]) -> Observer:
    return Observer(cast("Api", _Cluster(objects)), Store(directory / "store", speed=1), ClusterTime(1))


def _condition(kind: str, value: str = "True") -> dict[str, str]:
    return {"type": kind, "status": value}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"spec": {"suspend": True}}, ObservedJob("t", suspended=True)),
        (
            {
                "spec": {"suspend": False},
                "status": {"jobsStatus": [{"name": "a"}, {"name": "b", "active": 1}]},
            },
            ObservedJob("t", active=True),
        ),
        (
            {
                "spec": {},
                "status": {
                    "conditions": [_condition("Complete")],
                    "jobsStatus": [{"name": "a", "active": 1}],
                },
            },
            ObservedJob("t", succeeded=True),
        ),
        (
            {"spec": {"suspend": True}, "status": {"conditions": [_condition("Failed")]}},
            ObservedJob("t", failed=True),
        ),
        ({"spec": {}, "status": {"conditions": [_condition("Complete", "False")]}}, ObservedJob("t")),
    ],
    ids=["suspended", "active", "complete", "failed", "new"],
)
def test_train_jobs_are_counted_among_jobs(
    tmp_path: Path, job: dict[str, Any], expected: ObservedJob
) -> None:
    """By what their status says."""
    made = {TRAINING: [{"metadata": {"name": "t"}, **job}]}
    assert _looking(tmp_path, made).observe().jobs == [expected]


POD: dict[str, Any] = {"spec": {"containers": [{"name": "a"}]}}
JOB: dict[str, Any] = {"spec": {"template": POD}}
WORK: dict[str, dict[str, Any]] = {
    "Pod": POD,
    "Job": JOB,
    "JobSet": {"spec": {"replicatedJobs": [{"name": "a", "template": JOB}, {"name": "b", "template": JOB}]}},
}
TRAIN_JOB = {"kind": "TrainJob", "metadata": {"name": "t"}, "spec": {"trainer": {"numNodes": 2}}}
MAP = {"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}


def _submitted(directory: Path, *objects: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    (directory / "work.yaml").write_text(yaml.safe_dump_all(objects))
    return list(submitted(Submit(do="submit", manifests="work.yaml", **fields), DEV, directory))


@pytest.mark.parametrize("kind", WORK)
def test_it_is_written_on_every_pod(kind: str, tmp_path: Path) -> None:
    """Every kind of object with pods gets them; others are unchanged."""
    work = {"kind": kind, "metadata": {"name": "w"}, **WORK[kind]}
    made, other = _submitted(tmp_path, work, MAP, runs_for=2, exit_code=3)
    text = yaml.safe_dump(made)
    assert text.count("rehearsal.ebbtide.dev/runs-for: '2'") == text.count("containers:")
    assert text.count("rehearsal.ebbtide.dev/exit-code: '3'") == text.count("containers:")
    assert "annotations" not in other["metadata"]


def test_every_pool_gets_a_job_in_a_shared_queue() -> None:
    """The Job for a queue of several teams is created in the namespace of one of them."""
    written = declaration(ROOT / "Pulumi.dev.yaml")
    shared = {**written, "teams": [*written["teams"], {"name": "speech"}]}
    profile = derived({**shared, "name": "dev"})
    assert any(len(queue.local_queues) > 1 for queue in profile.queues)
    made = list(on_every_pool(EveryPool(do="every-pool"), profile))
    work = {pool.name for pool in profile.pools if pool.role != "system"}
    assert {job["metadata"]["name"] for job in made} == {f"try-{name}" for name in work}


def test_it_is_refused_where_there_are_no_pods(tmp_path: Path) -> None:
    """A TrainJob's pods are described by its runtime: settings of pods would have no effect."""
    assert len(_submitted(tmp_path, TRAIN_JOB)) == 1
    with pytest.raises(RehearsalError, match="no pods in TrainJob"):
        _submitted(tmp_path, TRAIN_JOB, runs_for=2)
