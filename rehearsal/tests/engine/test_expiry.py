"""The time of expiry on both fake clouds: fixed at the first up, extended in place."""

import copy
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from ebbtide.declaration.model.expiry import LABEL
from ebbtide.values import clock
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.engine.running import Stack, running_on
from tests.declarations import AKS, GKE, Declaration, pool

pytestmark = pytest.mark.engine

_FIRST_UP = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
_LABELLED = {
    "gke": {"train-cluster", "train-cpu", "train-system", "train-late", "train-team-vision-bucket"},
    "aks": {
        "train-cluster",
        "train-cpu",
        "train-group",
        "train-identity",
        "train-late",
        "train-network-vnet",
        "train-team-vision-bucket",
        "train-team-vision-identity",
    },
}


def _declared(cloud: str) -> Declaration:
    base = copy.deepcopy(GKE if cloud == "gke" else AKS) | {"lifetime": {"hours": 8}}
    base["pools"] = [pool(base, name) for name in ("system", "cpu")]
    return base


def _with_a_late_pool(declared: Declaration) -> Declaration:
    late = {**copy.deepcopy(pool(declared, "cpu")), "name": "late"}
    return declared | {"pools": [*declared["pools"], late], "teams": [{"name": "vision", "bucket": {}}]}


def _values(part: Any) -> Iterator[str]:
    """Yield every value of the label in a document."""
    if isinstance(part, Mapping):
        for key, value in cast("Mapping[str, Any]", part).items():
            yield from [str(value)] if key == LABEL else _values(value)
    elif isinstance(part, list):
        for item in cast("list[Any]", part):
            yield from _values(item)


def _expiries(stack: Stack, store: Store) -> dict[str, set[str]]:
    """The label's values in the inputs of each resource; in the cloud there are no others."""
    resources = {item["urn"].rpartition("::")[2]: set(_values(item.get("inputs"))) for item in stack.state()}
    labelled = {name: values for name, values in resources.items() if values}
    in_cloud = {value for resource in store.resources() for value in _values(dict(resource.state))}
    assert in_cloud == set[str]().union(*labelled.values())
    return labelled


@pytest.mark.parametrize("cloud", ["gke", pytest.param("aks", marks=pytest.mark.long)])
def test_expiry_is_fixed_at_the_first_up(cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later ups, a refresh and a new pool keep it; more hours move it in place, everywhere."""

    def at(hours: float) -> None:
        monkeypatch.setattr(clock, "now", lambda: _FIRST_UP + timedelta(hours=hours))

    with running_on(cloud, tmp_path) as (stack, store, _):
        declared = _declared(cloud)
        stack.declare(declared)
        at(-1)
        assert "8h-after-the-first-up" in stack.preview().text
        at(0)
        assert set(stack.up().changed) == {"create"}
        assert stack.outputs()["expires"] == "2026-11-22T20:00Z"
        at(1)
        assert stack.up().changed == {}
        stack.refresh()
        assert stack.up().changed == {}
        assert set().union(*_expiries(stack, store).values()) == {"2026-11-22t20-00z"}

        at(2)
        later = _with_a_late_pool(declared)
        stack.declare(later)
        changed = stack.up().changed
        assert "train-late" in changed["create"]
        assert changed.keys() <= {"create", "update"}
        expiries = _expiries(stack, store)
        assert expiries == {name: {"2026-11-22t20-00z"} for name in _LABELLED[cloud]}

        at(9)
        stack.declare(later | {"lifetime": {"hours": 12}})
        assert {step: set(names) for step, names in stack.up().changed.items()} == {
            "update": _LABELLED[cloud]
        }
        assert _expiries(stack, store) == {name: {"2026-11-23t00-00z"} for name in _LABELLED[cloud]}
        assert stack.outputs()["expires"] == "2026-11-23T00:00Z"
        assert stack.up().changed == {}
