"""Parameters of an experiment, and their search spaces."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, assert_never

from ebbtide.work.errors import Problems

Distribution = Literal["uniform", "logUniform", "normal", "logNormal"]
_NAME: Final = re.compile(r"[A-Za-z_][-.A-Za-z0-9_]*")
_UNSAFE: Final = re.compile(r"""['"\\\n\r]""")


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
