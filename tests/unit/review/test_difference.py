"""The difference between two versions of a stack: actions, fields, and the options of resources."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import UNKNOWN, Secret
from ebbtide.analysis.review.build_review import refusals
from ebbtide.analysis.review.difference import Change, compare

BUCKET = "gcp:storage/bucket:Bucket"
NODE_POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"


def urn(type_: str, name: str) -> str:
    """A URN directly under the stack."""
    return f"urn:pulumi:dev::shop::{type_}::{name}"


def resource(type_: str, name: str, inputs: Mapping[str, Any], **options: Any) -> Resource:
    """A resource directly under the stack."""
    return Resource(urn=urn(type_, name), type=type_, name=name, inputs=inputs, **options)


def recorded(*resources: Resource) -> Recording:
    """A recording of these resources."""
    return Recording(project="shop", stack="dev", resources=resources)


def changes(before: Resource, after: Resource, *, deployed: bool = False) -> tuple[Change, ...]:
    """The difference between two versions of a stack of one resource."""
    return compare(recorded(before), recorded(after), deployed=deployed)


def actions(*all_changes: Change) -> dict[str, str]:
    """The actions by name."""
    return {change.resource.name: change.action for change in all_changes}


def bucket(location: str = "US", **options: Any) -> Resource:
    """A bucket, which is replaced with another location."""
    return resource(BUCKET, "data", {"name": "data", "location": location}, **options)


def test_created_updated_and_deleted() -> None:
    """By URN; what stays the same is not a change."""
    same = resource(BUCKET, "same", {"name": "same"})
    before = recorded(same, bucket(), resource(BUCKET, "old", {"name": "old"}))
    labelled = resource(BUCKET, "data", {"name": "data", "location": "US", "labels": {"a": "b"}})
    after = recorded(same, labelled, resource(BUCKET, "new", {"name": "new"}))
    assert actions(*compare(before, after)) == {"data": "update", "new": "create", "old": "delete"}


def test_the_forcing_field_is_named() -> None:
    """The provider's table decides, and what it overlooks is not a change."""
    (change,) = changes(bucket(), bucket("EU"))
    assert change.action == "replace"
    assert [(field.path, field.old, field.new, field.replaces) for field in change.fields] == [
        ("location", "US", "EU", True)
    ]
    assert changes(bucket("us"), bucket("US")) == ()


def test_ignored_changes() -> None:
    """At the path and below it."""
    assert changes(bucket(), bucket("EU", ignore_changes=("location",))) == ()


@pytest.mark.parametrize("path", ["*", "labels"])
def test_replace_on_changes(path: str) -> None:
    """A change of any input, or below the path."""
    old = resource(BUCKET, "data", {"name": "data", "labels": {"a": "b"}})
    new = resource(BUCKET, "data", {"name": "data", "labels": {"a": "c"}}, replace_on_changes=(path,))
    (change,) = changes(old, new)
    assert change.action == "replace"


def test_replace_with() -> None:
    """A resource is replaced with another, without a changed field of its own."""
    follower = resource(BUCKET, "follower", {"name": "follower"}, replace_with=(urn(BUCKET, "data"),))
    result = compare(recorded(bucket(), follower), recorded(bucket("EU"), follower))
    assert actions(*result) == {"data": "replace", "follower": "replace"}


def _cluster_with_pool(location: str, **options: Any) -> Recording:
    cluster = resource(CLUSTER, "c", {"name": "c", "location": location}, **options)
    dependency = {"cluster": (cluster.urn,)}
    pool = resource(NODE_POOL, "p", {"name": "p", "cluster": "c"}, property_dependencies=dependency)
    return recorded(cluster, pool)


def test_dependents_of_what_is_deleted_first() -> None:
    """A cluster that keeps its name goes before its successor comes, and its pools with it."""
    result = compare(_cluster_with_pool("us-east1"), _cluster_with_pool("us-west1"))
    assert actions(*result) == {"c": "replace", "p": "replace"}


def test_delete_before_replace() -> None:
    """Created first, a cluster leaves a pool that only knows its name as it is."""
    after = _cluster_with_pool("us-west1", delete_before_replace=False)
    assert actions(*compare(_cluster_with_pool("us-east1"), after)) == {"c": "replace"}


