"""Creations that a killed engine has not recorded: imported if the cloud has them, with their own inputs."""

import copy
from collections.abc import Collection
from typing import Any, cast

import pytest

from ebbtide.operations import pending
from ebbtide.operations.stack import Stack

_PREFIX = "urn:pulumi:dev::shop"
_ROOT = {
    "urn": f"{_PREFIX}::pulumi:pulumi:Stack::shop-dev",
    "type": "pulumi:pulumi:Stack",
    "outputs": {"a": 1},
}
_PROVIDER = {
    "urn": f"{_PREFIX}::pulumi:providers:azure-native::azure",
    "type": "pulumi:providers:azure-native",
    "inputs": {"subscriptionId": "00000000-0000-0000-0000-000000000001"},
}
_STAYS = [_ROOT, _PROVIDER]
_TYPE = "azure-native:containerservice:ManagedCluster"
_CLUSTER = {
    "urn": f"{_PREFIX}::{_TYPE}::train",
    "type": _TYPE,
    "custom": True,
    "provider": f"{_PROVIDER['urn']}::1",
    "inputs": {"resourceName": "train", "resourceGroupName": "ml"},
}


class _KilledError(Exception):
    """The command was killed."""


class _Stack:
    """A stack whose engine was killed while it created a cluster."""

    def __init__(self, *, exists: bool) -> None:
        self._exists = exists
        operations = [{"resource": _CLUSTER, "type": "creating"}]
        self.deployment: dict[str, Any] = {"resources": _STAYS, "pending_operations": operations}
        self.errors: list[str] = []
        self.writes_before_kill = 9

    def exported(self) -> dict[str, Any]:
        """Return the state."""
        return {"version": 3, "deployment": copy.deepcopy(self.deployment)}

    def replace_state(self, document: dict[str, Any]) -> None:
        """Write the state."""
        if not self.writes_before_kill:
            raise _KilledError
        self.writes_before_kill -= 1
        self.deployment = copy.deepcopy(document["deployment"])

    def refresh(self, urns: Collection[str]) -> list[str]:
        """Read the resources; the cloud's defaults become inputs, since there are no earlier outputs."""
        if self.errors:
            return [self.errors.pop()]
        resources: list[dict[str, Any]] = []
        for item in self.deployment["resources"]:
            if item["urn"] not in urns:
                resources.append(item)
            elif self._exists:
                item.pop("initErrors")
                inputs = item["inputs"] | {"nodeResourceGroup": "MC_ml_train"}
                resources.append({**item, "inputs": inputs, "outputs": {"fqdn": "train.example"}})
        self.deployment["resources"] = resources
        return []


def _resolve(stack: _Stack) -> tuple[list[str], list[str]]:
    """Return the errors and what was reported."""
    lines: list[str] = []
    return pending.resolve(cast("Stack", stack), lines.append), lines


def _is_resolved(stack: _Stack) -> bool:
    assert stack.deployment["pending_operations"] == []
    *others, cluster = stack.deployment["resources"]
    assert others == _STAYS
    return cluster["inputs"] == _CLUSTER["inputs"] and cluster["outputs"] == {"fqdn": "train.example"}


def test_an_existing_resource_has_the_inputs_that_were_sent() -> None:
    """An update replaced the cluster if the cloud's defaults stayed among them."""
    stack = _Stack(exists=True)
    errors, lines = _resolve(stack)
    assert errors == []
    assert lines == ["An earlier update was interrupted while it created train; it exists in the cloud."]
    assert _is_resolved(stack)
    assert _resolve(stack) == ([], [])


def test_a_missing_resource_is_created_again() -> None:
    """A missing resource is removed from the state, so that the engine creates it."""
    stack = _Stack(exists=False)
    assert _resolve(stack) == ([], ["An earlier update was interrupted before it created train."])
    assert stack.deployment == {"resources": _STAYS, "pending_operations": []}


def test_a_cloud_that_fails_is_asked_again() -> None:
    """The resource stays in the state, marked."""
    stack = _Stack(exists=True)
    stack.errors = ["Error 503"]
    assert _resolve(stack) == (["Error 503"], [])
    assert _resolve(stack)[0] == []
    assert _is_resolved(stack)


@pytest.mark.parametrize("writes", [0, 1])
def test_a_kill_at_any_write_loses_nothing(writes: int) -> None:
    """The next call continues."""
    stack = _Stack(exists=True)
    stack.writes_before_kill = writes
    with pytest.raises(_KilledError):
        _resolve(stack)
    stack.writes_before_kill = 9
    assert _resolve(stack)[0] == []
    assert _is_resolved(stack)
