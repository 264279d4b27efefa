"""GKE's published integration tests of its autoscaler that concern declared pools, with the same outcomes.

GoogleCloudPlatform/cluster-autoscaler@7d250507 (2026-08-21), pkg/test/integration; the docstrings name the
tests. docs/gke-autoscaler-tests.md lists all of them. Those of ProvisioningRequests are in
test_nodes_provisioning_requests.py.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

from ebbtide.autoscaler.backoff import OUT_OF_RESOURCES, QUOTA_EXCEEDED, SKIPPED, NodeSettings
from ebbtide.autoscaler.nodes import NodePool
from ebbtide.autoscaler.scheduling import Object, Pod
from ebbtide.autoscaler.snapshot import ClusterSnapshot, Node
from ebbtide.declaration.catalog.clouds import COMPUTE_CLASS
from ebbtide.placement import NodeTaint
from ebbtide.placement.profile import Toleration
from ebbtide.values.pod_requests import amounts
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator
from ebbtide_rehearsal.cloud.node_pools.fleet import Fleet
from ebbtide_rehearsal.cloud.node_pools.loop import Autoscaler
from ebbtide_rehearsal.cloud.pools import put, register
from ebbtide_rehearsal.cloud.store import NO_STOCK, QUOTA, Clock, InjectedFault, Store
from rehearsal.tests.unit.node_pool import CLUSTER, MARK, a_machine, a_pod, a_pool, snapshot

A, B = "us-central1-a", "us-central1-b"
ZONE = "topology.kubernetes.io/zone"
CLASS = {COMPUTE_CLASS: "tried"}


class Loop:
    """The fake cloud's autoscaler of a cluster, run loop by loop.

    Attributes:
        store: the cloud's memory.
    """

    def __init__(self, directory: Path, *pools: NodePool, rules: list[Object] | None = None) -> None:
        self.store = Store(directory / "store")
        self._pools, self._classes = pools, {"tried": {"priorities": rules or []}}
        for pool in pools:
            register(self.store, pool)
        self._fleet = Fleet(CLUSTER, self.store, NodeSettings())
        self.actuator: Any = create_autospec(Actuator, instance=True)
        self._autoscaler = Autoscaler("gke", self.actuator, self._fleet, self.store, NodeSettings())

    def run(
        self,
        *pods: Pod,
        now: float = 0,
        nodes: dict[str, Node] | None = None,
        daemons: tuple[Pod, ...] = (),
    ) -> list[str]:
        """Run a loop for pending pods; the new machines as `pool/zone`."""
        before = {machine.name for machine in self._fleet.all()}
        cluster = replace(self._snapshot(now, *pods), daemons=daemons)
        self._autoscaler.scale_up(replace(cluster, nodes={**cluster.nodes, **(nodes or {})}))
        return sorted(
            f"{machine.pool}/{machine.zone}" for machine in self._fleet.all() if machine.name not in before
        )

    def shrink(self, now: float) -> list[str]:
        """Start all machines, and run loops without pods; the machines that are drained as `pool/zone`."""
        for machine in self._fleet.all():
            if machine.state == "starting":
                self._fleet.save(machine.having(state="running"))
        for _ in ("taints", "drains"):
            self._autoscaler.scale_down(self._snapshot(now))
        return sorted(
            f"{machine.pool}/{machine.zone}" for machine in self._fleet.all() if machine.state == "draining"
        )

    def _snapshot(self, now: float, *pods: Pod) -> ClusterSnapshot:
        self.store.clock = Clock(0.0, wall=lambda: now)
        cluster = snapshot(*self._pools, machines=tuple(self._fleet.all()), pods=pods)
        marked = {call.args[0].name for call in self.actuator.mark_to_be_deleted.call_args_list}
        nodes = {
            name: replace(node, taints=(*node.taints, MARK)) if name in marked else node
            for name, node in cluster.nodes.items()
        }
        return replace(cluster, now=now, nodes=nodes, classes=self._classes)

    def messages(self, kind: str) -> list[str]:
        """Ids of the messages of the timeline's events of a kind."""
        facts = [event.facts for event in self.store.events(kind=kind)]
        return [message for fact in facts for message in fact.get("messages", [fact.get("message")])]


def _first_and_second(**changes: Any) -> tuple[NodePool, NodePool]:
    given = {"labels": CLASS, "zones": (A, B), "capacity": "on-demand", **changes}
    return a_pool("first", machine="n2-standard-4", **given), a_pool(
        "second", machine="e2-standard-4", **given
    )


