"""The component for other languages, recorded without an engine beside the program of a declaration."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from components.plugin import host
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from tests.declarations import BASES, GKE, Declaration, changed
from tests.synth import synth

_CLUSTER = "ebbtide:index:Cluster"
_BESIDE = {"teams": [{"name": "vision", "volume": {"kind": "bucket"}}], "lifetime": {"hours": 8}}


def _constructed(arguments: Callable[[], pulumi.Inputs]) -> Recording:
    """Record a program in which the engine asks the host for a component."""

    def program() -> None:
        result = host().construct("train", _CLUSTER, arguments(), pulumi.ResourceOptions())
        pulumi.export("urn", result.urn)
        for name, value in result.state.items():
            pulumi.export(name, value)

    return record(program, project="ebbtide", stack="test")


def _refused(arguments: Callable[[], pulumi.Inputs]) -> dict[str, str]:
    """Return the errors of arguments by path."""
    with pytest.raises(ProgramError) as raised:
        _constructed(arguments)
    cause = raised.value.__cause__
    assert isinstance(cause, pulumi.InputPropertiesError)
    return {error["property_path"]: error["reason"] for error in cause.errors or []}


@pytest.mark.parametrize("cloud", BASES)
def test_a_cluster_has_the_resources_of_the_program(cloud: str) -> None:
    """The same types, names, inputs and options under the component as in a Python program; numbers arrive as
    floats, and omitted values as null."""
    declared = changed(BASES[cloud], **_BESIDE)
    sent: Declaration = {**copy.deepcopy(declared), "lifetime": {"hours": 8.0}, "cohort": None}
    expected, found = synth(declared), _constructed(lambda: {"declaration": sent})

    def rows(recording: Recording) -> dict[str, Any]:
        return {
            item.urn.replace(f"{_CLUSTER}$", ""): (
                item.inputs,
                item.protect,
                item.ignore_changes,
                (item.deleted_with or "").replace(f"{_CLUSTER}$", ""),
            )
            for item in recording.resources
            if item.type not in (_CLUSTER, "pulumi:pulumi:Stack")
        }

    assert rows(found) == rows(expected)
    for name, value in expected.outputs.items():
        assert found.outputs[name] == value


def test_every_fault_has_the_path_of_its_argument() -> None:
    """Errors come together, each with the path below `declaration`."""
    wrong = changed(GKE, owner="Vision Team!", unknown=1)
    assert set(_refused(lambda: {"declaration": wrong})) == {"declaration.owner", "declaration.unknown"}
    adopting = changed(GKE, adopt="adopt.dev.json")
    assert set(_refused(lambda: {"declaration": adopting})) == {"declaration.adopt"}


@pytest.mark.parametrize("value", [pulumi.Output.from_input, pulumi.Output.secret])
def test_outputs_and_secrets_are_refused(value: Callable[[str], pulumi.Output[str]]) -> None:
    """Resources follow from a declaration before others exist, and its values are printed."""
    (reason,) = _refused(lambda: {"declaration": {**GKE, "owner": value("vision")}}).values()
    assert "output of another resource" in reason


def test_the_schema() -> None:
    """One plain argument and the outputs of a stack, each described."""
    (cluster,) = json.loads(host().schema or "")["resources"].values()
    assert cluster["inputProperties"]["declaration"]["plain"] is True
    assert {name for name, item in cluster["properties"].items() if item["description"]} == {
        "clusterName",
        "kubeconfig",
        "placementProfile",
        "expires",
        "aksClusterInputs",
    }
