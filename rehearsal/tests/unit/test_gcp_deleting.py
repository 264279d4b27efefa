"""Deletions on Google Cloud: refused ones, and resources that are deleted along."""

from pathlib import Path

import pytest

from ebbtide_rehearsal.cloud.gcp.request import NODE_POOL, ROUTER_NAT
from ebbtide_rehearsal.cloud.gcp.storage import put_object
from ebbtide_rehearsal.cloud.provider import RefusedError
from rehearsal.tests.unit.gcp_cloud import CLUSTER_ID, Cloud, asked_for, base, with_cluster
from tests.running import full

VPC = "projects/acme-ml/global/networks/train"
SUBNET = "projects/acme-ml/regions/us-central1/subnetworks/train"


@pytest.fixture
def everything(tmp_path: Path) -> Cloud:
    """A cloud with all that the program makes, of a permanent cluster with every add-on and team."""
    cloud = Cloud(tmp_path)
    for resource, inputs in asked_for(full("gke", pipelines={"artifacts": "bucket"})):
        cloud.create(resource.type, inputs, resource.name)
    return cloud


def test_a_protected_cluster_stays(everything: Cloud) -> None:
    """A permanent cluster's own guard; taken off, it goes, and its pools with it."""
    with pytest.raises(
        RefusedError, match="Cannot destroy cluster because deletion_protection is set to true"
    ):
        everything.delete(CLUSTER_ID)
    assert everything.clusters.running.keys() == {CLUSTER_ID}

    inputs = everything.read(CLUSTER_ID).inputs
    everything.update(CLUSTER_ID, {**inputs, "deletionProtection": False})
    everything.delete(CLUSTER_ID)
    assert everything.clusters.running == {}
    assert everything.store.resources("nodes") == []
    assert everything.store.resources("gcp", NODE_POOL) == []
    everything.delete(f"{CLUSTER_ID}/nodePools/cpu")  # gone with its cluster: no error


def test_a_network_stays_while_anything_is_in_it(everything: Cloud) -> None:
    """The cluster keeps its subnetwork, the subnetwork its network (f5devcentral/
    f5-digital-customer-engagement-center#156, murphye/cheap-gke-cluster#8)."""
    with pytest.raises(
        RefusedError, match=f"'{SUBNET}' is already being used by '{CLUSTER_ID}', resourceInUse"
    ):
        everything.delete(SUBNET)
    with pytest.raises(
        RefusedError, match=f"Deleting Network: The network resource '{VPC}' is already being"
    ):
        everything.delete(VPC)


def test_a_router_takes_its_gateways_along(everything: Cloud) -> None:
    """A NAT gateway is a part of its router."""
    everything.delete("projects/acme-ml/regions/us-central1/routers/train")
    assert everything.store.resources("gcp", ROUTER_NAT) == []


def test_a_bucket_stays_while_anything_is_in_it(everything: Cloud) -> None:
    """A bucket is deleted with its contents and IAM members only if `forceDestroy` is declared."""
    bucket = "acme-ml-train-pipelines"
    put_object(everything.store, bucket, "v2/artifacts/model.pt")
    with pytest.raises(RefusedError, match=f"delete bucket {bucket} without `force_destroy` set to true"):
        everything.delete(bucket)

    everything.update(bucket, {**everything.read(bucket).inputs, "forceDestroy": True})
    everything.delete(bucket)
    left = [resource.id for resource in everything.store.resources("gcp")]
    assert not [identity for identity in left if identity.startswith((bucket, f"b/{bucket}/"))]


def test_a_pool_that_is_never_to_go(tmp_path: Path) -> None:
    """The provider's own guard, of either kind of resource."""
    cloud = with_cluster(tmp_path, deletionPolicy="PREVENT")
    pool = cloud.create(NODE_POOL, base("train-cpu", deletionPolicy="PREVENT"))
    for identity in (pool.id, CLUSTER_ID):
        with pytest.raises(RefusedError, match="deletion_policy is set to PREVENT"):
            cloud.delete(identity)
