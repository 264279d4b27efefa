"""A finding costs the field that it names: the pool and the cluster are adopted, and the field is listed."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.declaration.model.declare import declare
from ebbtide.operations.adopting import google, sources, terraform
from ebbtide.operations.adopting.found import Adoption, AdoptionError, Found, FoundResource
from ebbtide.operations.adopting.kueue import adopt_queues
from ebbtide.operations.adopting.kueue_objects import kueue_objects
from ebbtide.operations.adopting.proof import adopt
from ebbtide.values.paths import is_within
from tests.synth import synth
from tests.unit.adopting import aks_shapes
from tests.unit.adopting import test_aks as on_azure
from tests.unit.adopting.gke_shapes import Document, cluster, merged, pool
from tests.unit.adopting.test_gke import WORKLOAD_IDENTITY, adopted

_POOL_ID = "projects/acme-ml/locations/us-central1-a/clusters/lab/nodePools/batch"
_TERRAFORM: Document = {
    "id": _POOL_ID,
    "name": "batch",
    "initial_node_count": 0,
    "autoscaling": [
        {"min_node_count": 0, "max_node_count": 3, "total_min_node_count": 0, "total_max_node_count": 0}
    ],
    "management": [{"auto_repair": True, "auto_upgrade": True}],
    "node_config": [
        {
            "machine_type": "n1-standard-8",
            "disk_size_gb": 100,
            "disk_type": "pd-balanced",
            "image_type": "COS_CONTAINERD",
            "guest_accelerator": [
                {"type": "nvidia-tesla-t4", "count": 1, "gpu_driver_installation_config": []}
            ],
            "workload_metadata_config": [{"mode": ""}],
            "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        }
    ],
    "node_locations": ["us-central1-a"],
}


def _of_cluster(document: Document) -> Found:
    found = google.read(document, "cluster.json")
    assert found
    return found


def _proved(
    found: Found, name: str | None = None, record: Callable[[Document], Recording] = synth
) -> Adoption:
    whole = sources.one_cluster(found, name)
    top = {"name": "lab", "owner": "ml"}
    return adopt(whole, top, google.cloud_fields(whole), record, pools_only=True)


def _exported(token: str, id_: str, inputs: Document, outputs: Document) -> FoundResource:
    """The first resource of an exported state of another program."""
    urn = f"urn:pulumi:dev::other::{token}::a"
    item = {"urn": urn, "type": token, "custom": True, "id": id_, "inputs": inputs, "outputs": outputs}
    document = {"version": 3, "deployment": {"resources": [item]}}
    found = terraform.read_pulumi(document, json.dumps(document), "f")
    assert found
    return found.resources[0]


def _lab(*pools: Document, **changes: Any) -> Document:
    return cluster("lab", "us-central1-a", [pool("admin", "e2-standard-4"), *pools], **changes)


def _left(adoption: Adoption) -> dict[str, str]:
    return {part.name: part.reason for part in adoption.left_out}


def test_a_pool_of_terraform_keeps_its_limits_its_driver_and_its_identity() -> None:
    """Zero is no maximum, an absent driver is none that replaces the pool, and an empty mode is no mode."""
    resource = aks_shapes.terraform_resource("google_container_node_pool", "batch", _TERRAFORM)
    found = terraform.read(aks_shapes.terraform(resource), "f")
    assert found
    both = Found(
        cloud=found.cloud, account="acme-ml", resources=(*_of_cluster(_lab()).resources, *found.resources)
    )
    adoption = _proved(both)
    (batch,) = (item for item in adoption.declaration["pools"] if item["name"] == "batch")
    assert batch["nodes"] == {"max": 3}
    changed = [row.path for row in adoption.updates if row.resource == "batch"]
    assert [path for path in changed if "workloadMetadata" in path or "guestAccelerators" in path] == []
    assert _left(adoption) == {}


def test_outputs_of_a_pulumi_state_are_merged_at_any_depth() -> None:
    """An input that the program omits, inside of an object that it has, is in the outputs."""
    inputs = {"nodeConfig": {"guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1}]}}
    config = {"machineType": "n1-standard-8", "imageType": "COS_CONTAINERD"}
    driver = {"gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"}}
    outputs = {
        "nodeConfig": {**config, "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1, **driver}]}
    }
    batch = _exported("gcp:container/nodePool:NodePool", _POOL_ID, inputs, outputs)
    assert batch.inputs["nodeConfig"] == {
        **config,
        "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1, **driver}],
    }


@pytest.mark.parametrize(
    ("labels", "taints", "left"),
    [
        ({"cloud.google.com/gke-boot-disk": "pd-balanced", "team": "ml"}, [], []),
        ({"kubernetes.io/hostname": "a", "team": "ml"}, [], ["labels"]),
        ({"team": "ml"}, [{"key": "bad key", "value": "x", "effect": "NO_SCHEDULE"}], ["taints"]),
    ],
    ids=str,
)
def test_a_refused_label_or_taint_costs_itself_alone(
    labels: Document, taints: list[Document], left: list[str]
) -> None:
    """The pool is declared with its other labels; GKE's own ones are GKE's."""
    own = pool("batch", "n2-standard-8", config={"labels": labels, "taints": taints})
    adoption = adopted(_lab(own))
    (batch,) = (item for item in adoption.declaration["pools"] if item["name"] == "batch")
    assert batch["labels"] == {"team": "ml"}
    names = _left(adoption)
    assert all("The first update removes it from the nodes, and pods" in reason for reason in names.values())
    assert [any(name.startswith(field) and "of pool batch" in name for name in names) for field in left] == (
        [True] * len(left)
    )
    assert len(names) == len(left)
    assert declare(adoption.declaration)


@pytest.mark.parametrize(
    "changes",
    [
        {"networkConfig": {"datapathProvider": None}},
        {"currentMasterVersion": "1.24.9-gke.100", "initialClusterVersion": "1.24.9-gke.100"},
        {"resourceLabels": {"goog-own": "x"}},
    ],
    ids=str,
)
def test_an_old_cluster_is_adopted_whole(changes: Document) -> None:
    """One of the legacy data path, or of a version that no new cluster has, exists: nothing replaces it."""
    document = merged(_lab(**WORKLOAD_IDENTITY), changes)
    if "currentMasterVersion" in changes:
        document["nodePools"][0]["version"] = changes["currentMasterVersion"]
    adoption = adopted(document)
    assert "existing" not in adoption.declaration["cloud"]
    assert [row.path for row in adoption.updates if row.path == "datapathProvider"] == []


@pytest.mark.parametrize("known", [True, False], ids=["other cluster found", "not found"])
def test_a_pool_of_the_same_name_is_another_clusters(known: bool) -> None:  # noqa: FBT001
    """A cluster's own pool is declared, and not one of its name of another cluster; that of a cluster without
    a description is listed."""
    own = _of_cluster(_lab(pool("batch", "n2-standard-8")))
    other = _of_cluster(cluster("other", "us-central1-a", [pool("batch", "n2-standard-32")]))
    pools = tuple(item for item in other.resources if known or item in other.pools)
    both = Found(cloud=own.cloud, account="acme-ml", resources=(*pools, *own.resources))
    adoption = _proved(both, "lab")
    (batch,) = (item for item in adoption.declaration["pools"] if item["name"] == "batch")
    assert batch["machine"] == "n2-standard-8"
    assert _left(adoption).get("pool batch") == (None if known else "It is of another cluster.")


def test_pools_that_no_declaration_has_say_why() -> None:
    """Without nodes and an autoscaler, being deleted, or of another cluster: each has its reason."""
    empty, going = (
        pool("empty", "n2-standard-8", initialNodeCount=0),
        pool("going", "n2-standard-8", status="STOPPING"),
    )
    other = cluster("other", "us-central1-a", [pool("theirs", "e2-standard-4")])
    found = _of_cluster(_lab(empty, going))
    theirs = _of_cluster(other).pools
    both = Found(
        cloud=found.cloud,
        account=found.account,
        resources=(*found.resources, *theirs),
        left_out=found.left_out,
    )
    left = _left(_proved(both))
    assert left["pool empty"].startswith("It has neither nodes nor an autoscaler")
    assert left["pool empty"].endswith(
        "adopt again: gcloud container clusters update lab --project acme-ml --location us-central1-a "
        "--node-pool empty --enable-autoscaling --min-nodes 0 --max-nodes N"
    )
    idle = aks_shapes.pool("idle", "Standard_D4s_v5", count=0)
    on_aks = [*copy.deepcopy(aks_shapes.VERIFIED)]
    on_aks[0]["agentPoolProfiles"].append(idle)
    assert _left(on_azure.adopted(on_aks))["pool idle"].endswith(
        "--cluster-name aks-verified --name idle --enable-cluster-autoscaler --min-count 0 --max-count N"
    )
    assert left["pool going"] == "It is being deleted."
    assert left["pool theirs"] == "It is of another cluster."


def test_a_weight_of_a_queue_is_left_without_the_metadata_server() -> None:
    """A weight would need a team, whose pods need the server; the queue itself is adopted."""
    mode = {"workloadMetadataConfig": {"mode": "GCE_METADATA"}}
    batch = pool("batch", "n2-standard-8", config={"labels": {"pool": "batch"}, **mode})
    adoption = adopted(_lab(batch, **WORKLOAD_IDENTITY), {"kind": "ResourceFlavor"})
    amount = {"name": "cpu", "nominalQuota": "8"}
    flavors = {"coveredResources": ["cpu"], "flavors": [{"name": "batch", "resources": [amount]}]}
    version = {"apiVersion": "kueue.x-k8s.io/v1beta1"}
    objects: list[Document] = [
        {
            **version,
            "kind": "ResourceFlavor",
            "metadata": {"name": "batch"},
            "spec": {"nodeLabels": {"pool": "batch"}},
        },
        {
            **version,
            "kind": "ClusterQueue",
            "metadata": {"name": "research"},
            "spec": {"resourceGroups": [flavors], "fairSharing": {"weight": "2"}, "namespaceSelector": {}},
        },
        {
            **version,
            "kind": "LocalQueue",
            "metadata": {"name": "research", "namespace": "lab"},
            "spec": {"clusterQueue": "research"},
        },
    ]
    queues = adopt_queues(kueue_objects({"items": objects}, "f"), adoption.declaration)
    assert [item["name"] for item in queues.fields["queues"]] == ["research"]
    assert "teams" not in queues.fields
    assert "fairSharing.weight of ClusterQueue research" in {part.name for part in queues.left}


def test_azure_says_the_next_step() -> None:
    """A cluster without logins of Entra ID, and with one pool, needs either."""
    documents = copy.deepcopy(aks_shapes.VERIFIED)
    documents[0]["aadProfile"] = None
    with pytest.raises(AdoptionError, match=r"az aks update --enable-aad.*az aks nodepool add --mode User"):
        on_azure.adopted(documents)


_WITH_LOGIN = "http://user:password@proxy.example.com:3128"


def test_no_secret_is_written() -> None:
    """A proxy's password, a registry's header and Windows' password stay in the cloud, and are named."""
    windows = {"adminUsername": "azureuser", "adminPassword": "s3cret!"}
    documents = copy.deepcopy(aks_shapes.CILIUM)
    documents[0] |= {
        "httpProxyConfig": {"httpProxy": _WITH_LOGIN, "noProxy": ["10.0.0.1"]},
        "windowsProfile": windows,
    }
    header = {"key": "Authorization", "values": ["Basic czNjcmV0"]}
    registry = {
        "server": "mirror.example.com",
        "hosts": [{"host": "mirror.example.com", "headers": [header]}],
    }
    own = pool("batch", "n2-standard-8", config={"containerdConfig": {"registryHosts": [registry]}})
    for adoption, names in (
        (on_azure.adopted(documents), ["httpProxyConfig of research", "windowsProfile of research"]),
        (adopted(_lab(own)), ["nodeConfig.containerdConfig of batch"]),
    ):
        assert [name for name in names if name not in _left(adoption)] == []
        text = json.dumps([adoption.declaration, [str(row) for row in (*adoption.fields, *adoption.updates)]])
        assert not [word for word in ("password", "s3cret", "czNjcmV0") if word in text]


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_secret_of_a_pulumi_export_is_named(*, encrypted: bool) -> None:
    """Each secret is named, shown in the export or not, with the property that it is a part of."""
    signature = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
    secret = {**signature, **({"ciphertext": "x"} if encrypted else {"plaintext": json.dumps("s3cret!")})}
    (document, *_) = aks_shapes.VERIFIED
    properties = {**document, "httpProxyConfig": {"httpProxy": secret, "noProxy": ["10.0.0.1"]}}
    token = "azure-native:containerservice:ManagedCluster"  # noqa: S105 - a type
    made = _exported(token, document["id"], properties, properties)
    assert made.withheld == ("httpProxyConfig",)
    assert "httpProxyConfig" not in made.inputs


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"releaseChannel": {"channel": "ACCELERATED"}}, "releaseChannel cannot be accelerated."),
        ({"autoscaling": {"autoscalingProfile": "TURBO"}}, "profile cannot be turbo."),
    ],
)
def test_a_value_that_no_field_has_is_said_in_the_declarations_words(changes: Document, reason: str) -> None:
    """The cluster stays with its owner, or the field with the cloud, for a reason without a validator's text
    and address."""
    reasons = " ".join(_left(adopted(_lab(**changes))).values())
    assert reason in reasons
    assert not [word for word in ("validation error", "pydantic", "input_value") if word in reasons]


