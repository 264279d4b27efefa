"""DaemonSets that install drivers or device plugins a second time."""

import copy
from typing import Any

import pytest

from ebbtide.analysis.device_plugins import conflicts, of_others
from tests.contract.flips import EXISTING
from tests.declarations import Declaration, changed
from tests.synth import synth

_EVERYTHING = [{"operator": "Exists"}]
_GPU_TAINT = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
_ON_GPUS = {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"}
_WITHOUT_DRIVER = {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"}
_DISCOVERED = {"key": "feature.node.kubernetes.io/pci-10de.present", "operator": "In", "values": ["true"]}
_ELSEWHERE = {"key": "gpus", "operator": "In", "values": ["theirs"]}
_UNTAINTED: Declaration = {"taints": []}


def _on(cloud: str, addons: Declaration, **pool: Any) -> Declaration:
    machine = "g2-standard-4" if cloud == "gke" else "Standard_NC24ads_A100_v4"
    pools = [{"name": "gpu", "machine": machine, "nodes": {"max": 1}, **pool}]
    return changed(EXISTING[cloud], pools=pools, addons=addons)


def _without_driver(accelerator: str) -> Declaration:
    return {"type": accelerator, "driver": "none"}


def _daemon_set(image: str, tolerations: list[Any], *expressions: Any, **metadata: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {
        "kind": "DaemonSet",
        "metadata": {"namespace": "gpu", "name": "theirs", **metadata},
        "spec": {
            "template": {
                "spec": {
                    **({"affinity": affinity} if expressions else {}),
                    "tolerations": tolerations,
                    "containers": [{"image": image}],
                    "volumes": [{"hostPath": {"path": "/var/lib/kubelet/device-plugins"}}],
                }
            }
        },
    }


_PLUGIN = "registry.example:5000/mirror/k8s-device-plugin:v0.18.0"
_INSTALLER = "cos-nvidia-installer:fixed"
_IN_SYSTEM = {"namespace": "kube-system", "name": "nvidia-gpu-device-plugin-large-cos"}
_BY_AKS = {"namespace": "kube-system", "labels": {"kubernetes.azure.com/managedby": "aks"}}
_AKS, _GKE = _on("aks", {}), _on("gke", {})


@pytest.mark.parametrize(
    ("declaration", "daemon_set", "beside"),
    [
        # The pool's own taint keeps NVIDIA's manifest off; without it, both plugins run.
        (_AKS, _daemon_set(_PLUGIN, _GPU_TAINT), ""),
        (_on("aks", {}, **_UNTAINTED), _daemon_set(_PLUGIN, []), "would ebbtide-nvidia-device-plugin"),
        (_AKS, _daemon_set(_PLUGIN, _EVERYTHING), "would ebbtide-nvidia-device-plugin"),
        (_AKS, _daemon_set(_PLUGIN, _EVERYTHING, _DISCOVERED), "may ebbtide-nvidia-device-plugin"),
        (_AKS, _daemon_set(_PLUGIN, _EVERYTHING, _ELSEWHERE), ""),
        (_on("aks", {"drivers": "none"}), _daemon_set(_PLUGIN, _EVERYTHING), ""),
        (
            _on("aks", {"drivers": "gpu-operator"}, accelerator=_without_driver("nvidia-a100-80gb")),
            _daemon_set(_PLUGIN, _EVERYTHING),
            "would the stack's NVIDIA GPU Operator",
        ),
        (_AKS, _daemon_set("docker.io/rocm/k8s-device-plugin", _EVERYTHING), ""),
        (_AKS, _daemon_set("nvcr.io/nvidia/cloud-native/k8s-rdma-shared-dev-plugin", _EVERYTHING), ""),
        (_AKS, _daemon_set(_PLUGIN, _EVERYTHING, **_BY_AKS), ""),
        (_GKE, _daemon_set(_PLUGIN, _EVERYTHING), "would GKE's device plugin"),
        (
            _on("gke", {"drivers": "none"}, labels={"gke-no-default-nvidia-gpu-device-plugin": "true"}),
            _daemon_set(_PLUGIN, _EVERYTHING),
            "",
        ),
        (_GKE, _daemon_set("gke/nvidia-gpu-device-plugin", _EVERYTHING, _ON_GPUS, **_IN_SYSTEM), ""),
        # Google's installers of today avoid nodes with GKE's driver; those of earlier years do not.
        (_GKE, _daemon_set(_INSTALLER, _EVERYTHING, _ON_GPUS, _WITHOUT_DRIVER), ""),
        (_GKE, _daemon_set(_INSTALLER, _EVERYTHING, _ON_GPUS), "would GKE's driver"),
        (
            _on("gke", {"drivers": "daemonset"}, accelerator=_without_driver("nvidia-l4")),
            _daemon_set(_INSTALLER, _EVERYTHING, _ON_GPUS, _WITHOUT_DRIVER),
            "would ebbtide-nvidia-installer-cos",
        ),
    ],
)
def test_a_second_installer_on_a_pool(declaration: Declaration, daemon_set: Any, beside: str) -> None:
    """Taints, labels and vendors decide which pools it runs on; a label that may exist makes it a warning."""
    found = list(conflicts(synth(declaration), [daemon_set]))
    assert [(item.pools, item.is_certain) for item in found] == (
        [(("gpu",), beside.startswith("would"))] if beside else []
    )
    for item in found:
        run, _, other = beside.partition(" ")
        assert f"{run} run on the nodes of pool gpu, beside " in str(item)
        assert other in str(item)
        assert "kubectl delete daemonset theirs --namespace gpu" in str(item)


def test_the_stacks_own_are_ignored() -> None:
    """The second update reads them from the cluster."""
    recording = synth(_AKS)
    (own,) = (dict(item.inputs) for item in recording.of_type("kubernetes:apps/v1:DaemonSet"))
    assert list(conflicts(recording, [copy.deepcopy(own)])) == []
    own["metadata"] = {"name": "copied", "namespace": "kube-system"}
    (found,) = conflicts(recording, [own])
    assert found.is_certain


def test_the_command_that_removes_it() -> None:
    """A chart is uninstalled; the objects of an operator would be created again."""
    recording = synth(_AKS)
    release = {"meta.helm.sh/release-name": "plugin"}
    managed = [{"kind": "ClusterPolicy", "name": "cluster-policy"}]
    chart = _daemon_set(_PLUGIN, _EVERYTHING, annotations=release)
    operand = _daemon_set(_PLUGIN, _EVERYTHING, ownerReferences=managed)
    messages = [str(item) for item in conflicts(recording, [chart, operand])]
    assert "`helm uninstall plugin --namespace gpu`" in messages[0]
    assert "let its owner remove the ClusterPolicy" in messages[1]


def test_pools_that_leave_their_plugin_to_others() -> None:
    """Each pool with the DaemonSet that registers its GPUs, or with none."""
    recording = synth(_on("aks", {"drivers": "none"}))
    (served,) = of_others(recording, [_daemon_set(_PLUGIN, _EVERYTHING, _DISCOVERED)])
    (unserved,) = of_others(recording, [_daemon_set(_PLUGIN, [])])
    assert served == (
        "DaemonSet theirs in gpu registers nvidia.com/gpu on the nodes of pool gpu, and stays as it is."
    )
    assert unserved.startswith("No DaemonSet registers nvidia.com/gpu on the nodes of pool gpu")
