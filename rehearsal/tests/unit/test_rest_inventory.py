"""Resources of clusters, listed and deleted by the clients over the fake clouds' REST APIs."""

import base64
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbtide.clients.clouds import azure_inventory, connect, google_inventory
from ebbtide.clients.clouds.interfaces import Account, CloudApiError, ClusterIdentity, Contents, StoredData
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.ids import BUCKET, GKE_CLUSTER, NODE_POOL
from ebbtide_rehearsal.cloud.provider import BEHIND, CLUSTER
from ebbtide_rehearsal.cloud.rest.google_clusters import uid_of
from ebbtide_rehearsal.cloud.store import API_ERROR, InjectedFault, Resource
from rehearsal.tests.fake_clouds import lock, put_object
from rehearsal.tests.unit.rest_clouds import PROJECT, SUBSCRIPTION, RestClouds, rest_clouds

ML = ClusterIdentity(account=Account(CloudKind.GKE, PROJECT), location="us-central1-a", name="ml")
ZONE, REGION, GLOBAL = (
    f"projects/{PROJECT}/{place}" for place in ("zones/us-central1-a", "regions/us-central1", "global")
)
_UID = "0d2c6f9e-52f6-4fd1-9d57-3f1f0d5a8a11"
_BALANCER = "a0d2c6f9e52f64fd19d573f1f0d5a8a1"


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[RestClouds]:
    """The fake clouds, whose operations are polled at once, with pages of two entries."""
    monkeypatch.setattr(google_inventory, "PAGE_SIZE", 2)
    for module in (google_inventory, azure_inventory):
        monkeypatch.setattr(module, "_POLL", 0.0)
    with rest_clouds(tmp_path, monkeypatch) as serving:
        yield serving


def put_cluster(clouds: RestClouds, name: str, location: str = "us-central1-a", **labels: str) -> str:
    """Let a cluster exist that no stack created; return its id."""
    identity = f"projects/{PROJECT}/locations/{location}/clusters/{name}"
    state = {"location": location, "name": name}
    clouds.store.put(Resource("gcp", identity, GKE_CLUSTER, inputs={"resourceLabels": labels}, state=state))
    return identity


def put_disk(
    clouds: RestClouds,
    name: str,
    cluster: str,
    *,
    place: str = "us-central1-a",
    zone: str = ZONE,
    **state: Any,
) -> str:
    """Put the disk of a cluster's volume, as GKE labels it; return its id."""
    labels = {"goog-gke-volume": "", "goog-k8s-cluster-name": cluster, "goog-k8s-cluster-location": place}
    labels |= state.pop("labels", {})
    kind = f"{zone}/diskTypes/pd-balanced"
    return clouds.google("disks", zone, name, sizeGb="10", type=kind, labels=labels, **state)


def put_balancer(clouds: RestClouds, name: str, digits: str, cluster: str) -> set[str]:
    """Put the load balancer of a Service, as the service controller of GKE names it; return its ids."""
    tags = [f"gke-{cluster}-{digits}-node"]
    pool = clouds.google("targetPools", REGION, name)
    target = f"https://compute.googleapis.com/compute/v1/{pool}"
    return {
        pool,
        clouds.google("forwardingRules", REGION, name, target=target),
        clouds.google("firewalls", GLOBAL, f"k8s-fw-{name}", targetTags=tags),
        clouds.google("firewalls", GLOBAL, f"gke-{cluster}-{digits}-inkubelet", targetTags=tags),
    }


def put_others(clouds: RestClouds) -> None:
    """Put resources of other clusters and of none, none of which is the cluster's."""
    put_disk(clouds, "of-ml-2", "ml-2")
    put_disk(clouds, "elsewhere", "ml", place="europe-west4")
    put_disk(clouds, "without-location", "ml", labels={"goog-k8s-cluster-location": ""})
    put_disk(clouds, "of-another-project", "ml", zone="projects/other/zones/us-central1-a")
    clouds.google("disks", ZONE, "pvc-of-nobody", sizeGb="1", description="no JSON")
    for name, location in (("ml-2", "us-central1-a"), ("ml", "europe-west4")):
        identity = f"projects/{PROJECT}/locations/{location}/clusters/{name}"
        put_balancer(clouds, f"b{uid_of(identity)[:31]}", uid_of(identity)[:8], name)
    clouds.google("firewalls", GLOBAL, "allow-all")
    other = '{"cluster-uid":"another","namespace":"default"}'
    clouds.google("networkEndpointGroups", ZONE, "k8s1-other", description=other)
    clouds.google("addresses", REGION, "reserved-by-hand")


