"""Teams' namespaces, limits, and storage."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from components.addons.security import member_rules, subjects
from components.addons.teams import (
    limit_range,
    namespace_labels,
    network_policies,
    nothing_left_behind,
    object_quota,
)
from ebbtide.analysis.recording.assumption_tables import ADDRESS
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import Secret
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.physical_names import account_name
from ebbtide.placement.queueing import queueing
from tests.declarations import AKS, BASES, GKE, Declaration, changed
from tests.synth import synth

QUEUED = changed(GKE, queues=[{"name": "gpus", "pools": ["t4", "cpu"]}], teams=[{"name": "vision"}])


def team(cloud: str, **fields: Any) -> Recording:
    """A cluster with one team."""
    return synth(changed(BASES[cloud], teams=[{"name": "vision"} | fields]))


def inputs(recording: Recording, type_: str) -> Any:
    """Inputs of the team's resource of a type; the nodes have a service account as well."""
    (item,) = [resource for resource in recording.of_type(type_) if "vision" in resource.name]
    return cast("Any", item.inputs)


def test_the_largest_node_is_the_most() -> None:
    """A container may ask for what the largest node of the team's queues offers, and gets little by
    itself."""
    cluster = declare(QUEUED)
    limits = limit_range(queueing(cluster).flavors_by_namespace().get("vision", ()), cluster.teams[0])
    assert limits is not None
    (container,) = limits["spec"]["limits"]
    assert container["type"] == "Container"
    assert container["max"] == container["default"] == {"cpu": "7560m", "memory": "46456Mi"}
    assert container["defaultRequest"] == {"cpu": "100m", "memory": "256Mi"}


def test_no_limit_without_a_queue() -> None:
    """A namespace without a queue has no LimitRange."""
    pools = [pool for pool in GKE["pools"] if pool["name"] != "a100"]
    cluster = declare(changed(GKE, pools=pools, teams=[{"name": "vision"}]))
    assert limit_range(queueing(cluster).flavors_by_namespace().get("vision", ()), cluster.teams[0]) is None


def test_a_namespace_is_seen_by_what_works_in_it() -> None:
    """By Kueue where work is queued, by Katib where trials are measured."""
    cluster = declare(changed(QUEUED, addons={"katib": {}}))
    assert namespace_labels(cluster, cluster.teams[0]) == {
        "ebbtide.dev/team": "vision",
        "ebbtide.dev/queues": "true",
        "ebbtide.dev/queue-required": "true",
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "restricted",
        "pod-security.kubernetes.io/audit": "restricted",
        "katib.kubeflow.org/metrics-collector-injection": "enabled",
        "ebbtide.dev/members": "true",
        "ebbtide.dev/pods": "5000",
    }


def test_an_existing_namespace_is_labeled_on_request() -> None:
    """Neither a Pod Security Standard nor a required queue is imposed on what runs there already."""
    theirs = {"name": "theirs", "create": False}
    teams = [
        {"name": "vision", "namespace": theirs},
        {
            "name": "speech",
            "namespace": theirs | {"name": "others", "podSecurity": "restricted"},
            "requireQueue": True,
        },
    ]
    cluster = declare(changed(QUEUED, teams=teams))
    left_alone, restricted = (namespace_labels(cluster, team) for team in cluster.teams)
    assert left_alone == {"ebbtide.dev/team": "vision", "ebbtide.dev/queues": "true"}
    assert restricted["pod-security.kubernetes.io/enforce"] == "restricted"
    assert restricted["ebbtide.dev/queue-required"] == "true"


def test_a_profile_is_taken_over_in_the_stacks_own_namespaces_alone() -> None:
    """In a namespace that exists already, the ConfigMap may be another stack's; no diff prints all of it."""
    teams = [{"name": "vision"}, {"name": "speech", "namespace": {"name": "theirs", "create": False}}]
    recording = synth(changed(QUEUED, teams=teams, addons={"pipelines": {}}))
    made = recording.of_type("kubernetes:core/v1:ConfigMap")
    assert {item.hide_diffs for item in made if item.name.endswith("-profile")} == {("data",)}
    maps: list[Any] = [item.inputs["metadata"] for item in made]
    forced = {
        item["namespace"]: item.get("annotations") for item in maps if item["name"] == "ebbtide-profile"
    }
    own = {"pulumi.com/patchForce": "true"}
    assert forced == {"vision": own, "kubeflow": own, "theirs": None}


