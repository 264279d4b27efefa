"""The provider's components, recorded without an engine beside the program of a declaration."""

import copy
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi.output import Unknown

from components.plugin.provider import Provider
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import UNKNOWN
from ebbtide.declaration.model.waiting import WAITING, WaitingField
from tests.declarations import AKS, BASES, GKE, Declaration, changed
from tests.synth import synth

CLUSTER = "ebbtide:index:Cluster"
NODE_POOL = "ebbtide:index:NodePool"
_BESIDE = {"teams": [{"name": "vision", "volume": {"kind": "bucket"}}], "lifetime": {"hours": 8}}


def _constructed(type_: str, arguments: Callable[[], pulumi.Inputs]) -> Recording:
    """Record a program in which the engine asks the provider for a component."""

    def program() -> None:
        result = Provider().construct("train", type_, arguments(), pulumi.ResourceOptions())
        pulumi.export("urn", result.urn)

    return record(program, project="ebbtide", stack="test")


def _refused(type_: str, arguments: Callable[[], pulumi.Inputs]) -> dict[str, str]:
    """Return the errors of arguments by path."""
    with pytest.raises(ProgramError) as raised:
        _constructed(type_, arguments)
    cause = raised.value.__cause__
    assert isinstance(cause, pulumi.InputPropertiesError)
    return {error["property_path"]: error["reason"] for error in cause.errors or []}


def _unknown() -> pulumi.Output[Any]:
    return pulumi.Output.from_input(Unknown())


def _with(declaration: Declaration, path: str, value: Any) -> Declaration:
    """Return a copy of a declaration with a value at a dotted path; a number is an index."""
    result = copy.deepcopy(declaration)
    *parents, last = path.split(".")
    at: Any = result
    for key in parents:
        at = at[int(key)] if key.isdigit() else at.setdefault(key, {})
    at[last] = value
    return result


@pytest.mark.parametrize("cloud", BASES)
def test_a_cluster_has_the_resources_of_the_program(cloud: str) -> None:
    """The same types, names, inputs and options under the component as in a Python program, and the same
    outputs; numbers arrive as floats."""
    declared = changed(BASES[cloud], **_BESIDE)
    expected = synth(declared)
    floats = _with(declared, "lifetime.hours", 8.0)
    found = _constructed(CLUSTER, lambda: floats)

    def rows(recording: Recording) -> dict[str, Any]:
        return {
            item.urn.replace(f"{CLUSTER}$", ""): (
                item.inputs,
                item.protect,
                item.ignore_changes,
                item.deleted_with,
            )
            for item in recording.resources
            if item.type not in (CLUSTER, "pulumi:pulumi:Stack")
        }

    plain = {urn: (*row[:3], (row[3] or "").replace(f"{CLUSTER}$", "")) for urn, row in rows(found).items()}
    assert plain == {urn: (*row[:3], row[3] or "") for urn, row in rows(expected).items()}
    (component,) = [item for item in found.resources if item.type == CLUSTER]
    assert component.outputs == expected.outputs
    assert all(item.parent is not None for item in found.resources if item.urn != component.urn)


@pytest.mark.parametrize(
    ("declaration", "resource"),
    [(GKE, "gcp:container/nodePool:NodePool"), (AKS, "azure-native:containerservice:AgentPool")],
)
def test_a_node_pool_of_an_existing_cluster(declaration: Declaration, resource: str) -> None:
    """The pool has the inputs of one in a declaration of that cluster; there is nothing else."""
    cloud = {**declaration["cloud"], "existing": {"name": "shared"}}
    whole = synth(changed(declaration, name="ebbtide-test", cloud=cloud, pools=[declaration["pools"][1]]))
    arguments = {"owner": declaration["owner"], "cloud": cloud, "pool": declaration["pools"][1]}
    found = _constructed(NODE_POOL, lambda: arguments)
    assert [item.inputs for item in found.resources if item.type == resource] == [
        item.inputs for item in whole.resources if item.type == resource
    ]
    custom = [item.type.rpartition(":")[0] for item in found.resources if item.custom]
    assert sorted(custom) == sorted([resource.rpartition(":")[0], "pulumi:providers"])
    (component,) = [item for item in found.resources if item.type == NODE_POOL]
    assert component.outputs["placementProfile"] == whole.outputs["placementProfile"]
    assert component.outputs["poolName"] == "cpu"