def test_gke_resources_of_a_cluster_alone(clouds: RestClouds) -> None:
    """Not those of a longer name, of another location or project, or of none; they are deleted in the order
    of their use."""
    inventory = connect.inventory(ML.account)
    put_others(clouds)
    before = {resource.id for resource in clouds.store.resources("gcp")}
    cluster = put_cluster(clouds, "ml")
    ids = {cluster, *put_balancer(clouds, _BALANCER, uid_of(cluster)[:8], "ml")}
    ids |= {put_disk(clouds, f"pvc-{number}", "ml") for number in range(3)}
    labels = {"goog-k8s-cluster-name": "ml", "goog-k8s-cluster-location": "us-central1-a"}
    handle = clouds.google("disks", ZONE, "unlabelled", sizeGb="5")
    ids |= {
        handle,
        clouds.google("networkEndpointGroups", ZONE, "k8s1-ml", description=f'{{"cluster-uid":"{_UID}"}}'),
        clouds.google("healthChecks", GLOBAL, "k8s2-shared-hc"),
        clouds.google("snapshots", GLOBAL, "snapshot-1", labels=labels),
    }
    identity = inventory.identify(
        replace(
            ML,
            namespace_uid=_UID,
            handles=frozenset({handle}),
            load_balancers=frozenset({"k8s2-shared-hc"}),
        )
    )
    assert identity.uid == uid_of(cluster)
    listed = inventory.of_cluster(identity)
    assert {resource.id for resource in listed} == ids
    assert len(listed) == len(ids)
    disk = next(resource for resource in listed if resource.name == "pvc-0")
    assert (disk.kind, disk.location, disk.price_item, disk.quantity) == (
        "disk",
        "us-central1-a",
        "pd-balanced-gib",
        10,
    )
    for resource in listed:
        inventory.delete(resource)
        inventory.delete(resource)
    assert {resource.id for resource in clouds.store.resources("gcp")} == before
    assert inventory.of_cluster(identity) == []


def test_a_deleted_cluster_is_known_by_its_disks(clouds: RestClouds) -> None:
    """The id in a disk's labels tells whose firewall rules and load balancers remain; without it, a firewall
    rule of that name may be another cluster's."""
    put_others(clouds)
    inventory = connect.inventory(ML.account)
    uid = uid_of(ML.id)
    ids = put_balancer(clouds, _BALANCER, uid[:8], "ml")
    assert inventory.of_cluster(inventory.identify(ML)) == []
    label = base64.b32encode(bytes.fromhex(uid)).decode().rstrip("=").lower()
    ids.add(put_disk(clouds, "pvc-1", "ml", labels={"goog-gke-cluster-id-base32": label}))
    assert {resource.id for resource in inventory.of_cluster(ML)} == ids


def test_a_long_name_is_cut_off_in_firewall_rules(clouds: RestClouds) -> None:
    """The hash tells the cluster then."""
    cluster = replace(ML, name="a-name-that-is-cut-off-by-gke", uid=uid_of("x"))
    ids = put_balancer(clouds, _BALANCER, uid_of("x")[:8], "a-name-that-is-cut-o")
    assert {resource.id for resource in connect.inventory(ML.account).of_cluster(cluster)} == ids


def test_what_is_in_use_is_refused_with_the_clouds_message(clouds: RestClouds) -> None:
    """A resource that is in use or attached to an instance is refused with the cloud's message."""
    put_balancer(clouds, _BALANCER, uid_of(ML.id)[:8], "ml")
    inventory = connect.inventory(ML.account)
    cluster = replace(ML, uid=uid_of(ML.id))
    pool = next(item for item in inventory.of_cluster(cluster) if item.kind == "target pool")
    with pytest.raises(CloudApiError, match="already being used by"):
        inventory.delete(pool)
    instance = f"https://www.googleapis.com/compute/v1/{ZONE}/instances/node-1"
    put_disk(clouds, "attached", "ml", users=[instance])
    disk = next(item for item in inventory.of_cluster(ML) if item.name == "attached")
    with pytest.raises(CloudApiError, match="instances/node-1"):
        inventory.delete(disk)


