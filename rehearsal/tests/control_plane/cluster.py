"""Helpers for tests of a cluster: nodes, namespaces, work, waiting."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.labels_and_taints import labels_and_taints
from ebbtide.placement import Profile
from ebbtide.placement.member_policy import HIGHEST_PRIORITY
from ebbtide.values import clock
from ebbtide.values.paths import Object
from ebbtide.work.evidence import Cause, read_evidence
from ebbtide.work.progress import cause_of
from ebbtide_rehearsal.control_plane.stages import FAKE, KUBELET, RUNS_FOR

T = TypeVar("T")

CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


def wait(read: Callable[[], T], done: Callable[[T], bool], *, seconds: float = 600) -> T:
    """Read until the value is as expected, and return it; fail the test on timeout."""
    deadline = time.monotonic() + seconds
    while True:
        value = read()
        if done(value):
            return value
        assert time.monotonic() < deadline, f"After {seconds} s it is still {value}"
        time.sleep(0.2)


def gone(api: Api, path: str) -> None:
    """Wait until the object does not exist."""
    wait(lambda: api.find(path), lambda item: item is None)


def run_for(manifest: Object, seconds: float) -> Object:
    """Let each pod of a Job run for some seconds, and return the metadata of its template."""
    metadata = manifest["spec"]["template"].setdefault("metadata", {})
    metadata.setdefault("annotations", {})[RUNS_FOR] = f"{seconds:.0f}s"
    return metadata


def node(api: Api, name: str, *, labels: dict[str, str] | None = None, **more: Any) -> None:
    """A node made by hand, as a kubelet registers itself."""
    extra: Object = more.pop("resources", {})
    capacity = CAPACITY | extra
    api.create(
        "/api/v1/nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name} | (labels or {}),
                "annotations": {KUBELET: FAKE},
            },
            "spec": more,
            "status": {"capacity": capacity, "allocatable": capacity},
        },
    )
    wait(lambda: api.get(f"/api/v1/nodes/{name}"), lambda item: not _unready(item))


def declared_node(api: Api, name: str, cluster: Cluster, pool: str, **more: Any) -> None:
    """A node of a declared pool, as the autoscaler would bring one."""
    declared = next(item for item in cluster.pools if item.name == pool)
    marks = labels_and_taints(declared, cluster.site.cloud)
    taints = [{"key": item.key, "value": item.value, "effect": item.effect} for item in marks.all_taints]
    node(api, name, labels=dict(marks.all_labels), taints=taints, **more)


def _unready(item: Object) -> bool:
    return any(taint["key"].startswith("node.kubernetes.io/") for taint in item["spec"].get("taints", []))


def why(api: Api, place: str, name: str, reason: str, profile: Profile | None) -> Cause:
    """Return the cause for which a workload waits, once its reason is as expected."""

    def read() -> Cause | None:
        return cause_of(read_evidence(api, name, place, clock.now(), profile))

    cause = wait(read, lambda cause: cause is not None and cause.reason == reason)
    assert cause is not None
    return cause


def priority_class(api: Api, name: str) -> None:
    """The class of controllers, which a stack creates before its add-ons."""
    api.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": HIGHEST_PRIORITY,
        },
    )


def device_plugin(name: str, namespace: str, **pod: Any) -> Object:
    """A DaemonSet of NVIDIA's device plugin, as the owner of a cluster installs it."""
    mount = {"name": "device-plugins", "mountPath": "/var/lib/kubelet/device-plugins"}
    container = {
        "name": "plugin",
        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.18.0",
        "volumeMounts": [mount],
    }
    volume = {"name": mount["name"], "hostPath": {"path": mount["mountPath"]}}
    labels = {"name": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "volumes": [volume], **pod},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def namespace(api: Api, name: str, **labels: str) -> str:
    """Create a namespace, and wait until it is usable."""
    metadata = {"name": name, "labels": labels}
    api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait(lambda: api.find(account), lambda item: item is not None)
    return name


def pod(annotations: dict[str, str], **spec: Any) -> Object:
    """A pod's template of one container."""
    container = {"name": "main", "image": "busybox", **spec.pop("container", {})}
    return {"metadata": {"annotations": annotations}, "spec": {"containers": [container], **spec}}


def job(name: str, template: Object, *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A Job."""
    template["spec"].setdefault("restartPolicy", "Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"template": template, **spec},
    }
