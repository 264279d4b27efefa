"""Inputs of a resource type, from the installed SDK."""

import pytest

from ebbtide.analysis.recording.values import UNKNOWN, Plain, Secret
from ebbtide.declaration.providers.schema import properties
from ebbtide_rehearsal.cloud.schema import SchemaViolation, schema_violations

NODE_POOL = "gcp:container/nodePool:NodePool"
NETWORK = "azure-native:network:VirtualNetwork"


@pytest.mark.parametrize(
    ("token", "required"),
    [
        (NODE_POOL, {"cluster"}),
        ("gcp:compute/routerNat:RouterNat", {"router", "sourceSubnetworkIpRangesToNat"}),
        ("azure-native:containerservice:ManagedCluster", {"resourceGroupName"}),
        (NETWORK, {"resourceGroupName"}),
        ("pulumi:providers:gcp", set[str]()),
    ],
)
def test_required_properties_of_a_type(token: str, required: set[str]) -> None:
    """Both packages' types are found by token, and objects of the same name are not taken for them."""
    assert {item.name for item in properties(token).values() if item.required} == required


@pytest.mark.parametrize("token", ["gcp:container/nodePool:Pool", "nobody:container:Thing"])
def test_a_type_that_no_package_has(token: str) -> None:
    """An unknown type is an error, not an empty schema."""
    with pytest.raises(LookupError, match="has no type"):
        properties(token)


@pytest.mark.parametrize(
    ("inputs", "violation"),
    [
        ({"clutser": "c"}, SchemaViolation("clutser", "unknown")),
        ({"nodeConfig": {"spto": True}}, SchemaViolation("nodeConfig.spto", "unknown")),
        (
            {"nodeConfig": {"taints": [{"key": "a", "value": "b"}]}},
            SchemaViolation("nodeConfig.taints[0].effect", "missing", "string"),
        ),
        ({"nodeConfig": {"diskSizeGb": "large"}}, SchemaViolation("nodeConfig.diskSizeGb", "type", "int")),
        ({"initialNodeCount": 1.5}, SchemaViolation("initialNodeCount", "type", "int")),
        ({"autoscaling": []}, SchemaViolation("autoscaling", "type", "object")),
        ({"nodeLocations": "us-central1-a"}, SchemaViolation("nodeLocations", "type", "list")),
        ({"nodeConfig": {"labels": {"a": {}}}}, SchemaViolation("nodeConfig.labels.a", "type", "string")),
        ({"nodeConfig": {"spot": "yes"}}, SchemaViolation("nodeConfig.spot", "type", "bool")),
    ],
)
def test_what_does_not_fit(inputs: dict[str, Plain], violation: SchemaViolation) -> None:
    """Each is found where it stands, and nothing else is."""
    assert schema_violations(NODE_POOL, {"cluster": "c"} | inputs) == [violation]


@pytest.mark.parametrize(
    "inputs",
    [
        {"cluster": UNKNOWN, "nodeConfig": UNKNOWN},
        {"cluster": Secret("c"), "nodeConfig": {"taints": [UNKNOWN]}},
        {"cluster": "c", "initialNodeCount": "3", "nodeConfig": {"spot": "true", "labels": {"a": 1}}},
        {"cluster": "c", "nodeConfig": None},
    ],
)
def test_what_fits(inputs: dict[str, Plain]) -> None:
    """Unknown and secret values are accepted, and text of a number or a boolean."""
    assert schema_violations(NODE_POOL, inputs) == []


def test_what_is_missing_altogether() -> None:
    """A required property of the type itself."""
    assert schema_violations(NODE_POOL, {}) == [SchemaViolation("cluster", "missing", "string")]


def test_either_of_two_types_fits() -> None:
    """Azure's enumerations may be given as text."""
    profile: dict[str, Plain] = {"name": "a", "mode": "System", "vmSize": "Standard_D4s_v5"}
    cluster = "azure-native:containerservice:ManagedCluster"
    assert schema_violations(cluster, {"resourceGroupName": "g", "agentPoolProfiles": [profile]}) == []
    wrong: Plain = [{**profile, "mode": ["System"]}]
    assert [
        violation.path
        for violation in schema_violations(cluster, {"resourceGroupName": "g", "agentPoolProfiles": wrong})
    ] == ["agentPoolProfiles[0].mode"]
