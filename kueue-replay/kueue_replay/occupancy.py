"""Jobs with reserved quota, and the machines whose capacity their pods use."""

from dataclasses import dataclass, field

from ebbtide.autoscaler.nodes import Machine, NodePool
from ebbtide.autoscaler.snapshot import Node
from kueue_replay.cluster import Shape


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
