"""Pools that stand in for one another: one flavor to the queue, an order to the autoscaler."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model import Pool, declare
from ebbtide.declaration.model.labels_and_taints import labels_and_taints
from ebbtide.placement.derive import profile
from ebbtide.placement.queue_objects import fallback_objects, priorities, with_names
from ebbtide.placement.queueing import Flavor, largest_node, queueing
from tests.declarations import AKS, GKE, Declaration, changed
from tests.unit.placement.test_quotas import queued

generated = settings(max_examples=40, deadline=None)

T4 = {"type": "nvidia-tesla-t4", "count": 4}
STEADY = {"name": "steady", "machine": "n1-standard-16", "accelerator": T4, "nodes": {"max": 2}}
ON_GKE = changed(
    GKE,
    pools=[*GKE["pools"], STEADY],
    queues=[{"name": "gpus", "pools": ["t4", "steady"], "fallback": True}],
)
ON_AKS = changed(AKS, queues=[{"name": "cpus", "pools": ["cpu", "steady"], "fallback": True}])


def _flavor(declaration: Declaration) -> Flavor:
    (item,) = queueing(declare(declaration)).flavors
    return item


def test_a_class_has_a_rule_for_each_pool() -> None:
    """Pools of one rule would have no order; no other pool is made or taken."""
    (compute_class,) = fallback_objects(declare(ON_GKE))
    assert (compute_class["apiVersion"], compute_class["kind"], compute_class["metadata"]) == (
        "cloud.google.com/v1",
        "ComputeClass",
        {"name": "gpus"},
    )
    assert compute_class["spec"]["priorities"] == [{"nodepools": ["t4"]}, {"nodepools": ["steady"]}]
    assert compute_class["spec"]["whenUnsatisfiable"] == "DoNotScaleUp"
    assert compute_class["spec"]["nodePoolAutoCreation"] == {"enabled": False}


def test_pools_of_a_class_are_known_as_such() -> None:
    """GKE wants the class as label and taint on each of its pools; the taint takes the place of the derived
    one, and what the user declares stays beside it."""
    for name in ("t4", "steady"):
        pool = profile(declare(ON_GKE)).pool(name)
        assert pool.labels["cloud.google.com/compute-class"] == "gpus"
        assert [taint.key for taint in pool.taints] == ["cloud.google.com/compute-class", "nvidia.com/gpu"]
    tainted = declare(changed(ON_GKE, pools=[*GKE["pools"], STEADY | {"taints": [{"key": "lab"}]}]))
    assert [taint.key for taint in profile(tainted).pool("steady").taints] == [
        "lab",
        "cloud.google.com/compute-class",
        "nvidia.com/gpu",
    ]


def test_work_sent_to_a_pool_of_a_class_asks_for_the_class() -> None:
    """Work for a pool of a ComputeClass selects the class, which GKE requires, and not spot, which GKE
    refuses."""
    pool = profile(declare(ON_GKE)).pool("t4")
    assert {term.key: term.values for term in pool.affinity} == {
        "ebbtide.dev/pool": ("t4",),
        "cloud.google.com/compute-class": ("gpus",),
    }


@pytest.mark.parametrize(
    ("labels", "taints"), [({}, []), ({"cloud.google.com/compute-class": "batch"}, ["batch"])]
)
def test_a_class_made_by_hand_is_a_class(labels: dict[str, str], taints: list[str]) -> None:
    """A pool that its user puts into a ComputeClass by the label has the taint that goes with it."""
    pool = Pool.model_validate({"name": "cpu", "machine": "n2-standard-8", "labels": labels})
    class_taints = [
        taint for taint in labels_and_taints(pool, CloudKind.GKE).taints if "compute-class" in taint.key
    ]
    assert [taint.value for taint in class_taints] == taints


@pytest.mark.parametrize(
    ("pool", "class_taint"),
    [({"role": "system"}, ()), ({"capacity": "queued"}, ())],
)
def test_no_class_for_what_cannot_be_in_one(pool: Declaration, class_taint: tuple[str, ...]) -> None:
    """A system pool admits pods without a class, and a queued one selects its pods differently."""
    labels = {"cloud.google.com/compute-class": "batch"}
    declared = Pool.model_validate({"name": "p", "machine": "n2-standard-8", "labels": labels} | pool)
    assert labels_and_taints(declared, CloudKind.GKE).taints == class_taint


def test_quota_is_the_sum_and_the_limit_the_largest() -> None:
    """The quota is the offer of all pools' nodes; a container may request what the largest offers."""
    item = _flavor(ON_GKE)
    assert item.name == "gpus.pools"
    small, large = (offer.node for offer in item.offers)
    both = item.offer({"t4": 4, "steady": 2})
    assert both == {name: 4 * small[name] + 2 * large[name] for name in ("cpu", "memory", "nvidia.com/gpu")}
    assert small["cpu"] < large["cpu"]
    assert large["memory"] > small["memory"]
    assert largest_node([item])["cpu"] == f"{large['cpu']}m"


