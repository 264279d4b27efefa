"""Azure resource types of the program, and those that the fake cloud implements."""

import copy
import json

import pytest

from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.providers import schema as provider_schema
from ebbtide_rehearsal.cloud.azure.arm import ResourceKind
from ebbtide_rehearsal.cloud.azure.ids import names
from ebbtide_rehearsal.cloud.azure.provider import FUNCTIONS, KINDS
from tests.declarations import AKS, Declaration
from tests.repository import ROOT
from tests.running import full


def _recorded(declaration: Declaration) -> Recording:
    config = {"ebbtide:cluster": json.dumps(declaration)}
    return record(ROOT, project="ebbtide", stack="dev", config=config)


@pytest.mark.parametrize("existing", [False, True])
def test_there_is_a_stand_in_for_all_that_the_program_asks_for(existing: bool) -> None:  # noqa: FBT001 - a case
    """With every add-on and everything that a team can have, in a cluster of its own and in another's."""
    declaration = full("aks", logs={}, metrics={})
    if existing:
        declaration["cloud"] = copy.deepcopy(AKS["cloud"]) | {"existing": {"name": "shared"}}
        for name in ("logs", "metrics"):
            declaration["addons"].pop(name)
        declaration["pools"] = [pool for pool in declaration["pools"] if pool.get("role") != "system"]
    recording = _recorded(declaration)
    made = {resource.type for resource in recording if resource.type.startswith("azure-native:")}
    assert made <= set(KINDS)
    assert len(made) >= (5 if existing else 16)


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_rows_name_properties_that_the_sdk_has(kind: ResourceKind) -> None:
    """No row of the tables speaks of a property that a program could not give."""
    known = set(provider_schema.properties(kind.type))
    assert {*names(kind.path), *kind.constraints.required} <= known


def test_functions_are_the_sdks() -> None:
    """Each is one that the SDK calls."""
    for token in FUNCTIONS:
        package, module, name = token.split(":")
        assert package == "azure-native"
        assert hasattr(__import__(f"pulumi_azure_native.{module}", fromlist=[name]), _python(name))


def _python(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
