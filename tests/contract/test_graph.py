"""Properties of every graph, on both clouds, for any declaration."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings

from ebbtide.analysis.reading.pools import read_pools
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import Secret
from ebbtide.analysis.review.difference import compare
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from tests.contract.flips import EXISTING
from tests.declarations import BASES, Declaration, changed, declarations
from tests.synth import synth

_LABELS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, str]]] = {
    "gcp:container/cluster:Cluster": lambda inputs: inputs["resourceLabels"],
    "gcp:container/nodePool:NodePool": lambda inputs: inputs["nodeConfig"]["resourceLabels"],
    "azure-native:containerservice:ManagedCluster": lambda inputs: inputs["tags"],
    "azure-native:containerservice:AgentPool": lambda inputs: inputs["tags"],
    "azure-native:resources:ResourceGroup": lambda inputs: inputs["tags"],
    "azure-native:network:VirtualNetwork": lambda inputs: inputs["tags"],
    "azure-native:managedidentity:UserAssignedIdentity": lambda inputs: inputs["tags"],
    "azure-native:monitor:DataCollectionRule": lambda inputs: inputs["tags"],
    "azure-native:operationalinsights:Workspace": lambda inputs: inputs["tags"],
    "azure-native:storage:StorageAccount": lambda inputs: inputs["tags"],
    "gcp:filestore/instance:Instance": lambda inputs: inputs["labels"],
    "gcp:storage/bucket:Bucket": lambda inputs: inputs["labels"],
}
"""Where each type that is billed, or that the bill groups by, has its labels."""

_UNLABELLED = {
    # Google Cloud takes no labels on these; what they cost is the NAT gateway's hour while nodes are there.
    "gcp:compute/network:Network",
    "gcp:compute/subnetwork:Subnetwork",
    "gcp:compute/router:Router",
    "gcp:compute/routerNat:RouterNat",
    # Not billed.
    "gcp:projects/iAMMember:IAMMember",
    "gcp:serviceaccount/account:Account",
    "azure-native:network:Subnet",
    "azure-native:authorization:RoleAssignment",
    "azure-native:managedidentity:FederatedIdentityCredential",
    "azure-native:monitor:DataCollectionRuleAssociation",
    "azure-native:monitor:DiagnosticSetting",
    "gcp:serviceaccount/iAMMember:IAMMember",
    "gcp:storage/bucketIAMMember:BucketIAMMember",
    # Billed with the storage account that they are in.
    "azure-native:storage:BlobContainer",
    "azure-native:storage:BlobServiceProperties",
    "azure-native:storage:ManagementPolicy",
    "azure-native:storage:FileShare",
}


def _check_shape(recording: Recording) -> None:
    """Every resource has a component above it; only providers and components stand under the stack."""
    for resource in recording:
        above = recording.ancestors(resource.urn)
        if resource.custom and not resource.type.startswith("pulumi:providers:"):
            assert above
        assert all(not parent.custom for parent in above)
        if not above and resource.custom:
            assert resource.type.startswith("pulumi:providers:")


def _check_work_pools(declaration: Declaration, recording: Recording) -> None:
    """A work pool costs nothing until something runs on it, and nothing lands on it by accident."""
    marked = {pool.name: pool for pool in profile(declare(declaration)).pools}
    for made in read_pools(recording):
        if not made.is_system:
            assert made.nodes.min == 0
            assert made.initial_nodes in (0, None)
            assert marked[made.name].taints
            assert _identities(made.taints) <= _identities(marked[made.name].taints)


def _identities(taints: Any) -> set[tuple[str, str, str]]:
    """Return key, value and effect of taints, or of tolerations."""
    return {(item.key, item.value, item.effect) for item in taints or ()}


def _check_placement(declaration: Declaration, recording: Recording) -> None:
    """The profile tolerates each taint that is set, and asks only for labels that nodes carry."""
    marked = {pool.name: pool for pool in profile(declare(declaration)).pools}
    pools = read_pools(recording)
    assert {made.name for made in pools} == marked.keys()
    for made in pools:
        placed = marked[made.name]
        assert _identities(made.taints) <= _identities(placed.tolerations)
        assert all(placed.labels[item.key] in item.values for item in placed.affinity)
        assert made.labels.items() <= placed.labels.items()


def _check_protection(declaration: Declaration, recording: Recording) -> None:
    """No resource of an ephemeral stack is protected; a permanent stack protects some."""
    guards = [resource.protect for resource in recording] + [
        bool(resource.inputs["deletionProtection"])
        for resource in recording.of_type("gcp:container/cluster:Cluster")
    ]
    assert any(guards) is ("lifetime" not in declaration)


def with_storage(cloud: str) -> Declaration:
    """A declaration of everything that holds data in the cloud."""
    kinds: dict[str, tuple[str, str, Declaration]] = {
        "gke": ("filestore", "e2-standard-8", {"pipelines": {"artifacts": "bucket"}}),
        "aks": ("azure-files", "Standard_D8s_v5", {"logs": {}}),
    }
    disk, machine, addons = kinds[cloud]
    teams: list[Declaration] = [
        {"name": "one", "bucket": {}, "volume": {"kind": disk}},
        {"name": "two", "volume": {}},
    ]
    declaration = changed(BASES[cloud], teams=teams, addons=addons)
    declaration["pools"][0]["machine"] = machine
    return declaration


def _check_labels(declaration: Declaration, recording: Recording) -> None:
    """Cluster, owner and expiry, pool and team are on everything that has labels; the rest is listed."""
    expected = {"ebbtide-cluster": "train", "ebbtide-owner": "vision-team"}
    if "lifetime" in declaration:
        expected["ebbtide-expires"] = f"{declaration['lifetime']['hours']}h-after-the-first-up"
    pools = {pool.urn: {"ebbtide-pool": pool.name} for pool in read_pools(recording) if not pool.inline}
    for resource in recording:
        if resource.type in _LABELS:
            part = pools.get(resource.urn) or _team(recording, resource)
            assert _LABELS[resource.type](resource.inputs) == expected | part
        elif resource.custom and resource.type.startswith(("gcp:", "azure-native:")):
            assert resource.type in _UNLABELLED


def _team(recording: Recording, resource: Resource) -> dict[str, str]:
    """The label of the team whose component the resource is in; none for other resources."""
    above = [item.name for item in recording.ancestors(resource.urn)]
    found = next(filter(None, (re.search(r"-team-(.+?)(-images)?$", name) for name in above)), None)
    return {"ebbtide-team": found[1]} if found else {}


@pytest.mark.parametrize("cloud", BASES)
def test_an_inline_pool_has_its_label(cloud: str) -> None:
    """The system pool within an AKS cluster is billed under its name, as every other pool."""
    pools = read_pools(synth(BASES[cloud]))
    assert {pool.name for pool in pools} == {pool["name"] for pool in BASES[cloud]["pools"]}
    assert [pool.name for pool in pools if pool.billing["ebbtide-pool"] != pool.name] == []


def _check_deletion(recording: Recording) -> None:
    """`deleted_with` stands on every pool that is not part of the cluster itself."""
    for made in read_pools(recording):
        if not made.inline:
            deleted_with = recording[made.urn].deleted_with
            assert deleted_with is not None
            assert recording[deleted_with].type.endswith(("cluster:Cluster", "ManagedCluster"))


@settings(max_examples=20, deadline=None)
@given(declarations())
@example(with_storage("gke"))
@example(with_storage("aks"))
def test_every_graph(declaration: Declaration) -> None:
    """Shape, taints, protection, labels and deletion of a graph are right, whatever is declared."""
    recording = synth(declaration)
    _check_shape(recording)
    _check_work_pools(declaration, recording)
    _check_placement(declaration, recording)
    _check_protection(declaration, recording)
    _check_labels(declaration, recording)
    _check_deletion(recording)


@pytest.mark.parametrize("cloud", BASES)
def test_the_kubeconfig_is_secret_and_holds_no_credential(cloud: str) -> None:
    """The kubeconfig contains only the control plane's address and the program that fetches a token."""
    recording = synth(BASES[cloud])
    user = kubeconfig(recording)["users"][0]["user"]
    assert list(user) == ["exec"]
    assert user["exec"]["command"] in {"gke-gcloud-auth-plugin", "kubelogin"}


