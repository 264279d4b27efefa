"""Experiments of Katib, whose trials are Jobs of ours."""

import shlex
from typing import Any

import pytest

from ebbtide.work.experiments import Categorical, Discrete, Double, Int, Space, experiment, grid_size
from ebbtide.work.jobs import job
from tests.manifests import KATIB, assert_valid, upstream
from tests.unit.work.clusters import DEV, container_of, problems_of
from tests.unit.work.katib_sdk import as_katib_reads

_SPACES: dict[str, Space] = {
    "rate": Double(0.001, 0.1, distribution="logUniform"),
    "layers": Int(2, 8, step=2),
    "optimizer": Categorical(["adam", "sgd"]),
    "width": Discrete([64, 128.5]),
}
_COMMAND = ["python", "train.py", *(f"--{name}=${{trialParameters.{name}}}" for name in _SPACES)]
_FIELDS: Any = {"name": "rates", "image": "busybox", "command": _COMMAND, "namespace": "vision"}
_SEARCH: Any = {
    "objective_metric_name": "loss",
    "objective_type": "minimize",
    "max_trial_count": 12,
}


def _experiment(parameters: dict[str, Space] | None = None, **given: Any) -> dict[str, Any]:
    spaces = _SPACES if parameters is None else parameters
    fields: Any = {**_FIELDS, "pool": "cpu-spot", **_SEARCH, **given}
    return experiment(DEV, spaces, **fields)


def _problems(parameters: dict[str, Space] | None = None, **given: Any) -> tuple[str, ...]:
    return problems_of(lambda: _experiment(parameters, **given))


def _only(name: str, space: Any) -> dict[str, Any]:
    """One parameter, and the command that reads it."""
    return {"parameters": {name: space}, "command": ["echo", f"${{trialParameters.{name}}}"]}


def _trial(made: dict[str, Any]) -> dict[str, Any]:
    return made["spec"]["trialTemplate"]["trialSpec"]


def test_the_search() -> None:
    """The search has parameters, objective and algorithm, with texts as values, as Katib requires."""
    made = _experiment(
        objective_goal=0.01,
        additional_metric_names=["accuracy"],
        algorithm_name="tpe",
        algorithm_settings={"random_state": "1"},
        parallel_trial_count=4,
        max_failed_trial_count=2,
    )
    assert as_katib_reads(made) == made
    assert made["metadata"] == {"name": "rates", "namespace": "vision"}
    spec = made["spec"]
    assert spec["objective"] == {
        "type": "minimize",
        "objectiveMetricName": "loss",
        "goal": 0.01,
        "additionalMetricNames": ["accuracy"],
    }
    assert spec["algorithm"] == {
        "algorithmName": "tpe",
        "algorithmSettings": [{"name": "random_state", "value": "1"}],
    }
    assert (spec["maxTrialCount"], spec["parallelTrialCount"], spec["maxFailedTrialCount"]) == (12, 4, 2)
    assert [(item["name"], item["parameterType"], item["feasibleSpace"]) for item in spec["parameters"]] == [
        ("rate", "double", {"min": "0.001", "max": "0.1", "distribution": "logUniform"}),
        ("layers", "int", {"min": "2", "max": "8", "step": "2", "distribution": "uniform"}),
        ("optimizer", "categorical", {"list": ["adam", "sgd"]}),
        ("width", "discrete", {"list": ["64", "128.5"]}),
    ]


def test_a_trial_is_a_job_of_ours() -> None:
    """Placed and retried as one, without the name and namespace that Katib gives it; the primary container is
    the one that works."""
    made = _experiment(retries=2, fail_on=[42])
    plain = job(DEV, **_FIELDS, pool="cpu-spot", retries=2, fail_on=[42])
    trial = _trial(made)
    assert "metadata" not in trial
    container = container_of(trial)
    assert container["name"] == made["spec"]["trialTemplate"]["primaryContainerName"]
    expected = container_of(plain)
    assert container["command"] == ["sh", "-c", shlex.join(_COMMAND)]
    container["command"] = expected["command"]
    assert trial["spec"] == plain["spec"]
    assert made["spec"]["trialTemplate"]["retain"] is False
    assert_valid({**trial, "metadata": {"name": "rates-x"}}, "1.36")


def test_the_words_of_a_command_survive_katib() -> None:
    """Each word of a command is quoted with its parameter, because Katib joins words with spaces for a
    shell."""
    words = ["python", "-c", "print('a  b; rm')", "${trialParameters.x}"]
    made = _experiment({"x": Int(1, 2)}, command=words[:1], args=words[1:])
    container = container_of(_trial(made))
    assert container["command"][:2] == ["sh", "-c"]
    assert "args" not in container
    assert shlex.split(container["command"][2]) == words


