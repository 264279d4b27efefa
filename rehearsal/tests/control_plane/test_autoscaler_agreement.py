"""The fake clouds' autoscaler and the real cluster-autoscaler decide alike, on the same pods and pools.

docs/decisions/0011-the-real-autoscaler-is-a-witness.md has the reasons for running the real one here only.
Expanders that choose by chance are not compared, nor GKE's, which upstream does not have.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import Expander, NodePool, node_group
from ebbtide.autoscaler.scale_down import ScaleDownReview, review
from ebbtide.autoscaler.scale_up import expansion_options, scale_up
from ebbtide.autoscaler.snapshot import ClusterSnapshot
from ebbtide.clients.kubernetes import Api
from ebbtide.placement import NodeTaint
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator
from ebbtide_rehearsal.cloud.store import NO_STOCK, InjectedFault
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from rehearsal.tests.control_plane.autoscaler_trial import Trial, aks_pool, join, pending_pods
from rehearsal.tests.control_plane.cluster import Object, job, namespace, pod, wait
from rehearsal.tests.control_plane.cluster_autoscaler import NodeGroups, deciding
from rehearsal.tests.control_plane.node_pools import CLUSTER

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
ZONES = ("us-central1-a", "us-central1-b")
GPU: dict[str, Any] = {
    "accelerator": ("nvidia-tesla-t4", 1),
    "accelerator_resource": "nvidia.com/gpu",
    "taints": (NodeTaint("nvidia.com/gpu", "present", "NoSchedule"),),
}
TOLERATES_GPU = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
PRIORITIES = "50: ['.*spot.*']\n10: ['.*']"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Pending pods, the pools of a cluster, and the expected new nodes by pool."""

    pools: Sequence[NodePool]
    pods: Sequence[Object]
    nodes: Mapping[str, int]
    expander: Expander = "least-waste"
    no_stock: str = ""
    refused: Sequence[str] = ()
    zones: int = 1
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])


SCALE_UPS = {
    "zero to one": Case(pools=[aks_pool("a")], pods=pending_pods(1), nodes={"a": 1}),
    "several pods to a node": Case(pools=[aks_pool("a")], pods=pending_pods(3), nodes={"a": 1}),
    "as many nodes as pods need": Case(pools=[aks_pool("a")], pods=pending_pods(7), nodes={"a": 3}),
    "no more than the maximum": Case(
        pools=[aks_pool("a", maximum=2)], pods=pending_pods(9, "3"), nodes={"a": 2}
    ),
    "too large for any node": Case(pools=[aks_pool("a")], pods=pending_pods(1, "5"), nodes={}),
    "an untolerated taint": Case(
        pools=[aks_pool("tainted", taints=(NodeTaint("team", "x", "NoSchedule"),))],
        pods=pending_pods(1),
        nodes={},
    ),
    "a tolerated taint": Case(
        pools=[aks_pool("tainted", taints=(NodeTaint("team", "x", "NoSchedule"),))],
        pods=pending_pods(1, tolerations=[{"key": "team", "operator": "Equal", "value": "x"}]),
        nodes={"tainted": 1},
    ),
    "a soft taint": Case(
        pools=[aks_pool("soft", taints=(NodeTaint("team", "x", "PreferNoSchedule"),))],
        pods=pending_pods(1),
        nodes={"soft": 1},
    ),
    "a node selector": Case(
        pools=[aks_pool("a"), aks_pool("b")], pods=pending_pods(1, nodeSelector={"pool": "b"}), nodes={"b": 1}
    ),
    "a label that no pool has": Case(
        pools=[aks_pool("a")], pods=pending_pods(1, nodeSelector={"pool": "z"}), nodes={}
    ),
    "a GPU": Case(
        pools=[aks_pool("cpu"), aks_pool("gpu", **GPU)],
        pods=pending_pods(2, gpu=1, tolerations=TOLERATES_GPU),
        nodes={"gpu": 2},
    ),
    "no GPU nodes for other pods": Case(pools=[aks_pool("gpu", **GPU)], pods=pending_pods(1), nodes={}),
    "a pool that is not autoscaled": Case(
        pools=[aks_pool("a", autoscaled=False)], pods=pending_pods(1), nodes={}
    ),
    "least waste": Case(
        pools=[aks_pool("large", allocatable={"cpu": "16", "memory": "64Gi"}), aks_pool("small")],
        pods=pending_pods(1, "3"),
        nodes={"small": 1},
    ),
    "most pods": Case(
        pools=[aks_pool("large", allocatable={"cpu": "16", "memory": "64Gi"}), aks_pool("small")],
        pods=[*pending_pods(2, "3"), *pending_pods(1, "9")],
        nodes={"large": 1},
        expander="most-pods",
    ),
    "priorities": Case(
        pools=[aks_pool("ondemand"), aks_pool("spot")],
        pods=pending_pods(2),
        nodes={"spot": 1},
        expander="priority",
    ),
    "fallback after a failed scale-up": Case(
        pools=[aks_pool("ondemand"), aks_pool("spot")],
        pods=pending_pods(2),
        nodes={"ondemand": 1},
        expander="priority",
        no_stock="spot",
        refused=["spot"],
    ),
    "backoff without a fallback": Case(
        pools=[aks_pool("spot")], pods=pending_pods(1), nodes={}, no_stock="spot", refused=["spot"]
    ),
    "zones in turn": Case(
        pools=[aks_pool("a", cloud="gke", zones=ZONES)], pods=pending_pods(4, "3"), nodes={"a": 4}, zones=2
    ),
}


