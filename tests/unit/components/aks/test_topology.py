"""The whole AKS topology: what stands where, what it waits for, and what is left alone."""

from typing import Any

import pulumi
import pytest

from components.aks import Topology
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.values import Secret
from ebbtide.declaration.model.declare import declare
from tests.declarations import AKS, GKE


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
