from typing import Any

import pytest

from ebbtide_rehearsal.cloud.kubernetes.kinds import Kind
from ebbtide_rehearsal.cloud.kubernetes.objects import Object
from ebbtide_rehearsal.cloud.kubernetes.readiness import FailedError, check_of
from ebbtide_rehearsal.cloud.kubernetes.wait_for import asked_for
from ebbtide_rehearsal.cloud.provider import RefusedError


class Around:
    """What else there is, by kind."""

    def __init__(self, **objects: Object) -> None:
        self._objects = objects

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The one of the kind."""
        assert name, namespace
        return self._objects.get(kind.kind)


def _of(version: str, kind: str, **fields: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "n"}, **fields}


def _missing(live: Object, **around: Object) -> str | None:
    check = check_of(live)
    assert check is not None
    return check(live, Around(**around))


def _deployment(revision: str, available: str, ready: int, *, reason: str = "") -> Object:
    live = _of("apps/v1", "Deployment", spec={"replicas": 2})
    live["metadata"] |= {"generation": 3, "annotations": {"deployment.kubernetes.io/revision": revision}}
    live["status"] = {
        "observedGeneration": 3,
        "updatedReplicas": 2,
        "readyReplicas": ready,
        "conditions": [
            {"type": "Available", "status": available, "reason": "Few", "message": "Too few."},
            {"type": "Progressing", "status": "True", "reason": reason},
        ],
    }
    return live


def test_a_deployment_is_ready_with_all_of_its_pods() -> None:
    """Available alone is not enough, and the first revision need not be rolled out."""
    assert _missing(_deployment("1", "True", 2)) is None
    assert _missing(_deployment("1", "True", 1)) == "1 of 2 pods are ready: [Few] Too few."
    assert _missing(_deployment("1", "False", 2)) == "2 of 2 pods are ready: [Few] Too few."


def test_a_deployment_that_changed_is_ready_when_it_is_rolled_out() -> None:
    """The new replica set has to be the available one."""
    assert _missing(_deployment("2", "True", 2)) == "the new revision is not rolled out"
    assert _missing(_deployment("2", "True", 2, reason="NewReplicaSetAvailable")) is None


def test_a_status_of_an_older_generation_says_nothing() -> None:
    """The controller has not seen the change yet."""
    live = _deployment("1", "True", 2)
    live["metadata"]["generation"] = 4
    assert _missing(live) == "the deployment controller has not seen it yet"


def test_a_job_is_ready_when_it_is_complete_and_fails_for_good() -> None:
    """A limit that is exceeded is not waited out."""
    live = _of("batch/v1", "Job", status={"active": 1})
    assert _missing(live) == "the job is not complete (1 active, 0 succeeded)"
    live["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert _missing(live) is None
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Too often."}
    live["status"] = {"conditions": [failed]}
    with pytest.raises(FailedError, match="BackoffLimitExceeded"):
        _missing(live)


def test_a_claim_is_ready_when_it_is_bound_or_waits_for_a_pod() -> None:
    """Which of both is up to its class."""
    live = _of("v1", "PersistentVolumeClaim", spec={"storageClassName": "fast"}, status={"phase": "Pending"})
    assert _missing(live, StorageClass={"volumeBindingMode": "WaitForFirstConsumer"}) is None
    assert _missing(live, StorageClass={"volumeBindingMode": "Immediate"}) == "the claim is not bound"
    assert _missing({**live, "status": {"phase": "Bound"}}) is None


NOT_READY = "pods behind it are not ready"


@pytest.mark.parametrize(
    ("spec", "status", "subsets", "missing"),
    [
        ({"clusterIP": "None", "selector": {"a": "b"}}, {}, None, None),
        ({}, {}, None, None),
        ({"selector": {"a": "b"}}, {}, None, "it has no endpoints yet"),
        ({"selector": {"a": "b"}}, {}, [], None),
        ({"selector": {"a": "b"}}, {}, [{"addresses": [{"ip": "1"}]}], None),
        (
            {"selector": {"a": "b"}},
            {},
            [{"notReadyAddresses": [{"ip": "1"}]}],
            "pods behind it are not ready",
        ),
        ({"type": "LoadBalancer"}, {}, None, "it was not allocated an IP address"),
        ({"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "1"}]}}, None, None),
    ],
)
def test_a_service_is_ready_with_no_pod_behind_it_that_is_not(
    spec: Object, status: Object, subsets: list[Object] | None, missing: str | None
) -> None:
    """One that selects no pods is ready at once, a load balancer with its address."""
    around = {} if subsets is None else {"Endpoints": {"subsets": subsets}}
    assert _missing(_of("v1", "Service", spec=spec, status=status), **around) == missing


def test_a_daemon_set_is_ready_on_every_node() -> None:
    """On none where it is wanted on none."""
    counts = dict.fromkeys(
        ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable"), 2
    )
    live = _of("apps/v1", "DaemonSet", status={"observedGeneration": 1, **counts, "numberReady": 1})
    assert _missing(live) == "1 of 2 nodes have a pod that is ready"
    assert _missing({**live, "status": {**counts, "numberReady": 2}}) is None
    assert _missing({**live, "status": {"desiredNumberScheduled": 0}}) is None
    assert _missing({**live, "status": {}}) is not None


def test_a_stateful_set_is_ready_with_all_of_its_pods() -> None:
    """All of the newest revision."""
    status = {"replicas": 1, "readyReplicas": 1, "currentRevision": "a", "updateRevision": "a"}
    live = _of("apps/v1", "StatefulSet", status=status)
    assert _missing(live) is None
    assert _missing({**live, "status": {**status, "readyReplicas": 0}}) == "0 of 1 pods are ready"
    assert _missing({**live, "status": {**status, "updateRevision": "b"}}) is not None


def test_a_quota_is_ready_when_it_is_in_force() -> None:
    """Quantities in the server's own writing."""
    live = _of("v1", "ResourceQuota", spec={"hard": {"cpu": "1000m"}}, status={})
    assert _missing(live) == "its limits are not in force"
    assert _missing({**live, "status": {"hard": {"cpu": "1"}}}) is None


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "Namespace"),
        ("v1", "ConfigMap"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
    ],
)
def test_other_kinds_are_not_waited_for(version: str, kind: str) -> None:
    """Custom resources least of all: nobody knows what they come to."""
    assert check_of(_of(version, kind)) is None


