"""A declaration of a found AKS cluster is the same cluster again."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from ebbtide.analysis.reading.aks import AGENT_POOL, CLUSTER
from ebbtide.analysis.recording.recording import Recording
from ebbtide.operations.adopting import azure, sources, terraform
from ebbtide.operations.adopting.found import CHANGED, LEFT, Adoption, AdoptionError, Found, merged
from ebbtide.operations.adopting.inputs import fitted
from ebbtide.operations.adopting.proof import adopt
from tests.declarations import Declaration, declarations
from tests.synth import synth
from tests.unit.adopting import aks_shapes as shapes
from tests.unit.adopting.gke_shapes import Document
from tests.unit.adopting.test_nothing_is_skipped import unlisted


def found(documents: list[Document]) -> Found:
    """The described cluster."""
    read = [azure.read(item, "f.json") or terraform.read(item, "f.json") for item in documents]
    return sources.one_cluster(merged(item for item in read if item), None)


def adopted(documents: list[Document], *, pools_only: bool = False) -> Adoption:
    """The proved adoption of a described cluster."""
    cluster = found(documents)
    top = {"name": cluster.clusters[0].name, "owner": "vision-team"}
    return adopt(cluster, top, azure.cloud_fields(cluster), synth, pools_only=pools_only)


_TABLES = {
    "SPOT_DOCS": {"spotnodepool": (30, 29, 0, 0, 1)},
    "RAY": {"gpupool": (24, 23, 0, 0, 1)},
    "CILIUM": {
        "research": (63, 49, 13, 1, 0),
        "system": (29, 29, 0, 0, 0),
        "cpu": (30, 30, 0, 0, 0),
        "gpu": (34, 33, 1, 0, 0),
    },
    "VERIFIED": {
        "aks-verified": (42, 24, 17, 1, 0),
        "systempool": (26, 26, 0, 0, 0),
    },
}
"""Fields of each shape that were read, declared, overridden, changed and left, by resource."""

_OTHERS = {
    "SPOT_DOCS": ["orchestratorVersion"],
    "RAY": ["orchestratorVersion"],
    "CILIUM": ["autoScalerProfile.expander"],
    "VERIFIED": ["oidcIssuerProfile.enabled"],
}


@pytest.mark.parametrize("shape", _TABLES)
def test_shapes_are_adopted(shape: str) -> None:
    """At least 95 % of the fields of a public example's cluster are declared or overridden, no resource is
    replaced, and the others are listed with a reason."""
    adoption = adopted(getattr(shapes, shape))
    counts = adoption.counts()
    read, *_, changed, left = counts.pop("total")
    assert counts == _TABLES[shape]
    assert (changed + left) / read <= 0.05
    others = [row for row in adoption.fields if row.status in (CHANGED, LEFT)]
    assert [row.path for row in others] == _OTHERS[shape]
    assert all(row.reason for row in others)
    ids = {item["id"] for item in adoption.resources}
    adopted_ids = {item.id for item in found(getattr(shapes, shape)).resources if not item.inline}
    assert ids <= adopted_ids
    assert unlisted(found(getattr(shapes, shape)), adoption) == []


def test_a_region_that_is_newer_than_the_tables_is_declared() -> None:
    """A cluster in a region that no table has is adopted, with the region and its pools' zones under
    `regions`."""
    documents = [
        {**item, **({"location": "polandsouth"} if "location" in item else {})} for item in shapes.CILIUM
    ]
    cloud = adopted(documents, pools_only=True).declaration["cloud"]
    assert (cloud["location"], cloud["regions"]) == (
        "polandsouth",
        [{"name": "polandsouth", "zones": ["1", "2"]}],
    )


@pytest.mark.parametrize("pools_only", [False, True])
def test_a_pool_keeps_its_capacity_reservation_group(*, pools_only: bool) -> None:
    """The pool is declared with the id of its group, and neither the group nor a reservation is created."""
    group = (
        "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/held"
        "/providers/Microsoft.Compute/capacityReservationGroups/g"
    )
    documents = json.loads(
        json.dumps(shapes.CILIUM).replace(
            '"capacityReservationGroupId": null', f'"capacityReservationGroupId": "{group}"'
        )
    )
    adoption = adopted(documents, pools_only=pools_only)
    capacities = {item["name"]: item.get("capacity") for item in adoption.declaration["pools"]}
    assert capacities["cpu"] == {"kind": "reservation", "name": group}
    assert [row.path for row in adoption.updates if "capacityReservation" in row.path] == []
    assert [type_ for type_, _ in adoption.created if "apacityReservation" in type_] == []


@pytest.mark.parametrize("pools_only", [False, True])
def test_sizes_keep_the_spelling_that_azure_has(*, pools_only: bool) -> None:
    """Azure keeps `standard_d4s_v5`, and the provider would replace a pool for another case."""
    documents = json.loads(json.dumps(shapes.CILIUM).replace("Standard_", "standard_"))
    adoption = adopted(documents, pools_only=pools_only)
    names = {"system", "cpu", "gpu"} - ({"system"} if pools_only else set())
    assert {item["name"] for item in adoption.declaration["pools"]} == names
    assert all(item["overrides"]["vmSize"].startswith("standard_") for item in adoption.declaration["pools"])
    assert [row.path for row in adoption.updates if "vmSize" in row.path] == []


def test_the_owners_device_plugin_stays_the_only_one() -> None:
    """AKS has no device plugin of its own: GPU pools in use have the owner's, and another would compete."""
    adoption = adopted(shapes.RAY, pools_only=True)
    assert adoption.declaration["addons"] == {"drivers": "none"}
    assert [name for _, name in adoption.created if "device-plugin" in name] == []