FAMILIES: list[Object] = [{"machineFamily": "n2"}, {"machineFamily": "e2"}]
POOLS: list[Object] = [{"nodepools": ["first"]}, {"nodepools": ["second"]}]


def _in(zone: str, name: str = "p") -> Pod:
    return a_pod(name, cpu="3", selector={**CLASS, ZONE: zone})


def test_a_zone_without_stock_does_not_stop_a_rule(tmp_path: Path) -> None:
    """TestCCCZonalBackoff: the other zone's node comes from the same rule."""
    loop = Loop(tmp_path, *_first_and_second(), rules=FAMILIES)
    loop.store.inject(InjectedFault(NO_STOCK, f"first/{A}"))
    assert loop.run(_in(A)) == []
    assert loop.run(_in(A), _in(B, "q"), now=1) == [f"first/{B}"]
    assert loop.messages("no-node") == [OUT_OF_RESOURCES]
    *_, call = loop.actuator.create_event.call_args_list
    assert call.args[2] == "TriggeredScaleUp"


def test_a_quota_stops_a_rule_in_all_zones(tmp_path: Path) -> None:
    """TestCCCQuotaBackoff: quotas are regional, and the next rule's node comes in the other zone."""
    loop = Loop(tmp_path, *_first_and_second(), rules=FAMILIES)
    loop.store.inject(InjectedFault(QUOTA, "N2_CPUS", details={"limit": 0}))
    assert loop.run(_in(A)) == []
    assert loop.run(_in(B), now=5) == [f"second/{B}"]
    assert loop.messages("no-node") == [QUOTA_EXCEEDED]


@pytest.mark.parametrize("rules", [FAMILIES, POOLS])
def test_the_rest_of_a_scale_up_moves_to_the_zone_with_stock(tmp_path: Path, rules: list[Object]) -> None:
    """TestCCCMultiZoneScaleButSingleZoneBackoff, and TestBalancedLocationPolicyZoneBUnavailable without Flex
    Advisor: one of two nodes is refused, and no fallback is used."""
    loop = Loop(tmp_path, *_first_and_second(), rules=rules)
    loop.store.inject(InjectedFault(NO_STOCK, f"first/{A}"))
    pods = [a_pod(name, cpu="3", selector=CLASS) for name in "pq"]
    assert loop.run(*pods) == [f"first/{B}"]
    assert loop.run(*pods, now=1) == [f"first/{B}"]


def test_rules_of_node_pools_fall_back_at_once(tmp_path: Path) -> None:
    """TestStockOutWithoutFlexAdvisor."""
    loop = Loop(tmp_path, *_first_and_second(zones=(A,)), rules=POOLS)
    loop.store.inject(InjectedFault(NO_STOCK, "first"))
    assert loop.run(_in(A)) == []
    assert loop.run(_in(A), now=1) == [f"second/{A}"]


def test_a_scale_up_has_as_many_nodes_as_its_pods_need(tmp_path: Path) -> None:
    """TestFlexAdvisorRightsizeTheResizeRequestToAvailableCapacity without Flex Advisor: both nodes come from
    the first rule's pool."""
    loop = Loop(tmp_path, *_first_and_second(zones=(A,)), rules=POOLS)
    assert loop.run(_in(A), _in(A, "q")) == [f"first/{A}", f"first/{A}"]


@pytest.mark.parametrize(("rules", "expected"), [(FAMILIES, []), (POOLS, [f"sibling/{A}"])])
def test_a_cooldown_is_of_rules_that_name_no_pools(
    tmp_path: Path, rules: list[Object], expected: list[str]
) -> None:
    """A sibling of the same machine type is suspended with the refused pool, and a pool of its own rule is
    not (pkg/backoff/npc_backoff.go, which no integration test covers)."""
    first, _ = _first_and_second(zones=(A,))
    pools = first, first.having(name="sibling", hourly=9.0)
    named: list[Object] = [{"nodepools": ["first"]}, {"nodepools": ["sibling"]}, {"machineFamily": "c3"}]
    loop = Loop(tmp_path, *pools, rules=named if rules is POOLS else rules)
    loop.store.inject(InjectedFault(NO_STOCK, "first"))
    assert loop.run(_in(A)) == []
    assert loop.run(_in(A), now=1) == expected


