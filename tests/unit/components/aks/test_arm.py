"""The resources that are made without their SDK class say the same as with it."""

import subprocess
import sys
from typing import Any

import pulumi
import pytest
from pulumi_azure_native import authorization, network, resources

from ebbtide.preview.record import record
from ebbtide.preview.recording import Recording
from tests.declarations import AKS
from tests.repository import ROOT
from tests.synth import synth


@pytest.fixture(scope="module")
def ours() -> Recording:
    """The small cluster, which has one of each at least."""
    return synth(AKS)


@pytest.fixture(scope="module")
def theirs(ours: Recording) -> Recording:
    """The same resources, each made by the SDK's own class."""

    def inputs(name: str) -> Any:
        return ours.named(name).inputs

    def program() -> None:
        group = inputs("train-group")
        resources.ResourceGroup(
            "train-group",
            resource_group_name=group["resourceGroupName"],
            location=group["location"],
            tags=group["tags"],
        )
        vnet = inputs("train-network-vnet")
        network.VirtualNetwork(
            "train-network-vnet",
            resource_group_name=vnet["resourceGroupName"],
            virtual_network_name=vnet["virtualNetworkName"],
            location=vnet["location"],
            address_space={"address_prefixes": vnet["addressSpace"]["addressPrefixes"]},
            tags=vnet["tags"],
        )
        subnet = inputs("train-network-subnet")
        network.Subnet(
            "train-network-subnet",
            resource_group_name=subnet["resourceGroupName"],
            virtual_network_name=subnet["virtualNetworkName"],
            subnet_name=subnet["subnetName"],
            address_prefix=subnet["addressPrefix"],
            default_outbound_access=subnet["defaultOutboundAccess"],
        )
        grant = inputs("train-identity-subnet")
        authorization.RoleAssignment(
            "train-identity-subnet",
            scope=grant["scope"],
            role_definition_id=grant["roleDefinitionId"],
            principal_id=grant["principalId"],
            principal_type=grant["principalType"],
        )
        pulumi.export("deployer", authorization.get_client_config_output().object_id)

    return record(program, project="theirs", stack="dev")


@pytest.mark.parametrize(
    "name", ["train-group", "train-network-vnet", "train-network-subnet", "train-identity-subnet"]
)
def test_type_inputs_and_version_are_the_sdks(ours: Recording, theirs: Recording, name: str) -> None:
    """A field that the provider does not know would be dropped without a word."""
    made, expected = ours.named(name), theirs.named(name)
    assert made.type == expected.type
    assert made.inputs == expected.inputs
    assert made.version == expected.version


def test_the_function_is_the_sdks(ours: Recording, theirs: Recording) -> None:
    """Whoever deploys is asked for in the same way, with the same arguments."""
    (asked,) = [call for call in ours.invocations if "getClientConfig" in call.token]
    (expected,) = theirs.invocations
    assert (asked.token, asked.args, set(asked.answer)) == (
        expected.token,
        expected.args,
        set(expected.answer),
    )


def test_the_costly_modules_are_not_imported() -> None:
    """Importing the network module alone would take half the time of a preview."""
    code = (
        "import sys; import components.aks; "
        "print([n for n in ('network.subnet', 'authorization.role_assignment', 'resources.resource_group') "
        "if 'pulumi_azure_native.' + n in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
