"""A review of two versions of a stack: money, quotas, consequences and the verdict."""

import copy
from functools import cache
from typing import Any

import pytest

from ebbtide.analysis.policy.check import policy_of
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.build_review import review_of
from ebbtide.analysis.review.review_document import DifferenceReport, Review
from ebbtide.declaration.catalog.prices import find_price
from ebbtide.declaration.model.capacity import CapacityKind
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import AKS, GKE, Declaration, changed, only, pool
from tests.synth import reviewed, synth
from tests.unit.policy.stacks_in_memory import resource

BASE = changed(GKE, lifetime={"hours": 8}, pools=copy.deepcopy(GKE["pools"][:3]))


@cache
def _before() -> Recording:
    return synth(BASE)


def _reviewed(name: str, **changes: Any) -> Review:
    """The review of a change of one pool."""
    declaration = copy.deepcopy(BASE)
    pool(declaration, name).update(changes)
    return _review_of(declaration)


def _review_of(declaration: Declaration, before: Declaration | None = None) -> Review:
    return reviewed(before or BASE, declaration)


def _changes(review: Review) -> DifferenceReport:
    assert review.difference is not None
    return review.difference


def _difference(review: Review) -> tuple[float, dict[str, tuple[int, int]]]:
    """USD per hour at most, and the quotas that differ, before and after."""
    before = {quota.name: quota.amount for quota in _changes(review).quotas_before}
    after = {quota.name: quota.amount for quota in review.preview.quotas}
    changed_quotas = {
        name: (before.get(name, 0), after.get(name, 0))
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    }
    return review.preview.cost.maximum.usd - _changes(review).cost_before.maximum.usd, changed_quotas


def _rate(item: str, kind: CapacityKind = "spot") -> float:
    price = find_price(CloudKind.GKE, "us-central1", item)
    rate = price.of(kind) if price else None
    assert rate is not None
    return rate


def _updated_pool(review: Review, path: str) -> tuple[str, str, Any, Any]:
    (change,) = (change for change in _changes(review).changes if change.pool)
    (field,) = (field for field in change.fields if field.path == path)
    return change.pool, change.action, field.old, field.new


def test_a_changed_machine_type() -> None:
    """Ten spot nodes of twice the size; GKE recreates the nodes, and the pool stays."""
    review = _reviewed("cpu", machine="n2-standard-16")
    usd, quotas = _difference(review)
    assert usd == pytest.approx(10 * (_rate("n2-standard-16") - _rate("n2-standard-8")))
    assert quotas == {"N2_CPUS": (80, 160)}
    path = "nodeConfig.machineType"
    assert _updated_pool(review, path) == ("cpu", "update", "n2-standard-8", "n2-standard-16")
    assert _changes(review).consequences == (
        f"GKE recreates the nodes of pool cpu, a few at a time ({path}): pods on them are evicted.",
    )
    assert review.verdict == "warn"


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("nodeConfig.imageType", {"image": "ubuntu"}),
        ("nodeConfig.diskSizeGb", {"disk": {"sizeGib": 200}}),
        ("nodeConfig.diskType", {"disk": {"type": "pd-ssd"}}),
    ],
)
def test_a_change_that_recreates_nodes(path: str, changed: dict[str, Any]) -> None:
    """Fields whose input is changed by an upgrade say so."""
    review = _reviewed("cpu", **changed)
    assert _changes(review).consequences == (
        f"GKE recreates the nodes of pool cpu, a few at a time ({path}): pods on them are evicted.",
    )


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        ({"kubeletConfig": {"cpuManagerPolicy": "static"}}, "kubeletConfig.cpuManagerPolicy"),
        ({"linuxNodeConfig": {"sysctls": {"net.core.somaxconn": "2048"}}}, "linuxNodeConfig"),
        ({"workloadMetadataConfig": {"mode": "GCE_METADATA"}}, "workloadMetadataConfig.mode"),
        ({"kubeletConfig": None}, ""),
    ],
    ids=str,
)
def test_an_override_that_recreates_nodes(overrides: dict[str, Any], path: str) -> None:
    """An input below one that recreates nodes does so too, and an added object with all that it has, but not
    an input that is left to the cloud."""
    declaration = only(GKE, machine="n2-standard-4", overrides={"nodeConfig": overrides})
    review = _review_of(declaration, only(GKE, machine="n2-standard-4"))
    assert [f"(nodeConfig.{path})" in text for text in _changes(review).consequences] == [True] * bool(path)


