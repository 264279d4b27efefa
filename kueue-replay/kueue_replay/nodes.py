"""Node pools in virtual time, with the decisions of the rehearsal's autoscaler.

Pods are bound to ready nodes alone, in the order of their creation, each to the fitting node with the most
free CPU and memory: LeastAllocated, the scheduler's default (kubernetes.io/docs/reference/scheduling/config,
2026). The autoscaler counts on nodes that boot when it decides how many more are needed; a pod waits for none
of them in particular (kubernetes/autoscaler, FAQ, "How does scale-up work?", 2026).
"""

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import attrgetter
from typing import Final, Literal, Protocol

from ebbtide.autoscaler.backoff import Backoff
from ebbtide.autoscaler.expander import best
from ebbtide.autoscaler.nodes import Machine, NodePool, is_recreated, labels, node_group, provides
from ebbtide.autoscaler.provisioning_requests import decide
from ebbtide.autoscaler.scale_down import ScaleDownReview, review
from ebbtide.autoscaler.scale_up import expansion_options, missing_machines, options, spread
from ebbtide.autoscaler.scheduling import Pod
from ebbtide.autoscaler.snapshot import QUEUED, ClusterSnapshot, Node, Order, PodSet, ProvisioningRequest
from ebbtide.placement.profile import SAFE_TO_EVICT, Toleration
from ebbtide.values.pod_requests import amounts
from kueue_replay.cloud_model import Cloud
from kueue_replay.cluster import Shape

Lost = Literal["reclaim", "scale-down", "node expired"]

_NOTHING: Final = ScaleDownReview({}, {}, (), ())
_HOUR: Final = 3600.0
_SCAN: Final = 10.0
"""Seconds between rounds of the autoscaler (`scan-interval`; kubernetes/autoscaler, FAQ, 2026)."""
_ROUNDING: Final = 1e-3
"""Seconds by which a node's removal is reviewed later: a sum of times may be rounded down, and the node would
be unneeded for a little less than the delay, without another review."""
_RANK: Final = attrgetter("rank")
_ANY: Final = (Toleration("", "Exists", "", ""),)


@dataclass(slots=True, eq=False)
class Run:
    """A job with reserved quota.

    Attributes:
        pools: names of the pools of its flavor.
        queued: whether its nodes are provisioned by a ProvisioningRequest.
        kind: number of its pools and shape: pods of a kind fit the same nodes.
        nodes: node of each bound pod, and the time since which it is there.
        expected: nodes that boot, one for each pod for which the autoscaler counts on one.
    """

    name: str
    pools: tuple[str, ...]
    pods: int
    shape: Shape
    queued: bool = False
    keep_node: bool = False
    kind: int = -1
    nodes: "list[tuple[SimulatedNode, float]]" = field(default_factory=list["tuple[SimulatedNode, float]"])
    expected: "list[SimulatedNode]" = field(default_factory=list["SimulatedNode"])
    started: bool = False

    @property
    def missing(self) -> int:
        """Number of its pods without a node, ready or not."""
        return self.pods - len(self.nodes) - len(self.expected)