@pytest.mark.parametrize(
    ("scores", "expected"), [((5, 10), "second"), ((10, 5), "first"), ((10, 10), "first")]
)
def test_priority_scores_order_rules(tmp_path: Path, scores: tuple[int, int], expected: str) -> None:
    """TestCCCScaleUpPriorityScore: the highest score wins, and the expander decides between equal ones."""
    first, second = _first_and_second(zones=(A,))
    rules: list[Object] = [
        {**rule, "priorityScore": score} for rule, score in zip(FAMILIES, scores, strict=True)
    ]
    loop = Loop(tmp_path, first, second.having(hourly=5.0), rules=rules)
    assert loop.run(_in(A)) == [f"{expected}/{A}"]


@pytest.mark.parametrize(("capacity", "discount"), [("on-demand", 1.0), ("spot", 0.4)])
def test_pools_of_one_rule_compete_by_cost(tmp_path: Path, capacity: str, discount: float) -> None:
    """TestFleetEfficiency where the strategy is lowest cost: the smallest node that fits is chosen."""
    machines = {
        "e2-standard-8": ("7910m", 0.268),
        "n1-standard-4": ("3920m", 0.19),
        "e2-standard-4": ("3920m", 0.134),
    }
    pools = [
        a_pool(
            machine,
            machine=machine,
            labels=CLASS,
            capacity=capacity,
            allocatable={"cpu": cpu, "memory": "13Gi"},
            hourly=hourly * discount,
        )
        for machine, (cpu, hourly) in machines.items()
    ]
    loop = Loop(tmp_path, *pools, rules=[{"nodepools": list(machines)}])
    assert loop.run(a_pod(cpu="3", selector=CLASS)) == [f"e2-standard-4/{A}"]


CLASS_TAINT = NodeTaint(COMPUTE_CLASS, "tried", "NoSchedule")
OF_CLASS = Toleration(COMPUTE_CLASS, "Equal", "tried", "NoSchedule")


@pytest.mark.parametrize(
    ("selector", "toleration"),
    [
        ({}, OF_CLASS),
        ({}, Toleration(COMPUTE_CLASS, "Equal", "another", "NoSchedule")),
        ({}, Toleration(COMPUTE_CLASS, "Exists", "", "NoSchedule")),
        ({"foo": "bar"}, Toleration("foo", "Equal", "bar", "NoSchedule")),
    ],
)
def test_pods_of_a_class_get_its_nodes(
    tmp_path: Path, selector: dict[str, str], toleration: Toleration
) -> None:
    """TestCCCWorkloadValidation: with other tolerations, and with a pool dedicated by a label and a taint."""
    dedicated = tuple(NodeTaint(key, value, "NoSchedule") for key, value in selector.items())
    pool = a_pool("own", capacity="on-demand", labels={**CLASS, **selector}, taints=(CLASS_TAINT, *dedicated))
    loop = Loop(tmp_path, pool, rules=FAMILIES)
    pod = a_pod(selector={**CLASS, **selector}, tolerations=(OF_CLASS, toleration))
    assert loop.run(pod) == [f"own/{A}"]


