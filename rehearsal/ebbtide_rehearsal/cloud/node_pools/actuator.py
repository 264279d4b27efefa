"""Changes to a cluster's nodes and pods over its API."""

import http
import time
from collections.abc import Mapping
from typing import Any

from ebbtide.autoscaler.nodes import (
    REQUEST_LABEL,
    UNINITIALIZED,
    Machine,
    NodePool,
    capacity,
    labels,
    provider_id,
    provides,
    resize_request,
)
from ebbtide.autoscaler.scheduling import Object, Pod
from ebbtide.autoscaler.snapshot import TO_BE_DELETED, Node, ProvisioningRequest, RequestCondition
from ebbtide.clients.kubernetes import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Api, ApiError
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.declaration.catalog.machines import ARCHITECTURE
from ebbtide.placement import NodeTaint
from ebbtide_rehearsal.control_plane.pod_status import End, ended, new_condition, now
from ebbtide_rehearsal.control_plane.stages import FAKE, KUBELET, RUNS_FOR

NODES = "/api/v1/nodes"

_MISSED = (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.CONFLICT, http.HTTPStatus.TOO_MANY_REQUESTS)
"""Deleted, changed concurrently, or protected by a budget: the next round reads the object again."""

_NEVER = str(365 * 24 * 60 * 60)

_REQUESTS = "/apis/autoscaling.x-k8s.io/v1/namespaces/{0}/provisioningrequests/{1}/status"


def pod_path(pod: Pod) -> str:
    """Return a pod's path in the API."""
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


