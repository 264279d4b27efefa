"""Hyperparameter search with Katib: an Experiment whose trials are Jobs on a pool or in a queue.

Facts of Katib 0.19.0: its webhook (pkg/webhook/v1beta1), its default configuration
(manifests/v1beta1/installs/katib-standalone), its suggestion services (pkg/suggestion/v1beta1).
"""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final, Literal, assert_never

from ebbtide.placement import Profile
from ebbtide.values.paths import Object
from ebbtide.work.errors import Problems
from ebbtide.work.jobs import CONTAINER, manifest, placed
from ebbtide.work.tasks import Sidecar, Task, with_fields

Distribution = Literal["uniform", "logUniform", "normal", "logNormal"]
_NAME: Final = re.compile(r"[A-Za-z_][-.A-Za-z0-9_]*")
_UNSAFE: Final = re.compile(r"""['"\\\n\r]""")
NAME_LENGTH: Final = 40
"""Maximum length of an Experiment's name; its trials' names are longer."""
COLLECTOR: Final = Sidecar(name="Katib's metrics collector", cpu_m=50, memory_mib=10)
"""The container that Katib's webhook adds to the pods of a trial."""
_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "random": (),
    "grid": (),
    "tpe": (),
    "multivariate-tpe": (),
    "bayesianoptimization": (),
    "cmaes": (),
    "sobol": (),
    "hyperband": ("r_l", "resource_name"),
    "pbt": ("suggestion_trial_dir", "n_population", "truncation_threshold"),
}
"""Algorithms that search parameters, with the required settings of each. `enas` and `darts` search the
structure of a network, and need another kind of Experiment."""
_CONTINUOUS: Final = 2
"""Minimum number of numeric parameters for CMA-ES."""
_REFERENCE: Final = re.compile(r"\$\{trialParameters\.(.+?)\}")


@dataclass(frozen=True, slots=True)
class Double:
    """A real number.

    Attributes:
        min: minimum.
        max: maximum.
        step: distance between values; required for a grid.
        distribution: distribution of the sampled values.
    """

    min: float
    max: float
    step: float | None = None
    distribution: Distribution = "uniform"


@dataclass(frozen=True, slots=True)
class Int:
    """A whole number.

    Attributes:
        min: minimum.
        max: maximum.
        step: distance between values; 1 by default.
        distribution: distribution of the sampled values.
    """

    min: int
    max: int
    step: int | None = None
    distribution: Distribution = "uniform"


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of several strings."""

    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class Discrete:
    """One of several numbers."""

    values: Sequence[float]


Space = Double | Int | Categorical | Discrete


def parameter(name: str, space: Space) -> dict[str, Any]:
    """Return a parameter in the form of an Experiment (kubeflow.org/v1beta1, Katib 0.19.0): every value is a
    string."""
    match space:
        case Double() | Int():
            amounts = {"min": space.min, "max": space.max, "step": space.step}
            feasible: dict[str, Any] = {
                key: str(value) for key, value in amounts.items() if value is not None
            }
            feasible["distribution"] = space.distribution
        case Categorical() | Discrete():
            feasible = {"list": [str(value) for value in space.values]}
        case _:
            assert_never(space)
    kind = type(space).__name__.lower()
    return {"name": name, "parameterType": kind, "feasibleSpace": feasible}


def grid_size(spaces: Mapping[str, Space]) -> int | None:
    """Return the number of points of the grid over all parameters; None if a real number has no step."""
    counts = [_count(space) for space in spaces.values()]
    return None if None in counts else math.prod(count for count in counts if count is not None)


def _count(space: Space) -> int | None:
    match space:
        case Categorical() | Discrete():
            return len(space.values)
        case Int():
            return (space.max - space.min) // (space.step or 1) + 1
        case Double():
            if not space.step:
                return None
            # Half a step more: the last value may exceed the maximum by a rounding error.
            return int((space.max - space.min) / space.step + 0.5) + 1
        case _:
            assert_never(space)


def check_spaces(spaces: Mapping[str, Space], problems: Problems) -> None:
    """Report parameters that Katib or its search would reject, some of them only after the experiment has
    started."""
    problems.check(spaces, "There are no parameters: write at least one, with its space.")
    for name, space in spaces.items():
        problems.check(
            _NAME.fullmatch(name),
            f"Parameter {name!r} cannot be referenced: write letters, digits, _, - and dots.",
        )
        match space:
            case Double() | Int():
                _check_range(name, space, problems)
            case Categorical() | Discrete():
                _check_values(name, space, problems)
            case _:
                assert_never(space)


def _check_range(name: str, space: Double | Int, problems: Problems) -> None:
    numbers = [number for number in (space.min, space.max, space.step) if number is not None]
    if isinstance(space, Int) and any(number != int(number) for number in numbers if math.isfinite(number)):
        problems.add(f"Parameter {name} is an Int and has {numbers}: write whole numbers, or Double.")
    if not all(math.isfinite(number) for number in numbers):
        problems.add(f"Parameter {name} has {numbers}; write finite numbers.")
        return
    problems.check(
        space.min < space.max, f"Parameter {name} is from {space.min} to {space.max}; min is less than max."
    )
    problems.check(
        space.step is None or space.step > 0, f"Parameter {name} has step {space.step}; write more than 0."
    )
    problems.check(
        space.distribution not in {"logUniform", "logNormal"} or space.min > 0,
        f"Parameter {name} is {space.distribution} from {space.min} on; a logarithmic distribution needs "
        "min above 0.",
    )


def _check_values(name: str, space: Categorical | Discrete, problems: Problems) -> None:
    values = [str(value) for value in space.values]
    problems.check(values, f"Parameter {name} has no values.")
    problems.check(
        not isinstance(space.values, str), f"Parameter {name} has a text as its values: write a list."
    )
    for value in dict.fromkeys(value for value in values if values.count(value) > 1):
        problems.add(f"Parameter {name} has {value!r} twice: Katib needs unique values.")
    for value in filter(_UNSAFE.search, values):
        problems.add(
            f"Parameter {name} has {value!r}: Katib inserts values into the trial's manifest unescaped, so a "
            "quote, a backslash or a line break would break it. Use a plain word."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentTask(Task):
    """The task of an experiment's trials, whose `retries` are per trial, and the search."""

    objective_metric_name: str
    """The metric to optimize."""
    objective_type: Literal["minimize", "maximize"]
    """Its direction."""
    objective_goal: float | None = None
    """Value at which the search ends early."""
    additional_metric_names: Sequence[str] = ()
    """Further metrics to collect."""
    algorithm_name: str = "random"
    """Search algorithm."""
    algorithm_settings: Mapping[str, str] | None = None
    """Settings of the algorithm."""
    max_trial_count: int
    """Number of trials."""
    parallel_trial_count: int = 3
    """Maximum number of concurrent trials."""
    max_failed_trial_count: int | None = None
    """Number of failed trials at which the experiment fails; 0 is the same as 1. Default: no limit."""
    retain: bool = False
    """Keep the Jobs of finished trials, which Katib deletes by default."""
    sidecars: tuple[Sidecar, ...] = (COLLECTOR,)


