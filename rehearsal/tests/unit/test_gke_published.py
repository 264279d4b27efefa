"""GKE's published integration tests of its autoscaler that concern declared pools, with the same outcomes.

GoogleCloudPlatform/cluster-autoscaler@7d250507 (2026-08-21), pkg/test/integration; the docstrings name the
tests. docs/gke-autoscaler-tests.md lists all of them. Those of ProvisioningRequests are in
test_nodes_queueing.py.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

from ebbtide_rehearsal.cloud.clock import Clock
from ebbtide_rehearsal.cloud.faults import NO_STOCK, QUOTA, Fault
from ebbtide_rehearsal.cloud.nodes.autoscaler import Autoscaler
from ebbtide_rehearsal.cloud.nodes.cluster import Node, Seen
from ebbtide_rehearsal.cloud.nodes.fleet import Fleet
from ebbtide_rehearsal.cloud.nodes.hands import Hands
from ebbtide_rehearsal.cloud.nodes.message_ids import OUT_OF_RESOURCES, QUOTA_EXCEEDED, SKIPPED
from ebbtide_rehearsal.cloud.nodes.objects import Object
from ebbtide_rehearsal.cloud.nodes.pods import Pod, Toleration
from ebbtide_rehearsal.cloud.nodes.preferences import COMPUTE_CLASS
from ebbtide_rehearsal.cloud.nodes.settings import Settings
from ebbtide_rehearsal.cloud.pools import NodePool, Taint, register
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.unit.node_pool import CLUSTER, a_pod, a_pool, seen

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
        self._fleet = Fleet(CLUSTER, self.store, Settings())
        self.hands: Any = create_autospec(Hands, instance=True)
        self._autoscaler = Autoscaler("gke", self.hands, self._fleet, self.store, Settings())

    def run(self, *pods: Pod, now: float = 0, nodes: dict[str, Node] | None = None) -> list[str]:
        """Run a loop for pending pods; the new machines as `pool/zone`."""
        self.store.clock = Clock(0.0, wall=lambda: now)
        before = {machine.name for machine in self._fleet.all()}
        cluster: Seen = seen(*self._pools, machines=tuple(self._fleet.all()), pods=pods)
        cluster = replace(cluster, now=now, classes=self._classes, nodes={**cluster.nodes, **(nodes or {})})
        self._autoscaler.grow(cluster)
        return sorted(
            f"{machine.pool}/{machine.zone}" for machine in self._fleet.all() if machine.name not in before
        )

    def messages(self, kind: str) -> list[str]:
        """Ids of the messages of the timeline's events of a kind."""
        facts = [event.facts for event in self.store.events(kind=kind)]
        return [each for fact in facts for each in fact.get("messages", [fact.get("message")])]


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
    loop.store.ask(Fault(NO_STOCK, f"first/{A}"))
    assert loop.run(_in(A)) == []
    assert loop.run(_in(A), _in(B, "q"), now=1) == [f"first/{B}"]
    assert loop.messages("no-node") == [OUT_OF_RESOURCES]
    *_, told = loop.hands.event.call_args_list
    assert told.args[2] == "TriggeredScaleUp"


def test_a_quota_stops_a_rule_in_all_zones(tmp_path: Path) -> None:
    """TestCCCQuotaBackoff: quotas are regional, and the next rule's node comes in the other zone."""
    loop = Loop(tmp_path, *_first_and_second(), rules=FAMILIES)
    loop.store.ask(Fault(QUOTA, "N2_CPUS", details={"limit": 0}))
    assert loop.run(_in(A)) == []
    assert loop.run(_in(B), now=5) == [f"second/{B}"]
    assert loop.messages("no-node") == [QUOTA_EXCEEDED]