def _ours(snapshot: ClusterSnapshot, trial: Trial) -> tuple[Counter[str], list[str], set[str]]:
    """New nodes by node group, refused pools and messages to pods, as the fake cloud's autoscaler decides."""
    nodes, refused = Counter[str](), list[str]()
    while True:
        snapshot = replace(snapshot, machines=trial.fleet.all())
        planned, unschedulable = scale_up(
            snapshot, list(expansion_options(snapshot, trial.fleet.backoff.until))
        )
        if planned is None:
            return nodes, refused, {item.message for item in unschedulable}
        refusals = trial.fleet.order(planned.pool, planned.zones)
        refused += [planned.pool.name] if refusals else []
        nodes.update(node_group(planned.pool, zone) for zone in planned.zones if zone not in refusals)


def _create(api: Api, place: str, pods: Sequence[Object]) -> None:
    for number, template in enumerate(pods):
        body = {**template, "apiVersion": "v1", "kind": "Pod"}
        body["metadata"] = {"name": f"p{number}"}
        api.create(f"/api/v1/namespaces/{place}/pods", body)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("name", SCALE_UPS)
def test_scale_ups(name: str, control_plane: ControlPlane, cluster_autoscaler: Path, tmp_path: Path) -> None:
    """Both add the same number of nodes to the same node groups, and are refused by the same ones."""
    case, api = SCALE_UPS[name], control_plane.api
    place = namespace(api, name.replace(" ", "-").lower())
    if case.expander == "priority":
        body = {
            "metadata": {"name": "cluster-autoscaler-priority-expander"},
            "data": {"priorities": PRIORITIES},
        }
        path = "/api/v1/namespaces/kube-system/configmaps"
        api.apply(f"{path}/{body['metadata']['name']}", {**body, "apiVersion": "v1", "kind": "ConfigMap"})
    _create(api, place, case.pods)
    trials = [Trial.of(api, tmp_path / whose, case.pools, case.expander) for whose in ("ours", "real")]
    for trial in trials:
        if case.no_stock:
            trial.store.inject(InjectedFault(NO_STOCK, case.no_stock))
    mine, theirs = trials
    snapshot = wait(
        mine.reader.snapshot,
        lambda snapshot: sum(pod.unschedulable for pod in snapshot.pods) == len(case.pods),
    )
    nodes, refused, messages = _ours(snapshot, mine)
    groups = NodeGroups(CLUSTER, theirs.store, Actuator(api), theirs.fleet)
    by_group = {identity: pool.name for identity, (pool, _) in groups.groups().items()}
    with deciding(
        control_plane, cluster_autoscaler, groups, tmp_path, [f"--expander={case.expander}"]
    ) as real:
        decisions = real.settled()
    assert decisions.increases == nodes
    assert [by_group[identity] for identity in decisions.refused] == refused == list(case.refused)
    totals = Counter[str]()
    for identity, count in nodes.items():
        totals[by_group[identity]] += count
    assert totals == case.nodes
    assert len(nodes) in (0, case.zones)
    events = api.items(f"/api/v1/namespaces/{place}/events")
    assert {event["message"] for event in events if event["reason"] == "NotTriggerScaleUp"} == messages


