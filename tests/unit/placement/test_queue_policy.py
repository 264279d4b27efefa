"""The policy that requires a queue: where it holds, and which pools it guards."""

import pytest

from ebbtide.declaration.model import Taint, declare
from ebbtide.placement import queue_policy
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
    declaration["pools"] = [dict(item) for item in declaration["pools"]]
    pool(declaration, "cpu")["taints"] = [{"key": "quiet", "effect": "PreferNoSchedule"}]
    ((policy,), _) = queue_policy.layers(declare(declaration))
    (reaches,) = [item for item in policy["spec"]["variables"] if item["name"] == "reaches"]
    assert reaches["expression"] == "(true)"


def test_quotes_in_a_taint_stay_text() -> None:
    """Text of a declaration never becomes part of an expression."""
    declaration = changed(GKE, queues=[{"name": "cpus", "pools": ["cpu"]}], teams=[TEAM])
    cluster = declare(declaration)
    (cpu,) = queue_policy.guarded_pools(cluster)
    taint = cpu.model_copy(update={"taints": (Taint(key="a", value="b' || true || '"),)})
    policy = queue_policy.policy(cluster.model_copy(update={"pools": (cluster.pools[0], taint)}))
    (reaches,) = [item for item in policy["spec"]["variables"] if item["name"] == "reaches"]
    assert "'b\\' || true || \\''" in reaches["expression"]