class Actuator:
    """Changes objects of a cluster. Conflicting changes are left to the next round."""

    def __init__(self, api: Api) -> None:
        """Use the cluster of an API server."""
        self._api = api
        self._version: str = api.get("/version")["gitVersion"]

    def register(self, pool: NodePool, machine: Machine) -> bool:
        """Register a machine as a node; return whether that succeeded."""
        return self._create(NODES, node(pool, machine, self._version))

    def remove_uninitialized_taint(self, node: Node) -> None:
        """Remove the taint of uninitialized nodes."""
        self._taints(node, {taint for taint in node.taints if taint.key != UNINITIALIZED})

    def add_accelerators(self, node: Node, pool: NodePool) -> None:
        """Add a node's accelerators to its allocatable resources."""
        if pool.accelerator is not None:
            resources = pool.accelerators
            body = {"status": {"allocatable": resources, "capacity": resources}}
            self._patch(f"{NODES}/{node.name}/status", body)

    def relabel(self, node: Node, before: NodePool, after: NodePool) -> None:
        """Apply a pool's changed labels and taints to a node."""
        removed = dict.fromkeys(before.labels.keys() - after.labels.keys())
        self._patch(f"{NODES}/{node.name}", {"metadata": {"labels": {**removed, **after.labels}}})
        if before.taints != after.taints:
            self._taints(node, {*node.taints} - {*before.taints} | {*after.taints})

    def cordon(self, node: Node) -> None:
        """Cordon a node."""
        self._patch(f"{NODES}/{node.name}", {"spec": {"unschedulable": True}})

    def mark_to_be_deleted(self, node: Node) -> None:
        """Add the taint of nodes that the autoscaler removes."""
        self._taints(node, {*node.taints, NodeTaint(TO_BE_DELETED, str(int(time.time())), "NoSchedule")})

    def clean_to_be_deleted(self, node: Node) -> None:
        """Remove the taint of `mark_to_be_deleted`."""
        self._taints(node, {taint for taint in node.taints if taint.key != TO_BE_DELETED})

    def evict(self, pod: Pod) -> bool:
        """Evict a pod; return whether its disruption budget allows it."""
        metadata = {"name": pod.name, "namespace": pod.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        return self._create(f"{pod_path(pod)}/eviction", body)

    def delete_pod(self, pod: Pod, **options: Any) -> None:
        """Delete a pod."""
        self._api.delete(pod_path(pod), **options)

    def delete_node(self, name: str) -> None:
        """Delete a node whose machine is deleted."""
        self._api.delete(f"{NODES}/{name}")

    def stop_kubelet(self, node: Node, reason: str, message: str) -> None:
        """Set a node's last reported status to not ready, and stop its kubelet."""
        self._patch(f"{NODES}/{node.name}", {"metadata": {"annotations": {KUBELET: None}}})
        new = new_condition("Ready", status=False, reason=reason, message=message)
        self._patch_status(f"{NODES}/{node.name}", {"status": {"conditions": [new]}})

    def restart_kubelet(self, node: Node) -> None:
        """Restart a node's kubelet."""
        body = {"metadata": {"annotations": {KUBELET: FAKE}}, "spec": {"unschedulable": None}}
        self._patch(f"{NODES}/{node.name}", body)

    def prevent_completion(self, pod: Pod) -> None:
        """Prevent kwok from completing a pod.

        kwok 0.8 executes a planned stage even after the pod, or its node, has changed: a pod that failed
        would succeed after all. Only a new plan replaces the old one.
        """
        self._patch(pod_path(pod), {"metadata": {"uid": pod.uid, "annotations": {RUNS_FOR: _NEVER}}})

    def end_containers(self, pod: Pod, ends: Mapping[str, End], *, shutdown: bool = False) -> None:
        """End a pod's containers."""
        self.write_status(pod, ended(pod.raw, ends, shutdown=shutdown))

    def write_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Write a pod's status, unless a new pod has its name."""
        self._patch_status(pod_path(pod), {"metadata": {"uid": pod.uid}, "status": status})

    def create_event(self, pod: Pod, kind: str, reason: str, message: str) -> None:
        """Create an event of the autoscaler for a pod."""
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

    def set_condition(self, request: ProvisioningRequest, raw: Object, new: RequestCondition) -> None:
        """Set a condition of a ProvisioningRequest."""
        updated = new_condition(new.kind, status=new.status, reason=new.reason, message=new.message)
        updated["observedGeneration"] = part(raw, "metadata").get("generation", 1)
        others = [old for old in parts(raw, "status", "conditions") if old["type"] != new.kind]
        status: dict[str, Any] = {"conditions": [*others, updated]}
        if new.details:
            status["provisioningClassDetails"] = dict(new.details)
        self._patch(_REQUESTS.format(request.namespace, request.name), {"status": status})

    def _taints(self, node: Node, taints: set[NodeTaint]) -> None:
        """Set a node's taints, unless they were changed since the node was read."""
        desired = [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in sorted(taints, key=lambda taint: (taint.key, taint.effect))
        ]
        since = {
            (taint["key"], taint["effect"]): taint["timeAdded"]
            for taint in parts(node.raw, "spec", "taints")
            if "timeAdded" in taint
        }
        for changed in desired:
            if moment := since.get((changed["key"], changed["effect"])):
                changed["timeAdded"] = moment
        version = text(node.raw, "metadata", "resourceVersion")
        body = {"metadata": {"resourceVersion": version}, "spec": {"taints": desired}}
        self._patch(f"{NODES}/{node.name}", body)

    def _create(self, path: str, body: Mapping[str, Any]) -> bool:
        try:
            self._api.create(path, body)
        except ApiError as error:
            if error.status not in _MISSED:
                raise
            return False
        return True

    def _patch_status(self, path: str, body: Mapping[str, Any]) -> None:
        """Change the status of a pod or a node, as a kubelet does: other conditions, such as that of an
        eviction after the last snapshot, remain."""
        self._patch(f"{path}/status", body, STRATEGIC_MERGE_PATCH)

    def _patch(self, path: str, body: Mapping[str, Any], kind: str = MERGE_PATCH) -> None:
        try:
            self._api.patch(path, body, kind)
        except ApiError as error:
            if error.status not in _MISSED:
                raise


def node(pool: NodePool, machine: Machine, version: str) -> dict[str, Any]:
    """Return the Node object that the kubelet and the cloud's controller register.

    Args:
        version: Kubernetes version of the API server.
    """
    node_labels = labels(pool, machine.zone, machine.name)
    if machine.request and pool.capacity == "queued":
        node_labels[REQUEST_LABEL] = resize_request(machine.request)
    accelerator = pool.accelerator_resource
    initial_taint = {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}
    taints = [
        {"key": taint.key, "effect": taint.effect} | ({"value": taint.value} if taint.value else {})
        for taint in pool.taints
    ]
    allocatable = {key: value for key, value in provides(pool).items() if key != accelerator}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": node_labels, "annotations": {KUBELET: FAKE}},
        "spec": {"providerID": provider_id(machine), "taints": [*taints, initial_taint]},
        "status": {
            "allocatable": allocatable,
            "capacity": capacity(pool),
            "nodeInfo": _information(node_labels[ARCHITECTURE], version),
        },
    }


def _information(arch: str, version: str) -> dict[str, str]:
    unknown = dict.fromkeys(
        ("bootID", "containerRuntimeVersion", "kernelVersion", "machineID", "osImage", "systemUUID"), ""
    )
    return {
        **unknown,
        "architecture": arch,
        "kubeProxyVersion": version,
        "kubeletVersion": version,
        "operatingSystem": "linux",
    }