@pytest.mark.parametrize(
    ("operation", "status"), [("compute.aggregatedList", 403), ("container.clusters.list", 404)]
)
def test_a_refused_list_is_no_empty_list(clouds: RestClouds, operation: str, status: int) -> None:
    """A resource that was not listed may exist."""
    inventory = connect.inventory(ML.account)
    clouds.store.inject(InjectedFault(API_ERROR, operation, 1, {"status": status, "message": "Not so."}))
    with pytest.raises(CloudApiError, match=r"Not so\.") as refusal:
        inventory.of_cluster(ML)
    assert refusal.value.status == status
    assert inventory.of_cluster(ML) == []
    with pytest.raises(CloudApiError, match="was not found"):
        connect.inventory(Account(CloudKind.GKE, "nowhere")).check()


GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"
AKS = ClusterIdentity(
    account=Account(CloudKind.AKS, SUBSCRIPTION),
    location="eastus",
    name="ml",
    resource_group="ml",
    node_resource_group="MC_ml_ml_eastus",
    handles=frozenset({f"{GROUP}/disks/providers/Microsoft.Compute/disks/PVC-1"}),
)


def put_azure(clouds: RestClouds, group: str, path: str, **state: Any) -> str:
    """Put a resource of Azure into a resource group, which exists then; return its id."""
    if not any(item.id == f"{GROUP}/{group}" for item in clouds.store.resources("azure-native")):
        clouds.azure(f"{GROUP}/{group}")
    return clouds.azure(f"{GROUP}/{group}/providers/{path}", **state)


def test_aks_resources_of_a_cluster_alone(clouds: RestClouds) -> None:
    """Resources of a cluster are those in its node resource group, those with AKS's tag, and disks of its
    volumes, regardless of case."""
    cloud_tag = {"k8s-azure-cluster-name": "kubernetes"}
    for group, cluster in (("MC_ml-2_ml-2_eastus", "ml-2"), ("MC_ml_ml_westus", "ml")):
        tags = {"aks-managed-cluster-name": cluster, "aks-managed-cluster-rg": "ml-2"}
        put_azure(clouds, group, "Microsoft.Network/loadBalancers/kubernetes", tags=tags)
    put_azure(clouds, "shared", "Microsoft.Network/publicIPAddresses/kubernetes-a1", tags=cloud_tag)
    put_azure(clouds, "shared", "Microsoft.Compute/disks/pvc-1")
    before = {resource.id for resource in clouds.store.resources("azure-native")}
    nodes = f"{GROUP}/mc_ML_ml_eastus"
    clouds.azure(nodes, managedBy=AKS.id)
    paths = ("Microsoft.Network/publicIPAddresses/kubernetes-a2", "Microsoft.Network/networkInterfaces/nic")
    ids = {nodes, *(put_azure(clouds, "mc_ML_ml_eastus", path, tags=cloud_tag) for path in paths)}
    tags = {"aks-managed-cluster-name": "ml", "AKS-managed-cluster-rg": "ML"}
    clouds.azure(f"{GROUP}/disks")
    ids.add(put_azure(clouds, "disks", "Microsoft.Compute/disks/pvc-1"))
    ids.add(put_azure(clouds, "disks", "Microsoft.Compute/snapshots/s", tags=tags))
    inventory = connect.inventory(AKS.account)
    listed = inventory.of_cluster(inventory.identify(AKS))
    assert {resource.id for resource in listed} == ids
    assert listed[-1].kind == "resource group"
    assert {resource.group for resource in listed if "mc_ML" in resource.id} == {"", nodes}
    for resource in listed:
        if not resource.group:
            inventory.delete(resource)
    left = {resource.id for resource in clouds.store.resources("azure-native")}
    assert left == {*before, f"{GROUP}/disks"}


def test_the_node_resource_group_of_another_cluster_is_its_own(clouds: RestClouds) -> None:
    """A group of the name that another cluster manages is not listed, nor what it contains."""
    nodes = f"{GROUP}/{AKS.node_resource_group}"
    clouds.azure(nodes, managedBy=AKS.id.replace("/ml/", "/other/"))
    put_azure(clouds, AKS.node_resource_group, "Microsoft.Compute/disks/pvc-1")
    inventory = connect.inventory(AKS.account)
    assert list(inventory.of_cluster(inventory.identify(AKS))) == []
    clouds.azure(nodes, managedBy=AKS.id)
    assert len(inventory.of_cluster(inventory.identify(AKS))) == 2