def test_a_class_without_rules_gets_no_nodes(tmp_path: Path) -> None:
    """TestCCCRejectedErrors."""
    assert Loop(tmp_path, a_pool("own", labels=CLASS)).run(a_pod(selector=CLASS)) == []


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({}, []),
        ({"selector": {"role": "one"}}, []),
        (
            {"selector": {"role": "one"}, "tolerations": (Toleration(COMPUTE_CLASS, "Exists", "", ""),)},
            ["own"],
        ),
        ({"tolerations": (Toleration(COMPUTE_CLASS, "Exists", "", "NoSchedule"),)}, ["own"]),
        ({"tolerations": (Toleration(COMPUTE_CLASS, "Equal", "tried", "NoSchedule"),)}, ["own"]),
        ({"tolerations": (Toleration(COMPUTE_CLASS, "", "tried", "NoSchedule"),)}, ["own"]),
        ({"tolerations": (Toleration(COMPUTE_CLASS, "Equal", "tried", ""),)}, ["own"]),
        ({"tolerations": (Toleration(COMPUTE_CLASS, "Exists", "", ""),)}, ["own"]),
        ({"selector": CLASS, "tolerations": (OF_CLASS,)}, ["own"]),
        ({"tolerations": (Toleration("", "Exists", "", ""),)}, ["own"]),
        ({"tolerations": (Toleration(COMPUTE_CLASS, "Equal", "other", "NoSchedule"),)}, []),
    ],
)
def test_pods_without_a_class_use_its_pools_if_they_fit(
    tmp_path: Path, pod: dict[str, Any], expected: list[str]
) -> None:
    """TestCCCSchedulingWithoutNodeSelector: only taints and labels count."""
    pool = a_pool("own", labels={**CLASS, "role": "one"}, taints=(CLASS_TAINT,))
    loop = Loop(tmp_path, pool, rules=[{"nodepools": ["own"]}])
    assert [name.partition("/")[0] for name in loop.run(a_pod(**pod))] == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"tolerations": (Toleration(COMPUTE_CLASS, "Equal", "missing", "NoSchedule"),)}, "of-missing"),
        ({"namespace": "kube-system"}, "of-none"),
    ],
)
def test_pools_need_no_class_that_exists(tmp_path: Path, pod: dict[str, Any], expected: str) -> None:
    """TestCCCSchedulingWithoutNodeSelector: a class that does not exist, and a system pod."""
    taint = NodeTaint(COMPUTE_CLASS, "missing", "NoSchedule")
    of_missing = a_pool("of-missing", labels={COMPUTE_CLASS: "missing"}, taints=(taint,))
    loop = Loop(tmp_path, of_missing, a_pool("of-none", hourly=5.0))
    assert loop.run(a_pod(**pod)) == [f"{expected}/{A}"]


@pytest.mark.parametrize("taints", [(), (NodeTaint(COMPUTE_CLASS, "tried", "PreferNoSchedule"),)])
def test_a_pool_of_a_class_without_a_hard_taint_serves_all(
    tmp_path: Path, taints: tuple[NodeTaint, ...]
) -> None:
    """TestCCCNodePoolNoTaint, TestCCCNodePoolPreferNoSchedule."""
    loop = Loop(tmp_path, a_pool("own", labels=CLASS, taints=taints), rules=[{"nodepools": ["own"]}])
    assert loop.run(a_pod()) == [f"own/{A}"]


def test_pods_learn_that_a_pool_is_skipped(tmp_path: Path) -> None:
    """TestScaleUpSimulationForSkippedNodeGroups without its flag: a pool in backoff is skipped for all pods,
    whether they fit or not."""
    loop = Loop(tmp_path, a_pool("own"))
    loop.store.inject(InjectedFault(NO_STOCK, "own"))
    assert loop.run(a_pod("trigger")) == []
    assert loop.run(a_pod("fits"), a_pod("fits-not", selector={"x": "y"}), now=1) == []
    assert loop.messages("no-scale-up") == [SKIPPED]


def _slice(name: str, **changes: Any) -> NodePool:
    chips: dict[str, Any] = {
        "machine": "ct5lp-hightpu-4t",
        "accelerator": ("tpu-v5-lite-podslice", 4),
        "accelerator_resource": "google.com/tpu",
    }
    return a_pool(name, **chips, **changes)


@pytest.mark.parametrize("together", [1, 2])
def test_a_flex_start_slice_comes_for_a_pod(tmp_path: Path, together: int) -> None:
    """TestFlexStartTPU_NonQueued_NonNAP, single host and multi-host."""
    loop = Loop(tmp_path, _slice("slice", capacity="flex-start", together=together))
    assert len(loop.run(a_pod())) == together


def _of_slice(name: str, zone: str) -> Pod:
    return a_pod(name, requests=amounts({"cpu": "100m", "google.com/tpu": "4"}), selector={ZONE: zone})


def test_a_loop_scales_up_one_pool(tmp_path: Path) -> None:
    """TestSalvoMultiScaleUpTPUMultihost without its flag: a slice of two nodes in each of two zones."""
    pods = [_of_slice(f"{zone}-{number}", zone) for zone in (A, B) for number in range(2)]
    loop = Loop(tmp_path, *(_slice(zone[-1], zones=(zone,), together=2) for zone in (A, B)))
    assert loop.run(*pods) == [f"a/{A}", f"a/{A}"]
    assert loop.run(*pods, now=1) == [f"b/{B}", f"b/{B}"]