def test_a_flavor_of_several_pools_leads_to_all_of_them() -> None:
    """By the one label that they share, and past every taint that any of them has."""
    item = _flavor(ON_AKS)
    assert item.labels == {"ebbtide.dev/fallback": "cpus"}
    assert {(toleration.key, toleration.value) for toleration in item.tolerations} == {
        ("kubernetes.azure.com/scalesetpriority", "spot"),
        ("ebbtide.dev/fallback", "cpus"),
    }


def _chosen(by_priority: dict[int, list[str]], groups: list[str]) -> str:
    """Return the group that the priority expander takes (kubernetes/autoscaler, expander/priority): the one
    with the highest priority whose pattern matches anywhere in its name."""
    best = {
        group: max(
            place
            for place, patterns in by_priority.items()
            for pattern in patterns
            if re.search(pattern, group)
        )
        for group in groups
    }
    (first, *rest) = sorted(best, key=lambda group: -best[group])
    assert not rest or best[first] > best[rest[0]]
    return first


def test_the_expander_prefers_the_preferred_pool() -> None:
    """The expander's ConfigMap prefers the first pool, and does not match pools with the same prefix."""
    pools = [*AKS["pools"], {"name": "cpu2", "machine": "Standard_D8s_v5", "nodes": {"max": 2}}]
    queues = [{"name": "cpus", "pools": ["cpu2", "cpu", "steady"], "fallback": True}]
    (config_map,) = fallback_objects(declare(changed(AKS, pools=pools, queues=queues)))
    assert config_map["metadata"] == {
        "name": "cluster-autoscaler-priority-expander",
        "namespace": "kube-system",
    }
    by_priority: Any = yaml.safe_load(config_map["data"]["priorities"])
    sets = {name: f"aks-{name}-29141059-vmss" for name in ("cpu", "cpu2", "steady", "t4")}
    assert _chosen(by_priority, [sets["steady"], sets["cpu"], sets["cpu2"]]) == sets["cpu2"]
    assert _chosen(by_priority, [sets["steady"], sets["cpu"]]) == sets["cpu"]
    assert _chosen(by_priority, [sets["t4"]]) == sets["t4"]


def test_priorities_with_the_names_of_replacements() -> None:
    """A replaced pool's scale set has the name of its replacement; other names are unchanged."""
    (config_map,) = fallback_objects(declare(ON_AKS))
    written: str = config_map["data"]["priorities"]
    renamed = with_names(written, {"cpu": "steady", "steady": "cpu2"})
    assert renamed == written.replace("-steady-", "-cpu2-").replace("-cpu-", "-steady-")
    assert renamed != written


@generated
@given(queued())
def test_every_pool_has_one_priority(declaration: Declaration) -> None:
    """The expander complains of a group that no pattern matches, and older ones pick at random where several
    do."""
    cluster = declare(declaration)
    all_patterns = [pattern for patterns in priorities(cluster).values() for pattern in patterns]
    for pool in cluster.pools:
        name = f"aks-{pool.name}-29141059-vmss"
        assert len([pattern for pattern in all_patterns if re.search(pattern, name)]) == 1


@generated
@given(queued())
def test_orders_are_those_of_the_queues(declaration: Declaration) -> None:
    """Nothing is made where no queue falls back, and nothing for those that do not."""
    cluster = declare(declaration)
    queues = [queue for queue in cluster.queues if queue.fallback]
    orders = fallback_objects(cluster)
    if cluster.site.cloud is CloudKind.AKS:
        assert len(orders) == bool(queues)
    else:
        assert [item["metadata"]["name"] for item in orders] == [queue.name for queue in queues]


def test_a_guarantee_is_a_part_of_the_sum() -> None:
    """A team's guarantee of one pool is its own, and subtracted from the shared quota."""
    teams = [{"name": "vision", "guarantee": {"t4": 1}}]
    admission = queueing(declare(changed(ON_GKE, teams=teams)))
    ((_, own),) = admission.cluster_queues[0].flavors
    ((_, shared),) = admission.cohorts[0].owned
    assert (own, shared) == ({"t4": 1, "steady": 0}, {"t4": 3, "steady": 2})
