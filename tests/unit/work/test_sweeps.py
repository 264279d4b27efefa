import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.work.sweeps import INDEX, POINTS, Grid, parameters, points, sweep
from tests.manifests import assert_valid
from tests.unit.work.clusters import DEV, container_of, problems_of

_GRID: Grid = {"lr": [0.1, 0.01], "seed": [1, 2, 3]}


def _sweep(grid: Grid = _GRID, **given: Any) -> dict[str, Any]:
    fields: Any = {"name": "seeds", "image": "busybox", "pool": "cpu-spot"} | given
    return sweep(DEV, grid, **fields)


def _environment(manifest: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item["value"].replace("$$(", "$(") for item in container_of(manifest)["env"]}


def test_one_job_with_an_index_for_each_point() -> None:
    """Each with retries of its own; a chosen exit code ends its index alone."""
    manifest = _sweep(retries=2, parallelism=4, max_failed=3, fail_on=[42])
    assert_valid(manifest, "1.35")
    spec = manifest["spec"]
    assert {key: spec[key] for key in spec if key not in ("template", "podFailurePolicy")} == {
        "completionMode": "Indexed",
        "completions": 6,
        "parallelism": 4,
        "backoffLimitPerIndex": 2,
        "maxFailedIndexes": 3,
        "podReplacementPolicy": "Failed",
        "ttlSecondsAfterFinished": 24 * 3600,
    }
    assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["FailIndex", "Ignore"]


def test_the_order_of_points_is_that_of_the_grid() -> None:
    """The last parameter varies fastest."""
    assert [tuple(point.values()) for point in points(_GRID)] == [
        (0.1, 1),
        (0.1, 2),
        (0.1, 3),
        (0.01, 1),
        (0.01, 2),
        (0.01, 3),
    ]


_VALUES = st.one_of(st.integers(), st.text(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))
_GRIDS = st.dictionaries(
    st.text(min_size=1), st.lists(_VALUES, min_size=1, max_size=3, unique_by=repr), min_size=1, max_size=3
)


@settings(deadline=None)
@given(_GRIDS)
def test_each_index_reads_its_point(grid: Grid) -> None:
    """A pod reads back the values of the grid, whatever they are."""
    manifest = _sweep(grid, env={"OTHER": "1"})
    environment = _environment(manifest)
    read = [parameters(environment | {INDEX: str(index)}) for index in range(manifest["spec"]["completions"])]
    assert read == points(grid)


def test_references_are_not_expanded() -> None:
    """A value that Kubernetes would read as another variable's name reaches the pod as it is."""
    (item,) = container_of(_sweep({"cmd": ["$(HOME)"]}))["env"]
    assert item == {"name": POINTS, "value": '[{"cmd":"$$(HOME)"}]'}


def test_no_more_at_once_than_there_are() -> None:
    """All at once by default."""
    assert _sweep()["spec"]["parallelism"] == 6
    assert _sweep(parallelism=100)["spec"]["parallelism"] == 6


@pytest.mark.parametrize(
    ("grid", "given", "message"),
    [
        ({}, {}, "The grid is empty"),
        ({"lr": []}, {}, "The grid has no values for lr"),
        ({"opt": "adam"}, {}, "The grid's opt is a text: write its values as a list"),
        ({"lr": [float("nan")]}, {}, "The grid's lr has nan"),
        ({"lr": [None]}, {}, "The grid's lr has None; values are texts"),
        ({"lr": [0.1, 0.1]}, {}, "The grid's lr has 0.1 twice"),
        ({"a": range(1000), "b": range(1000)}, {}, "The grid has 1000000 points"),
        ({"text": ["x" * 70_000, "y" * 70_000]}, {}, "longer than the 127 KiB"),
        (_GRID, {"parallelism": 0}, "parallelism is 0; write 1 or more."),
        (_GRID, {"max_failed": -1}, "max_failed is -1; write 0 or more."),
        (_GRID, {"env": {POINTS: "mine"}}, "env has EBBTIDE_SWEEP, which a sweep sets"),
        (_GRID, {"name": "a" * 62}, "write at most 61 lower-case letters"),
        (_GRID, {"pool": "cpuspot"}, "did you mean cpu-spot?"),
    ],
)
def test_invalid_arguments(grid: Grid, given: dict[str, Any], message: str) -> None:
    """One error, that names what to change."""
    (problem,) = problems_of(lambda: _sweep(grid, **given))
    assert message in problem


def test_what_is_wrong_is_said_at_once() -> None:
    """The grid, the sweep and the task in one error."""
    assert len(problems_of(lambda: _sweep({}, parallelism=0, gpus=1))) == 3


def test_points_are_json() -> None:
    """An image without Ebbtide reads them too."""
    assert json.loads(_environment(_sweep())[POINTS])[4] == {"lr": 0.01, "seed": 2}
