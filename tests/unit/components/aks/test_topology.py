"""The whole AKS topology: what stands where, what it waits for, and what is left alone."""

import copy
from typing import Any

import pulumi
import pytest

from components.aks import Topology
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import Secret
from ebbtide.declaration.model.declare import declare
from tests.declarations import AKS, GKE
from tests.synth import synth

POOL = "azure-native:containerservice:AgentPool"
SUBNET = (
    "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/r"
    "/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
)


def existing(**cloud: Any) -> dict[str, Any]:
    """Return a declaration that adds its work pools to an existing cluster."""
    declaration = copy.deepcopy(AKS)
    del declaration["pools"][0]
    declaration["cloud"] |= {"existing": {"name": "their-aks"}} | cloud
    return declaration


def tree(recording: Recording) -> set[str]:
    """Every resource as the names above it and its own."""
    return {
        "/".join([*(above.name for above in reversed(recording.ancestors(item.urn))), item.name])
        for item in recording
        if item.type.startswith(("azure-native:", "ebbtide:aks:"))
    }


def test_names_tell_where_a_resource_stands() -> None:
    """A component's name is the topology's and its role; what is in it has that name, or begins with it."""
    assert tree(synth(AKS)) == {
        "train",
        "train/train-group",
        "train/train-network",
        "train/train-network/train-network-vnet",
        "train/train-network/train-network-subnet",
        "train/train-identity",
        "train/train-identity/train-identity",
        "train/train-identity/train-identity-subnet",
        "train/train-cluster",
        "train/train-cluster/train-cluster",
        "train/train-cluster/train-cluster-deployer",
        *(f"train/train-{pool}" for pool in ("cpu", "t4", "steady")),
        *(f"train/train-{pool}/train-{pool}" for pool in ("cpu", "t4", "steady")),
    }


def test_a_pool_may_be_called_as_a_part_of_the_cluster_is() -> None:
    """A pool can have the name of another part of the cluster, because their types differ."""
    declaration = copy.deepcopy(AKS)
    for pool, name in zip(declaration["pools"][1:], ("network", "identity", "cluster"), strict=True):
        pool["name"] = name
    pools = synth(declaration).of_type(POOL)
    assert {pool.name for pool in pools} == {"train-network", "train-identity", "train-cluster"}


def test_the_kubernetes_provider_waits_for_the_cluster_and_its_administrators() -> None:
    """The system pool comes with the cluster, and access with the administrator's role."""
    recording = synth(AKS)
    (provider,) = recording.of_type("pulumi:providers:kubernetes")
    waited = {recording[urn].name for urn in provider.dependencies}
    assert {"train-cluster", "train-cluster-deployer"} <= waited
    assert isinstance(provider.inputs["kubeconfig"], Secret)


def test_an_existing_cluster_is_given_pools_alone() -> None:
    """Only pools are created in the resource group of an existing cluster, without protection or
    retention."""
    recording = synth(existing(resourceGroup="their-group", network={"subnet": SUBNET}))
    assert tree(recording) == {
        "train",
        *(f"train/train-{pool}" for pool in ("cpu", "t4", "steady")),
        *(f"train/train-{pool}/train-{pool}" for pool in ("cpu", "t4", "steady")),
    }
    for pool in recording.of_type(POOL):
        assert pool.inputs["resourceName"] == "their-aks"
        assert pool.inputs["resourceGroupName"] == "their-group"
        assert pool.inputs["vnetSubnetID"] == SUBNET
        assert pool.deleted_with is None
        assert not pool.protect


def test_the_credentials_of_an_existing_cluster_are_asked_for_in_its_group() -> None:
    """Nothing else is looked up: no administrator is granted, so the deployer's identity is not needed."""
    recording = synth(existing(resourceGroup="their-group"))
    (call,) = recording.invocations
    assert call.token.endswith(":listManagedClusterUserCredentials")
    assert call.args == {"resourceName": "their-aks", "resourceGroupName": "their-group"}


def test_an_existing_cluster_without_a_group_is_in_the_one_of_its_name() -> None:
    """Neither the subnet nor the group is guessed from anything else."""
    pools = synth(existing()).of_type(POOL)
    assert pools
    for pool in pools:
        assert pool.inputs["resourceGroupName"] == "their-aks"
        assert "vnetSubnetID" not in pool.inputs


def test_a_system_pool_can_be_declared_for_an_existing_cluster() -> None:
    """A system pool of an existing cluster is a separate resource, because the stack does not own the
    cluster's list."""
    declaration = existing()
    declaration["pools"].insert(0, AKS["pools"][0])
    leaf = synth(declaration).named("train-system", POOL)
    assert leaf.inputs["mode"] == "System"


def test_the_outputs_are_there_for_a_program_that_uses_the_topology() -> None:
    """Another program gets the pools by name, the provider, and the cluster as an escape hatch."""
    captured: dict[str, Any] = {}

    def program() -> None:
        topology = Topology("mine", declare(AKS))
        captured["pools"] = list(topology.pools)
        captured["cluster"] = topology.cluster is not None
        pulumi.export("name", topology.cluster_name)
        pulumi.export("kubeconfig", topology.kubeconfig)

    recording = record(program, project="theirs", stack="dev")
    assert captured == {"pools": ["cpu", "t4", "steady"], "cluster": True}
    assert recording.outputs["name"] == "train"
    assert isinstance(recording.outputs["kubeconfig"], Secret)
    assert recording.named("mine-cluster", "azure-native:containerservice:ManagedCluster").parent


def test_without_a_provider_of_its_own_every_resource_asks_for_the_same_version() -> None:
    """Resources without an SDK class use the same plugin version as the others."""
    recording = record(lambda: Topology("mine", declare(AKS)), project="theirs", stack="dev")
    versions = {item.version for item in recording if item.type.startswith("azure-native:")}
    assert len(versions) == 1
    assert None not in versions


def test_a_declaration_for_the_other_cloud_is_refused() -> None:
    """A declaration for GKE is refused with the name of its cloud."""
    with pytest.raises(ProgramError, match=r"train is declared for gke, not for aks"):
        record(lambda: Topology("mine", declare(GKE)), project="theirs", stack="dev")