@dataclass(slots=True, eq=False)
class SimulatedNode:
    """A machine with its free capacity and pods.

    Attributes:
        runs: the job of each of its pods; before it is ready, of each pod that may come to it.
        node: its Node; None until it is ready.
        busy_since: time of its first pod since it had none.
        busy_seconds: how long it had pods before that.
        cpu: free CPU; so are memory and gpus.
        rank: sum of its free shares of CPU and memory: the largest is preferred.
    """

    machine: Machine
    pool: NodePool
    whole: Shape
    runs: list[Run] = field(default_factory=list[Run])
    gone: bool = False
    node: Node | None = None
    busy_since: float = 0.0
    busy_seconds: float = 0.0
    cpu: int = field(init=False)
    memory: int = field(init=False)
    gpus: int = field(init=False)
    rank: float = field(init=False)

    def __post_init__(self) -> None:
        """Start without pods."""
        self.cpu, self.memory, self.gpus = self.whole.cpu, self.whole.memory, self.whole.gpus
        self._rank()

    def fits(self, shape: Shape) -> bool:
        """Return whether a pod fits the free capacity."""
        return self.gpus >= shape.gpus and self.cpu >= shape.cpu and self.memory >= shape.memory

    def take(self, run: Run) -> None:
        """Use the requests of a job's pod."""
        self.runs.append(run)
        self._use(run.shape, 1)

    def free(self, run: Run) -> None:
        """Free the requests of a job's pod."""
        self.runs.remove(run)
        self._use(run.shape, -1)

    def _use(self, shape: Shape, pods: int) -> None:
        self.cpu -= pods * shape.cpu
        self.memory -= pods * shape.memory
        self.gpus -= pods * shape.gpus
        self._rank()

    def become_ready(self, now: float, node: Node) -> None:
        """Let pods start."""
        self.machine, self.node = self.machine.having(state="running", since=now), node

    def _rank(self) -> None:
        self.rank = sum(self._free_shares())

    def _free_shares(self) -> tuple[float, float]:
        """Return the free parts of its CPU and memory."""
        return self.cpu / max(1, self.whole.cpu), self.memory / max(1, self.whole.memory)

    def used_share(self) -> float:
        """Return the used part of its accelerators, or without these of its CPU and memory."""
        if self.whole.gpus:
            return 1 - self.gpus / self.whole.gpus
        return 1 - min(self._free_shares())


class Watch(Protocol):
    """Receives what happens to jobs and nodes."""

    def started(self, at: float, run: Run) -> None:
        """Note that all pods of a job run."""

    def lost(self, at: float, run: Run, why: Lost) -> None:
        """Note that a running job lost a pod, which is created again; the job keeps its quota."""

    def provisioned(self, at: float, run: Run, failure: str) -> None:
        """Note that the nodes of a queued job are ready, or with `failure` why they are not."""

    def node_added(self, at: float, machine: Machine) -> None:
        """Note that a machine is billed from now on."""

    def node_removed(self, at: float, machine: Machine, busy_seconds: float) -> None:
        """Note that a machine is gone, and how long it had pods."""

    def reclaimed(self, at: float, machine: Machine) -> None:
        """Note that the cloud took a machine."""

    def refused(self, at: float, pool: str) -> None:
        """Note that the cloud has no machine for a pool."""

    def used(self, run: Run, usd: float) -> None:
        """Note the cost of the part of a node that a pod used, US dollars."""


@dataclass(frozen=True, kw_only=True)
class _Snapshot(ClusterSnapshot):
    """A snapshot whose pods are found by their node, since a replay takes many."""

    pods_of: Mapping[str, list[Pod]]

    def on(self, node: str) -> list[Pod]:
        """Return the pods on a node."""
        return self.pods_of.get(node, [])


