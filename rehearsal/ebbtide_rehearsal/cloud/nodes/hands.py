"""What the node pools' controllers do to a cluster, over its API."""

import http
import time
from collections.abc import Mapping
from typing import Any

from ebbtide.kubernetes_api import Api, ApiError
from ebbtide.kubernetes_api.parts import part, parts, text
from ebbtide_rehearsal.cloud.nodes.cluster import TO_BE_DELETED, Node, Request
from ebbtide_rehearsal.cloud.nodes.kubelet import End, condition, ended, now, with_conditions
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.nodes.objects import Object
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.templates import UNINITIALIZED, node
from ebbtide_rehearsal.cloud.nodes.verdicts import Condition
from ebbtide_rehearsal.cloud.pools import NodePool, Taint
from ebbtide_rehearsal.control_plane.stages import FAKE, KUBELET, RUNS_FOR

NODES = "/api/v1/nodes"

_MISSED = (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.CONFLICT, http.HTTPStatus.TOO_MANY_REQUESTS)
"""It is gone, somebody else changed it at the same time, or a budget forbids it: the next look will tell."""

_NEVER = str(365 * 24 * 60 * 60)

_REQUESTS = "/apis/autoscaling.x-k8s.io/v1/namespaces/{0}/provisioningrequests/{1}/status"


def pod_path(pod: Pod) -> str:
    """Where a pod is in the API."""
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


class Hands:
    """Changes a cluster. What was changed under way is left for the next look."""

    def __init__(self, api: Api) -> None:
        """Change the cluster of an API server."""
        self._api = api
        self._version: str = api.get("/version")["gitVersion"]

    def join(self, pool: NodePool, machine: Machine) -> bool:
        """Register a machine as a node; whether that was possible."""
        return self._create(NODES, node(pool, machine, self._version))

    def initialized(self, node: Node) -> None:
        """Take the taint off that a node is born with."""
        self._taints(node, {each for each in node.taints if each.key != UNINITIALIZED})

    def show(self, node: Node, pool: NodePool) -> None:
        """Make a node's accelerators seen."""
        if pool.accelerator is not None:
            seen = pool.accelerators
            body = {"status": {"allocatable": seen, "capacity": seen}}
            self._patch(f"{NODES}/{node.name}/status", body)

    def mark(self, node: Node, before: NodePool, after: NodePool) -> None:
        """Give a node its pool's changed labels and taints."""
        gone = dict.fromkeys(before.labels.keys() - after.labels.keys())
        self._patch(f"{NODES}/{node.name}", {"metadata": {"labels": {**gone, **after.labels}}})
        if before.taints != after.taints:
            self._taints(node, {*node.taints} - {*before.taints} | {*after.taints})

    def cordon(self, node: Node) -> None:
        """Let no new pods come to a node."""
        self._patch(f"{NODES}/{node.name}", {"spec": {"unschedulable": True}})

    def condemn(self, node: Node) -> None:
        """Taint a node that the autoscaler removes."""
        self._taints(node, {*node.taints, Taint(TO_BE_DELETED, str(int(time.time())), "NoSchedule")})

    def pardon(self, node: Node) -> None:
        """Take back what `condemn` did."""
        self._taints(node, {each for each in node.taints if each.key != TO_BE_DELETED})

    def evict(self, pod: Pod) -> bool:
        """Evict a pod; whether its budget allows it."""
        about = {"name": pod.name, "namespace": pod.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}
        return self._create(f"{pod_path(pod)}/eviction", body)

    def delete(self, pod: Pod, **options: Any) -> None:
        """Delete a pod."""
        self._api.delete(pod_path(pod), **options)

    def remove(self, name: str) -> None:
        """Remove a node: its machine is gone."""
        self._api.delete(f"{NODES}/{name}")

    def silence(self, node: Node, reason: str, message: str) -> None:
        """A node's kubelet says that it is not ready, and then nothing more."""
        self._patch(f"{NODES}/{node.name}", {"metadata": {"annotations": {KUBELET: None}}})
        new = condition("Ready", status=False, reason=reason, message=message)
        self._patch(f"{NODES}/{node.name}/status", {"status": {"conditions": with_conditions(node.raw, new)}})

    def wake(self, node: Node) -> None:
        """A node's kubelet is there again."""
        body = {"metadata": {"annotations": {KUBELET: FAKE}}, "spec": {"unschedulable": None}}
        self._patch(f"{NODES}/{node.name}", body)

    def halt(self, pod: Pod) -> None:
        """Work that kwok would let end in time does not end any more.

        kwok 0.8 carries out what it has planned for a pod even where the pod, or its node, is no longer what
        it was: a pod that failed would succeed after all. Only a new plan replaces the old one.
        """
        self._patch(pod_path(pod), {"metadata": {"uid": pod.uid, "annotations": {RUNS_FOR: _NEVER}}})

    def end(self, pod: Pod, ends: Mapping[str, End], *, shutdown: bool = False) -> None:
        """A pod's containers have ended."""
        self.say(pod, ended(pod.raw, ends, shutdown=shutdown))

    def say(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Write a pod's status; only if the pod is the one that is meant."""
        self._patch(f"{pod_path(pod)}/status", {"metadata": {"uid": pod.uid}, "status": status})

    def event(self, pod: Pod, kind: str, reason: str, message: str) -> None:
        """Tell a pod something, as the autoscaler does."""
        moment = now()
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{pod.name[:200]}.", "namespace": pod.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.name,
                "namespace": pod.namespace,
                "uid": pod.uid,
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": "cluster-autoscaler"},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        self._create(f"/api/v1/namespaces/{pod.namespace}/events", body)

    def told(self, request: Request, raw: Object, new: Condition) -> None:
        """Give a ProvisioningRequest a condition."""
        about = condition(new.kind, status=new.status, reason=new.reason, message=new.message)
        about["observedGeneration"] = part(raw, "metadata").get("generation", 1)
        status: dict[str, Any] = {"conditions": with_conditions(raw, about)}
        if new.details:
            status["provisioningClassDetails"] = dict(new.details)
        self._patch(_REQUESTS.format(request.namespace, request.name), {"status": status})

    def _taints(self, node: Node, taints: set[Taint]) -> None:
        """Set a node's taints, unless somebody else has changed it since it was read."""
        wanted = [
            {"key": each.key, "value": each.value, "effect": each.effect}
            for each in sorted(taints, key=lambda each: (each.key, each.effect))
        ]
        since = {
            (each["key"], each["effect"]): each["timeAdded"]
            for each in parts(node.raw, "spec", "taints")
            if "timeAdded" in each
        }
        for each in wanted:
            if moment := since.get((each["key"], each["effect"])):
                each["timeAdded"] = moment
        version = text(node.raw, "metadata", "resourceVersion")
        body = {"metadata": {"resourceVersion": version}, "spec": {"taints": wanted}}
        self._patch(f"{NODES}/{node.name}", body)

    def _create(self, path: str, body: Mapping[str, Any]) -> bool:
        try:
            self._api.create(path, body)
        except ApiError as error:
            if error.status not in _MISSED:
                raise
            return False
        return True

    def _patch(self, path: str, body: Mapping[str, Any]) -> None:
        try:
            self._api.patch(path, body)
        except ApiError as error:
            if error.status not in _MISSED:
                raise
