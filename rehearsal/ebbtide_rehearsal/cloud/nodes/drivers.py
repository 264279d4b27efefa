"""Readiness of a node's accelerators, which requires pods with their driver and device plugin."""

from collections.abc import Sequence
from typing import Final

from ebbtide.kubernetes_api.parts import parts, text
from ebbtide_rehearsal.cloud.nodes.cluster import Node
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.pools import NodePool

NO_PLUGIN: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""Label of GKE nodes on which GKE's own device plugin does not run (GKE docs, gpu-operator)."""

_INSTALLER: Final = "nvidia-installer"
"""Common part of the driver installers' image names on GKE, `cos-nvidia-installer` and
`gke-nvidia-installer`, in any DaemonSet (container-engine-accelerators, nvidia-driver-installer,
daemonset-preloaded.yaml). These nodes have GKE's device plugin."""

_PLUGIN: Final = "nvidia-device-plugin"
"""Common part of the DaemonSet names of NVIDIA's device plugin, standalone or of the GPU operator
(k8s-device-plugin, gpu-operator). AKS installs the driver; the operator's plugin waits for the operator's."""


def has_driver(node: Node, pool: NodePool, pods: Sequence[Pod]) -> bool:
    """Return whether driver and device plugin of a node's accelerators run.

    Args:
        node: the node.
        pool: its pool.
        pods: the pods on it.
    """
    if pool.accelerator is None or pool.accelerator_resource in node.allocatable:
        return False
    if pool.driver_installed or pool.accelerator_resource != "nvidia.com/gpu":
        return True
    own = pool.cloud == "gke" and node.labels.get(NO_PLUGIN) != "true"
    running = [pod for pod in pods if pod.phase == "Running"]
    return any(_installs(pod) for pod in running) if own else any(_PLUGIN in _daemon(pod) for pod in running)


def _installs(pod: Pod) -> bool:
    return any(
        _INSTALLER in text(container, "image") for container in parts(pod.raw, "spec", "initContainers")
    )


def _daemon(pod: Pod) -> str:
    owners = parts(pod.raw, "metadata", "ownerReferences")
    return next((text(owner, "name") for owner in owners if owner.get("kind") == "DaemonSet"), "")