def test_every_fault_has_its_path() -> None:
    """Faults of shape, of rules and of values that cannot be read are reported together, in order."""

    def arguments() -> Declaration:
        declared = changed(GKE, extends="Pulumi.dev.yaml", lines=[], owner=pulumi.Output.secret("hush"))
        declared["pools"][1]["machine"] = "n2-standard-9"
        declared["pools"][2]["nodes"] = _unknown()
        return declared

    errors = _refused(CLUSTER, arguments)
    assert list(errors) == ["owner", "pools[1].machine", "pools[2].nodes", "lines", "extends"]
    assert "cannot extend a stack's file" in errors["extends"]
    assert errors["owner"].startswith("The value is a secret.")
    assert "hush" not in str(errors)
    assert errors["pools[2].nodes"].startswith(
        "The value is an output of a resource that does not exist yet."
    )


def test_paths_of_a_node_pool_are_its_arguments() -> None:
    """A fault of the pool is below `pool`; other arguments of a cluster and a missing cluster are refused."""
    arguments: Declaration = {
        "owner": "vision-team",
        "cloud": GKE["cloud"],
        "pool": {"name": "cpu", "machine": "n2-standard-9", "nodes": {"max": 2}},
        "queues": [],
    }
    errors = _refused(NODE_POOL, lambda: arguments)
    assert set(errors) == {"cloud.existing", "pool.machine", "queues"}
    assert set(_refused(NODE_POOL, dict)) == {"owner", "cloud", "pool"}


def _waiting_rows() -> list[tuple[WaitingField, str]]:
    return [(row, cloud) for row in WAITING for cloud in BASES if row.cloud in (None, cloud)]


@pytest.mark.parametrize(("row", "cloud"), _waiting_rows(), ids=lambda value: getattr(value, "field", value))
def test_a_field_waits_for_an_output(row: WaitingField, cloud: str) -> None:
    """An unknown output makes inputs unknown, and no token is in inputs, the outputs or messages."""

    def arguments() -> Declaration:
        base = BASES[cloud]
        if row.alone:
            existing = {**base["cloud"], "existing": {"name": "shared"}}
            base = {"owner": base["owner"], "cloud": existing, "pool": base["pools"][1]}
        elif row.field.startswith("GkeNetwork."):
            parts = dict.fromkeys(("vpc", "subnet", "podsRange", "servicesRange"), "shared")
            base = _with(base, "cloud.network", parts)
        return _with(base, row.path.replace("[*]", ".1"), _unknown())

    found = _constructed(NODE_POOL if row.alone else CLUSTER, arguments)
    inputs = [item.inputs for item in found.resources if item.type not in (CLUSTER, NODE_POOL)]
    outputs = [item.outputs for item in found.resources if item.type in (CLUSTER, NODE_POOL)]
    assert "ebbtide-unknown" not in repr((inputs, outputs, found.messages))
    assert repr(UNKNOWN) in repr(inputs)


def test_a_field_that_names_a_resource_does_not_wait() -> None:
    """The reason is in the message: grants on a registry are named after the service account."""

    def arguments() -> Declaration:
        declared = changed(GKE, teams=[{"name": "vision", "registry": {}}])
        return _with(declared, "pools.1.serviceAccount", _unknown())

    errors = _refused(CLUSTER, arguments)
    assert list(errors) == ["pools[1].serviceAccount"]
    assert "A grant on the registry of team vision is named after it." in errors["pools[1].serviceAccount"]


def test_an_unknown_resource_is_refused() -> None:
    """The message lists the resources that exist."""
    with pytest.raises(
        pulumi.RunError, match=r"no resource ebbtide:index:Pool\. Write one of ebbtide:index:Cl"
    ):
        Provider().construct("train", "ebbtide:index:Pool", {})