def test_a_declaration_that_does_not_settle_says_why() -> None:
    """The last differences are named with both values; the pools alone are the advice only for a whole
    cluster."""
    rounds: list[str] = []

    def record(declaration: Document) -> Recording:
        """Record a program that changes another key each time."""
        rounds.append(f"k{len(rounds)}")
        made = synth(declaration)
        return replace(made, resources=tuple(_with_key(item, rounds[-1]) for item in made.resources))

    metadata = {f"k{number}": "found" for number in range(20)}
    found = _of_cluster(_lab(pool("batch", "n2-standard-8", config={"metadata": metadata})))
    with pytest.raises(AdoptionError) as raised:
        _proved(found, record=record)
    lines = str(raised.value).splitlines()
    assert lines[0].startswith("The declaration of the cluster does not settle")
    key = rounds[-1]
    assert f'batch: nodeConfig.metadata.{key} is "found", and Ebbtide sets "other".' in lines
    assert lines[-1] == "Report these lines."


def _with_key(item: Resource, key: str) -> Resource:
    if item.type != "gcp:container/nodePool:NodePool":
        return item
    metadata = {f"k{number}": "found" for number in range(20)} | {key: "other"}
    config: Document = {**cast("Document", item.inputs["nodeConfig"]), "metadata": metadata}
    return replace(item, inputs={**item.inputs, "nodeConfig": config})