@pytest.mark.parametrize(
    ("base", "cloud", "earlier", "path"),
    [
        (AKS, {"access": {"private": True}}, {}, "enablePrivateCluster"),
        (AKS, {}, {"access": {"private": True}}, "enablePrivateCluster"),
        (
            AKS,
            {"access": {"private": True, "privateDnsZone": "none"}},
            {"access": {"private": True}},
            "DNSZone from system to none",
        ),
        (AKS, {"network": {"nodes": "10.64.0.0/16"}}, {}, "addressPrefix"),
        (GKE, {"network": {"pods": "10.96.0.0/14"}}, {}, "ipCidrRange from 10.4.0.0/14 to 10.96.0.0/14"),
        (GKE, {"network": {"services": "10.112.0.0/20"}}, {}, "to 10.112.0.0/20"),
    ],
    ids=str,
)
def test_what_is_fixed_at_creation_is_refused(
    base: Declaration, cloud: Declaration, earlier: Declaration, path: str
) -> None:
    """The cloud refuses the update of a cluster or of its network, and the review says so before."""
    before, after = (changed(base, cloud={**base["cloud"], **own}) for own in (earlier, cloud))
    review = _review_of(after, before)
    assert any(path in text and "the cloud refuses the update" in text for text in _changes(review).refusals)
    assert review.verdict == "fail"
    for declaration in (before, after):
        assert _changes(_review_of(declaration, declaration)).refusals == ()


@pytest.mark.parametrize(
    "overrides",
    [
        {"nodeConfig": {"confidentialNodes": {"enabled": True}}},
        {"nodeConfig": {"confidentialNodes": {"enabled": True, "confidentialInstanceType": "SEV"}}},
        {"networkConfig": {"enablePrivateNodes": False}},
        {"networkConfig": {"podRange": "pods"}},
        {"networkConfig": {"additionalNodeNetworkConfigs": [{"network": "vpc", "subnetwork": "nics"}]}},
    ],
    ids=str,
)
def test_the_review_and_the_refusal_of_changes_agree(overrides: dict[str, Any]) -> None:
    """An override that the program accepts on an existing pool is an update, and one that it refuses a
    replacement."""
    machine = "n2d-standard-4"
    review = _review_of(only(GKE, machine=machine, overrides=overrides), only(GKE, machine=machine))
    (action,) = (change.action for change in _changes(review).changes if change.pool)
    refused = [text for text in _changes(review).consequences if "cannot change these fields" in text]
    assert action == ("replace" if refused else "update")


def test_a_spot_pool_made_on_demand() -> None:
    """The difference is shown, and a pool that `ebbtide up` creates beside the old one: a warning."""
    review = _reviewed("t4", capacity="on-demand")
    usd, quotas = _difference(review)
    machine, gpu = "n1-highmem-8", "gpu:nvidia-tesla-t4"
    dearer = _rate(machine, "on-demand") - _rate(machine) + 4 * (_rate(gpu, "on-demand") - _rate(gpu))
    assert usd == pytest.approx(4 * dearer)
    assert quotas["PREEMPTIBLE_NVIDIA_T4_GPUS"] == (16, 0)
    assert quotas["NVIDIA_T4_GPUS"] == (0, 16)
    (beside,) = _changes(review).consequences
    assert "capacity (nodeConfig.spot) from true to false" in beside
    assert "`ebbtide up test` creates the new pool beside it" in beside
    assert _changes(review).refusals == ()
    assert review.verdict == "warn"