def test_new_pools_are_in_the_owners_subnet() -> None:
    """Pools of a cluster that stays with its owner keep their subnet and version: no update is listed that
    removes them."""
    adoption = adopted(shapes.CILIUM, pools_only=True)
    subnet = found(shapes.CILIUM).pools[0].inputs["vnetSubnetID"]
    assert adoption.declaration["cloud"]["network"] == {"subnet": subnet}
    assert [row.path for row in adoption.updates if row.new is None] == []


def test_a_spot_pool_is_declared_without_what_aks_adds() -> None:
    """The label and the taint of spot nodes follow from the capacity; a cluster without Entra ID stays with
    its owner, and so does its system pool."""
    adoption = adopted(shapes.SPOT_DOCS)
    assert adoption.declaration["pools"] == [
        {
            "name": "spotnodepool",
            "machine": "Standard_D4ds_v5",
            "capacity": {"kind": "spot", "evictionPolicy": "Delete"},
            "nodes": {"min": 1, "max": 3},
            "disk": {"sizeGib": 128, "kubeletDiskType": "OS"},
            "maxPodsPerNode": 250,
            "protect": True,
        }
    ]
    assert adoption.declaration["cloud"]["existing"] == {"name": "docs"}
    assert [part.name for part in adoption.left_out] == ["cluster", "pool nodepool1"]
    assert "Entra ID" in adoption.left_out[0].reason