_DEFAULTS: Document = {
    "anonymousAuthenticationConfig": {"mode": "ENABLED"},
    "enterpriseConfig": {"clusterTier": "STANDARD"},
    "fleet": {"project": "acme-ml", "membership": "//gkehub.googleapis.com/m", "preRegistered": True},
    "securityPostureConfig": {"mode": "BASIC"},
}
_IMAGES: Document = {
    "nodeImageConfigs": [{"image": "gke-1", "imageProject": "gke-node-images"}],
    "loggingConfig": {"variantConfig": {"variant": "DEFAULT"}},
    "kubeletConfig": {"maxParallelImagePulls": 2, "cpuCfsQuota": False},
}


def test_what_the_cloud_has_filled_in_stays() -> None:
    """The first update changes none of it; neither the image of the day nor what the provider only exports
    is declared."""
    names = {
        *_DEFAULTS,
        "nodeConfig.nodeImageConfigs",
        "nodeConfig.loggingVariant",
        "nodeConfig.kubeletConfig",
    }
    adoption = adopted(
        cluster("lab", "us-central1-a", [pool("admin", "e2-standard-4", config=_IMAGES)], **_DEFAULTS)
    )
    assert not [row.path for row in adoption.updates if any(is_within(row.path, name) for name in names)]
    cloud = adoption.declaration["cloud"]["overrides"]
    assert {name: value for name, value in cloud.items() if name in _DEFAULTS} == {
        "anonymousAuthenticationConfig": {"mode": "ENABLED"},
        "fleet": {"project": "acme-ml"},
        "securityPostureConfig": {"mode": "BASIC"},
    }
    (declared,) = adoption.declaration["pools"]
    nodes = declared["overrides"]["nodeConfig"]
    assert nodes["kubeletConfig"] == {"cpuCfsQuota": False, "maxParallelImagePulls": 2}
    assert "nodeImageConfigs" not in nodes