SMALL, LARGE = {"cpu": "1"}, {"cpu": "2500m"}


@dataclass(frozen=True, kw_only=True)
class Idle:
    """A little used node beside one that is in use, and what is on it; whether it goes."""

    goes: bool
    requests: Mapping[str, str] = field(default_factory=lambda: SMALL)
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    namespace: str = ""
    controlled: bool = True
    budget: bool = False
    pool: Mapping[str, Any] = field(default_factory=dict[str, Any])


SCALE_DOWNS = {
    "no pods": Idle(goes=True, requests={}),
    "a pod that fits elsewhere": Idle(goes=True),
    "a pod that fits nowhere else": Idle(goes=False, requests={"cpu": "1800m"}),
    "a pod that is too large a share": Idle(goes=False, requests=LARGE),
    "safe to evict: false": Idle(goes=False, annotations={SAFE_TO_EVICT: "false"}),
    "a pod without a controller": Idle(goes=False, controlled=False),
    "a pod without a controller, safe to evict": Idle(
        goes=True, controlled=False, annotations={SAFE_TO_EVICT: "true"}
    ),
    "a system pod without a budget": Idle(goes=False, namespace="kube-system"),
    "a spent budget": Idle(goes=False, budget=True),
    "the minimum": Idle(goes=False, requests={}, pool={"minimum": 2}),
}


def _run(api: Api, place: str, name: str, idle: Idle, **spec: Any) -> None:
    """A pod that runs on a node."""
    template = pod(
        {**idle.annotations, RUNS_FOR: "3600"}, container={"resources": {"requests": idle.requests}}, **spec
    )
    template["metadata"]["labels"] = {"app": name}
    if idle.controlled:
        api.create(f"/apis/batch/v1/namespaces/{place}/jobs", job(name, template))
    else:
        template["metadata"]["name"] = name
        api.create(f"/api/v1/namespaces/{place}/pods", {**template, "apiVersion": "v1", "kind": "Pod"})
    if idle.budget:
        selector = {"matchLabels": {"app": name}}
        budget: Object = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
        }
        path = f"/apis/policy/v1/namespaces/{place}/poddisruptionbudgets"
        api.create(path, {**budget, "spec": {"maxUnavailable": 0, "selector": selector}})
    running = {"labelSelector": f"app={name}", "fieldSelector": "status.phase=Running"}
    wait(lambda: api.items(f"/api/v1/namespaces/{place}/pods", **running), bool)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("name", SCALE_DOWNS)
def test_scale_downs(
    name: str, control_plane: ControlPlane, cluster_autoscaler: Path, tmp_path: Path
) -> None:
    """Both let the same nodes go."""
    idle, api = SCALE_DOWNS[name], control_plane.api
    place = idle.namespace or namespace(api, name.replace(" ", "-").replace(":", "").replace(",", ""))
    pool, actuator = aks_pool("a", **idle.pool), Actuator(api)
    mine, theirs = trials = [Trial.of(api, tmp_path / whose, [pool], "random") for whose in ("ours", "real")]
    names = [join(api, actuator, trials, pool, 0)]
    if idle.requests:
        _run(api, place, "movable", idle)
    names.append(join(api, actuator, trials, pool, 1))
    busy = Idle(goes=False, requests=LARGE)
    _run(api, place, "busy", busy, nodeSelector={"kubernetes.io/hostname": names[1]})
    snapshot = mine.reader.snapshot()
    before = review(snapshot, ScaleDownReview({}, {}, (), ()), frozenset(), None, NodeSettings())
    leaving = review(
        replace(snapshot, now=snapshot.now + 10), before, frozenset(), None, NodeSettings()
    ).removable
    groups = NodeGroups(CLUSTER, theirs.store, actuator, theirs.fleet)
    with deciding(control_plane, cluster_autoscaler, groups, tmp_path) as real:
        decisions = real.settled()
        if idle.goes:  # it looks every 5 s if evicted pods are gone
            wait(lambda: decisions.deleted, bool)
    assert tuple(decisions.deleted) == leaving == ((names[0],) if idle.goes else ())
