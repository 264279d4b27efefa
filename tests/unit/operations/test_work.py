"""Work on a cluster, as opposed to other pods."""

from dataclasses import replace
from typing import Any, cast

from ebbtide.clients.kubernetes import Api
from ebbtide.operations.engine.state import ObjectReference, State
from ebbtide.operations.work import Snapshot, Work, drain_until_free, queues, reserving, work
from tests.unit.operations.objects import NOW, PROFILE, STATE, Object, condition, made, node, pod

NODES = (node("n", "spot"), node("m", "system"), {"metadata": {"name": "theirs"}})


def _work(
    *pods: Object, workloads: tuple[Object, ...] = (), state: State = STATE, **controllers: tuple[Object, ...]
) -> list[Work]:
    return work(
        Snapshot(nodes=NODES, pods=pods, controllers=controllers, workloads=workloads), PROFILE, state
    )


def _names(*pods: Object, **more: Any) -> list[str]:
    return sorted(f"{item.kind} {item.namespace}/{item.name}" for item in _work(*pods, **more))


def test_a_job_with_pods() -> None:
    """A Job is one piece of work with its own age, on the pools of its pods."""
    job = made("train", minutes=90)
    pods = [pod(f"train-{index}", owner=("Job", job)) for index in range(3)]
    (item,) = _work(*pods, pod("train-x", node="", phase="Pending", owner=("Job", job)), Job=(job,))
    assert (item.kind, item.name, item.namespace) == ("Job", "train", "research")
    assert (item.pods, item.pools, item.queue) == (4, ("spot",), "")
    assert (NOW - item.since).total_seconds() == 90 * 60


def test_owners_of_owners() -> None:
    """A pod is named by what people know it by, and what is not looked at by its owner's own word."""
    train = made("llm")
    jobset = made("llm", owner=("TrainJob", train))
    job = made("llm-node-0", owner=("JobSet", jobset))
    flow = made("pipeline")
    web = made("web", "default")
    replicas = made("web-5d", "default", owner=("Deployment", web))
    assert _names(
        pod("a", owner=("Job", job)),
        pod("b", owner=("Workflow", flow)),
        pod("c", "default", owner=("ReplicaSet", replicas)),
        Job=(job,),
        JobSet=(jobset,),
        TrainJob=(train,),
        ReplicaSet=(replicas,),
    ) == ["Deployment default/web", "TrainJob research/llm", "Workflow research/pipeline"]


def test_a_pod_by_itself() -> None:
    """A pod without a controller is work on a pool, or in a team's namespace on any node."""
    assert _names(pod("a", "default"), pod("b", node="theirs"), pod("c", "default", node="theirs")) == [
        "Pod default/a",
        "Pod research/b",
    ]


def test_what_is_no_work() -> None:
    """Ended pods, the cloud's pods, DaemonSets' pods and the stack's own add-ons are not work."""
    agent, mirrored = made("agent"), made("n")
    trainer = made("trainer", "default")
    replicas = made("trainer-1", "default", owner=("Deployment", trainer))
    assert (
        _names(
            pod("ended", phase="Succeeded"),
            pod("failed", phase="Failed"),
            pod("dns", "kube-system"),
            pod("metrics", "gmp-system"),
            pod("state-metrics", "gke-managed-cim"),
            pod("invoked", "aks-command"),
            pod("critical", "default", priority="system-node-critical"),
            pod("agent", owner=("DaemonSet", agent)),
            pod("mirrored", owner=("Node", mirrored)),
            pod("kueue", "kueue-system", node="m"),
            pod("trainer", "default", node="m", owner=("ReplicaSet", replicas)),
            ReplicaSet=(replicas,),
            Job=(made("done", status=condition("Complete")), made("lost", status=condition("Failed"))),
            JobSet=(made("set", status=condition("Completed")),),
        )
        == []
    )


def test_what_waits_in_a_queue() -> None:
    """A Job that Kueue has not admitted is work without a pod, with the name of its queue."""
    job, other = made("second"), made("elsewhere", "default")
    admitted = made("first", minutes=9)
    (first, second) = _work(
        Job=(job, admitted, other),
        workloads=(
            made("w", owner=("Job", job), spec={"queueName": "ours"}),
            made("v", owner=("Job", admitted), spec={"queueName": "ours"}, status=condition("Admitted")),
        ),
    )
    assert (first.name, first.queue, first.pods) == ("first", "", 0)
    assert (second.name, second.queue, second.pods) == ("second", "ours", 0)


def test_a_namespace_that_stays() -> None:
    """Work of a retained namespace ends on the stack's pools and in its queues."""
    stays = replace(STATE, objects=STATE.objects - {ObjectReference("Namespace", "", "research")})
    queued, other = made("queued"), made("other")
    assert _names(
        pod("a"),
        pod("b", node="theirs"),
        state=stays,
        Job=(queued, other, made("unqueued")),
        workloads=(
            made("v", owner=("Job", queued), spec={"queueName": "ours"}),
            made("w", owner=("Job", other), spec={"queueName": "theirs"}),
        ),
    ) == ["Job research/queued", "Pod research/a"]


def test_a_cluster_that_goes() -> None:
    """Everything on it ends."""
    own = replace(STATE, owns_cluster=True)
    assert _names(pod("a", "default", node="", phase="Pending"), state=own, Job=(made("b", "else"),)) == [
        "Job else/b",
        "Pod default/a",
    ]


_QUEUES = frozenset({ObjectReference("ClusterQueue", "", "research.cpu")})
_WITH_QUEUE = replace(STATE, objects=STATE.objects | _QUEUES)


def _queued(name: str, queue: str, *true: str) -> Object:
    conditions = [{"type": kind, "status": "True"} for kind in true]
    return made(name, status={"conditions": conditions, "admission": {"clusterQueue": queue}})


class _Api:
    """A cluster with one queue, and its workloads at each look."""

    def __init__(self, *looks: list[Object]) -> None:
        self.patched: list[tuple[str, Any]] = []
        self.looks = list(looks)

    def find(self, path: str) -> Object | None:
        """The queue, or the workloads as they are now."""
        if path.endswith("/workloads"):
            return {"items": self.looks.pop(0)}
        return {} if path.endswith("/research.cpu") else None

    def patch(self, path: str, body: Any) -> None:
        """Remember it."""
        self.patched.append((path.rpartition("/")[2], body))


def test_held_until_drained() -> None:
    """Queues that are there are held, and waited for until no work has quota of them."""
    api = _Api([_queued("a", "research.cpu", "QuotaReserved")], [])
    assert drain_until_free(cast("Api", api), frozenset({"research.cpu", "gone"})) == 0
    assert api.patched == [("research.cpu", {"spec": {"stopPolicy": "HoldAndDrain"}})]
    assert api.looks == []


def test_who_has_quota() -> None:
    """Unfinished work that one of these queues has admitted."""
    workloads = [
        _queued("a", "research.cpu", "QuotaReserved", "Admitted"),
        _queued("b", "theirs", "QuotaReserved"),
        _queued("c", "research.cpu", "QuotaReserved", "Finished"),
        _queued("d", "research.cpu"),
    ]
    assert reserving(cast("Api", _Api(workloads)), frozenset({"research.cpu"})) == 1


def test_which_queues() -> None:
    """Only the stack's queues are drained, and none if the cluster is deleted."""
    assert queues(_WITH_QUEUE) == {"research.cpu"}
    assert queues(replace(_WITH_QUEUE, owns_cluster=True)) == frozenset()