def test_azure_refuses_what_is_locked_or_attached(clouds: RestClouds) -> None:
    """With its message; the disk of another directory's subscription is not found."""
    disk = put_azure(clouds, "disks", "Microsoft.Compute/disks/pvc-1", managedBy="/…/virtualMachines/vm-1")
    snapshot = put_azure(clouds, "disks", "Microsoft.Compute/snapshots/s")
    lock(clouds.store, snapshot)
    inventory = connect.inventory(AKS.account)
    tagged = replace(AKS, handles=frozenset({disk, snapshot}))
    listed = {resource.kind: resource for resource in inventory.of_cluster(tagged)}
    with pytest.raises(CloudApiError, match="attached to VM"):
        inventory.delete(listed["disk"])
    with pytest.raises(CloudApiError, match="locked"):
        inventory.delete(listed["snapshot"])
    other = connect.inventory(Account(CloudKind.AKS, "11111111-0000-0000-0000-000000000000"))
    with pytest.raises(CloudApiError, match="could not be found") as refusal:
        other.check()
    assert refusal.value.status == 404


PAST, FUTURE = "2026-11-01t00-00z", "2099-01-01t00-00z"


def test_expiring_resources_of_a_project(clouds: RestClouds) -> None:
    """Clusters with their pools, and what Compute Engine puts labels on."""
    expired = put_cluster(clouds, "old", **{"ebbtide-expires": PAST})
    put_cluster(clouds, "permanent")
    labels = {"nodeConfig": {"resourceLabels": {"ebbtide-expires": FUTURE}}}
    pool = f"{expired}/nodePools/spot"
    clouds.store.put(Resource("gcp", pool, NODE_POOL, inputs=labels))
    disk = put_disk(clouds, "pvc-1", "gone", labels={"ebbtide-expires": PAST})
    put_disk(clouds, "pvc-2", "gone")
    inventory = connect.inventory(ML.account)
    assert {resource.id: resource.expires for resource in inventory.expiring()} == {
        expired: PAST,
        pool: FUTURE,
        disk: PAST,
    }
    owner = f"projects/{PROJECT}/locations/us-central1-a/clusters/gone"
    assert next(item.cluster for item in inventory.expiring() if item.id == disk) == owner
    inventory.delete(inventory.expiring()[0])
    assert [resource.id for resource in inventory.expiring()] == [disk]


def test_expiring_resources_of_a_subscription(clouds: RestClouds) -> None:
    """A group stands for what is in it, a node resource group for its cluster, and the machines of a pool
    that was added to another stack's cluster for the pool."""
    tags = {"ebbtide-expires": PAST}
    clouds.azure(f"{GROUP}/old", tags=tags)
    cluster = put_azure(clouds, "old", "Microsoft.ContainerService/managedClusters/old", tags=tags)
    clouds.azure(f"{GROUP}/MC_old", tags=tags, managedBy=cluster)
    put_azure(clouds, "MC_old", "Microsoft.Compute/disks/node", tags=tags)
    shared = put_azure(clouds, "shared", "Microsoft.ContainerService/managedClusters/shared")
    clouds.azure(f"{GROUP}/MC_shared", managedBy=shared)
    pool_tags = {**tags, "aks-managed-poolName": "spot"}
    put_azure(
        clouds, "MC_shared", "Microsoft.Compute/virtualMachineScaleSets/aks-spot-1-vmss", tags=pool_tags
    )
    clouds.azure(f"{shared}/agentPools/spot")
    address = put_azure(clouds, "shared", "Microsoft.Network/publicIPAddresses/ours", tags=tags)
    inventory = connect.inventory(AKS.account)
    listed = inventory.expiring()
    assert {resource.id for resource in listed} == {f"{GROUP}/old", f"{shared}/agentPools/spot", address}
    for resource in listed:
        inventory.delete(resource)
    left = {resource.id for resource in clouds.store.resources("azure-native")}
    assert not {address, cluster, f"{GROUP}/MC_old", f"{shared}/agentPools/spot"} & left
    assert shared in left


