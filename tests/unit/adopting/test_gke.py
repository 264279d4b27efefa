"""A declaration of a found GKE cluster is the same cluster again."""

from dataclasses import replace
from typing import Any

import pytest

from ebbtide.analysis.reading import gke
from ebbtide.declaration.model.declare import declare
from ebbtide.operations.adopting import google, sources, terraform
from ebbtide.operations.adopting.found import CHANGED, LEFT, STATUSES, Adoption, AdoptionError, Found, merged
from ebbtide.operations.adopting.proof import adopt
from tests.synth import synth
from tests.unit.adopting import aks_shapes
from tests.unit.adopting.gke_shapes import Document, cluster, pool, queued_gpus


def adopted(document: Document, *objects: Document, pools_only: bool = False) -> Adoption:
    """The proved adoption of a described cluster with objects of Kueue."""
    found = google.read(document, "cluster.json")
    assert found is not None
    found = replace(sources.one_cluster(found, None), objects=objects)
    top = {"name": found.clusters[0].name, "owner": "vision-team"}
    return adopt(found, top, google.cloud_fields(found), synth, pools_only=pools_only)


def _pools(adoption: Adoption) -> dict[str, Any]:
    return {item["name"]: item for item in adoption.declaration["pools"]}


_T4 = pool(
    "t4",
    "n1-standard-8",
    initialNodeCount=0,
    autoscaling={"enabled": True, "maxNodeCount": 4},
    config={
        "spot": True,
        "labels": {"role": "gpu"},
        "accelerators": [
            {
                "acceleratorCount": "1",
                "acceleratorType": "nvidia-tesla-t4",
                "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
            }
        ],
        "taints": [
            {"key": "gpu", "value": "only", "effect": "NO_SCHEDULE"},
            {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"},
        ],
    },
)
WORKLOAD_IDENTITY = {"workloadIdentityConfig": {"workloadPool": "acme-ml.svc.id.goog"}}


def test_a_cluster_of_gcloud_is_declared_whole() -> None:
    """Access, network and pools are declared as they are, with the taints and labels that pods rely on."""
    adoption = adopted(
        cluster("lab", "us-central1-a", [pool("admin", "e2-standard-4"), _T4], **WORKLOAD_IDENTITY)
    )
    declaration = adoption.declaration
    assert declaration["cloud"]["access"] == {"networks": ["0.0.0.0/0"]}
    assert declaration["cloud"]["network"] == {
        "vpc": "projects/acme-ml/global/networks/default",
        "subnet": "projects/acme-ml/regions/us-central1/subnetworks/default",
        "podsRange": "gke-c-pods-0d6f2c3e",
    }
    pools = _pools(adoption)
    assert pools["admin"]["role"] == "system"
    assert pools["t4"] | {"overrides": {}} == {
        "name": "t4",
        "machine": "n1-standard-8",
        "accelerator": {"type": "nvidia-tesla-t4", "driver": "latest"},
        "capacity": "spot",
        "nodes": {"max": 4},
        "labels": {"role": "gpu"},
        "taints": [
            {"key": "gpu", "value": "only", "effect": "NoSchedule"},
            {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        ],
        "serviceAccount": "default",
        "upgrade": {"maxSurge": 1},
        "overrides": {},
    }
    assert [item["id"].rpartition("/")[2] for item in adoption.resources] == ["lab", "admin", "t4"]
    assert [row.path for row in adoption.fields if row.status == CHANGED] == [
        "controlPlaneEndpointsConfig.dnsEndpointConfig.allowExternalTraffic"
    ]
    assert declare(declaration)


def test_pools_alone_leave_the_cluster_to_its_owner() -> None:
    """With `--pools-only` the cluster is an existing one, an untainted pool stays untainted, and the engine
    refuses to delete the pools unless a lifetime is declared."""
    adoption = adopted(
        cluster("lab", "us-central1-a", [pool("admin", "e2-standard-4"), _T4]), pools_only=True
    )
    assert adoption.declaration["cloud"] == {
        "kind": "gke",
        "project": "acme-ml",
        "location": "us-central1-a",
        "existing": {"name": "lab"},
    }
    assert _pools(adoption)["admin"]["taints"] == []
    assert [item["type"] for item in adoption.resources] == ["gcp:container/nodePool:NodePool"] * 2
    for lifetime, is_protected in (({}, True), ({"lifetime": {"hours": 8}}, False)):
        made = synth({**adoption.declaration, **lifetime}).of_type("gcp:container/nodePool:NodePool")
        assert [item.protect for item in made] == [is_protected] * 2


def test_kueue_is_not_installed_for_a_queued_pool() -> None:
    """A queued pool is left out, or declared with the Kueue of the cluster's owner."""
    alone = adopted(queued_gpus())
    with_kueue = adopted(queued_gpus(), {"kind": "ResourceFlavor"})
    assert with_kueue.declaration["addons"]["kueue"] == {"existing": True}
    assert len(with_kueue.declaration["pools"]) == len(alone.declaration["pools"]) + len(alone.left_out)
    assert all("the stack would install Kueue" in part.reason for part in alone.left_out)
    for adoption in (alone, with_kueue):
        assert not declare(adoption.declaration).installed


def test_a_cluster_that_would_be_replaced_stays_with_its_owner() -> None:
    """A cluster of alpha features cannot become another one, and Ebbtide relies on upgrades."""
    document = cluster("lab", "us-central1-a", [pool("admin", "e2-standard-4")], enableKubernetesAlpha=True)
    adoption = adopted(document)
    assert adoption.declaration["cloud"]["existing"] == {"name": "lab"}
    (part,) = adoption.left_out
    assert part.name == "cluster"
    assert "enableKubernetesAlpha" in part.reason
    assert "would be replaced" in part.reason


def test_windows_pools_are_left_out_and_said() -> None:
    """A pool of Windows nodes is not declared, and the others are."""
    windows = pool("win", "n1-standard-8", config={"imageType": "WINDOWS_LTSC_CONTAINERD"})
    adoption = adopted(cluster("lab", "us-central1-a", [pool("admin", "e2-standard-4"), windows]))
    assert list(_pools(adoption)) == ["admin"]
    assert [part.name for part in adoption.left_out] == ["pool win"]


def test_an_autopilot_cluster_is_refused() -> None:
    """GKE manages the nodes of an Autopilot cluster: there is nothing to declare."""
    with pytest.raises(AdoptionError, match="lab is an Autopilot cluster"):
        adopted(cluster("lab", "us-central1", [], autopilot={"enabled": True}))


def test_every_field_is_counted_once() -> None:
    """Fields that were read are declared, overridden, changed or left, the last two with a reason: what stays
    is not what Ebbtide sets."""
    adoption = adopted(cluster("lab", "us-central1-a", [pool("admin", "e2-standard-4"), _T4]))
    for read, *parts in adoption.counts().values():
        assert read == sum(parts)
    reasons = {status: [row.reason for row in adoption.fields if row.status == status] for status in STATUSES}
    assert all(reason.startswith("Ebbtide ") for reason in reasons[CHANGED])
    assert reasons[CHANGED]
    assert not [reason for reason in reasons[LEFT] if not reason or reason.startswith("Ebbtide ")]


_NODES = {
    "name": "batch",
    "initial_node_count": 0,
    "node_count": 0,
    "autoscaling": [{"min_node_count": 0, "max_node_count": 3, "location_policy": "ANY"}],
    "management": [{"auto_repair": True, "auto_upgrade": True}],
    "node_config": [
        {
            "machine_type": "n2-standard-8",
            "disk_size_gb": 50,
            "disk_type": "pd-ssd",
            "image_type": "COS_CONTAINERD",
            "local_ssd_count": 0,
            "preemptible": False,
            "spot": True,
            "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
            "service_account": "gpu-nodes@acme-ml.iam.gserviceaccount.com",
            "taint": [{"key": "batch", "value": "true", "effect": "NO_SCHEDULE"}],
            "workload_metadata_config": [{"mode": "GKE_METADATA"}],
            "guest_accelerator": [],
            "metadata": {"disable-legacy-endpoints": "true"},
            "shielded_instance_config": [{"enable_integrity_monitoring": True, "enable_secure_boot": False}],
        }
    ],
    "node_locations": ["us-central1-a"],
    "version": "1.33.5",
}
_CLUSTER_ID = "projects/acme-ml/locations/us-central1-a/clusters/lab"
_ATTRIBUTES = {
    "id": _CLUSTER_ID,
    "name": "lab",
    "location": "us-central1-a",
    "project": "acme-ml",
    "network": "projects/acme-ml/global/networks/lab",
    "subnetwork": "projects/acme-ml/regions/us-central1/subnetworks/lab",
    "networking_mode": "VPC_NATIVE",
    "ip_allocation_policy": [
        {"cluster_secondary_range_name": "pods", "services_secondary_range_name": "services"}
    ],
    "private_cluster_config": [{"enable_private_nodes": True, "enable_private_endpoint": False}],
    "release_channel": [{"channel": "STABLE"}],
    "datapath_provider": "ADVANCED_DATAPATH",
    "enable_autopilot": None,
    "node_pool": [_NODES],
}


def test_a_terraform_state_is_read() -> None:
    """Blocks of one, snake case and singular lists become the provider's inputs; zeroes are not values."""
    attributes: dict[str, Document] = {
        "google_container_cluster": _ATTRIBUTES,
        "google_container_node_pool": {**_NODES, "id": f"{_CLUSTER_ID}/nodePools/batch"},
        "google_service_account": {"id": "nodes"},
    }
    state = aks_shapes.terraform(
        *(aks_shapes.terraform_resource(kind, "a", own) for kind, own in attributes.items())
    )
    found = terraform.read(state, "terraform.tfstate")
    assert found is not None
    adoption = adopt(
        found, {"name": "lab", "owner": "ml"}, google.cloud_fields(found), synth, pools_only=True
    )
    (batch,) = adoption.declaration["pools"]
    assert {key: value for key, value in batch.items() if key != "overrides"} == {
        "name": "batch",
        "machine": "n2-standard-8",
        "capacity": "spot",
        "nodes": {"max": 3},
        "disk": {"sizeGib": 50, "type": "pd-ssd"},
        "taints": [{"key": "batch", "value": "true", "effect": "NoSchedule"}],
        "serviceAccount": "gpu-nodes@acme-ml.iam.gserviceaccount.com",
        "protect": True,
    }
    assert [item["id"] for item in adoption.resources] == [f"{_CLUSTER_ID}/nodePools/batch"]


def test_zeroes_that_the_provider_requires_are_sent() -> None:
    """Google's API omits them, and an override of their object does not have them."""
    machine = {"advancedMachineFeatures": {"enableNestedVirtualization": True}}
    adoption = adopted(cluster("lab", "us-central1-a", [pool("admin", "n2-standard-4", config=machine)]))
    assert _pools(adoption)["admin"]["overrides"]["nodeConfig"]["advancedMachineFeatures"] == {
        "enableNestedVirtualization": True
    }
    (config,) = (item.inputs["nodeConfig"] for item in adoption.recording if item.type == gke.NODE_POOL)
    assert isinstance(config, dict)
    assert config["advancedMachineFeatures"] == {"enableNestedVirtualization": True, "threadsPerCore": 0}


@pytest.mark.parametrize(
    ("location", "zones"),
    [("europe-north9", ["europe-north9-b", "europe-north9-c"]), ("europe-north9-a", ["europe-north9-a"])],
)
def test_a_region_that_is_newer_than_the_tables_is_declared(location: str, zones: list[str]) -> None:
    """A cluster in a region that no table has is adopted, with the region and its zones under `regions`."""
    document = cluster("c", location, [{**_T4, "locations": zones}], locations=zones)
    cloud = adopted(document, pools_only=True).declaration["cloud"]
    assert (cloud["location"], cloud["regions"]) == (location, [{"name": "europe-north9", "zones": zones}])


def test_later_documents_replace_a_resource() -> None:
    """A pool that two documents have is adopted once, as the later one has it; objects of Kueue are added."""
    first, last = (
        google.read(cluster("lab", "us-central1-a", [pool("cpu", machine)]), "cluster.json")
        for machine in ("e2-standard-4", "n2-standard-8")
    )
    assert first
    assert last
    whole = merged([first, last, Found(objects=({"kind": "ClusterQueue"},))])
    assert first.pools != whole.pools == last.pools
    assert whole.objects