class Nodes:
    """The node pools of a cluster."""

    def __init__(
        self, pools: Sequence[NodePool], capacity: Mapping[str, Shape], cloud: Cloud, watch: Watch
    ) -> None:
        """Create the pools with their initial nodes; a node's capacity for pods is by pool."""
        self._pools = {pool.name: pool for pool in pools}
        self._capacity, self._cloud, self._watch = capacity, cloud, watch
        self._settings = cloud.model.settings()
        self._autoscaling = cloud.model.autoscaling()
        self._backoff = Backoff(self._settings)
        self._nodes: dict[str, dict[str, SimulatedNode]] = {pool.name: {} for pool in pools}
        self._requests: dict[str, list[SimulatedNode]] = {}
        self._pending: dict[str, Run] = {}
        self._waiting: dict[str, tuple[Run, float, float]] = {}
        self._events: list[tuple[float, int, str, str, object]] = []
        self._order_numbers, self._counts = itertools.count(), dict.fromkeys(self._pools, 0)
        self._reviews = dict.fromkeys(self._pools, _NOTHING)
        self._last_scale_up: float | None = None
        self._checks: dict[str, float] = {}
        self._pods: dict[tuple[Shape, str, bool], Pod] = {}
        self._kinds: dict[tuple[tuple[str, ...], Shape], int] = {}
        self._full: set[tuple[int, bool]] = set()  # kinds that fit no node of those that are ready, or boot
        self._no_growth_until: dict[int, float] = {}
        self._refill(0.0, new=True)

    def next_time(self) -> float:
        """Return the time of the next event; infinite for none."""
        return self._events[0][0] if self._events else math.inf

    def admit(self, now: float, run: Run) -> None:
        """Create the pods of an admitted job."""
        run.kind = self._kinds.setdefault((run.pools, run.shape), len(self._kinds))
        self._pending[run.name] = run
        self._schedule(now)

    def provision(self, now: float, run: Run) -> None:
        """Request the nodes of a job with reserved quota in a queued pool."""
        until = now + self._cloud.queued_seconds(run.name)
        self._waiting[run.name] = run, now, until
        self._at(until, "provision", "", run)

    def release(self, now: float, run: Run) -> None:
        """Delete the pods of a job that has ended or was evicted."""
        self._pending.pop(run.name, None)
        self._waiting.pop(run.name, None)
        self._unplace(now, run)
        self._requests.pop(run.name, None)
        self._schedule(now)

    def restart(self, now: float, run: Run) -> None:
        """Create the pods of a running job again after a failure of its own."""
        self._unplace(now, run)
        self.admit(now, run)

    def advance(self, now: float) -> None:
        """Handle the events until a time."""
        while self._events and self._events[0][0] <= now:
            at, _, kind, pool, subject = heapq.heappop(self._events)
            match kind, subject:
                case "ready", SimulatedNode() if not subject.gone:
                    self._ready(at, subject)
                case "reclaim" | "expire", SimulatedNode() if not subject.gone:
                    self._lose(at, subject, "reclaim" if kind == "reclaim" else "node expired")
                case "provision", Run() if subject.name in self._waiting:
                    self._decide(at, subject)
                case "schedule", _:
                    self._schedule(at)
                case "refill", _:
                    self._refill(at, new=False)
                case "scale-down", _:
                    self._scale_down(at, pool)
                case _:
                    pass

    def machines(self) -> Iterator[Machine]:
        """Yield the existing machines."""
        return (node.machine for nodes in self._nodes.values() for node in nodes.values())

    def busy_seconds(self, machine: Machine, now: float) -> float:
        """Return how long an existing machine had pods."""
        node = self._nodes[machine.pool][machine.name]
        return node.busy_seconds + (now - node.busy_since if node.runs else 0.0)

    def _at(self, when: float, kind: str, pool: str, subject: object = None) -> None:
        if when < math.inf:
            heapq.heappush(self._events, (when, next(self._order_numbers), kind, pool, subject))

    # Scheduling and scale-up

    def _schedule(self, now: float) -> None:
        """Bind pending pods to ready nodes, and scale up for those that fit no node."""
        for run in list(self._pending.values()):
            self._bind(now, run)
            if len(run.nodes) == run.pods:
                del self._pending[run.name]
                run.started = True
                self._watch.started(now, run)
        closed = {kind for kind, until in self._no_growth_until.items() if now < until}
        for run in self._pending.values():
            if run.queued or (run.kind in closed and (run.kind, False) in self._full):
                continue
            self._expect(run)
            if run.missing and run.kind not in closed:
                self._scale_up(now, run)
                self._expect(run)
                if run.missing:
                    closed.add(run.kind)

    def _fitting(self, run: Run, *, ready: bool) -> SimulatedNode | None:
        """Return the emptiest node that fits a pod of a job, of those that are ready or those that boot."""
        if (run.kind, ready) in self._full:
            return None
        candidates = (
            self._requests.get(run.name, ())
            if run.queued
            else (node for name in run.pools for node in self._nodes[name].values())
        )
        fitting = [node for node in candidates if (node.node is not None) is ready and node.fits(run.shape)]
        if fitting:
            return max(fitting, key=_RANK)
        if not run.queued:
            self._full.add((run.kind, ready))
        return None

    def _bind(self, now: float, run: Run) -> None:
        """Bind pods of a job to ready nodes; each needs no node that boots any more."""
        while len(run.nodes) < run.pods and (node := self._fitting(run, ready=True)):
            node.take(run)
            if len(node.runs) == 1:
                node.busy_since = now
            run.nodes.append((node, now))
            self._check_scale_down(now, node.pool.name)
            if run.missing < 0:
                self._drop(run, run.expected[-1])

    def _expect(self, run: Run) -> None:
        """Count on nodes that boot for the pods of a job that fit no ready node."""
        while run.missing and (node := self._fitting(run, ready=False)):
            node.take(run)
            run.expected.append(node)

    def _drop(self, run: Run, node: SimulatedNode) -> None:
        """Count on a node that boots for another pod."""
        run.expected.remove(node)
        node.free(run)
        self._freed(node)

    def _freed(self, node: SimulatedNode) -> None:
        """Let pods be placed again that fit a node with more free capacity than before."""
        ready = node.node is not None
        for (pools, shape), kind in self._kinds.items():
            if (kind, ready) in self._full and node.pool.name in pools and node.fits(shape):
                self._full.discard((kind, ready))

    def _unplace(self, now: float, run: Run) -> None:
        run.started = False
        for node in list(run.expected):
            self._drop(run, node)
        for node, since in run.nodes:
            node.free(run)
            hours = (now - since) / _HOUR * run.shape.share_of(node.whole)
            self._watch.used(run, hours * (node.machine.hourly or 0.0))
            if not node.runs:
                node.busy_seconds += now - node.busy_since
            if not node.gone:
                self._freed(node)
                self._check_scale_down(now, node.pool.name)
        run.nodes.clear()

    def _scale_up(self, now: float, run: Run) -> None:
        """Order nodes for the pods of a job that fit no node, pool after pool."""
        missing = run.missing
        while missing > 0:
            snapshot = self._snapshot(now, run.pools)
            offered = list(expansion_options(snapshot, self._backoff.until))
            pods = [self._pod(run, "")] * missing
            chosen = best(list(options(pods, offered)), snapshot)
            if chosen is None:
                # No pool can grow for such pods until a node is removed or a backoff ends.
                ends = (end for end in self._backoff.until.values() if end > now)
                self._no_growth_until[run.kind] = min(ends, default=math.inf)
                break
            if self._order(now, chosen.pool, spread(chosen, offered)):
                self._last_scale_up = now
                missing -= len(chosen.pods)

    def _order(
        self, now: float, pool: NodePool, zones: Sequence[str], request: str = ""
    ) -> list[SimulatedNode]:
        """Request machines; none come during a stock-out, which backs the pool off."""
        stock_from = self._cloud.stock_from(pool, now)
        waits = stock_from - now if pool.capacity == "flex-start" else 0.0
        if stock_from > now and not 0 < waits <= self._settings.capacity_check_seconds:
            self._watch.refused(now, pool.name)
            for zone in dict.fromkeys(zones):
                again = now + self._backoff.fail(node_group(pool, zone), now) + _SCAN
                again = again if stock_from < math.inf else math.inf
                self._at(again, "schedule", pool.name)
                self._at(again, "refill", pool.name)
            return []
        return [self._add(stock_from, pool, zone, request) for zone in zones]

    def _add(self, now: float, pool: NodePool, zone: str, request: str = "") -> SimulatedNode:
        self._counts[pool.name] += 1
        name = f"{pool.name}-{self._counts[pool.name]}"
        due = now + self._cloud.startup_seconds(pool, name)
        machine = Machine(
            pool.cluster, pool.name, name, zone, pool.cloud, pool.hourly, now, "starting", due, request
        )
        node = SimulatedNode(machine, pool, self._capacity[pool.name])
        self._nodes[pool.name][name] = node
        self._freed(node)
        self._watch.node_added(now, machine)
        self._at(due, "ready", pool.name, node)
        self._at(pool.reserved[1] if pool.reserved else math.inf, "expire", pool.name, node)
        return node

    def _ready(self, now: float, node: SimulatedNode) -> None:
        pool = node.pool
        for run in list(node.runs):
            self._drop(run, node)
        node.become_ready(
            now,
            Node(
                name=node.machine.name,
                labels=labels(pool, node.machine.zone, node.machine.name),
                annotations={},
                taints=pool.taints,
                allocatable=amounts(provides(pool)),
                ready=True,
                cordoned=False,
            ),
        )
        self._at(self._cloud.reclaim_at(pool, node.machine.name, now), "reclaim", pool.name, node)
        self._at(now + (pool.max_run_seconds or math.inf), "expire", pool.name, node)
        request = self._requests.get(node.machine.request, ())
        if request and all(other.node for other in request) and node.machine.request in self._waiting:
            run, *_ = self._waiting.pop(node.machine.request)
            self._watch.provisioned(now, run, "")
        self._freed(node)
        self._schedule(now)
        self._check_scale_down(now, pool.name)

    # Loss of nodes

    def _lose(self, now: float, node: SimulatedNode, why: Lost) -> None:
        """Remove a machine with its pods, which their jobs create again."""
        pool = node.pool
        runs = list(dict.fromkeys(node.runs))
        self._remove(now, node)
        if why == "reclaim":
            self._watch.reclaimed(now, node.machine)
        self._evict(now, runs, why)
        if why == "reclaim" and is_recreated(node.machine, pool.capacity):
            self._order(now, pool, (node.machine.zone,))
        self._refill(now, new=False)
        self._schedule(now)

    def _remove(self, now: float, node: SimulatedNode) -> None:
        busy = self.busy_seconds(node.machine, now)
        node.gone = True
        self._no_growth_until.clear()
        del self._nodes[node.pool.name][node.machine.name]
        if node.machine.request in self._requests:
            self._requests[node.machine.request].remove(node)
        self._watch.node_removed(now, node.machine, busy)
        for run, _, until in list(self._waiting.values()):
            if until <= now:
                self._at(now, "provision", "", run)

    def _evict(self, now: float, runs: Iterable[Run], why: Lost) -> None:
        for run in runs:
            was_started = run.started
            self._unplace(now, run)
            if was_started:
                self._watch.lost(now, run, why)
            if run.queued:
                self._watch.provisioned(now, run, "CapacityRevoked")
            else:
                self._pending[run.name] = run

    def _refill(self, now: float, *, new: bool) -> None:
        """Order the initial nodes of pools, and missing nodes up to their minimum."""
        for pool, count in missing_machines(
            self._snapshot(now, self._pools), () if new else self._pools.keys()
        ):
            if all(self._backoff.until.get(node_group(pool, zone), 0) <= now for zone in pool.zones):
                self._order(now, pool, [pool.zones[n % len(pool.zones)] for n in range(count)])

    # Queued nodes

    def _decide(self, now: float, run: Run) -> None:
        if run.name in self._requests:
            return
        _, since, until = self._waiting[run.name]
        request = ProvisioningRequest(
            namespace="",
            name=run.name,
            uid=run.name,
            kind=QUEUED,
            sets=(PodSet(self._pod(run, ""), run.pods),),
            parameters={},
            conditions=frozenset({"Accepted"}),
        )
        snapshot = self._snapshot(now, run.pools)
        waited = min(since, now - self._settings.dws_wait_seconds) if now >= until else now
        decision = decide(request, snapshot, waited, self._backoff.until, self._settings)
        match decision:
            case Order():
                nodes = self._order(now, decision.pool, decision.zones, run.name)
                if nodes:
                    self._requests[run.name] = nodes
                else:
                    self._at(self._cloud.stock_from(decision.pool, now), "provision", "", run)
            case None:
                pass  # the pool is full; tried again when a machine is gone
            case _ if decision.kind == "Failed":
                del self._waiting[run.name]
                self._watch.provisioned(now, run, decision.message)
            case _:
                pass

    # Scale-down

    def _check_scale_down(self, now: float, pool: str) -> None:
        """Plan a review of a pool's nodes at the next round of the autoscaler."""
        if self._checks.get(pool, math.inf) > now + self._interval(pool):
            when = now + self._interval(pool)
            self._checks[pool] = when
            self._at(when, "scale-down", pool)

    def _interval(self, pool: str) -> float:
        """Return the seconds between reviews: a round, and more for large pools, whose reviews take longer,
        up to half of the delay of scale-down."""
        return max(_SCAN, min(2.0 * len(self._nodes[pool]), self._autoscaling.idle_seconds / 2))

    def _scale_down(self, now: float, pool: str) -> None:
        if self._checks.get(pool, math.inf) > now:
            return
        self._checks.pop(pool, None)
        nodes = self._nodes[pool]
        # A node without a free accelerator is neither removable nor a destination.
        partly = {
            name: node
            for name, node in nodes.items()
            if node.node and (node.gpus or not node.pool.accelerator)
        }
        limit = self._autoscaling.utilization
        if all(node.used_share() >= limit for node in partly.values()):
            self._reviews[pool] = _NOTHING
            return
        snapshot = self._snapshot(now, (pool,), partly)
        booked = {name for name, node in nodes.items() if node.machine.request in self._requests}
        after = review(snapshot, self._reviews[pool], booked, self._last_scale_up, self._settings)
        self._reviews[pool] = after
        for name in after.removable:
            node = nodes[name]
            runs = list(dict.fromkeys(node.runs))
            self._remove(now, node)
            self._evict(now, runs, "scale-down")
        if after.removable:
            self._schedule(now)
        if left := [since for name, since in after.unneeded.items() if name in nodes]:
            due = min(left) + self._autoscaling.idle_seconds
            if self._last_scale_up is not None:
                due = max(due, self._last_scale_up + self._autoscaling.delay_after_add_seconds)
            due += _ROUNDING
            if due > now and self._checks.get(pool, math.inf) > due:
                self._checks[pool] = due
                self._at(due, "scale-down", pool)

    # Views for the autoscaler's decisions

    def _snapshot(
        self, now: float, pools: Iterable[str], nodes: Mapping[str, SimulatedNode] | None = None
    ) -> ClusterSnapshot:
        names = tuple(pools)
        existing = nodes or {}
        return _Snapshot(
            now=now,
            pools=[self._pools[name] for name in names],
            machines=[node.machine for name in names for node in self._nodes[name].values()],
            nodes={name: node.node for name, node in existing.items() if node.node},
            pods=(),
            autoscaling=self._autoscaling,
            pods_of={name: [self._pod(run, name) for run in node.runs] for name, node in existing.items()},
        )

    def _pod(self, run: Run, node: str) -> Pod:
        shape, key = run.shape, (run.shape, node, run.keep_node)
        if key not in self._pods:
            requests = {
                "cpu": Decimal(shape.cpu) / 1000,
                "memory": Decimal(shape.memory) * (1 << 20),
                "pods": Decimal(1),
            }
            if shape.gpus:
                requests[shape.resource] = Decimal(shape.gpus)
            self._pods[key] = Pod(
                namespace="",
                name=node or "new",
                uid=str(shape),
                node=node,
                requests=requests,
                annotations={SAFE_TO_EVICT: "false"} if run.keep_node else {},
                tolerations=_ANY,
                owner="Job",
                unschedulable=not node,
            )
        return self._pods[key]