def test_a_whole_cluster_keeps_its_identity_and_its_network() -> None:
    """A cluster of Azure Verified Modules has AKS's network without policies, and an identity of its own."""
    cloud = adopted(shapes.VERIFIED).declaration["cloud"]
    assert cloud["network"] == {"managed": True}
    assert cloud["overrides"]["identity"] == {"type": "SystemAssigned", "userAssignedIdentities": []}
    assert cloud["overrides"]["networkProfile"]["networkDataplane"] == "azure"
    research = adopted(shapes.CILIUM)
    assert not [token for token, _ in research.created if token.endswith("UserAssignedIdentity")]
    assert research.declaration["pools"][2]["taints"] == [
        {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"},
        {"key": "sku", "value": "gpu", "effect": "NoSchedule"},
    ]


def _rest(document: Document) -> Document:
    """The document of Azure Resource Manager for one of the CLI, whose properties are in the resource."""
    outer = ("id", "name", "type", "location", "tags", "identity", "sku")
    return {
        **{key: value for key, value in document.items() if key in outer},
        "properties": {key: value for key, value in document.items() if key not in outer},
    }


def test_the_api_and_the_cli_describe_one_cluster() -> None:
    """Properties in an object of their own, as Azure Resource Manager has them, are read as the CLI's."""
    (cluster,) = shapes.CILIUM
    assert found([{"value": [_rest(cluster)]}]) == found(shapes.CILIUM)


def test_secrets_of_a_state_are_not_read() -> None:
    """A Terraform state has kubeconfigs and passwords, which neither the inputs nor a message have."""
    cluster = found(shapes.RAY)
    assert "a secret" in json.dumps(shapes.RAY)
    assert "a secret" not in repr(cluster)
    (system,) = [pool for pool in cluster.pools if pool.inline]
    assert system.inputs["nodeTaints"] == ["CriticalAddonsOnly=true:NoSchedule"]
    assert "scaleSetPriority" not in cluster.pools[1].inputs


def test_maintenance_windows_of_terraform_are_schedules() -> None:
    """The window of both schedules is declared; blocks that differ are schedules of their own."""
    blocks, pool = shapes.TERRAFORM_WINDOWS, shapes.terraform_pool("system", "Standard_D4ds_v5")
    state: Document = shapes.terraform_cluster(pool, **blocks) | {"maintenance_window": []}
    resource = shapes.terraform_resource("azurerm_kubernetes_cluster", "ray", state)
    assert azure.cloud_fields(found([shapes.terraform(resource)]))["maintenance"] == {
        "window": {"days": ["saturday"], "start": "02:00", "duration": "6h"},
        "exclusions": [{"name": "exclusion-1", "start": "2026-12-20", "end": "2027-01-02"}],
    }
    state |= blocks
    cluster = found([shapes.terraform(resource)])
    (inputs,) = [item.inputs for item in cluster.resources if item.name == "default"]
    assert inputs["timeInWeek"] == [{"day": "Sunday", "hourSlots": [1, 2]}]
    assert inputs["notAllowedTime"] == blocks["maintenance_window"][0]["not_allowed"]
    assert azure.cloud_fields(cluster)["maintenance"] is None


def test_a_schedule_that_no_declaration_has_is_listed() -> None:
    """A monthly window stays outside of the stack, which the adoption says."""
    (cluster,) = shapes.CILIUM
    window = {
        "schedule": {"absoluteMonthly": {"intervalMonths": 1, "dayOfMonth": 1}},
        "durationHours": 4,
        "startTime": "02:00",
    }
    id_ = f"{cluster['id']}/maintenanceConfigurations/aksManagedAutoUpgradeSchedule"
    adoption = adopted([cluster, {"id": id_, "properties": {"maintenanceWindow": window}}])
    assert [part.name for part in adoption.left_out] == ["maintenance schedule aksManagedAutoUpgradeSchedule"]
    assert "maintenance" not in adoption.declaration["cloud"]


def _research(*pools: Document, **changes: Any) -> list[Document]:
    system = shapes.CILIUM[0]["agentPoolProfiles"][0]
    document = {**shapes.CILIUM[0], "agentPoolProfiles": [system, *pools], **changes}
    return [document]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"osType": "Windows"}, "Windows nodes"),
        ({"type": "VirtualMachines"}, "It consists of VirtualMachines"),
        ({"mode": "Gateway"}, "Its mode is Gateway"),
        ({"powerState": {"code": "Stopped"}}, "az aks nodepool start"),
        ({"mode": "System"}, "A declaration has one system pool, system"),
        ({"vmSize": "Standard_Q1"}, "`machine: {type: Standard_Q1, vcpus: …, memoryGib: …}`"),
    ],
)
def test_pools_that_cannot_be_declared_are_left_out(changes: Document, reason: str) -> None:
    """A pool that Ebbtide does not support is left out with the reason, and the others are adopted."""
    other = shapes.pool("other", "Standard_D4ds_v5", vnetSubnetId=None) | changes
    adoption = adopted(_research(other))
    assert [pool["name"] for pool in adoption.declaration["pools"]] == ["system"]
    (part,) = adoption.left_out
    assert part.name == "pool other"
    assert reason in part.reason


