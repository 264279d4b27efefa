"""Contract of the fake provider: everything that programs make on both clouds, and each row of the tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.changes.azure import names
from ebbtide.analysis.changes.property_path import replaced, values_at
from ebbtide.analysis.recording.values import UNKNOWN, leaves
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.ids import (
    BUCKET,
    GROUP,
    OBJECT,
    POOLS_OF,
    REFERENCES,
    TAKEN,
    VNET,
    is_of,
    referred,
)
from ebbtide_rehearsal.cloud.properties import TEMPLATES, as_answered, parent_of
from ebbtide_rehearsal.cloud.provider import Call, DiffResult, Read, RefusedError
from ebbtide_rehearsal.cloud.store import Resource, Store
from rehearsal.tests.fake_clouds import existing_cloud, lock, put_object, refusals_of, settings_of
from rehearsal.tests.unit.fake_cloud import CLUSTER_ID, Cloud, asked_for, base, with_cluster
from tests.contract.cluster_flips import VAULT
from tests.declarations import AKS, GKE, Declaration, changed
from tests.repository import STACK_FILES, declaration, relative
from tests.running import full
from tests.synth import synth

_GKE = full("gke", pipelines={"artifacts": "bucket"})
_AKS = full("aks", logs={}, metrics={})
_KEY = "projects/acme-ml/locations/us-central1/keyRings/clusters/cryptoKeys/train"
_KEYS = {data: f"https://ours.vault.azure.net/keys/{data}" for data in ("buckets", "registries")}
_POLICIES: Declaration = {
    "blobService": {"deleteRetentionPolicy": {"enabled": True, "days": 7}},
    "managementPolicy": {"policy": {"rules": []}},
}
_H200 = {
    "name": "h200",
    "machine": "a3-ultragpu-8g",
    "capacity": "spot",
    "nodes": {"max": 2},
    "gpuDirect": "rdma",
}
_RESERVED = {"name": "held", "machine": "Standard_D8s_v5", "nodes": {"count": 2}}
EVERYTHING: dict[str, Declaration] = {
    "gcp": changed(
        _GKE,
        cloud=_GKE["cloud"] | {"keys": dict.fromkeys(("secrets", "disks", "buckets", "registries"), _KEY)},
        pools=[*_GKE["pools"], _H200],
    ),
    "azure-native": changed(
        _AKS,
        cloud=_AKS["cloud"] | {"keys": _KEYS | {"vault": VAULT}, "resources": _POLICIES},
        pools=[*_AKS["pools"], _RESERVED | {"capacity": {"kind": "reservation"}}],
    ),
}
DECLARATIONS = {
    "small": GKE,
    "small on AKS": AKS,
    "regional": changed(GKE, cloud=GKE["cloud"] | {"location": "us-central1"}),
    **EVERYTHING,
    **{
        relative(file): declaration(file)
        for file in STACK_FILES
        if "existing" not in declaration(file)["cloud"]
    },
}


@pytest.mark.parametrize("written", DECLARATIONS.values(), ids=DECLARATIONS.keys())
def test_all_of_it_comes_and_goes(tmp_path: Path, written: Declaration) -> None:
    """A resource is created with the id that the preview assumes, reads back as declared, has no difference
    afterwards, and can be deleted; nothing is left."""
    cloud = Cloud(tmp_path, written)
    made: list[tuple[str, str]] = []
    for resource, inputs in asked_for({"name": "it-test", **written, "lifetime": {"hours": 8}}):
        created = cloud.create(resource.type, inputs, resource.name)
        random = "__createBeforeDelete" in cloud.found(created.id).inputs
        assert random or created.id == resource.id
        assert cloud.read(created.id).inputs == cloud.found(created.id).inputs
        if resource.type not in POOLS_OF:
            assert dict(cloud.read(created.id).state) == dict(created.state)
        assert cloud.diff(created.id, inputs) == DiffResult()
        made.append((resource.type, created.id))
    assert {pool["name"] for pool in written["pools"]} <= cloud.node_pools().keys()
    for token, identity in reversed(made):
        for _ in ("once", "again, which is no error"):
            cloud.provider.delete(Call(token, "it", ""), identity, {})
    assert cloud.store.resources() == []
    assert cloud.clusters.running == {}


@pytest.fixture(params=EVERYTHING, ids=str, scope="module")
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FakeProvider:
    """A cloud with everything that a program makes."""
    written = changed(EVERYTHING[request.param], lifetime={"hours": 8})
    store = Store(tmp_path_factory.mktemp("cloud") / "cloud.sqlite")
    provider = existing_cloud(store, written).configured(settings_of(written))
    assert isinstance(provider, FakeProvider)
    assert refusals_of(provider, synth(written)) == {}
    return provider


def _call(resource: Resource, **details: Any) -> Call:
    return Call(resource.type, "it", resource.urn, **details)


def _own(cloud: FakeProvider) -> list[Resource]:
    return [item for item in cloud.store.resources(cloud.package) if item.urn]


def _updated(cloud: FakeProvider, resource: Resource, inputs: Mapping[str, Any]) -> None:
    cloud.update(_call(resource), resource.id, Read(resource.id, resource.inputs, resource.state), inputs)


def _gone(value: Any) -> Any:
    return f"{value}-gone" if isinstance(value, str) else [f"{item}-gone" for item in value]


def test_a_referenced_resource_has_to_exist(cloud: FakeProvider) -> None:
    """A resource that refers to one that does not exist is refused, and stays as it was."""
    tried: set[tuple[str, str]] = set()
    for resource in _own(cloud):
        for reference, text in referred(resource.type, resource.inputs):
            if not cloud.lacks(reference, f"{text}-gone", resource.inputs):
                continue  # in a resource group of others, which has everything
            with pytest.raises(RefusedError, match=r"-gone' was not found"):
                _updated(cloud, resource, replaced(resource.inputs, reference.path, _gone))
            assert cloud.find(resource.id) == resource
            tried.add((resource.type, reference.path))
    expected = {
        (token, reference.path)
        for token, references in REFERENCES.items()
        for reference in references
        if token.startswith(cloud.package)
    }
    assert tried == expected


def test_a_used_resource_stays(cloud: FakeProvider) -> None:
    """A resource that others use cannot be deleted."""
    used = [
        target
        for resource in _own(cloud)
        for reference, text in referred(resource.type, resource.inputs)
        for target in cloud.store.resources(cloud.package, reference.target)
        if reference.use == "uses" and is_of(text, target.id)
    ]
    assert used
    for target in used:
        with pytest.raises(RefusedError, match="is already being used by"):
            cloud.delete(_call(target), target.id, {})


def test_what_exists_is_not_created_again(cloud: FakeProvider) -> None:
    """An id is one resource's, and so are the properties that no two resources share; a member of a policy is
    the same one."""
    shared = 0
    for resource in _own(cloud):
        if "{role}" in TEMPLATES[resource.type].id:
            cloud.create(_call(resource), resource.inputs)
            continue
        with pytest.raises(RefusedError, match="Already exists"):
            cloud.create(_call(resource), resource.inputs)
        if resource.type in TAKEN and not {"accountName", "registryName"} & {*TAKEN[resource.type]}:
            *_, last = names(TEMPLATES[resource.type].id)
            with pytest.raises(RefusedError, match="already exists with the same"):
                cloud.create(_call(resource), {**resource.inputs, last: "another"})
            shared += 1
    assert shared or cloud.package == "gcp"


def test_a_fixed_property_stays(cloud: FakeProvider) -> None:
    """A change of a property that the table calls fixed is refused."""
    tried = 0
    for resource in _own(cloud):
        for path in constraints_of(resource.type).fixed:
            if any(isinstance(value, str | int) for _, value in values_at(dict(resource.inputs), path)):
                with pytest.raises(RefusedError, match=r"Changing property|was not found"):
                    _updated(cloud, resource, replaced(resource.inputs, path, _other))
                tried += 1
    assert tried


def _other(value: Any) -> Any:
    return not value if isinstance(value, bool) else value + ("1" if isinstance(value, str) else 1)


def test_a_preview_knows_inputs_alone(cloud: FakeProvider) -> None:
    """A previewed resource has no id and nothing that only the cloud knows, and is not stored."""
    before = cloud.store.resources()
    for resource in _own(cloud):
        made = cloud.create(_call(resource, preview=True), resource.inputs)
        assert made.id == ""
        given = [leaf for _, leaf in leaves(dict(resource.inputs))]
        assert all(leaf in given or leaf is UNKNOWN for _, leaf in leaves(dict(made.state)))
    assert cloud.store.resources() == before


def test_an_import_is_the_existing_resource(cloud: FakeProvider) -> None:
    """A resource that the engine does not know reads with the inputs that it has in the cloud."""
    for resource in _own(cloud):
        read = cloud.read(_call(resource), resource.id, {})
        assert read is not None
        if resource.type not in POOLS_OF:  # which has the pools of others
            assert read.inputs == resource.inputs


def test_a_refresh_finds_what_was_changed_outside(cloud: FakeProvider) -> None:
    """A changed value is an input as read, and what a user adds to labels; what the cloud adds is not."""
    for resource in _own(cloud):
        labels = next((name for name in ("labels", "tags", "resourceLabels") if name in resource.inputs), "")
        if labels:
            edited = {**resource.state[labels], "hand": "x"}
            cloud.store.put(resource.having(**{labels: edited}, colour="green"))
            read = cloud.read(_call(resource, inputs=resource.inputs), resource.id, resource.state)
            assert read is not None
            assert read.inputs[labels] == {**resource.inputs[labels], "hand": "x"}
            assert "colour" not in read.inputs
            cloud.store.put(resource)


def test_a_resource_needs_what_it_is_in(cloud: FakeProvider, tmp_path: Path) -> None:
    """A resource in an empty cloud is refused for its parent."""
    empty = FakeProvider(cloud.package, Store(tmp_path / "empty"), cloud.clusters, cloud.settings)
    inside = [item for item in _own(cloud) if parent_of(item.type, item.id)]
    for resource in inside:
        with pytest.raises(RefusedError, match=r"in which .* is, was not found"):
            empty.create(_call(resource), resource.inputs)
    assert len({resource.type for resource in inside}) >= (1 if cloud.package == "gcp" else 10)


def test_an_unknown_type_or_function_is_refused(cloud: FakeProvider) -> None:
    """No answer is made up."""
    package = cloud.package
    with pytest.raises(RefusedError, match=f"does not implement resources of type {package}:sql:Server"):
        cloud.check(Call(f"{package}:sql:Server", "it", ""), {}, {})
    with pytest.raises(RefusedError, match=f"does not implement the function {package}:sql:getServer"):
        cloud.invoke(f"{package}:sql:getServer", {})


@pytest.mark.parametrize(
    ("token", "inputs", "path", "reason"),
    [
        ("gcp:container/nodePool:NodePool", {}, "cluster", "is missing"),
        # hashicorp/terraform-provider-google#11247
        ("gcp:container/nodePool:NodePool", {"nodeConfig": {"spto": True}}, "nodeConfig.spto", "is unknown"),
        (
            "gcp:container/nodePool:NodePool",
            {"nodeConfig": {"diskSizeGb": 5}},
            "nodeConfig.diskSizeGb",
            "minimum 10",
        ),
        ("gcp:container/cluster:Cluster", {"name": "Train"}, "name", "pattern ^[a-z]"),
        (BUCKET, {"name": "b"}, "location", "is missing"),
        ("azure-native:containerservice:AgentPool", {"maxCount": "many"}, "maxCount", "is no int"),
        ("azure-native:storage:FileShare", {"shareQuota": 0}, "shareQuota", "minimum 1"),
    ],
)
def test_the_schemas_limits_hold_before_anything_is_planned(
    tmp_path: Path, token: str, inputs: dict[str, Any], path: str, reason: str
) -> None:
    """The provider's own schema refuses, with the property and its limit."""
    _, failures = Cloud(tmp_path, GKE if token.startswith("gcp") else AKS).check(token, inputs)
    assert reason in {failure.property: failure.reason for failure in failures}[path]