def test_contents(clouds: RestClouds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Objects of a bucket over several pages, up to a limit, and what pods of a rehearsal have written; the
    size of a registry; metrics of a storage account, none in its first hours."""
    monkeypatch.setattr(google_inventory, "OBJECTS_OF_PAGE", 2)
    project = Account(CloudKind.GKE, PROJECT)
    google = connect.inventory(project)
    clouds.store.put(Resource("gcp", "data", BUCKET, inputs={"name": "data"}))
    for size in (1, 20, 300):
        put_object(clouds.store, "data", f"{size}.bin", size)
    bucket = StoredData(kind="bucket", name="data", account=project)
    assert google.contents(bucket) == Contents(321, 3)
    monkeypatch.setattr(google_inventory, "_MOST_OBJECTS", 2)
    assert google.contents(bucket) == Contents(21, 2, is_partial=True)
    written = tmp_path / "processes" / "volumes" / "buckets" / "data" / "runs" / "model.pt"
    written.parent.mkdir(parents=True)
    written.write_text("five!")
    plane = {"kubeconfig": str(tmp_path / "admin.kubeconfig")}
    clouds.store.put(Resource(BEHIND, "cluster", CLUSTER, state=plane))
    monkeypatch.setattr(google_inventory, "_MOST_OBJECTS", 1000)
    assert google.contents(bucket) == Contents(326, 4)
    images = f"projects/{PROJECT}/locations/us-central1/repositories/images"
    clouds.store.put(Resource("gcp", images, "repository", state={"sizeBytes": 4_000_000_000}))
    registry = StoredData(kind="registry", name="images", id=images, account=project)
    assert google.contents(registry) == Contents(4_000_000_000)
    assert google.contents(StoredData(kind="file share", name="files", account=project)) is None
    with pytest.raises(CloudApiError, match="The specified bucket does not exist"):
        google.contents(StoredData(kind="bucket", name="other", account=project))

    subscription = Account(CloudKind.AKS, SUBSCRIPTION)
    azure = connect.inventory(subscription)
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/train/providers"
    storage = f"{group}/Microsoft.Storage/storageAccounts"
    blobs = {"BlobCapacity": 5000, "BlobCount": 7, "FileCapacity": 0}
    clouds.azure(f"{storage}/data", metrics=blobs)
    clouds.azure(f"{storage}/new")
    registry_id = f"{group}/Microsoft.ContainerRegistry/registries/images"
    clouds.azure(registry_id, size=600)

    def contents(kind: str, id_: str) -> Contents | None:
        return azure.contents(StoredData(kind=kind, name="x", id=id_, account=subscription))

    assert contents("storage account", f"{storage}/data") == Contents(5000, 7)
    assert contents("file share", f"{storage}/data") == Contents(0, None)
    assert contents("storage account", f"{storage}/new") is None
    assert contents("registry", registry_id) == Contents(600)


def test_existing_resources(clouds: RestClouds) -> None:
    """Existing resources have their labels, and parts of Azure's resources the tags of the whole."""
    project = f"projects/{PROJECT}"
    account = f"{project}/serviceAccounts/a@{PROJECT}.iam.gserviceaccount.com"
    files = f"{project}/locations/us-central1-a/instances/files"
    images = f"{project}/locations/us-central1/repositories/images"
    labels = {"ebbtide-team": "research"}
    clouds.store.put(Resource("gcp", account, "gcp:serviceaccount/account:Account"))
    for identity, kind in (("data", BUCKET), (files, "any"), (images, "any")):
        clouds.store.put(Resource("gcp", identity, kind, inputs={"labels": labels}))
    google = connect.inventory(Account(CloudKind.GKE, PROJECT))
    existing = google.existing([account, f"{account}.other", "data", "other", files, images])
    assert existing == {account: {}, "data": labels, files: labels, images: labels}

    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml"
    identity = f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/one"
    storage = f"{group}/providers/Microsoft.Storage/storageAccounts/data"
    wholes = (group, identity.upper(), storage)
    credential = f"{identity}/federatedIdentityCredentials/work"
    container = f"{storage}/blobServices/default/containers/shared"
    share = f"{storage}/fileServices/default/shares/shared"
    for id_ in wholes:
        clouds.store.put(
            Resource(
                "azure-native",
                id_,
                "azure-native:managedidentity:UserAssignedIdentity",
                inputs={"tags": labels},
            )
        )
    for id_ in (credential, container, share):
        clouds.store.put(
            Resource("azure-native", id_, "azure-native:managedidentity:FederatedIdentityCredential")
        )
    azure = connect.inventory(Account(CloudKind.AKS, SUBSCRIPTION))
    missing = (f"{group}s", f"{credential}s", f"{container}s")
    existing = azure.existing([*wholes, credential, container, share, *missing])
    assert existing == dict.fromkeys([*wholes, credential, container, share], labels)
