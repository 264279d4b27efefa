"""Ends of a pipeline step's pod, in the state that the clouds and Kubernetes leave."""

import time
from collections.abc import Callable
from typing import Final

from ebbtide.clients.kubernetes import Api
from rehearsal.tests.control_plane.argo import GROUP, NODE_ID, NODES, WORKFLOW, Kubelet, disruption, path
from rehearsal.tests.control_plane.cluster import Object, node

Ending = Callable[[Kubelet, Object], None]


def succeeds(kubelet: Kubelet, pod: Object) -> None:
    """The step is done."""
    kubelet.end(pod, 0)


def fails(kubelet: Kubelet, pod: Object) -> None:
    """The step's own fault."""
    kubelet.end(pod, 1)


def out_of_memory(kubelet: Kubelet, pod: Object) -> None:
    """The step took more than its limit."""
    kubelet.end(pod, 137, why="OOMKilled")


def cannot_report(kubelet: Kubelet, pod: Object) -> None:
    """The step is done, and Argo's executor beside it fails: the bucket refuses its logs, say."""
    kubelet.end(pod, 0, wait=64)


def shut_down(kubelet: Kubelet, pod: Object) -> None:
    """A spot node on GKE has its seconds of grace, in which the executor still reports."""
    kubelet.end(
        pod,
        137,
        reason="Terminated",
        message="Pod was terminated in response to imminent node shutdown.",
        conditions=disruption("TerminationByKubelet"),
    )


def drained(kubelet: Kubelet, pod: Object) -> None:
    """Evicted through the API, as a drain does and AKS before it takes a spot node: the containers are sent
    SIGTERM, of which Argo's emissary makes 137, and the kubelet writes that before the pod goes."""
    kubelet.status(pod, conditions=disruption("EvictionByEvictionAPI"))
    kubelet.api.delete(path(pod), gracePeriodSeconds=30)
    kubelet.end(pod, 137)
    _until_seen(kubelet.api, pod)
    kubelet.api.delete(path(pod), gracePeriodSeconds=0)


def deleted(kubelet: Kubelet, pod: Object) -> None:
    """Delete the pod without any status. Argo 4.0.5 recreates such a pod, whatever the policy, and counts no
    retry."""
    kubelet.api.delete(path(pod), gracePeriodSeconds=0)


def node_gone(kubelet: Kubelet, pod: Object) -> None:
    """A machine that went without a word: its node is removed, and after a while its pods. Another comes."""
    name = pod["spec"]["nodeName"]
    kubelet.api.delete(f"/api/v1/nodes/{name}")
    node(kubelet.api, f"{name}-again", labels={NODES: pod["spec"]["nodeSelector"][NODES]})


def low_on_resources(kubelet: Kubelet, pod: Object) -> None:
    """The kubelet evicts under pressure, and kills the executor before it has reported."""
    kubelet.end(
        pod,
        137,
        wait=137,
        reason="Evicted",
        message="The node was low on resource: memory. Threshold quantity: 100Mi, available: 51Mi. Container "
        "main was using 3Gi, request is 0, has larger consumption of memory. ",
        conditions=disruption("TerminationByKubelet"),
    )


def preempted(kubelet: Kubelet, pod: Object) -> None:
    """The kubelet makes room for a critical pod."""
    kubelet.end(
        pod,
        137,
        wait=137,
        reason="Preempting",
        message="Preempted in order to admit critical pod",
        conditions=disruption("TerminationByKubelet"),
    )


def evicted_before_it_began(kubelet: Kubelet, pod: Object) -> None:
    """No container has run yet."""
    message = "The node was low on resource: ephemeral-storage."
    kubelet.status(
        pod,
        phase="Failed",
        reason="Evicted",
        message=message,
        conditions=disruption("TerminationByKubelet"),
        containerStatuses=[],
        initContainerStatuses=[],
    )


def lost_while_reporting(kubelet: Kubelet, pod: Object) -> None:
    """The step's outputs exist, and its node is removed before the kubelet has reported: the pod garbage
    collector marks the pod as failed, and deletes it."""
    kubelet.report(pod)
    kubelet.status(pod, phase="Failed", conditions=disruption("DeletionByPodGC"))
    _until_seen(kubelet.api, pod)
    kubelet.api.delete(path(pod), gracePeriodSeconds=0)


LOSSES: Final = (
    shut_down,
    drained,
    deleted,
    node_gone,
    low_on_resources,
    preempted,
    evicted_before_it_began,
    lost_while_reporting,
)


def _until_seen(api: Api, pod: Object) -> None:
    """Until the controller has seen how a pod ended."""
    metadata = pod["metadata"]
    of = f"{GROUP}/{metadata['namespace']}/workflows/{metadata['labels'][WORKFLOW]}"
    for _ in range(40):
        nodes = api.get(of).get("status", {}).get("nodes", {})
        if nodes.get(metadata["annotations"][NODE_ID], {}).get("phase") == "Failed":
            return
        time.sleep(0.2)
