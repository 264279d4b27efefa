"""Scenario files: read whole or refused with all that is wrong; ours are all readable."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ebbtide.declaration.model.declare import declare
from ebbtide_rehearsal.scenarios.model import Scenario, ScenarioError, built_in, chosen, general, read
from ebbtide_rehearsal.scenarios.runner import title
from tests.declarations import AKS, GKE


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
        ({"do": "jump"}, "jump"),
        ({"do": "up", "unchangd": True}, "unchangd"),
        ({"do": "fault", "kind": "reclaim"}, "either `share` or `count`"),
        ({"do": "fault", "kind": "reclaim", "share": 0.5, "count": 2}, "either `share` or `count`"),
        ({"do": "fault", "kind": "quota"}, "needs `limit`"),
        ({"do": "fault", "kind": "slow"}, "needs `seconds`"),
        ({"do": "submit"}, "one of `manifests`, `program`, `job` and `sweep`"),
        ({"do": "submit", "job": {"name": "a", "qeue": "b"}}, "unknown field qeue"),
        ({"do": "expect", "that": {}}, "nothing is expected"),
        ({"do": "expect", "that": {"nodes": {"a": "many"}}}, "nodes.a"),
    ],
)
def test_a_faulty_step_is_refused_with_its_place(tmp_path: Path, step: dict[str, Any], says: str) -> None:
    """The message names the step and what is wrong with it."""
    with pytest.raises(ScenarioError) as refused:
        read(_written(tmp_path, steps=[{"do": "up"}, step]))
    assert "steps.1" in str(refused.value)
    assert says in str(refused.value)


def test_all_faults_are_said_at_once(tmp_path: Path) -> None:
    """Two faults make two lines."""
    with pytest.raises(ScenarioError) as refused:
        read(_written(tmp_path, steps=[{"do": "up", "a": 1}, {"do": "destroy", "b": 2}], speed=0))
    assert {line.split(":")[0].strip() for line in str(refused.value).splitlines()[1:]} == {
        "speed",
        "steps.0.up.a",
        "steps.1.destroy.b",
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
