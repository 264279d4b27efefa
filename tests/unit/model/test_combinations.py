"""Each row of `catalog/data/combinations.csv`, with values that it refuses and values that it accepts."""

from typing import Any, cast

import pytest

from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.model.rules.overrides import Combination, Condition, combinations
from tests.unit.model.cases import base

_LARGE = {"gke": "n2-standard-32", "aks": "Standard_D8as_v5"}
_GPU = {"gke": "g2-standard-4", "aks": "Standard_NC4as_T4_v3"}
_ARM = {"gke": "t2a-standard-4", "aks": "Standard_D8ps_v5"}


def _nested(path: str, value: Any) -> dict[str, Any]:
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def _merged(target: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merged(target[key], cast("dict[str, Any]", value))
        else:
            target[key] = value


def _written(text: str) -> Any:
    return {"true": True, "false": False}.get(text, text)


def _set(written: dict[str, Any], of: Condition, value: str, cloud: str) -> None:
    """Give an option a value, through the field that determines it."""
    pool = written["pools"][1]
    match of.field.partition("."):
        case ("overrides", _, path):
            part = pool if of.is_of_pool else written["cloud"]
            _merged(part.setdefault("overrides", {}), _nested(path, _written(value)))
        case ("machine", _, _):
            pool["machine"] = "n2-standard-32" if value == "supported" else "e2-standard-32"
        case ("architecture", _, _):
            pool["machine"] = {"arm64": _ARM[cloud]}.get(value, pool["machine"])
        case ("accelerator", _, _) if value != "none":
            pool["machine"] = _GPU[cloud]
        case ("accelerator", _, _):
            pass
        case ("driver", _, _):
            pool |= (
                {"machine": _GPU[cloud], "accelerator": {"driver": value}}
                if value == "none"
                else {"machine": _GPU[cloud]}
            )
        case ("zones", _, _):
            pool["zones"] = ["1"] if value == "yes" else []
        case ("tier", _, _):
            written["cloud"]["tier"] = value
        case _:
            _merged(pool, _nested(of.field, _written(value)))


_OTHERS = {
    "accelerator": "nvidia-tesla-t4",
    "architecture": "arm64",
    "capacity": "on-demand",
    "driver": "default",
    "gvnic": "false",
    "image": "ubuntu",
    "machine.nestedVirtualization": "no",
    "machine.tier1": "no",
    "tier": "free",
}
"""Values that are never needed; for other options, none is set."""


def _faults(row: Combination, value: str | None) -> list[str]:
    """Return the problems that this rule reports of the row's option, with a value of the other option."""
    written = base(row.cloud.value)
    written["pools"][1]["machine"] = _LARGE[row.cloud.value]
    for condition in (*row.given, row.when):
        _set(written, condition, condition.values[0] if condition.values else "1", row.cloud.value)
    if value is not None:
        _set(written, row.needs, value, row.cloud.value)
    try:
        declare(written)
    except DeclarationError as refused:
        problems = [fault.problem for fault in refused.faults if fault.rule == "options-in-combination"]
        return [
            text
            for text in problems
            if text.startswith(row.when.name)
            and (
                "is not supported by" in text
                if "supported" in row.needs.values
                else row.needs.name in text.removesuffix(".").split()
            )
        ]
    return []


def _values(row: Combination, *, accepted: bool) -> list[str | None]:
    needs = row.needs
    match needs.operator:
        case "!=":
            return [_OTHERS.get(needs.field)] if accepted else [*needs.values]
        case "=" if needs.values == ("unset",):
            return [None if accepted else "1"]
        case "=":
            return [*needs.values] if accepted else [_other(row)]
        case _:
            return ["1"] if accepted else [None]


def _other(row: Combination) -> str | None:
    """Return a value that the row does not need."""
    other = _OTHERS.get(row.needs.field)
    return "azure-linux" if other in row.needs.values else other


@pytest.mark.parametrize("row", combinations(), ids=lambda row: f"{row.when.name} {row.needs.name}")
def test_each_row_refuses_and_accepts(row: Combination) -> None:
    """An option without what it needs is refused, and with it, nothing is said of the two."""
    for value in _values(row, accepted=False):
        assert _faults(row, value), value
    for value in _values(row, accepted=True) if "windows" not in row.needs.values else ():
        assert not _faults(row, value), value
