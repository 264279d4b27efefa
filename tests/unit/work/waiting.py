"""Objects of waiting workloads, as API servers return them: Kubernetes 1.36, Kueue 0.19."""

from datetime import UTC, datetime
from typing import Any

from ebbtide.values.paths import Object
from ebbtide.work.evidence import Cause, Evidence, Workloads
from ebbtide.work.progress import cause_of
from tests.declarations import GKE, changed
from tests.unit.work.clusters import derived
from tests.unit.work.recorded import condition, job

NOW = datetime(2026, 11, 20, 10, 10, tzinfo=UTC)
QUEUES = [{"name": "gpus", "pools": ["t4"]}, {"name": "cpus", "pools": ["cpu"]}]
PROFILE = derived(changed(GKE, queues=QUEUES, teams=[{"name": "vision"}]))
QUEUED = job(spec={"suspend": True})
QUEUED["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpus"}
SHORT = "insufficient unused quota for nvidia.com/gpu in flavor t4, 4 more needed"


def evidence(**changes: Any) -> Evidence:
    """A Job of team vision in queue gpus, and the queue."""
    given: Object = {"job": QUEUED, "now": NOW, "local_queues": [local_queue()], "profile": PROFILE}
    workloads = Workloads(changes.pop("workloads", ()))
    return Evidence(kind="Job", namespace="vision", name="train", workloads=workloads, **given | changes)


def local_queue(*conditions: Object, **spec: Any) -> Object:
    """LocalQueue gpus."""
    return {
        "metadata": {"name": "gpus", "namespace": "vision"},
        "spec": {"clusterQueue": "vision.gpus", **spec},
        "status": {"conditions": list(conditions)},
    }


def cluster_queue(*conditions: Object, annotations: Object | None = None, **spec: Any) -> Object:
    """ClusterQueue vision.gpus."""
    metadata = {"name": "vision.gpus", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": list(conditions)}}


def workload(*conditions: Object, name: str = "train", spec: Object | None = None, **status: Any) -> Object:
    """The Workload of a Job."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "4"}}
    template = {"spec": {"containers": [{"name": "work", "resources": resources}]}}
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    return {
        "metadata": {
            "name": f"job-{name}-1a2b3",
            "namespace": "vision",
            "uid": f"w-{name}",
            "ownerReferences": [{"kind": "Job", "name": name}],
        },
        "spec": {"queueName": "gpus", "podSets": pod_sets, **(spec or {})},
        "status": {"conditions": list(conditions), **status},
    }


def holder(name: str, namespace: str, gpus: int) -> Object:
    """A Workload with quota of flavor t4."""
    assigned = {"flavors": {"nvidia.com/gpu": "t4"}, "resourceUsage": {"nvidia.com/gpu": str(gpus)}}
    held = workload(condition("QuotaReserved"), name=name, admission={"podSetAssignments": [assigned]})
    held["metadata"]["namespace"] = namespace
    return held


def refused(*reasons: str) -> Object:
    """A Workload that Kueue could assign to no flavor."""
    message = f"couldn't assign flavors to pod set main: {', '.join(reasons)}"
    return workload(condition("QuotaReserved", "False", reason="Pending", message=message))


def found(**changes: Any) -> Cause:
    """The cause of the Job with other evidence."""
    cause = cause_of(evidence(**changes))
    assert cause is not None
    assert not cause.message.endswith(".")
    return cause