def test_chips_and_processors_come_in_consecutive_loops(tmp_path: Path) -> None:
    """TestSalvoMultiScaleUpSharded: pods that need different nodes share no scale-up."""
    loop = Loop(tmp_path, _slice("slice"), a_pool("cpu", zones=(B,)))
    pods = _of_slice("chips", A), a_pod("processors", cpu="3", selector={ZONE: B})
    first, second = loop.run(*pods), loop.run(*pods, now=1)
    assert sorted([first, second]) == [[f"cpu/{B}"], [f"slice/{A}"]]


def test_nodes_are_counted_by_what_pods_need(tmp_path: Path) -> None:
    """TestRunOnceScaleUp: ten nodes for 500 pods of 600 millicores, the existing one among them."""
    pool = a_pool(
        "own",
        machine="e2-standard-32",
        allocatable={"cpu": "31850m", "memory": "118Gi"},
        maximum=1000,
        hourly=1.07,
    )
    loop = Loop(tmp_path, pool)
    put(loop.store, a_machine(pool))
    pods = [a_pod(f"p{number}", requests=amounts({"cpu": "600m", "pods": "1"})) for number in range(500)]
    assert len(loop.run(*pods)) == 9


@pytest.mark.parametrize(("requested", "expected"), [("300m", "small"), ("600m", "large")])
def test_daemon_sets_take_their_share_of_new_nodes(tmp_path: Path, requested: str, expected: str) -> None:
    """TestDaemonSetMutationOverhead without its flag, and with requests that need no mutation."""
    pools = (
        a_pool("small", machine="n1-standard-2", allocatable={"cpu": "1930m", "memory": "5Gi"}, hourly=0.095),
        a_pool("large", machine="n1-standard-4", allocatable={"cpu": "3920m", "memory": "12Gi"}, hourly=0.19),
    )
    daemon = a_pod("daemon", cpu=requested, owner="DaemonSet")
    assert Loop(tmp_path, *pools).run(a_pod(cpu="1500m"), daemons=(daemon,)) == [f"{expected}/{A}"]


def test_a_machine_type_may_be_unknown(tmp_path: Path) -> None:
    """TestUnregisteredMachineType: its pool grows, and shrinks to nothing once the pod is deleted."""
    loop = Loop(
        tmp_path,
        a_pool("own", machine="mock1-standard-2", allocatable={"cpu": "1930m", "memory": "5Gi"}),
    )
    assert loop.run(a_pod(cpu="1500m")) == [f"own/{A}"]
    assert loop.shrink(now=600) == []
    assert loop.shrink(now=1200) == [f"own/{A}"]


@pytest.mark.parametrize("existing", [3, 10])
def test_unneeded_nodes_go_down_to_the_minimum(tmp_path: Path, existing: int) -> None:
    """TestCCCScaleDownStatusHistory without the status, TestCCCScaleDown without its flag."""
    pool = a_pool("own", labels=CLASS, minimum=1)
    loop = Loop(tmp_path, pool, rules=[{"nodepools": ["own"]}])
    for number in range(existing):
        put(loop.store, a_machine(pool, number))
    assert loop.shrink(now=0) == []
    assert len(loop.shrink(now=600)) == existing - 1


def test_a_node_of_no_pool_is_left_alone(tmp_path: Path) -> None:
    """TestResilienceToNonGcpNodes: a virtual kubelet's node changes nothing."""
    rogue = Node(name="vk", labels={}, annotations={}, taints=(), allocatable={}, ready=True, cordoned=False)
    pool = a_pool("own", zones=(B,))
    assert Loop(tmp_path, pool).run(a_pod(cpu="3"), nodes={"vk": rogue}) == [f"own/{B}"]


def test_the_list_is_of_tests_that_are_here() -> None:
    """docs/gke-autoscaler-tests.md names for each covered test the file whose docstrings name it."""
    page = (Path(__file__).parents[3] / "docs" / "gke-autoscaler-tests.md").read_text(encoding="utf-8")
    published = re.findall(r"^\| `[\w/]+` (Test\w+) \|", page, flags=re.MULTILINE)
    rows = re.findall(r"^\| `[\w/]+` (\w+) \| `(test_\w+\.py)` \|", page, flags=re.MULTILINE)
    files = {file: (Path(__file__).parent / file).read_text(encoding="utf-8") for _, file in rows}
    assert rows
    assert [name for name, file in rows if not re.search(rf"\b{name}\b", files[file])] == []
    assert len(published) == len(set(published)) == 84