def test_interactive_members_create_pods() -> None:
    """Only where the team says so."""
    team = {"name": "vision", "members": ["ada@acme.example"], "interactive": True}
    cluster = declare(changed(QUEUED, teams=[team]))
    assert ("pods", "create") in set(_may(member_rules(cluster, cluster.teams[0])))


@pytest.mark.parametrize(("volume", "claims"), [(None, "0"), ({}, "1")])
def test_nothing_is_left_behind(volume: Declaration | None, claims: str) -> None:
    """No claim but the declared one, and no load balancer."""
    cluster = declare(
        changed(QUEUED, teams=[{"name": "vision"} | ({"volume": volume} if volume is not None else {})])
    )
    hard = nothing_left_behind(cluster.teams[0])["spec"]["hard"]
    assert hard == {
        "persistentvolumeclaims": claims,
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }


def test_objects_are_counted_in_the_stacks_own_namespaces() -> None:
    """Objects of members, and Katib's Deployments for them, have a limit that only the declaration changes;
    in an existing namespace, only if it is declared."""
    theirs = {"name": "theirs", "create": False}
    teams: list[dict[str, Any]] = [
        {"name": "vision"},
        {"name": "speech", "limits": {"jobs": 10, "pods": 20, "objects": 30, "experiments": 4}},
        {"name": "audio", "namespace": theirs},
        {"name": "text", "namespace": theirs | {"name": "others"}, "limits": {"jobs": 10}},
    ]
    cluster = declare(changed(QUEUED, teams=teams, addons={"trainer": {}, "katib": {}}))
    usual, declared, none, wished = (object_quota(cluster, team) for team in cluster.teams)
    assert declared is not None
    assert declared["spec"]["hard"] == {
        "count/configmaps": "30",
        "count/cronjobs.batch": "30",
        "count/deployments.apps": "4",
        "count/jobs.batch": "10",
        "count/secrets": "30",
        "count/services": "30",
        "pods": "20",
    }
    assert namespace_labels(cluster, cluster.teams[1])["ebbtide.dev/pods"] == "20"
    assert usual is not None
    assert usual["spec"]["hard"].keys() == declared["spec"]["hard"].keys()
    assert none is None
    assert "ebbtide.dev/pods" not in namespace_labels(cluster, cluster.teams[2])
    assert wished is not None
    assert wished["spec"]["hard"]["count/jobs.batch"] == "10"


def test_every_kind_that_members_create_is_counted() -> None:
    """A limit for each built-in kind that members create, and none for custom kinds, which the quota would
    refuse for minutes after their installation."""
    addons: dict[str, Any] = {"trainer": {}, "katib": {}, "pipelines": {}, "costs": {}}
    team = {"name": "vision", "members": ["ada@acme.example"], "interactive": True}
    cluster = declare(changed(QUEUED, teams=[team], addons=addons))
    quota = object_quota(cluster, cluster.teams[0])
    assert quota is not None
    counted = {name.removeprefix("count/").partition(".")[0] for name in quota["spec"]["hard"]}
    created = {item for item, verb in _may(member_rules(cluster, cluster.teams[0])) if verb == "create"}
    custom = {
        kind for add_on in cluster.installed for right in add_on.spec.rights for kind in right.resources
    }
    assert created - custom - {"pods/exec", "pods/portforward"} <= counted
    assert not custom & counted


def test_declared_load_balancers_have_clients() -> None:
    """A team with declared load balancers has no quota for them but of ports of nodes, which all share, and
    admits clients from outside."""
    cluster = declare(changed(QUEUED, teams=[{"name": "vision", "loadBalancers": True}]))
    (team,) = cluster.teams
    assert nothing_left_behind(team)["spec"]["hard"] == {
        "persistentvolumeclaims": "0",
        "services.nodeports": "100",
    }
    assert namespace_labels(cluster, team)["ebbtide.dev/load-balancers"] == "true"
    policies = {item["metadata"]["name"]: item["spec"] for item in network_policies(cluster, team)}
    assert policies["load-balancers"]["ingress"] == [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]