def kubeconfig(recording: Recording) -> dict[str, Any]:
    """The kubeconfig among a stack's outputs."""
    secret = recording.outputs["kubeconfig"]
    assert isinstance(secret, Secret)
    assert "exec" not in repr(secret)
    return json.loads(str(secret.value))


@pytest.mark.parametrize("cloud", BASES)
def test_the_kubernetes_provider_waits_for_the_system_pool(cloud: str) -> None:
    """Nothing is installed on the cluster before it has a node."""
    recording = synth(BASES[cloud])
    (provider,) = recording.of_type("pulumi:providers:kubernetes")
    (system,) = [made for made in read_pools(recording) if made.is_system]
    assert system.urn in provider.dependencies


@pytest.mark.parametrize("cloud", BASES)
def test_only_the_declared_account_is_used(cloud: str) -> None:
    """Every cloud resource has the provider made from the declaration, never the ambient one."""
    recording = synth(BASES[cloud])
    of_cloud = [item for item in recording if item.custom and item.type.startswith(("gcp:", "azure-native:"))]
    assert of_cloud
    assert [item.urn for item in of_cloud if item.provider is None] == []


@pytest.mark.parametrize("cloud", BASES)
def test_another_owner_replaces_nothing(cloud: str) -> None:
    """A new owner does not replace the GKE cluster, whose description used to contain it."""
    changes = compare(*(synth(changed(BASES[cloud], owner=owner)) for owner in ("vision", "speech")))
    assert {change.action for change in changes} == {"update"}


_OF_A_CLUSTER = ("gcp:container/cluster:", "gcp:compute/", "azure-native:network:", "azure-native:resources:")


@pytest.mark.parametrize("cloud", BASES)
def test_an_existing_cluster_is_only_added_to(cloud: str) -> None:
    """Pools are added to an existing cluster; it is neither created nor changed."""
    recording = synth(EXISTING[cloud])
    made = {resource.type for resource in recording if resource.custom and not resource.read}
    assert not [kind for kind in made if kind.startswith(_OF_A_CLUSTER) or kind.endswith(":ManagedCluster")]
    assert [pool.name for pool in read_pools(recording)] == ["work"]
    assert all(resource.deleted_with is None for resource in recording)
    assert recording.outputs["clusterName"] == "theirs"
