"""Admission policies: the queue that work names, and what members' work may do."""

import re

import pytest

from components.addons.teams import namespace_labels
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.pool import Taint
from ebbtide.in_pods import cost_recorder as recorder
from ebbtide.placement import member_policy, queue_policy
from ebbtide.placement.member_policy import controllers_class
from ebbtide.placement.profile import OWNER_LABEL
from ebbtide.work.runs import run
from tests.contract.flips import EXISTING
from tests.declarations import AKS, GKE, Declaration, changed, pool

TEAM = {"name": "vision"}
QUEUE = {"name": "gpus", "pools": ["t4"]}


@pytest.mark.parametrize("base", [GKE, AKS])
def test_pools_with_a_queue_are_guarded(base: Declaration) -> None:
    """On either cloud, and no others."""
    cluster = declare(changed(base, queues=[QUEUE], teams=[TEAM]))
    assert [item.name for item in queue_policy.guarded_pools(cluster)] == ["t4"]
    ((policy,), (binding,)) = queue_policy.layers(cluster)
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert binding["spec"]["validationActions"] == ["Deny"]


@pytest.mark.parametrize(
    "team",
    [
        {"name": "vision", "requireQueue": False},
        {"name": "vision", "namespace": {"name": "default", "create": False}},
    ],
)
def test_no_policy_where_no_namespace_requires_it(team: Declaration) -> None:
    """A team is exempted by name, and an existing namespace by itself."""
    assert queue_policy.layers(declare(changed(GKE, queues=[QUEUE], teams=[team]))) == ()


def test_no_policy_without_queues() -> None:
    """Without Kueue, pools are taken without a queue."""
    pools = [item for item in GKE["pools"] if item["name"] != "a100"]
    assert queue_policy.layers(declare(changed(GKE, pools=pools, teams=[TEAM]))) == ()


def test_a_taint_that_only_discourages_guards_nothing() -> None:
    """A pod needs no toleration for PreferNoSchedule: everything could land on such a pool."""
    declaration = changed(GKE, queues=[{"name": "cpus", "pools": ["cpu"]}], teams=[TEAM])
    pool(declaration, "cpu")["taints"] = [{"key": "quiet", "effect": "PreferNoSchedule"}]
    ((policy,), _) = queue_policy.layers(declare(declaration))
    (reaches,) = [item for item in policy["spec"]["variables"] if item["name"] == "reaches"]
    assert reaches["expression"] == "(true)"


def test_a_request_for_a_gpu_passes_its_taint() -> None:
    """Admission adds the toleration for it, so that a pod reaches the pool without its own."""
    ((policy,), _) = queue_policy.layers(declare(changed(GKE, queues=[QUEUE], teams=[TEAM])))
    (reaches,) = [item for item in policy["spec"]["variables"] if item["name"] == "reaches"]
    assert "|| variables.limits.exists(l, 'nvidia.com/gpu' in l))" in reaches["expression"]


def test_quotes_in_a_taint_stay_text() -> None:
    """Text of a declaration never becomes part of an expression."""
    declaration = changed(GKE, queues=[{"name": "cpus", "pools": ["cpu"]}], teams=[TEAM])
    cluster = declare(declaration)
    (cpu,) = queue_policy.guarded_pools(cluster)
    taint = cpu.model_copy(update={"taints": (Taint(key="a", value="b' || true || '"),)})
    policy = queue_policy.policy(cluster.model_copy(update={"pools": (cluster.pools[0], taint)}))
    (reaches,) = [item for item in policy["spec"]["variables"] if item["name"] == "reaches"]
    assert "'b\\' || true || \\''" in reaches["expression"]


MEMBER = ["ada@acme.example"]
THEIRS = {"name": "theirs", "create": False}


def _tests(declaration: Declaration) -> str:
    """Return the expressions of the policy of a declaration."""
    policy, binding = member_policy.objects(declare(declaration))["members"]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    return "\n".join(item["expression"] for item in policy["spec"]["validations"])


@pytest.mark.parametrize(
    ("team", "applies"),
    [
        ({"name": "vision"}, True),
        ({"name": "vision", "members": MEMBER, "namespace": THEIRS}, True),
        ({"name": "vision", "requireQueue": True, "namespace": THEIRS}, True),
        ({"name": "vision", "namespace": THEIRS}, False),
    ],
)
def test_namespaces_where_members_create_are_labeled(team: Declaration, applies: bool) -> None:  # noqa: FBT001
    """Namespaces of teams are labeled if the stack creates them, or members create workloads there."""
    queues = [{"name": "gpus", "pools": ["t4"]}]
    cluster = declare(changed(GKE, teams=[team], queues=queues))
    assert ("ebbtide.dev/members" in namespace_labels(cluster, cluster.teams[0])) is applies
    assert bool(member_policy.objects(cluster)) is applies


def test_the_namespace_of_pipelines_is_labeled_if_installed() -> None:
    """Steps create pods in the namespace of an installed Kubeflow Pipelines, without any team."""
    cluster = declare(changed(GKE, addons={"pipelines": {}}))
    (tenant,) = cluster.tenants
    assert namespace_labels(cluster, tenant)["ebbtide.dev/members"] == "true"
    assert member_policy.objects(declare(changed(GKE, addons={"katib": {}}))) == {}