@pytest.mark.parametrize(
    ("name", "changes", "consequences"),
    [
        ("t4", {"accelerator": {"type": "nvidia-tesla-t4", "count": 2}}, ["4 to 2 accelerators"]),
        ("t4", {"nodes": {"max": 3}}, []),
        ("cpu", {"machine": "n2-standard-4"}, ["8 to 4 vCPUs", "32 to 16 GiB of memory"]),
    ],
)
def test_a_queue_whose_largest_pod_shrinks(name: str, changes: Any, consequences: list[str]) -> None:
    """Waiting work that needs more than the new largest node can never run."""
    declaration = changed(
        BASE,
        queues=[{"name": name, "pools": [name]}],
        teams=[{"name": "vision", "queues": [{"queue": name}]}],
    )
    after = copy.deepcopy(declaration)
    pool(after, name).update(changes)
    difference = _changes(_review_of(after, declaration))
    assert [line for line in difference.consequences if "largest pod" in line] == [
        f"The largest pod of queue vision/{name} shrinks from {words}: pending work that needs more cannot "
        "run."
        for words in consequences
    ]


def test_a_deleted_pool_and_a_moved_cluster() -> None:
    """Work ends with a pool; everything ends with a cluster."""
    without = changed(BASE, pools=BASE["pools"][:2])
    review = _review_of(without)
    assert _changes(review).consequences == (
        "Pool t4 is deleted: its nodes are drained, and work on them ends.",
    )
    moved = copy.deepcopy(BASE)
    moved["cloud"]["location"] = "us-central1-b"
    review = _review_of(moved)
    (consequence,) = _changes(review).consequences
    assert consequence.startswith("Cluster train is deleted and created again (location): its workloads ")
    forcing = {
        change.name: [field.path for field in change.fields if field.replaces]
        for change in _changes(review).changes
        if change.action == "replace" and change.type.startswith("gcp:container")
    }
    names = ("train-cluster", "train-system", "train-cpu", "train-t4")
    assert forcing == {name: ["location"] for name in names}


_TEAM: Declaration = {
    "name": "vision",
    "members": ["ada@acme.example", "group:lab@acme.example"],
    "queues": ["t4"],
    "guarantee": {"t4": 2},
}
_SHARED = changed(GKE, lifetime={"hours": 8}, queues=[{"name": "t4", "pools": ["t4"]}], teams=[_TEAM])
_PERMANENT = {key: value for key, value in _SHARED.items() if key != "lifetime"}


@pytest.mark.parametrize(
    ("declaration", "consequence"),
    [
        (
            changed(_SHARED, lifetime={"hours": 4}),
            "The cluster expires 4 h after its first update instead of 8 h: ",
        ),
        (_PERMANENT, "The cluster no longer expires: it is protected, and billed until it is destroyed."),
        (
            changed(_SHARED, teams=[_TEAM | {"guarantee": {"t4": 1}}]),
            "Queue vision/t4 is guaranteed 4 nvidia.com/gpu of t4, 8 before",
        ),
        (
            changed(_SHARED, teams=[_TEAM | {"members": ["ada@acme.example"]}]),
            "lab@acme.example can no longer submit, see or stop work in vision.",
        ),
    ],
)
def test_shorter_lives_lower_guarantees_and_fewer_members(declaration: Declaration, consequence: str) -> None:
    """Each has a sentence with what it does to whom."""
    difference = _changes(review_of(synth(declaration), Baseline("main", synth(_SHARED))))
    assert any(text.startswith(consequence) for text in difference.consequences), difference.consequences


def test_a_new_stack_and_an_unchanged_one() -> None:
    """Everything is created, and nothing changes."""
    review = review_of(_before(), Baseline("main", None))
    assert {change.action for change in _changes(review).changes} == {"create"}
    assert _changes(review).consequences == ("Stack test does not exist at main: everything is created.",)
    same = review_of(_before(), Baseline("main", _before()))
    assert (_changes(same).changes, same.verdict) == ((), "pass")


_EXCEPTION = {"rule": "fixed-versions", "resource": "pod", "reason": "a test"}


