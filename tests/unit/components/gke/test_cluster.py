"""The GKE cluster and what is around it, at named paths."""

import json
from typing import Any

import pytest

from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import Secret, at
from tests.declarations import GKE, Declaration, changed
from tests.synth import synth

CLUSTER = "gcp:container/cluster:Cluster"


def cluster(recording: Recording) -> Any:
    """Inputs of the one cluster."""
    (resource,) = recording.of_type(CLUSTER)
    return resource.inputs


def cloud(**more: Any) -> dict[str, Any]:
    """The declaration with other fields of its cloud."""
    return changed(GKE, cloud=GKE["cloud"] | more)


def test_a_private_control_plane_has_an_address_in_its_network_alone() -> None:
    """There is no DNS endpoint, and what is in other networks gets in by their ranges; the kubeconfig has the
    address and its authority."""
    recording = synth(cloud(access={"private": True, "networks": ["10.60.0.0/16"]}))
    inputs = cluster(recording)
    assert inputs["privateClusterConfig"] == {"enablePrivateNodes": True, "enablePrivateEndpoint": True}
    assert inputs["controlPlaneEndpointsConfig"] == {
        "dnsEndpointConfig": {"allowExternalTraffic": False},
        "ipEndpointsConfig": {"enabled": True},
    }
    blocks = inputs["masterAuthorizedNetworksConfig"]["cidrBlocks"]
    assert [block["cidrBlock"] for block in blocks] == ["10.60.0.0/16"]
    kubeconfig = recording.outputs["kubeconfig"]
    assert isinstance(kubeconfig, Secret)
    server = json.loads(str(kubeconfig.value))["clusters"][0]["cluster"]
    assert "certificate-authority-data" in server
    assert "gke.goog" not in server["server"]


RING = "projects/acme-keys/locations/us-central1/keyRings/ml/cryptoKeys"
KEY_MEMBER = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"


def test_declared_keys_encrypt_buckets_and_registries() -> None:
    """The service agents of Cloud Storage and Artifact Registry may use the keys before anything is stored
    with them, and still after a destroy."""
    keys = {"buckets": f"{RING}/data", "registries": f"{RING}/images"}
    team: dict[str, Any] = {"name": "vision", "bucket": {}, "registry": {}}
    pipelines = {"pipelines": {"artifacts": "bucket"}}
    recording = synth(cloud(keys=keys) | {"teams": [team], "addons": pipelines})
    buckets = recording.of_type("gcp:storage/bucket:Bucket")
    (repository,) = recording.of_type("gcp:artifactregistry/repository:Repository")
    assert [bucket.inputs["encryption"] for bucket in buckets] == [{"defaultKmsKeyName": f"{RING}/data"}] * 2
    assert repository.inputs["kmsKeyName"] == f"{RING}/images"
    grants = {grant.inputs["cryptoKeyId"]: grant for grant in recording.of_type(KEY_MEMBER)}
    agents = {key: str(grant.inputs["member"]).partition("@")[2] for key, grant in grants.items()}
    assert agents == {
        f"{RING}/data": "gs-project-accounts.iam.gserviceaccount.com",
        f"{RING}/images": "gcp-sa-artifactregistry.iam.gserviceaccount.com",
    }
    assert all(grant.retain_on_delete for grant in grants.values())
    assert all(grants[f"{RING}/data"].urn in bucket.dependencies for bucket in buckets)
    assert grants[f"{RING}/images"].urn in repository.dependencies


def test_maintenance_is_a_recurring_window_with_exclusions() -> None:
    """A maintenance window begins on one of its days, and an exclusion includes its last day."""
    window = {"days": ["sunday", "saturday"], "start": "22:00", "duration": "6h"}
    launch = {"name": "launch", "start": "2026-12-20", "end": "2027-01-04"}
    nodes = {"name": "nodes", "start": "2026-12-20", "scope": "no-minor-or-node-upgrades"}
    inputs = cluster(synth(cloud(maintenance={"window": window, "exclusions": [launch, nodes]})))
    assert inputs["maintenancePolicy"] == {
        "recurringWindow": {
            "startTime": "2024-01-06T22:00:00Z",
            "endTime": "2024-01-07T04:00:00Z",
            "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
        },
        "maintenanceExclusions": [
            {
                "exclusionName": "launch",
                "startTime": "2026-12-20T00:00:00Z",
                "endTime": "2027-01-05T00:00:00Z",
                "exclusionOptions": {"scope": "NO_UPGRADES"},
            },
            {
                "exclusionName": "nodes",
                "startTime": "2026-12-20T00:00:00Z",
                "exclusionOptions": {
                    "scope": "NO_MINOR_OR_NODE_UPGRADES",
                    "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
                },
            },
        ],
    }
    daily = cluster(synth(cloud(maintenance={"window": {"start": "02:00", "duration": "4h"}})))
    assert daily["maintenancePolicy"]["recurringWindow"]["recurrence"] == "FREQ=DAILY"


def test_network_tags_of_the_cluster_and_of_the_pool_are_on_the_nodes() -> None:
    """The default pool has the cluster's, since a firewall may ask for them."""
    declaration = cloud(networkTags=["ml", "no-egress"])
    declaration["pools"][1]["networkTags"] = ["allow-ssh", "ml"]
    recording = synth(declaration)
    tags: dict[str, Any] = {}
    for pool in recording.of_type("gcp:container/nodePool:NodePool"):
        assert isinstance(pool.inputs["nodeConfig"], dict)
        tags[str(pool.inputs["name"])] = pool.inputs["nodeConfig"]["tags"]
    assert tags["cpu"] == ["ml", "no-egress", "allow-ssh"]
    assert tags["t4"] == ["ml", "no-egress"]
    assert cluster(recording)["nodeConfig"]["tags"] == ["ml", "no-egress"]


def test_the_kubeconfig_of_an_existing_cluster_is_asked_for() -> None:
    """The endpoint of an existing cluster is the cloud's response, assumed in a preview."""
    recording = synth(cloud(existing={"name": "theirs"}) | {"pools": GKE["pools"][1:]})
    assert [call.token for call in recording.invocations] == ["gcp:container/getCluster:getCluster"]
    assert isinstance(recording.outputs["kubeconfig"], Secret)


@pytest.mark.parametrize("teams", [[], [{"name": "vision"}]])
def test_gke_decides_on_the_metadata_server_of_an_existing_cluster(teams: list[Declaration]) -> None:
    """A cluster without Workload Identity accepts no pool with the metadata server; only teams need it."""
    declared = cloud(existing={"name": "theirs"}) | {"pools": GKE["pools"][1:], "teams": teams}
    pools = synth(declared).of_type("gcp:container/nodePool:NodePool")
    modes = [at(dict(pool.inputs), "nodeConfig.workloadMetadataConfig.mode") for pool in pools]
    assert modes == ["GKE_METADATA" if teams else None] * len(pools)