def experiment_of(profile: Profile, parameters: Mapping[str, Space], task: ExperimentTask) -> Object:
    """Return the manifest of an Experiment (kubeflow.org/v1beta1), whose trials run on a pool or in a queue
    like Jobs.

    The command refers to a parameter as `${trialParameters.NAME}`, and prints its metrics as `NAME=VALUE`,
    one per line. Katib runs it under `sh -c` with its output in a file, and collects metrics in a sidecar:
    the image needs a shell, and the program does not get SIGTERM. The sidecar is added only in namespaces
    with the label `katib.kubeflow.org/metrics-collector-injection: enabled`, which teams' namespaces have if
    the add-on is declared; in any other, a trial ends without metrics and stays unfinished.

    A trial that waits in a queue counts as running for `parallel_trial_count`.

    Args:
        parameters: the parameters, by name.
        task: the task of each trial, with the search.

    Raises:
        WorkloadError: the experiment cannot run as described; the message lists all problems.
    """
    problems, settings = Problems(), dict(task.algorithm_settings or {})
    check_spaces(parameters, problems)
    _check_objective(task, problems)
    _check_counts(task, problems)
    if _check_algorithm(task.algorithm_name, settings, problems) and not problems.all:
        _check_search(task, settings, parameters, problems)
    _check_references(task, parameters, problems)
    problems.check(
        task.name[:1].isalpha(), f"name is {task.name!r}; the name of an Experiment must begin with a letter."
    )
    problems.check(
        not task.outputs,
        "outputs is given, and the trials of an experiment have no names to be their folders: omit it, and "
        "write to volume (--volume).",
    )
    placement = placed(profile, task, problems, name_length=NAME_LENGTH)
    metadata = {"name": task.name, **({"namespace": placement.namespace} if placement.namespace else {})}
    objective = {
        "type": task.objective_type,
        "objectiveMetricName": task.objective_metric_name,
        "goal": task.objective_goal,
        "additionalMetricNames": list(task.additional_metric_names),
    }
    spec: Object = {
        "objective": {key: value for key, value in objective.items() if value not in (None, [])},
        "algorithm": {
            "algorithmName": task.algorithm_name,
            "algorithmSettings": [{"name": name, "value": value} for name, value in settings.items()],
        },
        "parameters": [parameter(name, space) for name, space in parameters.items()],
        "maxTrialCount": task.max_trial_count,
        "parallelTrialCount": task.parallel_trial_count,
        **(
            {}
            if task.max_failed_trial_count is None
            else {"maxFailedTrialCount": task.max_failed_trial_count}
        ),
        "trialTemplate": {
            "retain": task.retain,
            "primaryContainerName": CONTAINER,
            "trialParameters": [{"name": name, "reference": name} for name in parameters],
            "trialSpec": _trial(
                manifest(_in_shell(task), placement, fail="FailJob", backoffLimit=task.retries)
            ),
        },
    }
    return {"apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment", "metadata": metadata, "spec": spec}