@pytest.mark.parametrize(
    ("policy", "verdict"),
    [
        ({"levels": {"fixed-versions": "disabled"}}, "pass"),
        ({"levels": {"fixed-versions": "advisory"}}, "warn"),
        (None, "fail"),
        ({"exceptions": [_EXCEPTION]}, "pass"),
    ],
)
def test_the_verdict_follows_the_findings(policy: object, verdict: str) -> None:
    """A mandatory rule fails the review, unless there is an exception."""
    pod = resource("kubernetes:core/v1:Pod", {"spec.containers": [{"image": "busybox"}]})
    review = review_of(Recording(project="p", stack="s", resources=(pod,)), policy=policy_of(policy))
    assert review.verdict == verdict


_KINDS = {
    "filestore": ["bucket", "file share", "registry"],
    "azure-files": ["registry", "storage account", "storage account"],
}
_PLAIN: Declaration = {"name": "vision"}


def _deleted(cloud: Declaration, before: Declaration, after: Declaration, *, policy: Any = None) -> Review:
    """The review of a change of a team on an ephemeral cluster."""
    earlier, later = (synth(changed(cloud, lifetime={"hours": 8}, teams=[team])) for team in (before, after))
    return review_of(later, Baseline("main", earlier), policy=policy_of(policy))


def _lost(review: Review) -> list[str]:
    return [item.message.partition(" is deleted")[0] for item in review.findings if item.rule == "data-kept"]


@pytest.mark.parametrize(("cloud", "kind"), [(GKE, "filestore"), (AKS, "azure-files")], ids=["gke", "aks"])
@pytest.mark.parametrize("is_renamed", [True, False])
def test_deleted_data_fails_a_review(cloud: Declaration, kind: str, *, is_renamed: bool) -> None:
    """A renamed team and one without its storage lose what they have, unless an exception says that it is
    meant."""
    storage = {"bucket": {}, "volume": {"kind": kind}, "registry": {}}
    before, after = _PLAIN | storage, {"name": "speech", **storage} if is_renamed else _PLAIN
    assert _lost(_deleted(cloud, before, before)) == []
    review = _deleted(cloud, before, after)
    assert sorted(text.removeprefix("The ").rpartition(" ")[0] for text in _lost(review)) == _KINDS[kind]
    assert review.verdict == "fail"
    exceptions = [
        {"rule": "data-kept", "resource": text.rpartition(" ")[2], "reason": "copied"}
        for text in _lost(review)
    ]
    meant = _deleted(cloud, before, after, policy={"exceptions": exceptions})
    assert meant.verdict == "warn"
    assert [item.exception for item in meant.findings if item.rule == "data-kept"] == ["copied"] * 3


@pytest.mark.parametrize(
    ("cloud", "kind", "member", "identity"),
    [
        (GKE, "filestore", "vision@acme.example", "account"),
        (AKS, "azure-files", "11111111-2222-3333-4444-555555555555", "identity"),
    ],
    ids=["gke", "aks"],
)
def test_a_renamed_team_keeps_its_storage(cloud: Declaration, kind: str, member: str, identity: str) -> None:
    """With its former name, only its identity is another, and what that may write: a member's right that is
    created under another name would then be deleted with the former one."""
    storage = {"bucket": {}, "volume": {"kind": kind}, "registry": {}}
    before = {"name": "vision", "members": [member], **storage}
    review = _deleted(cloud, before, {**before, "name": "speech", "storageName": "vision"})
    assert _lost(review) == []
    changes = {
        f"{item.action} {item.name.removeprefix('train-team-')}"
        for item in _changes(review).changes
        if item.action != "update" and not item.type.startswith("kubernetes:")
    }
    assert changes == {
        f"create speech-{identity}",
        "create speech-workload",
        "replace vision-writes",
        f"delete vision-{identity}",
        "delete vision-workload",
    }


def test_kept_data_passes_a_review() -> None:
    """A bucket that outlives the stack is removed from it, and nothing is lost."""
    review = _deleted(GKE, {"name": "vision", "bucket": {"keep": True}}, _PLAIN)
    assert _lost(review) == []
    assert any("retained in the cloud" in text for text in _changes(review).consequences)
