"""Each GKE component on Pulumi's mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false

from typing import Any

import pulumi

from components import gke
from components.gke.teams import ArtifactBucket, ArtifactBucketArgs
from ebbtide.declaration.model.cloud import GkeKeys
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.pool import Pool, Taint
from ebbtide.declaration.model.tenancy import Registry
from ebbtide.placement.derive import bucket_name
from tests.unit.mocks.mocked import GKE, GKE_CLOUD, Mocks, team


def _network() -> gke.Network:
    return gke.Network(
        "network", gke.NetworkArgs(name="train", region="us-central1", network=GKE_CLOUD.network)
    )


def _cluster(declaration: Cluster) -> gke.Cluster:
    args = gke.ClusterArgs(
        declaration=declaration,
        cloud=GKE_CLOUD,
        network=_network(),
        node_account="nodes@acme-ml.example",
        labels={},
    )
    return gke.Cluster("cluster", args)


@pulumi.runtime.test
def test_network() -> pulumi.Output[None]:
    """Pods and services have secondary ranges of their own."""
    network = _network()

    def check(names: list[str]) -> None:
        assert names == ["pods", "services"]

    return pulumi.Output.all(network.pods_range, network.services_range).apply(check)


def test_gpu_networks(mocks: Mocks) -> None:
    """RDMA NICs share a VPC of the zone's network profile, which has no firewall rule; a gVNIC's has one."""
    pool = Pool(name="h200", machine="a3-ultragpu-8g", gpu_direct="rdma", zones=["us-central1-a"])
    declaration = GKE.model_copy(update={"pools": (*GKE.pools, pool)})

    @pulumi.runtime.test
    def program() -> None:
        args = gke.GpuNetworksArgs(declaration=declaration, project="acme-ml", range="192.168.0.0/16")
        assert len(gke.GpuNetworks("gpu", args).interfaces_of("rdma")) == 9

    program()
    profiles = {item.get("networkProfile", "") for item in mocks.of_type("gcp:compute/network:Network")}
    assert profiles == {"", "projects/acme-ml/global/networkProfiles/us-central1-a-vpc-roce"}
    (firewall,) = mocks.of_type("gcp:compute/firewall:Firewall")
    assert firewall["network"] == f"{declaration.name}-gvnic-1"


def test_identity(mocks: Mocks) -> None:
    """Nodes have the default node role and can read images, and nothing else."""
    mocks.run(lambda: gke.Identity("identity", gke.IdentityArgs(name="train", project="acme-ml")))
    roles = {grant["role"] for grant in mocks.of_type("gcp:projects/iAMMember:IAMMember")}
    assert roles == {"roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader"}


def test_cluster(mocks: Mocks) -> None:
    """Nodes are private, the default pool is removed, the bucket driver is on, and the engine and GKE refuse
    to delete a permanent cluster."""
    mocks.run(lambda: _cluster(GKE))
    (cluster,) = mocks.of_type("gcp:container/cluster:Cluster")
    assert cluster["privateClusterConfig"]["enablePrivateNodes"]
    assert cluster["removeDefaultNodePool"]
    assert cluster["addonsConfig"]["gcsFuseCsiDriverConfig"] == {"enabled": True}
    assert cluster["deletionProtection"]
    assert mocks.protected == {"cluster"}


def _node_pool(mocks: Mocks, name: str, **changes: Any) -> dict[str, Any]:
    """Return the inputs of a declared pool with changes."""
    declared = next(pool for pool in GKE.pools if pool.name == name)
    args = gke.NodePoolArgs(
        pool=declared.model_copy(update=changes), site=GKE.site, cluster="train", project="acme-ml"
    )
    mocks.run(lambda: gke.NodePool(name, args))
    (inputs,) = mocks.of_type("gcp:container/nodePool:NodePool")
    return inputs


def test_node_pool_has_its_taints_and_pods(mocks: Mocks) -> None:
    """Nodes have the declared taint with its value and effect, and the declared number of pods."""
    taint = Taint(key="dedicated", value="training", effect="NoExecute")
    inputs = _node_pool(mocks, "cpu", taints=(taint,), max_pods_per_node=32)
    assert {"key": "dedicated", "value": "training", "effect": "NO_EXECUTE"} in inputs["nodeConfig"]["taints"]
    assert inputs["maxPodsPerNode"] == 32


def test_members(mocks: Mocks) -> None:
    """A member can reach this cluster alone."""
    mocks.run(lambda: gke.Members("members", gke.MembersArgs(declaration=GKE, cloud=GKE_CLOUD)))
    (grant,) = mocks.of_type("gcp:projects/iAMMember:IAMMember")
    assert grant["member"] == "user:vision@acme.example"
    assert grant["condition"]["expression"] == 'resource.name.endsWith("/us-central1-a/clusters/train")'


@pulumi.runtime.test
def test_tenant() -> pulumi.Output[None]:
    """A team's bucket is named after project, cluster and team."""
    args = gke.TenantArgs(
        team=team(GKE),
        cluster="train",
        project="acme-ml",
        bucket=bucket_name(GKE, team(GKE)),
        region="us-central1",
        zone="us-central1-a",
        clients=None,
        keep=False,
    )
    disk = gke.Tenant("vision", args).resources.disk
    assert disk is not None

    def check(handle: str) -> None:
        assert handle == "acme-ml-train-vision"

    return pulumi.Output.from_input(disk.source["csi"]["volumeHandle"]).apply(check)