def test_only_the_taints_of_the_system_pool_are_refused() -> None:
    """The system pool's own taints count, and a taint that pods need no toleration for does not."""
    assert "'CriticalAddonsOnly'" in _tests(changed(AKS, teams=[{"name": "vision"}]))
    assert "variables.tolerations" not in _tests(changed(GKE, teams=[{"name": "vision"}]))
    untainted = changed(AKS, teams=[{"name": "vision"}], addons={"katib": {}})
    assert "variables.tolerations" not in _tests(untainted)
    quiet = changed(AKS, teams=[{"name": "vision"}])
    pool(quiet, "system")["taints"] = [{"key": "CriticalAddonsOnly", "effect": "PreferNoSchedule"}]
    assert "variables.tolerations" not in _tests(quiet)


@pytest.mark.parametrize(
    ("cloud", "key"), [("gke", "components.gke.io/gke-managed-components"), ("aks", "CriticalAddonsOnly")]
)
def test_an_undeclared_system_pool_has_the_documented_taint(cloud: str, key: str) -> None:
    """An existing cluster's system pool is known only by the taint that its cloud documents."""
    assert f"'{key}'" in _tests(changed(EXISTING[cloud], teams=[{"name": "vision"}]))


def test_the_values_of_priorities_end_below_the_controllers() -> None:
    """A pod of a priority class with another name has at most a value below that of the controllers, which is
    the highest of a user's class."""
    tests = _tests(changed(GKE, teams=[{"name": "vision"}]))
    assert "variables.pod.priority < 1000000000 :" in tests
    assert controllers_class(declare(GKE))["value"] == 1_000_000_000


def test_an_open_system_pool_is_guarded() -> None:
    """Without a taint, the labels of its nodes decide whether a pod could run there; an existing cluster's
    nodes are not known, and without another pool there is no alternative."""
    guarded = "could run on the system pool"

    def messages(declaration: Declaration) -> str:
        policy, _ = member_policy.objects(declare(declaration))["members"]
        return "\n".join(item["messageExpression"] for item in policy["spec"]["validations"])

    teams = [{"name": "vision"}]
    assert guarded in messages(changed(GKE, teams=teams))
    assert guarded in messages(changed(AKS, teams=teams, addons={"katib": {}}))
    assert guarded not in messages(changed(AKS, teams=teams))
    alone = [item for item in GKE["pools"] if item["name"] == "system"]
    assert guarded not in messages(changed(GKE, teams=teams, pools=alone))
    assert guarded not in messages(changed(EXISTING["gke"], teams=teams))


@pytest.mark.parametrize("base", [GKE, AKS])
def test_an_open_system_pool_is_for_drivers_of_pipelines(base: Declaration) -> None:
    """Steps without a pool are refused, unless the declaration has `taints: []`; members' work always is."""
    declaration = changed(base, teams=[{"name": "vision"}], addons={"pipelines": {}})
    assert "'driver'" in _tests(declaration)
    pool(declaration, "system")["taints"] = []
    assert "'driver'" not in _tests(declaration)
    assert "variables.held" in _tests(declaration)


def test_labels_of_the_record_are_those_that_are_checked() -> None:
    """Labels by which the record of costs names a pod's user are compared with the user."""
    assert OWNER_LABEL == recorder.OWNER_LABEL
    policy, _ = member_policy.objects(declare(changed(GKE, teams=[{"name": "vision"}])))["members"]
    (claims,) = [item for item in policy["spec"]["variables"] if item["name"] == "claims"]
    for label in (recorder.OWNER_LABEL, *recorder._JOBS):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        assert f"'{label}'" in claims["expression"]


@pytest.mark.parametrize(("base", "admitted"), [(GKE, True), (AKS, False)])
def test_inline_volumes_use_the_identity_of_the_pod(base: Declaration, admitted: bool) -> None:  # noqa: FBT001
    """Cloud Storage FUSE mounts inline with the pod's identity; the drivers of AKS have other ways too."""
    policy, _ = member_policy.objects(declare(changed(base, teams=[{"name": "vision"}])))["members"]
    (foreign,) = [item for item in policy["spec"]["variables"] if item["name"] == "foreign"]
    assert ("v.csi" in foreign["expression"]) is admitted
    assert "nfs" not in foreign["expression"]


@pytest.mark.parametrize("length", [1, 40, 44, 45, 52, 53, 60, 90])
def test_users_may_own_their_work(length: int) -> None:
    """The policy's pattern matches the user of a label, also one whose name is cut in it."""
    policy, _ = member_policy.objects(declare(changed(GKE, teams=[{"name": "vision"}])))["members"]
    texts = [item["expression"] for item in policy["spec"]["validations"]]
    owner_check = next(text for text in texts if "username.matches" in text)
    user = f"{'ada.b_' * 15}"[:length] + "@acme.example"
    label = run.label_value(user)
    (whole,) = re.findall(r"size\(l\['ebbtide[.]dev/owner'\]\) < (\d+) ", owner_check)
    name = label.replace(".", "[.]").replace("-", "[^A-Za-z0-9._]+")
    end = "[^A-Za-z0-9]*$" if len(label) < int(whole) else ""
    assert re.search(f"^[^A-Za-z0-9]*{name}{end}", user)