experiment = with_fields(ExperimentTask, experiment_of)
"""`experiment_of`, with the fields of a task by their names: `experiment(profile, parameters, name=…, …)`."""


def _in_shell(task: Task) -> Task:
    """Quote a task's words for a shell: Katib joins a command's words by spaces and passes them to a shell,
    unless the command already is one."""
    return replace(task, command=["sh", "-c", shlex.join([*task.command, *task.args])], args=())


def _trial(job: Object) -> Object:
    """Return a Job as a trial template, without its name and namespace, which Katib sets."""
    metadata = {key: value for key, value in job["metadata"].items() if key not in ("name", "namespace")}
    return {key: value for key, value in {**job, "metadata": metadata}.items() if value}


def _check_objective(task: ExperimentTask, problems: Problems) -> None:
    name, kind, goal = task.objective_metric_name, task.objective_type, task.objective_goal
    problems.check(name, "objective_metric_name is empty; name the metric that the trials print.")
    problems.check(
        kind in {"minimize", "maximize"}, f"objective_type is {kind!r}; write minimize or maximize."
    )
    problems.check(goal is None or math.isfinite(goal), f"objective_goal is {goal}; write a finite number.")
    problems.check(
        name not in task.additional_metric_names,
        f"additional_metric_names has {name}, which is the objective's metric: remove it.",
    )


def _check_counts(task: ExperimentTask, problems: Problems) -> None:
    trials, parallel, failed = task.max_trial_count, task.parallel_trial_count, task.max_failed_trial_count
    problems.check(trials >= 1, f"max_trial_count is {trials}; write 1 or more.")
    problems.check(
        1 <= parallel <= max(1, trials),
        f"parallel_trial_count is {parallel}; write 1 to max_trial_count, which is {trials}.",
    )
    problems.check(
        failed is None or 0 <= failed <= trials,
        f"max_failed_trial_count is {failed}; write 0 to max_trial_count, which is {trials}.",
    )


def _check_algorithm(name: str, settings: Mapping[str, str], problems: Problems) -> bool:
    """Report an algorithm that Katib does not have, or missing settings; return whether it is known."""
    if name not in _SETTINGS:
        near = get_close_matches(name, _SETTINGS, n=1)
        guess = f"; did you mean {near[0]}?" if near else f": write one of {', '.join(_SETTINGS)}."
        problems.add(f"algorithm_name is {name!r}, which is not a search algorithm of Katib{guess}")
        return False
    for setting in _SETTINGS[name]:
        problems.check(setting in settings, f"{name} needs {setting}: write it in algorithm_settings.")
    return True


def _check_search(
    task: ExperimentTask, settings: Mapping[str, str], parameters: Mapping[str, Space], problems: Problems
) -> None:
    """Report errors that an algorithm detects only after the experiment is created."""
    match task.algorithm_name:
        case "grid":
            size, trials = grid_size(parameters), task.max_trial_count
            problems.check(size is not None, "A grid needs a step for every Double: write Double(…, step=…).")
            problems.check(
                size is None or trials <= size,
                f"max_trial_count is {trials}, and the grid has {size} points: write no more than that.",
            )
        case "cmaes":
            numeric = sum(isinstance(space, Double | Int) for space in parameters.values())
            problems.check(
                numeric >= _CONTINUOUS,
                f"cmaes needs two parameters that are Double or Int, and has {numeric}.",
            )
        case "hyperband":
            problems.check(
                settings["resource_name"] in parameters,
                f"resource_name is {settings['resource_name']!r}, and there is no such parameter: name the "
                "parameter for the length of a trial's training.",
            )
        case _:
            pass


def _check_references(task: Task, parameters: Mapping[str, Space], problems: Problems) -> None:
    """Report parameters that no trial reads, and references to parameters that do not exist."""
    problems.check(
        task.command,
        "command is missing: Katib would look it up in the image's registry for each trial's pod. Write "
        "the program and its arguments.",
    )
    texts = [*task.command, *task.args, *task.env.values()]
    referred = dict.fromkeys(name for text in texts for name in _REFERENCE.findall(text))
    for name in parameters:
        problems.check(
            name in referred,
            f"Parameter {name} is in neither command, args nor env: write ${{trialParameters.{name}}} where "
            "the trial reads it.",
        )
    for name in referred:
        problems.check(
            name in parameters, f"${{trialParameters.{name}}} is used, and there is no such parameter."
        )