@pytest.mark.parametrize("pools_only", [False, True])
def test_a_pool_keeps_its_own_subnet(*, pools_only: bool) -> None:
    """A subnet beside the cluster's is declared, since AKS moves no pool to another one."""
    other = shapes.pool("other", "Standard_D4ds_v5", vnetSubnetId=f"{shapes.SUBNET}-2")
    adoption = adopted(_research(other), pools_only=pools_only)
    subnets = {pool["name"]: pool.get("subnet") for pool in adoption.declaration["pools"]}
    assert subnets["other"] == f"{shapes.SUBNET}-2"
    assert subnets.get("system") is None
    assert not [part for part in adoption.left_out if part.name == "pool other"]


def test_a_change_that_aks_refuses_leaves_the_pool_out() -> None:
    """AKS moves no pool to another network, which azure-native would send as an update."""
    moved = shapes.SUBNET.replace("/virtualNetworks/", "/virtualNetworks/other-")
    adoption = adopted(_research(shapes.pool("other", "Standard_D4ds_v5", vnetSubnetId=moved)))
    (part,) = adoption.left_out
    assert part.name == "pool other"
    assert "another network" in part.reason


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        ({"sku": {"name": "Automatic", "tier": "Standard"}}, "research is an AKS Automatic cluster"),
        ({"id": None}, "it has no `id`"),
        ({"agentPoolProfiles": []}, "has no `agentPoolProfiles`"),
        ({"location": None}, "has no `location`"),
    ],
)
def test_clusters_that_cannot_be_read_are_refused(document: Document, answer: str) -> None:
    """A cluster without pools of its own, and a part of a description, get one answer with the command."""
    with pytest.raises(AdoptionError, match=answer):
        azure.read({**shapes.CILIUM[0], **document}, "cluster.json")


def test_clusters_of_two_subscriptions_are_refused() -> None:
    """A stack declares one cluster of one subscription."""
    other = {**shapes.CILIUM[0], "id": shapes.CILIUM[0]["id"].replace("0001", "0002")}
    with pytest.raises(AdoptionError, match="clusters of several subscriptions"):
        azure.read([shapes.CILIUM[0], other], "clusters.json")
    with pytest.raises(AdoptionError, match="two accounts"):
        found([shapes.CILIUM[0], other])


def test_the_table_of_terraform_names_inputs() -> None:
    """Each path of the table is an input of the provider's type."""
    for resource, token in (("cluster", CLUSTER), ("pool", AGENT_POOL)):
        for path in filter(None, terraform.azure_names(resource).values()):
            document: Document = {}
            *parents, last = path.split(".")
            holder = document
            for key in parents:
                holder = holder.setdefault(key, {})
            holder[last] = "1"
            assert path in _CONVERTED or fitted(token, document).inputs, path


_CONVERTED = {"apiServerAccessProfile.runCommandEnabled"}
"""Paths that the code converts after the table."""


def _created(recording: Recording) -> dict[tuple[str, str], Any]:
    """The inputs of the clusters and pools of a recording."""
    return {
        (item.type, item.name): dict(item.inputs) for item in recording if item.type in (CLUSTER, AGENT_POOL)
    }


def _described(recording: Recording) -> list[Document]:
    """The documents of Azure Resource Manager about the clusters and pools of a recording."""
    documents: list[Document] = []
    for (token, _), inputs in _created(recording).items():
        own = dict(inputs)
        names = [own.pop(key) for key in ("resourceGroupName", "resourceName")]
        id_ = shapes.cluster_id(*names)
        if token == AGENT_POOL:
            documents.append({"id": f"{id_}/agentPools/{own.pop('agentPoolName')}", "properties": own})
        else:
            documents.append({"id": id_, "properties": own, "identity": own.pop("identity")})
    return documents


@settings(max_examples=8, deadline=None)
@given(declarations("aks"))
def test_a_cluster_of_ebbtide_is_declared_as_it_was(declaration: Declaration) -> None:
    """The declaration of a cluster that Ebbtide created has the inputs of its cluster and pools again."""
    declaration.pop("lifetime", None)
    declaration["cloud"]["subscription"] = shapes.SUBSCRIPTION
    recording = synth(declaration)
    adoption = adopted(_described(recording))
    assert _created(adoption.recording) == _created(recording)
    assert not [row for row in adoption.fields if row.status == LEFT]
    assert not adoption.left_out
