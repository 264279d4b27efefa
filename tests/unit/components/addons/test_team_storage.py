"""Buckets and volumes of teams."""

from collections.abc import Mapping
from typing import Any

import pytest

from ebbtide.analysis.recording.assumption_tables import ADDRESS
from ebbtide.analysis.recording.values import Secret
from ebbtide.declaration.model.physical_names import account_name
from tests.declarations import AKS, BASES, GKE, changed
from tests.synth import synth
from tests.unit.components.addons.test_teams import inputs, team

SUBNET = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/shared/providers/Microsoft.Network"
    "/virtualNetworks/shared/subnets/nodes"
)


@pytest.mark.parametrize(
    ("lifetime", "bucket", "kept"),
    [
        (None, {}, True),
        ({"hours": 8}, {}, False),
        (None, {"keep": False}, False),
        ({"hours": 8}, {"keep": True}, True),
    ],
)
@pytest.mark.parametrize("cloud", BASES)
def test_checkpoints_outlive_a_permanent_cluster(
    cloud: str,
    lifetime: Mapping[str, int] | None,
    bucket: Mapping[str, bool],
    kept: bool,  # noqa: FBT001
) -> None:
    """A bucket stays with all that is in it, or goes with it; it never stops a destroy."""
    declaration = changed(BASES[cloud], teams=[{"name": "vision", "bucket": dict(bucket)}])
    if lifetime is not None:
        declaration["lifetime"] = dict(lifetime)
    type_ = {"gke": "gcp:storage/bucket:Bucket", "aks": "azure-native:storage:StorageAccount"}[cloud]
    (item,) = synth(declaration).of_type(type_)
    assert item.retain_on_delete is kept
    if cloud == "gke":
        assert item.inputs["forceDestroy"] is not kept


def test_buckets_are_private() -> None:
    """Buckets cannot be read without an identity."""
    gcs = inputs(team("gke", bucket={}), "gcp:storage/bucket:Bucket")
    assert (gcs["publicAccessPrevention"], gcs["uniformBucketLevelAccess"]) == ("enforced", True)
    blob = inputs(team("aks", bucket={}), "azure-native:storage:StorageAccount")
    assert (blob["allowBlobPublicAccess"], blob["allowSharedKeyAccess"]) == (False, False)


@pytest.mark.parametrize(
    ("cloud", "volume", "driver"),
    [
        ("gke", {}, "gcsfuse.csi.storage.gke.io"),
        ("aks", {}, "blob.csi.azure.com"),
        ("aks", {"kind": "azure-files"}, "file.csi.azure.com"),
    ],
)
def test_volumes_are_written_down(cloud: str, volume: Mapping[str, str], driver: str) -> None:
    """A volume names what is behind it, and takes its claim and no other."""
    spec = inputs(team(cloud, volume=dict(volume)), "kubernetes:core/v1:PersistentVolume")["spec"]
    assert spec["csi"]["driver"] == driver
    assert spec["accessModes"] == ["ReadWriteMany"]
    assert (spec["claimRef"]["namespace"], spec["claimRef"]["name"]) == ("vision", "shared")
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"


def test_a_filestore_is_mounted_by_address() -> None:
    """The kubelet mounts NFS itself: no driver has to be turned on, here or on a cluster that is there."""
    recording = team("gke", volume={"kind": "filestore"})
    assert inputs(recording, "kubernetes:core/v1:PersistentVolume")["spec"]["nfs"]["path"] == "/shared"
    share = inputs(recording, "gcp:filestore/instance:Instance")
    assert (share["fileShares"]["name"], share["fileShares"]["capacityGb"]) == ("shared", 1024)
    assert share["location"] == "us-central1-a"


def _exports(cloud: Mapping[str, Any], **fields: Any) -> Any:
    teams = [{"name": "vision", "volume": {"kind": "filestore"}}]
    recording = synth(changed(GKE, cloud=GKE["cloud"] | cloud, teams=teams, **fields))
    (options,) = inputs(recording, "gcp:filestore/instance:Instance")["fileShares"]["nfsExportOptions"]
    return options["ipRanges"]


def test_only_the_nodes_of_the_cluster_reach_a_filestore() -> None:
    """A file share is exported to the range of the cluster's nodes, which an existing subnet is asked for."""
    assert _exports({"network": {"nodes": "10.32.0.0/20"}}) == ["10.32.0.0/20"]
    network = {"vpc": "theirs", "subnet": "theirs", "podsRange": "pods", "servicesRange": "services"}
    for cloud in ({"network": network}, {"existing": {"name": "theirs"}}):
        assert _exports(cloud) == [f"{ADDRESS}/32"]


def test_a_driver_for_buckets_only_where_one_is_mounted() -> None:
    """The driver, a DaemonSet on every node, is installed only for a mounted bucket."""
    for volume, enabled in (({}, True), ({"kind": "azure-files"}, False)):
        (cluster,) = team("aks", volume=volume).of_type("azure-native:containerservice:ManagedCluster")
        made: Any = cluster.inputs
        assert made["storageProfile"]["blobCSIDriver"]["enabled"] is enabled


def test_the_key_of_a_share_is_a_secret() -> None:
    """The key of a share is a secret in every preview and state."""
    secret = inputs(team("aks", volume={"kind": "azure-files"}), "kubernetes:core/v1:Secret")
    assert isinstance(secret["stringData"], Secret) or isinstance(
        secret["stringData"]["azurestorageaccountkey"], Secret
    )


def test_a_share_is_reached_from_the_nodes_alone() -> None:
    """On a network of the stack's own; an existing one may lack the endpoint, and the account stays open."""
    volume = {"volume": {"kind": "azure-files"}}
    own = team("aks", **volume)
    (subnet,) = own.of_type("azure-native:network:Subnet")
    assert subnet.inputs["serviceEndpoints"] == [{"service": "Microsoft.Storage"}]
    assert inputs(own, "azure-native:storage:StorageAccount")["networkRuleSet"] == {
        "defaultAction": "Deny",
        "bypass": "None",
        "virtualNetworkRules": [{"virtualNetworkResourceId": subnet.id}],
    }
    assert "serviceEndpoints" not in team("aks").of_type("azure-native:network:Subnet")[0].inputs
    theirs = changed(AKS, teams=[{"name": "vision"} | volume])
    theirs["cloud"] = AKS["cloud"] | {"network": {"subnet": SUBNET}}
    assert "networkRuleSet" not in inputs(synth(theirs), "azure-native:storage:StorageAccount")


def test_storage_accounts_are_the_worlds() -> None:
    """Names of storage accounts are valid, and differ with the subscription."""
    first, other = (account_name(subscription, "train", "vision-and-speech") for subscription in ("a", "b"))
    assert first != other
    for name in (first, other):
        assert len(name) == 24
        assert name.isalnum()
        assert name == name.lower()
