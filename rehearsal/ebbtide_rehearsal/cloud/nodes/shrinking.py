"""Which nodes are not needed, and what holds those that could go (kubernetes/autoscaler, FAQ, "How does
scale-down work?" and "What types of pods can prevent CA from removing a node?", 2026)."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ebbtide_rehearsal.cloud.nodes import message_ids
from ebbtide_rehearsal.cloud.nodes.cluster import Node, Seen, share
from ebbtide_rehearsal.cloud.nodes.fitting import Room, largest_first, place
from ebbtide_rehearsal.cloud.nodes.machines import Machine, counted
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.settings import Settings

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


@dataclass(frozen=True, slots=True)
class Hold:
    """Something that keeps a node that could go otherwise.

    Attributes:
        node: its name.
        pod: the pod, as `namespace/name`; empty where it is none.
        why: why, as the end of a sentence that begins with the pod or the node.
        message: the id of GKE's message.
    """

    node: str
    pod: str
    why: str
    message: str

    @property
    def sentence(self) -> str:
        """For people."""
        who = f"pod {self.pod} {self.why}" if self.pod else f"it {self.why}"
        return f"Node {self.node} is kept: {who}."


@dataclass(frozen=True, slots=True)
class Review:
    """What the autoscaler finds of all nodes.

    Attributes:
        unneeded: since when nodes are not needed, by name.
        unused: since when nodes are little used, held or not, by name.
        leave: the nodes that go now.
        held: what has held nodes for so long that they would have gone.
    """

    unneeded: Mapping[str, float]
    unused: Mapping[str, float]
    leave: tuple[str, ...]
    held: tuple[Hold, ...]


def holds(pod: Pod, seen: Seen) -> tuple[str, str] | None:
    """Return why a pod keeps its node, as the end of a sentence that begins with it, and the id of GKE's
    message; None if it does not."""
    told = pod.annotations.get(SAFE_TO_EVICT)
    budgets = [budget for budget in seen.budgets if budget.covers(pod)]
    if told == "false":
        return f"is annotated {SAFE_TO_EVICT}: false", message_ids.NOT_SAFE_TO_EVICT
    if told != "true":
        if not pod.owner:
            return "has no controller that would make it anew", message_ids.NO_CONTROLLER
        if seen.told.system_pods_hold and pod.namespace == "kube-system" and not budgets:
            return "is in kube-system without a PodDisruptionBudget", message_ids.SYSTEM_POD
        if seen.told.local_storage_holds and pod.local_storage:
            return "has a volume that goes with the node", message_ids.LOCAL_STORAGE
    for budget in budgets:
        if budget.allowed < 1:
            why = f"is covered by the PodDisruptionBudget {budget.name}, which allows no disruption"
            return why, message_ids.DISRUPTION_BUDGET
    return None


def _candidate(machine: Machine, seen: Seen) -> Node | None:
    pool, node = seen.pool(machine), seen.nodes.get(machine.name)
    if pool is None or node is None or machine.state != "running":
        return None
    scaled = pool.autoscaled or pool.capacity in ("queued", "flex-start")
    used = share(seen.on(node.name), node, pool.accelerator_resource, daemons_count=seen.told.daemons_count)
    return node if scaled and used < seen.told.utilization else None


def idle_seconds(seen: Seen, settings: Settings) -> float:
    """How long a node is not needed before it goes, simulated."""
    return max(seen.told.idle_seconds, settings.least_idle_seconds)


def review(
    seen: Seen, before: Review, booked: AbstractSet[str], last_growth: float | None, settings: Settings
) -> Review:
    """Look at all nodes.

    Args:
        seen: the cluster.
        before: what was found the last time.
        booked: nodes that are kept for pods to come, by name.
        last_growth: when nodes were last added, in simulated seconds; None for never.
        settings: how long things take.
    """
    unneeded: dict[str, float] = {}
    unused: dict[str, float] = {}
    leave: list[str] = []
    held: list[Hold] = []
    settled = last_growth is None or seen.now - last_growth >= seen.told.settle_seconds
    idle = idle_seconds(seen, settings)
    machines = [machine for machine in seen.machines if _candidate(machine, seen)]
    machines.sort(key=lambda machine: (len(_movable(seen, machine.name)), machine.name))
    homes: dict[str, Room] = _homes(seen)
    for machine in machines:
        if not _spare(machine, seen, unneeded):
            continue
        name, pods = machine.name, _movable(seen, machine.name)
        unused[name] = before.unused.get(name, seen.now)
        found = _holds(seen, seen.nodes[name], pods)
        if not found:
            others = [each for other, each in homes.items() if other != name]
            left, without = place(largest_first(pods), others)
            found = [Hold(name, pod.id, "fits on no other node", message_ids.NO_PLACE) for pod in without]
            if not found:
                homes.update({each.name: each for each in left})
        if found or name in booked:
            late = seen.now - unused[name] >= idle
            held += found if late else []
            continue
        unneeded[name] = before.unneeded.get(name, seen.now)
        homes.pop(name, None)
        if settled and seen.now - unneeded[name] >= idle:
            leave.append(name)
    return Review(unneeded, unused, _whole_slices(leave, seen), tuple(held))


def _whole_slices(leave: Sequence[str], seen: Seen) -> tuple[str, ...]:
    """Of the nodes that may leave, those whose TPU slice may leave as a whole (GKE docs, tpus, 2026)."""
    of_slices = {pool.name for pool in seen.pools if pool.together > 1}
    staying = {machine.pool for machine in seen.machines if not machine.leaves and machine.name not in leave}
    pool_of = {machine.name: machine.pool for machine in seen.machines}
    return tuple(name for name in leave if pool_of[name] not in of_slices & staying)


def _spare(machine: Machine, seen: Seen, unneeded: Mapping[str, float]) -> bool:
    """Whether a pool is above its minimum without those of its nodes that are not needed already."""
    pool = seen.pool(machine)
    going = sum(each.name in unneeded and each.pool == machine.pool for each in seen.machines)
    return pool is not None and counted(seen.machines, pool) - going > pool.minimum


def _movable(seen: Seen, node: str) -> list[Pod]:
    return [pod for pod in seen.on(node) if not pod.of_node and not pod.deleting]


def _homes(seen: Seen) -> dict[str, Room]:
    return {
        machine.name: node.room(seen.on(node.name))
        for machine in seen.machines
        if (node := seen.nodes.get(machine.name)) and node.open and machine.state == "running"
    }


def _holds(seen: Seen, node: Node, pods: Sequence[Pod]) -> list[Hold]:
    if node.annotations.get(SCALE_DOWN_DISABLED) == "true":
        why = f"is annotated {SCALE_DOWN_DISABLED}"
        return [Hold(node.name, "", why, message_ids.SCALE_DOWN_DISABLED)]
    return [Hold(node.name, pod.id, *reason) for pod in pods if (reason := holds(pod, seen))]