def _may(rules: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for rule in rules:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield resource, verb


def test_members_may_run_work_and_no_more() -> None:
    """Members can submit, follow and stop work, but cannot read Secrets or create objects whose cost outlives
    the cluster."""
    addons: dict[str, Any] = {"trainer": {}, "katib": {}}
    cluster = declare(changed(QUEUED, addons=addons))
    may = set(_may(member_rules(cluster, cluster.teams[0])))
    assert {
        ("jobs", "create"),
        ("cronjobs", "create"),
        ("services", "create"),
        ("pods/log", "get"),
        ("trainjobs", "create"),
        ("experiments", "create"),
    } <= may
    assert ("workloads", "list") in may
    assert {verb for resource, verb in may if resource == "secrets"} == {"create", "delete"}
    # The answer to a change has the object.
    changed_kinds = {kind for kind, verb in may if verb in ("patch", "update", "deletecollection")}
    assert changed_kinds <= {kind for kind, verb in may if verb == "get"}
    assert not {resource for resource, verb in may if verb == "create"} & {
        "persistentvolumeclaims",
        "roles",
        "rolebindings",
        "localqueues",
        "pods",
        "namespaces",
    }
    assert not {resource for resource, _ in may} & {"*"}


@pytest.mark.parametrize(
    ("cloud", "member", "kinds"),
    [
        (CloudKind.GKE, "ada@acme.example", {"User"}),
        (CloudKind.GKE, "group:vision@acme.example", {"Group"}),
        (CloudKind.AKS, "ada@acme.example", {"User"}),
        (CloudKind.AKS, "11111111-1111-1111-1111-111111111111", {"User", "Group"}),
    ],
)
def test_members_are_known_as_what_they_are(cloud: CloudKind, member: str, kinds: set[str]) -> None:
    """An object id of Entra's alone does not say whether it is a user's or a group's."""
    assert {subject["kind"] for subject in subjects(member, cloud)} == kinds
    assert {subject["name"] for subject in subjects(member, cloud)} == {member.removeprefix("group:")}


def test_work_is_an_identity_on_google_cloud() -> None:
    """The service account in the namespace, and no other, may act as the team's."""
    recording = team("gke")
    member = inputs(recording, "gcp:serviceaccount/iAMMember:IAMMember")
    assert member["member"] == "serviceAccount:acme-ml.svc.id.goog[vision/worker]"
    assert member["role"] == "roles/iam.workloadIdentityUser"
    account = inputs(recording, "kubernetes:core/v1:ServiceAccount")
    assert account["metadata"]["annotations"] == {
        "iam.gke.io/gcp-service-account": "train-team-vision@acme-ml.iam.gserviceaccount.com"
    }


def test_work_is_an_identity_on_azure() -> None:
    """Azure believes the cluster's tokens for that one service account."""
    recording = team("aks")
    credential = inputs(recording, "azure-native:managedidentity:FederatedIdentityCredential")
    assert credential["subject"] == "system:serviceaccount:vision:worker"
    assert credential["audiences"] == ["api://AzureADTokenExchange"]
    assert credential["issuer"]
    account = inputs(recording, "kubernetes:core/v1:ServiceAccount")
    assert account["metadata"]["annotations"]["azure.workload.identity/client-id"]


_PIPELINES = {"name": "vision", "namespace": {"name": "kubeflow", "create": False}, "volume": {}}


@pytest.mark.parametrize("addons", [{}, {"pipelines": {}}])
def test_steps_of_pipelines_are_the_team_on_google_cloud(addons: dict[str, Any]) -> None:
    """Steps run as `pipeline-runner`: where a team has the namespace of Kubeflow Pipelines, whoever installed
    that, they mount its bucket."""
    recording = synth(changed(GKE, teams=[_PIPELINES], addons=addons))
    members = {
        cast("Any", item.inputs)["member"]
        for item in recording.of_type("gcp:serviceaccount/iAMMember:IAMMember")
        if "vision" in item.name
    }
    pool = "serviceAccount:acme-ml.svc.id.goog"
    assert members == {f"{pool}[kubeflow/worker]", f"{pool}[kubeflow/pipeline-runner]"}
    patch = inputs(recording, "kubernetes:core/v1:ServiceAccountPatch")
    assert patch["metadata"] == {
        "name": "pipeline-runner",
        "namespace": "kubeflow",
        "annotations": {
            "iam.gke.io/gcp-service-account": "train-team-vision@acme-ml.iam.gserviceaccount.com"
        },
    }
    claim = inputs(recording, "kubernetes:core/v1:PersistentVolumeClaim")
    assert (claim["metadata"]["namespace"], claim["metadata"]["name"]) == ("kubeflow", "shared")


def test_steps_with_an_identity_of_their_own_keep_it() -> None:
    """The identity of pipeline steps with artifacts in a bucket can use the team's bucket as well."""
    pipelines = {"pipelines": {"artifacts": "bucket"}}
    recording = synth(changed(GKE, teams=[_PIPELINES], addons=pipelines))
    assert not recording.of_type("kubernetes:core/v1:ServiceAccountPatch")
    writers = {
        cast("Any", item.inputs)["member"]
        for item in recording.of_type("gcp:storage/bucketIAMMember:BucketIAMMember")
        if "vision" in item.name
    }
    assert writers == {
        f"serviceAccount:train-{account}@acme-ml.iam.gserviceaccount.com"
        for account in ("team-vision", "kfp")
    }


def test_steps_of_pipelines_are_the_team_on_azure() -> None:
    """Azure believes the tokens of `pipeline-runner`, too; two credentials are not written at once."""
    recording = synth(changed(AKS, teams=[_PIPELINES]))
    credentials = recording.of_type("azure-native:managedidentity:FederatedIdentityCredential")
    assert {cast("Any", item.inputs)["subject"] for item in credentials} == {
        "system:serviceaccount:kubeflow:worker",
        "system:serviceaccount:kubeflow:pipeline-runner",
    }
    names = {cast("Any", item.inputs)["federatedIdentityCredentialResourceName"] for item in credentials}
    assert len(names) == 2
    first, second = sorted(credentials, key=lambda item: "pipeline-runner" in item.name)
    assert first.urn in second.dependencies
    patch = inputs(recording, "kubernetes:core/v1:ServiceAccountPatch")
    assert patch["metadata"]["annotations"]["azure.workload.identity/client-id"]


def test_another_namespace_has_nothing_of_the_pipelines() -> None:
    """The service account of the pipelines exists only in its team's namespace."""
    for cloud in BASES:
        recording = team(cloud, volume={})
        assert not recording.of_type("kubernetes:core/v1:ServiceAccountPatch")
        for item in recording:
            assert "pipeline-runner" not in str(item.inputs)


def test_no_identity_is_more_than_its_bucket() -> None:
    """A team has no role on the project or the subscription."""
    for cloud in BASES:
        for item in team(cloud, bucket={}):
            if "vision" in item.name:
                assert not item.type.startswith("gcp:projects/")
                scope: Any = item.inputs.get("scope", "storageAccounts")
                assert "storageAccounts" in scope


def test_a_namespace_that_is_not_ours_is_left_alone() -> None:
    """An existing namespace gets labels for queues, no limits, and is never deleted."""
    teams = [{"name": "vision", "namespace": {"name": "default", "create": False}}]
    recording = synth(changed(AKS, teams=teams, addons={"kueue": {}}))
    kinds = {item.type.rpartition(":")[2] for item in recording if "team-vision" in item.name}
    assert "NamespacePatch" in kinds
    assert not kinds & {"Namespace", "LimitRange", "ResourceQuota", "NetworkPolicy"}


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
    """The kubelet mounts NFS itself, without a driver, from an address that is known to be assumed."""
    recording = team("gke", volume={"kind": "filestore"})
    volume = inputs(recording, "kubernetes:core/v1:PersistentVolume")["spec"]["nfs"]
    assert volume == {"server": ADDRESS, "path": "/shared"}
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
