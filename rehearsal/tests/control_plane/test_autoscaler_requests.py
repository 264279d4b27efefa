"""ProvisioningRequests: the fake clouds' autoscaler and the real cluster-autoscaler answer alike."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import NodePool, node_group
from ebbtide.autoscaler.provisioning_requests import decide, ordered
from ebbtide.autoscaler.snapshot import (
    ATOMIC,
    CHECK,
    ClusterSnapshot,
    Order,
    ProvisioningRequest,
    RequestCondition,
)
from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.autoscaler_trial import Trial, aks_pool, join, pending_pods
from rehearsal.tests.control_plane.cluster import Object, namespace
from rehearsal.tests.control_plane.cluster_autoscaler import NodeGroups, deciding
from rehearsal.tests.control_plane.node_pools import CLUSTER

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

Conditions = Mapping[str, tuple[str, str, str]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request for pods, the existing nodes, and the expected status and reason of its last condition."""

    kind: str
    count: int
    answer: tuple[str, str, str]
    nodes: int = 0
    existing: int = 0
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


CASES = {
    "together": Case(kind=ATOMIC, count=3, answer=("Provisioned", "True", "CapacityIsProvisioned"), nodes=3),
    "partly there": Case(
        kind=ATOMIC, count=3, answer=("Provisioned", "True", "CapacityIsProvisioned"), nodes=2, existing=1
    ),
    "there": Case(kind=ATOMIC, count=1, answer=("Provisioned", "True", "CapacityIsFound"), existing=1),
    "too many": Case(kind=ATOMIC, count=5, answer=("Provisioned", "False", "CapacityIsNotFound")),
    "checked and there": Case(
        kind=CHECK, count=1, answer=("Provisioned", "True", "CapacityIsFound"), existing=1
    ),
    "checked in vain": Case(kind=CHECK, count=1, answer=("Provisioned", "False", "CapacityIsNotFound")),
}


def _request(api: Api, place: str, case: Case) -> str:
    """Create a request; its path."""
    (template,) = pending_pods(1, "3")
    body: Object = {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "r"},
        "template": template,
    }
    api.create(f"/api/v1/namespaces/{place}/podtemplates", body)
    path = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{place}/provisioningrequests"
    spec = {
        "provisioningClassName": case.kind,
        "podSets": [{"podTemplateRef": {"name": "r"}, "count": case.count}],
        "parameters": dict(case.parameters),
    }
    about = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "r"},
    }
    api.create(path, {**about, "spec": spec})
    return f"{path}/r"


def _ours(snapshot: ClusterSnapshot, trial: Trial) -> tuple[Counter[str], Conditions]:
    """New nodes by node group, and conditions, as the fake cloud's autoscaler answers."""
    (request,) = snapshot.requests
    nodes, conditions = Counter[str](), dict[str, tuple[str, str, str]]()

    def tell(request: ProvisioningRequest, new: RequestCondition) -> ProvisioningRequest:
        conditions[new.kind] = (str(new.status), new.reason, new.message)
        kinds = {name for name, (status, *_) in conditions.items() if status == "True"}
        return replace(request, conditions=frozenset(kinds), denied=frozenset(conditions.keys() - kinds))

    while True:
        snapshot = replace(snapshot, machines=trial.fleet.all())
        match decide(request, snapshot, 0, trial.fleet.backoff.until, NodeSettings()):
            case RequestCondition() as new:
                request = tell(request, new)
            case Order(pool, zones):
                came = not trial.fleet.order(pool, zones, request.id)
                nodes.update(node_group(pool, zone) for zone in zones if came)
                if (new := ordered(request, came=came)) is not None:
                    request = tell(request, new)
            case None:
                return nodes, conditions


def _theirs(raw: Mapping[str, Any]) -> Conditions:
    conditions: Sequence[Mapping[str, str]] = raw.get("status", {}).get("conditions", [])
    return {item["type"]: (item["status"], item["reason"], item["message"]) for item in conditions}


def _provisioned(condition: tuple[str, str, str]) -> tuple[str, str, str]:
    status, reason, message = condition
    return status, "CapacityIsProvisioned" if reason == "CapacityIsFound" else reason, message


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("name", CASES)
def test_answers(name: str, control_plane: ControlPlane, cluster_autoscaler: Path, tmp_path: Path) -> None:
    """Both add the same nodes and write the same conditions."""
    # The real one may fail to write that it has provisioned capacity, since it has just written that it
    # accepts the request; it looks again and finds the nodes that are coming.
    case, api = CASES[name], control_plane.api
    place = namespace(api, name.replace(" ", "-"))
    pool: NodePool = aks_pool("a")
    actuator = Actuator(api)
    mine, theirs = trials = [
        Trial.of(api, tmp_path / whose, [pool], "least-waste") for whose in ("ours", "real")
    ]
    for number in range(case.existing):
        join(api, actuator, trials, pool, number)
    path = _request(api, place, case)
    nodes, conditions = _ours(mine.reader.snapshot(), mine)
    groups = NodeGroups(CLUSTER, theirs.store, actuator, theirs.fleet)
    # Its default, protobuf, is refused for custom resources.
    flags = ["--enable-provisioning-requests", "--kube-api-content-type=application/json"]
    with deciding(control_plane, cluster_autoscaler, groups, tmp_path, flags) as real:
        decisions = real.settled()
        answer = _theirs(api.get(path))
    api.delete(path)
    assert decisions.increases == nodes
    assert nodes.total() == case.nodes
    kind, *status = case.answer
    assert conditions[kind][:2] == tuple(status)
    if nodes:
        answer = {key: _provisioned(value) for key, value in answer.items()}
    assert {key: value for key, value in answer.items() if key in conditions} == conditions
