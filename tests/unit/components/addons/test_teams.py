"""Teams' namespaces, limits, and storage."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from components.addons.security import member_rules, subjects
from components.addons.teams import (
    namespace_labels,
    object_quota,
)
from ebbtide.analysis.recording.assumption_tables import ADDRESS
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import Secret
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.physical_names import account_name
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import AKS, BASES, GKE, changed
from tests.synth import synth

QUEUED = changed(GKE, queues=[{"name": "gpus", "pools": ["t4", "cpu"]}], teams=[{"name": "vision"}])


def team(cloud: str, **fields: Any) -> Recording:
    """A cluster with one team."""
    return synth(changed(BASES[cloud], teams=[{"name": "vision"} | fields]))


def inputs(recording: Recording, type_: str) -> Any:
    """Inputs of the team's resource of a type; the nodes have a service account as well."""
    (item,) = [resource for resource in recording.of_type(type_) if "vision" in resource.name]
    return cast("Any", item.inputs)


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


def test_no_identity_is_more_than_its_bucket() -> None:
    """A team has no role on the project or the subscription."""
    for cloud in BASES:
        for item in team(cloud, bucket={}):
            if "vision" in item.name:
                assert not item.type.startswith("gcp:projects/")
                scope: Any = item.inputs.get("scope", "storageAccounts")
                assert "storageAccounts" in scope


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