@pulumi.runtime.test
def test_topology() -> pulumi.Output[None]:
    """Every declared pool is a node pool of the cluster."""
    topology = gke.Topology("train", GKE)

    def check(names: list[str]) -> None:
        assert names == ["system", "cpu", "t4", "a100"]

    return pulumi.Output.all(*(pool.pool_name for pool in topology.pools.values())).apply(check)


def test_registry(mocks: Mocks) -> None:
    """Members push to the team's repository, and to no other."""
    args = gke.RegistryArgs(
        declared=Registry(),
        name="train-vision",
        team="vision",
        project="acme-ml",
        location="us-central1",
        keep=False,
        members=("ada@acme.example",),
    )
    mocks.run(lambda: gke.Registry("images", args))
    (repository,) = mocks.of_type("gcp:artifactregistry/repository:Repository")
    (grant,) = mocks.of_type("gcp:artifactregistry/repositoryIamMember:RepositoryIamMember")
    assert repository["repositoryId"] == "train-vision"
    assert (grant["role"], grant["member"]) == ("roles/artifactregistry.writer", "user:ada@acme.example")


def test_key_grants(mocks: Mocks) -> None:
    """The service agents of GKE and Compute Engine may use the keys of secrets and disks."""
    keys = GkeKeys(secrets=f"{_KEYS}/secrets", disks=f"{_KEYS}/disks")
    mocks.run(lambda: gke.KeyGrants("keys", gke.KeyGrantsArgs(keys=keys, project="acme-ml", secrets=True)))
    grants = mocks.of_type("gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember")
    assert {(grant["cryptoKeyId"], grant["member"].partition("@")[2]) for grant in grants} == {
        (f"{_KEYS}/secrets", "container-engine-robot.iam.gserviceaccount.com"),
        (f"{_KEYS}/disks", "compute-system.iam.gserviceaccount.com"),
    }


_KEYS = "projects/acme-ml/locations/us-central1/keyRings/clusters/cryptoKeys"


def test_artifact_bucket(mocks: Mocks) -> None:
    """The bucket is private and is deleted with its contents where the cluster is ephemeral."""
    args = ArtifactBucketArgs(
        cluster="train",
        project="acme-ml",
        region="us-central1",
        accounts=("kubeflow/pipeline-runner",),
        force_destroy=True,
    )
    mocks.run(lambda: ArtifactBucket("artifacts", args))
    (bucket,) = mocks.of_type("gcp:storage/bucket:Bucket")
    assert (bucket["publicAccessPrevention"], bucket["forceDestroy"]) == ("enforced", True)