def test_settings_of_the_provider(tmp_path: Path) -> None:
    """An ambient project or subscription is never made up, and a slip in the provider's inputs is found."""
    for written, token in ((GKE, "gcp:compute/network:Network"), (AKS, GROUP)):
        provider = Cloud(tmp_path, written).provider.configured({})
        inputs, _ = provider.check(Call(token, "lab", ""), {}, {})
        with pytest.raises(RefusedError, match="Neither the resource nor the provider sets"):
            provider.create(Call(token, "lab", ""), inputs)
        assert [failure.property for failure in provider.check_config({"projekt": "a"})] == ["projekt"]
        assert provider.change_config({"project": "a"}, {"project": "b"}) == DiffResult(("project",))


def test_an_omitted_name_is_chosen_once(tmp_path: Path) -> None:
    """A name, a region and an API version are filled in, and kept; `East US` is `eastus`."""
    provider = Cloud(tmp_path, AKS).provider
    call = Call(GROUP, "group", "")
    first, _ = provider.check(call, {}, {})
    assert (first, str(first["resourceGroupName"])[:5]) == (provider.check(call, first, {})[0], "group")
    assert first["location"] == "eastus"
    read = Read("id", first, {})
    assert provider.diff(call, "id", read, {**first, "location": "East US"}) == DiffResult()