def test_the_rest_of_a_scale_up_moves_to_the_zone_with_stock(tmp_path: Path) -> None:
    """TestCCCMultiZoneScaleButSingleZoneBackoff: one of two nodes is refused, and no fallback is used."""
    loop = Loop(tmp_path, *_first_and_second(), rules=FAMILIES)
    loop.store.ask(Fault(NO_STOCK, f"first/{A}"))
    pods = [a_pod(name, cpu="3", selector=CLASS) for name in "pq"]
    assert loop.run(*pods) == [f"first/{B}"]
    assert loop.run(*pods, now=1) == [f"first/{B}"]


def test_rules_of_node_pools_fall_back_at_once(tmp_path: Path) -> None:
    """TestStockOutWithoutFlexAdvisor."""
    loop = Loop(tmp_path, *_first_and_second(zones=(A,)), rules=POOLS)
    loop.store.ask(Fault(NO_STOCK, "first"))
    assert loop.run(_in(A)) == []
    assert loop.run(_in(A), now=1) == [f"second/{A}"]


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
    loop.store.ask(Fault(NO_STOCK, "first"))
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


CLASS_TAINT = Taint(COMPUTE_CLASS, "tried", "NoSchedule")


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


@pytest.mark.parametrize("taints", [(), (Taint(COMPUTE_CLASS, "tried", "PreferNoSchedule"),)])
def test_a_pool_of_a_class_without_a_hard_taint_serves_all(tmp_path: Path, taints: tuple[Taint, ...]) -> None:
    """TestCCCNodePoolNoTaint, TestCCCNodePoolPreferNoSchedule."""
    loop = Loop(tmp_path, a_pool("own", labels=CLASS, taints=taints), rules=[{"nodepools": ["own"]}])
    assert loop.run(a_pod()) == [f"own/{A}"]


def test_pods_learn_that_a_pool_is_skipped(tmp_path: Path) -> None:
    """TestScaleUpSimulationForSkippedNodeGroups without its flag: a pool in backoff is skipped for all pods,
    whether they fit or not."""
    loop = Loop(tmp_path, a_pool("own"))
    loop.store.ask(Fault(NO_STOCK, "own"))
    assert loop.run(a_pod("trigger")) == []
    assert loop.run(a_pod("fits"), a_pod("fits-not", selector={"x": "y"}), now=1) == []
    assert loop.messages("no-scale-up") == [SKIPPED]


@pytest.mark.parametrize("together", [1, 2])
def test_a_flex_start_slice_comes_for_a_pod(tmp_path: Path, together: int) -> None:
    """TestFlexStartTPU_NonQueued_NonNAP, single host and multi-host."""
    chips: dict[str, Any] = {
        "machine": "ct5lp-hightpu-4t",
        "capacity": "flex-start",
        "accelerator": ("tpu-v5-lite-podslice", 4),
        "accelerator_resource": "google.com/tpu",
        "together": together,
    }
    loop = Loop(tmp_path, a_pool("slice", **chips))
    assert len(loop.run(a_pod())) == together


def test_a_node_of_no_pool_is_left_alone(tmp_path: Path) -> None:
    """TestResilienceToNonGcpNodes: a virtual kubelet's node changes nothing."""
    rogue = Node(name="vk", labels={}, annotations={}, taints=(), allocatable={}, ready=True, cordoned=False)
    pool = a_pool("own", zones=(B,))
    assert Loop(tmp_path, pool).run(a_pod(cpu="3"), nodes={"vk": rogue}) == [f"own/{B}"]


def test_the_list_is_of_tests_that_are_here() -> None:
    """docs/gke-autoscaler-tests.md names for each covered test the file whose docstrings name it."""
    page = (Path(__file__).parents[3] / "docs" / "gke-autoscaler-tests.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `[\w/]+` (\w+) \| `(test_\w+\.py)` \|$", page, flags=re.MULTILINE)
    files = {file: (Path(__file__).parent / file).read_text(encoding="utf-8") for _, file in rows}
    assert rows
    assert [name for name, file in rows if name not in files[file]] == []