@pytest.mark.parametrize(
    ("old", "new", "refused"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_protected_resources_are_not_replaced(*, old: bool, new: bool, refused: bool) -> None:
    """Unless the same update removes the protection."""
    (change,) = changes(bucket(protect=old), bucket("EU", protect=new))
    assert change.is_refused is refused
    (text,) = refusals(recorded(), (change,)) if refused else ("(location)",)
    assert "(location)" in text


def test_protected_resources_are_not_deleted() -> None:
    """The sentence names the resource."""
    (change,) = compare(recorded(bucket(protect=True)), recorded())
    (text,) = refusals(recorded(), (change,))
    assert text.startswith("gcp.storage.Bucket data is protected, and the engine refuses to delete it.")


@pytest.mark.parametrize(
    "alias", [urn(BUCKET, "old"), "name=old", "name=old stack=dev", "parent=the stack name=old"]
)
def test_aliases(alias: str) -> None:
    """A renamed resource stays itself."""
    old = resource(BUCKET, "old", {"name": "data", "location": "US"})
    assert changes(old, bucket(aliases=(alias,))) == ()


def test_children_of_an_alias() -> None:
    """Children are matched below the former URN of their parent, by the former name."""

    def family(name: str, **options: Any) -> Recording:
        parent = resource("my:Parts", name, {}, custom=False, **options)
        child_urn = f"urn:pulumi:dev::shop::my:Parts${BUCKET}::{name}-data"
        child = Resource(urn=child_urn, type=BUCKET, name=f"{name}-data", parent=parent.urn)
        return recorded(parent, child)

    assert compare(family("old"), family("new", aliases=("name=old",))) == ()
    assert actions(*compare(family("old"), family("new"))) == {"new-data": "create", "old-data": "delete"}


def _object(kind: str, inputs: Mapping[str, Any], **settings: Any) -> Recording:
    provider = resource("pulumi:providers:kubernetes", "k", settings)
    values = {"metadata": {"name": "x", "namespace": "y"}, **inputs}
    return recorded(provider, resource(f"kubernetes:{kind}", "x", values, provider=provider.urn))


@pytest.mark.parametrize(
    ("kind", "old", "new", "action"),
    [
        ("apps/v1:Deployment", {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}, "update"),
        (
            "apps/v1:Deployment",
            {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
            {"spec": {"selector": {"matchLabels": {"a": "c"}}}},
            "replace",
        ),
        ("batch/v1:Job", {"spec": {"template": {"a": 1}}}, {"spec": {"template": {"a": 2}}}, "replace"),
        ("core/v1:ConfigMap", {"data": {"a": "1"}}, {"data": {"a": "2"}}, "replace"),
        ("kueue.x-k8s.io/v1beta2:ClusterQueue", {"spec": {"a": 1}}, {"spec": {"a": 2}}, "update"),
        ("core/v1:Namespace", {}, {"metadata": {"name": "z"}}, "replace"),
    ],
)
def test_kubernetes_objects(kind: str, old: Mapping[str, Any], new: Mapping[str, Any], action: str) -> None:
    """By pulumi-kubernetes' own table."""
    (change,) = compare(_object(kind, old), _object(kind, new))
    assert change.action == action


_NO_CLASS = {"capacity": {"storage": "1024Gi"}, "storageClassName": ""}


@pytest.mark.parametrize(
    ("kind", "state", "declared", "is_updated"),
    [
        ("networking.k8s.io/v1:NetworkPolicy", {"spec": {}}, {"spec": {"ingress": []}}, False),
        ("batch/v1:CronJob", {"spec": {}}, {"spec": {"tolerations": [], "suspend": False}}, True),
        ("core/v1:PersistentVolume", {"spec": {"capacity": {"storage": "1Ti"}}}, {"spec": _NO_CLASS}, False),
        ("core/v1:PersistentVolume", {"spec": {"capacity": {"storage": "2Ti"}}}, {"spec": _NO_CLASS}, True),
        ("core/v1:PersistentVolumeClaim", {"spec": {}}, {"spec": {"storageClassName": ""}}, True),
        ("core/v1:Secret", {"data": Secret(UNKNOWN)}, {"stringData": {"key": "text"}}, False),
        ("core/v1:Secret", {}, {"stringData": {"key": "text"}}, True),
        ("kueue.x-k8s.io/v1beta2:ClusterQueue", {"spec": {}}, {"spec": {"flavors": []}}, True),
    ],
)
def test_objects_in_the_form_of_the_state(
    kind: str,
    state: Mapping[str, Any],
    declared: Mapping[str, Any],
    is_updated: bool,  # noqa: FBT001
) -> None:
    """Built-in kinds without empty lists, with canonical quantities and the text of Secrets as data (read in
    states that the engine wrote); custom resources as they are declared."""
    old, new = (resource(f"kubernetes:{kind}", "x", inputs) for inputs in (state, declared))
    assert bool(changes(old, new, deployed=True)) is is_updated


def test_mutable_config_maps() -> None:
    """An input of the provider decides."""
    old, new = (_object("core/v1:ConfigMap", {"data": {"a": a}}, enableConfigMapMutable="true") for a in "12")
    (change,) = compare(old, new)
    assert change.action == "update"


def test_a_provider_of_another_cluster_takes_its_objects_along() -> None:
    """The objects are in the cluster that the kubeconfig leads to."""
    old, new = (_object("core/v1:Namespace", {}, kubeconfig=Secret(config)) for config in ("a", "b"))
    assert actions(*compare(old, new)) == {"k": "replace", "x": "replace"}


def test_secrets_of_a_state_are_not_compared() -> None:
    """Encrypted values are unknown; a secret that comes or goes is a change."""
    old = resource(BUCKET, "data", {"labels": {"key": Secret(UNKNOWN)}})
    assert changes(old, resource(BUCKET, "data", {"labels": {"key": Secret("v")}})) == ()
    (change,) = changes(old, resource(BUCKET, "data", {"labels": {}}))
    assert "v" not in json.dumps([str(field.old) for field in change.fields])


def test_subnets_grow_in_place() -> None:
    """A smaller range is another subnet."""
    token = "gcp:compute/subnetwork:Subnetwork"  # noqa: S105 - a type
    small, large = (resource(token, "s", {"ipCidrRange": text}) for text in ("10.0.0.0/20", "10.0.0.0/18"))
    assert actions(*changes(small, large)) == {"s": "update"}
    assert actions(*changes(large, small)) == {"s": "replace"}