def test_the_same_in_other_words(tmp_path: Path) -> None:
    """A link, an id and a name are one reference; an empty list is none; what is computed stays when it is
    omitted."""
    cloud = with_cluster(tmp_path)
    cloud.create("gcp:container/nodePool:NodePool", base("train-cpu"))
    same: list[tuple[str, str, dict[str, Any]]] = [
        ("train-cluster", CLUSTER_ID, {"network": "train"}),
        ("train-cluster", CLUSTER_ID, {"network": "projects/acme-ml/global/networks/train"}),
        ("train-cpu", f"{CLUSTER_ID}/nodePools/cpu", {"nodeLocations": []}),
        ("train-cpu", f"{CLUSTER_ID}/nodePools/cpu", {"nodeConfig": None}),
    ]
    for name, identity, changes in same:
        assert cloud.diff(identity, base(name, **changes)) == DiffResult()


def test_a_secondary_range_is_one_of_the_subnets(tmp_path: Path) -> None:
    """A cluster whose ranges its subnetwork does not have is refused."""
    with pytest.raises(RefusedError, match="The resource 'elsewhere' was not found"):
        with_cluster(tmp_path, ipAllocationPolicy__clusterSecondaryRangeName="elsewhere")


def test_azure_drops_properties_without_a_schema(tmp_path: Path) -> None:
    """azure-native omits an unknown property without failing; the timeline says it."""
    cloud = Cloud(tmp_path, AKS)
    made = cloud.create(GROUP, {"resourceGroupName": "train", "colour": "green"})
    assert "colour" not in made.state
    (event,) = cloud.store.events(kind="property-ignored")
    assert "colour" in event.text