READY: Object = _of(
    "example.com/v1", "Thing", status={"phase": "Up", "conditions": [{"type": "Ready", "status": "True"}]}
)


@pytest.mark.parametrize(
    ("expression", "missing"),
    [
        ("condition=Ready", None),
        ("condition=Ready=False", "condition Ready is True"),
        ("condition=Synced", "condition Synced is not there"),
        ("jsonpath={.status.phase}", None),
        ("jsonpath={.status.phase}=Up", None),
        ("jsonpath={.status.phase}=Down", "{.status.phase} is Up"),
        ("jsonpath={.status.gone}", "{.status.gone} selected nothing"),
        ('jsonpath={.status.conditions[?(@.type=="Ready")].status}=True', None),
        ('["condition=Ready", "jsonpath={.status.phase}=Down"]', "{.status.phase} is Up"),
    ],
)
def test_an_object_can_say_what_is_waited_for(expression: str, missing: str | None) -> None:
    """The annotation `pulumi.com/waitFor`, one expression or several."""
    check = asked_for({**READY, "metadata": {"name": "a", "annotations": {"pulumi.com/waitFor": expression}}})
    assert check is not None
    assert check(READY, Around()) == missing


@pytest.mark.parametrize("expression", ["Ready", "jsonpath=.status", "jsonpath={.items[*]}", "[]"])
def test_what_cannot_be_understood_is_refused(expression: str) -> None:
    """An expression without its prefix, or beyond what is waited for here."""
    with pytest.raises(RefusedError):
        asked_for({**READY, "metadata": {"annotations": {"pulumi.com/waitFor": expression}}})