def test_a_trial_in_a_queue() -> None:
    """Carries the queue's label and waits; the experiment is in the namespace that has the queue."""
    fields: Any = {"pool": "", "queue": "a100", "namespace": "", "gpus": 1, "cpu": "4", "memory": "16Gi"}
    made = _experiment(**fields)
    assert made["metadata"]["namespace"] == "vision"
    assert _trial(made)["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "big"}
    assert _trial(made)["spec"]["suspend"] is True


@pytest.mark.released(KATIB)
def test_the_algorithms_are_those_that_katib_installs() -> None:
    """Each that searches parameters is known to Katib's configuration as it is released."""
    (config,) = [
        item["data"]["katib-config.yaml"]
        for item in upstream(KATIB)
        if item["kind"] == "ConfigMap" and item["metadata"]["name"] == "katib-config"
    ]
    for name in ("random", "grid", "tpe", "multivariate-tpe", "bayesianoptimization", "cmaes", "sobol"):
        assert f"algorithmName: {name}\n" in config
    (definition,) = [
        item
        for item in upstream(KATIB)
        if item["kind"] == "CustomResourceDefinition" and item["spec"]["names"]["kind"] == "Experiment"
    ]
    group = definition["spec"]["group"]
    versions = [f"{group}/{version['name']}" for version in definition["spec"]["versions"]]
    assert _experiment()["apiVersion"] in versions


def test_the_collector_needs_room() -> None:
    """A trial that leaves no capacity for it on a node would stay pending."""
    room = DEV.pool("cpu-spot").cpu_m
    _experiment(cpu=f"{room - 50}m")
    (problem,) = _problems(cpu=f"{room}m")
    assert problem.endswith(f"offers pods {room - 50}m beside Katib's metrics collector.")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parameters": {}, "command": ["echo"]}, "There are no parameters"),
        (_only("a b", Int(1, 2)), "Parameter 'a b' cannot be referenced"),
        (_only("x", Int(2, 1)), "Parameter x is from 2 to 1; min is less than max."),
        (_only("x", Double(0, 1, step=0)), "Parameter x has step 0; write more than 0."),
        (_only("x", Double(0, float("inf"))), "write finite numbers"),
        (_only("x", Int(1, 2, step=0.5)), "is an Int and has"),  # pyright: ignore[reportArgumentType]  # as it may be written
        (_only("x", Double(0, 1, distribution="logUniform")), "a logarithmic distribution needs min above 0"),
        (_only("x", Categorical([])), "Parameter x has no values"),
        (_only("x", Categorical(["a", "a"])), "Parameter x has 'a' twice"),
        (_only("x", Categorical(["it's"])), "a quote, a backslash or a line break would break it"),
        ({"command": ["echo"]}, "Parameter rate is in neither command, args nor env"),
        (
            {"command": [*_COMMAND, "${trialParameters.seed}"]},
            "${trialParameters.seed} is used, and there is no",
        ),
        (
            {"command": [], "args": _COMMAND},
            "command is missing: Katib would look it up in the image's registry",
        ),
        ({"algorithm_name": "randm"}, "algorithm_name is 'randm', which is not a search algorithm of Katib"),
        ({"algorithm_name": "randm"}, "did you mean random?"),
        (
            {"algorithm_name": "hyperband", "algorithm_settings": {"r_l": "9"}},
            "hyperband needs resource_name",
        ),
        ({"algorithm_name": "grid"}, "A grid needs a step for every Double"),
        ({"algorithm_name": "cmaes", **_only("x", Int(1, 9))}, "cmaes needs two parameters"),
        (
            {"algorithm_name": "hyperband", "algorithm_settings": {"r_l": "9", "resource_name": "epochs"}},
            "resource_name is 'epochs', and there is no such parameter",
        ),
        ({"algorithm_name": "grid", **_only("x", Int(1, 9))}, "is 12, and the grid has 9 points"),
        ({"max_trial_count": 2}, "parallel_trial_count is 3; write 1 to max_trial_count, which is 2."),
        ({"max_failed_trial_count": 13}, "max_failed_trial_count is 13; write 0 to max_trial_count"),
        ({"max_trial_count": 0, "parallel_trial_count": 1}, "max_trial_count is 0; write 1 or more."),
        ({"objective_type": "least"}, "objective_type is 'least'; write minimize or maximize."),
        ({"objective_metric_name": ""}, "objective_metric_name is empty"),
        ({"objective_goal": float("nan")}, "objective_goal is nan"),
        (
            {"additional_metric_names": ["loss"]},
            "additional_metric_names has loss, which is the objective's metric",
        ),
        ({"name": "a" * 41}, "write at most 40 lower-case letters"),
        ({"name": "1rates"}, "the name of an Experiment must begin with a letter"),
        ({"pool": "t4-spot"}, "gpus is missing, and pool t4-spot"),
    ],
)
def test_invalid_arguments(given: dict[str, Any], message: str) -> None:
    """Faults are reported before Katib refuses the Experiment, or lets it fail later."""
    assert message in "\n".join(_problems(**given))


def test_everything_wrong_is_said_at_once() -> None:
    """The search and the task in one error."""
    assert (
        len(_problems({"x": Int(2, 1)}, command=["echo"], max_trial_count=0, gpus=1, algorithm_name="x")) == 6
    )


def test_the_points_of_a_grid() -> None:
    """Both ends are points."""
    spaces = {"a": Double(0.01, 0.05, step=0.005), "b": Int(1, 3), "c": Categorical(["x", "y"])}
    assert grid_size(spaces) == 9 * 3 * 2
    assert grid_size({"a": Double(0, 1)}) is None