def test_what_guards_a_resource(tmp_path: Path) -> None:
    """Guards of the provider keep a cluster, contents a bucket, and a lock what is in its scope."""
    gke = with_cluster(tmp_path, deletionPolicy="PREVENT")
    with pytest.raises(RefusedError, match="deletion_policy is set to PREVENT"):
        gke.delete(CLUSTER_ID)
    bucket = gke.create(BUCKET, {"name": "data", "location": "US"}).id
    put_object(gke.store, bucket, "model.pt")
    with pytest.raises(RefusedError, match="delete bucket data without `force_destroy` set to true"):
        gke.delete(bucket)
    gke.update(bucket, {"name": "data", "location": "US", "forceDestroy": True})
    gke.delete(bucket)
    assert gke.store.resources("gcp", OBJECT) == []

    (tmp_path / "aks").mkdir()
    aks = Cloud(tmp_path / "aks", AKS)
    group = aks.create(GROUP, {"resourceGroupName": "train"}).id
    vnet = aks.create(VNET, {"resourceGroupName": "train", "virtualNetworkName": "lab"}).id
    lock(aks.store, group)
    for identity in (vnet, group):
        with pytest.raises(RefusedError, match="cannot perform delete operation because following scope"):
            aks.delete(identity)


def test_a_group_takes_with_it_what_is_left_in_it(tmp_path: Path) -> None:
    """All of its resources are deleted with it, its clusters too; the timeline names them."""
    aks = with_cluster(tmp_path, "aks")
    (group,) = aks.store.resources("azure-native", GROUP)
    aks.delete(group.id)
    assert [item.id for item in aks.store.resources()] == []
    assert aks.clusters.running == {}
    (event,) = aks.store.events(kind="group-deleted")
    assert "train" in event.text


def test_what_a_cloud_answers_otherwise() -> None:
    """GKE forgets the type of a named placement policy, and Cloud Storage writes locations in capitals."""
    named = {"type": "COMPACT", "policyName": "near"}
    pool = {"placementPolicy": named, "nodeConfig": {"kubeletConfig": {"podPidsLimit": 4096}}}
    answer = as_answered("gcp:container/nodePool:NodePool", pool)
    assert answer["placementPolicy"] == named | {"type": ""}
    assert answer["nodeConfig"]["kubeletConfig"] == {"podPidsLimit": 4096, "cpuCfsQuota": False}
    assert as_answered(BUCKET, {"location": "us-central1"}) == {"location": "US-CENTRAL1"}
