"""Manifests and values of GPU drivers and device plugins that the cloud does not install."""

from collections.abc import Iterable, Sequence
from typing import Any

from ebbtide.catalog import PINS, POOL_LABEL, CloudKind, footprint
from ebbtide.model import Cluster, Pool
from ebbtide.model.gpus import cloud_installs, gpu_pools, pools_left_to_us
from ebbtide.model.nodes import most_nodes
from ebbtide.placement.derive import toleration
from ebbtide.placement.marks import marks

from .home import Home
from .manifest import obj

SYSTEM = "kube-system"
"""Namespace whose pods may be node-critical: others are evicted first from a full node."""

OPERATOR_NAMESPACE = "gpu-operator"

_PLUGINS = "/var/lib/kubelet/device-plugins"
_NVIDIA = "/home/kubernetes/bin/nvidia"
_PODS_OF_THE_OPERATOR = 12
"""On each node, with room to spare; the controllers count as one node more."""


def tolerated(pools: Iterable[Pool], cloud: CloudKind) -> list[dict[str, Any]]:
    """A toleration for each taint of the pools' nodes, and none beside: what tolerates everything also lands
    on nodes that are on their way out, and keeps them."""
    found = {taint: None for pool in pools for taint in marks(pool, cloud).all_taints}
    return [dict(toleration(taint).manifest()) for taint in found]


def only_on(pools: Iterable[Pool]) -> dict[str, Any]:
    """Affinity for the nodes of these pools alone."""
    names = [pool.name for pool in pools]
    term = {"matchExpressions": [{"key": POOL_LABEL, "operator": "In", "values": names}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _requests(item: str) -> dict[str, Any]:
    need = footprint(item).requests
    return {"requests": {"cpu": f"{need.cpu_m:.0f}m", "memory": f"{need.memory_mib:.0f}Mi"}}


def _daemon_set(name: str, pools: Sequence[Pool], cloud: CloudKind, pod: dict[str, Any]) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "ebbtide"}
    return obj(
        "apps/v1",
        "DaemonSet",
        name,
        SYSTEM,
        metadata={"labels": labels},
        spec={
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "affinity": only_on(pools),
                    "tolerations": tolerated(pools, cloud),
                    "automountServiceAccountToken": False,
                    **pod,
                },
            },
        },
    )


def _mounts(paths: dict[str, tuple[str, str]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes and mounts of directories of the node: by name, where they are on it and where in the
    container."""
    volumes = [{"name": name, "hostPath": {"path": host}} for name, (host, _) in paths.items()]
    return volumes, [{"name": name, "mountPath": inside} for name, (_, inside) in paths.items()]


def _installer(
    pools: Sequence[Pool], name: str, container: dict[str, Any], paths: dict[str, tuple[str, str]]
) -> dict[str, Any]:
    """A DaemonSet whose first container installs and ends, and whose second does nothing, so that the pod
    stays."""
    volumes, mounts = _mounts(paths)
    return _daemon_set(
        name,
        pools,
        CloudKind.GKE,
        {
            "hostNetwork": True,
            "hostPID": True,
            "volumes": volumes,
            "initContainers": [
                {
                    "name": "installer",
                    # Part of the node's own image, and of its version; there is nothing to pull.
                    "imagePullPolicy": "Never",
                    "resources": _requests("driver-daemonset"),
                    "securityContext": {"privileged": True},
                    "volumeMounts": mounts,
                    **container,
                }
            ],
            "containers": [
                {
                    "name": "pause",
                    "image": f"gke.gcr.io/pause:{PINS['gke-pause'].version}",
                    "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "8Mi"}},
                }
            ],
        },
    )


def _on_cos(pools: Sequence[Pool]) -> dict[str, Any]:
    """Google's installer for Container-Optimized OS. A driver that is loaded already stays as it is."""
    environment = {
        "NVIDIA_INSTALL_DIR_HOST": _NVIDIA,
        "NVIDIA_INSTALL_DIR_CONTAINER": "/usr/local/nvidia",
        "VULKAN_ICD_DIR_HOST": f"{_NVIDIA}/vulkan/icd.d",
        "VULKAN_ICD_DIR_CONTAINER": "/etc/vulkan/icd.d",
        "ROOT_MOUNT_DIR": "/root",
        "COS_TOOLS_DIR_HOST": "/var/lib/cos-tools",
        "COS_TOOLS_DIR_CONTAINER": "/build/cos-tools",
    }
    container = {
        "image": "cos-nvidia-installer:fixed",
        "command": ["bash", "-c", "lsmod | grep -q ^nvidia || exec /cos-gpu-installer install"],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
    }
    paths = {
        "nvidia": (_NVIDIA, "/usr/local/nvidia"),
        "vulkan": (f"{_NVIDIA}/vulkan/icd.d", "/etc/vulkan/icd.d"),
        "dev": ("/dev", "/dev"),
        "root": ("/", "/root"),
        "cos-tools": ("/var/lib/cos-tools", "/build/cos-tools"),
    }
    return _installer(pools, "ebbtide-nvidia-installer-cos", container, paths)


def _on_ubuntu(pools: Sequence[Pool]) -> dict[str, Any]:
    """Google's installer for Ubuntu."""
    paths = {"boot": ("/boot", "/boot"), "dev": ("/dev", "/dev"), "root": ("/", "/root")}
    return _installer(
        pools, "ebbtide-nvidia-installer-ubuntu", {"image": "gke-nvidia-installer:fixed"}, paths
    )


def _is_ubuntu(pool: Pool) -> bool:
    return pool.image == "ubuntu"


def installers(declaration: Cluster) -> list[dict[str, Any]]:
    """The installers of a complete declaration: on GKE, where drivers are left to us; under NVIDIA's operator
    on Container-Optimized OS alone, for which it has no driver of its own.

    Source: GoogleCloudPlatform/container-engine-accelerators@992db812, nvidia-driver-installer (2026-06).
    """
    if declaration.site.cloud is not CloudKind.GKE:
        return []
    pools = pools_left_to_us(declaration)
    cos = [pool for pool in pools if not _is_ubuntu(pool)]
    ubuntu = [pool for pool in pools if _is_ubuntu(pool)]
    match declaration.addons.drivers:
        case "daemonset":
            return [*([_on_cos(cos)] if cos else []), *([_on_ubuntu(ubuntu)] if ubuntu else [])]
        case "gpu-operator":
            return [_on_cos(cos)] if cos else []
        case _:
            return []


def _is_divided(pool: Pool) -> bool:
    return pool.accelerator is not None and pool.accelerator.gpu_instance_profile is not None


def device_plugins(declaration: Cluster) -> list[dict[str, Any]]:
    """The device plugins for AKS, which installs the driver and no plugin: no pod could ask for a GPU. One
    for pools of whole GPUs, and one for those that are divided.

    Source: azure-aks-docs, use-nvidia-gpu (2026): the DaemonSet, version and directory.
    """
    if declaration.site.cloud is not CloudKind.AKS:
        return []
    pools = [pool for pool in gpu_pools(declaration) if cloud_installs(pool, declaration)]
    whole, divided = ([pool for pool in pools if _is_divided(pool) is each] for each in (False, True))
    return [
        *([_device_plugin("ebbtide-nvidia-device-plugin", whole)] if whole else []),
        *([_device_plugin("ebbtide-nvidia-device-plugin-mig", divided, mig=True)] if divided else []),
    ]


def _device_plugin(name: str, pools: Sequence[Pool], *, mig: bool = False) -> dict[str, Any]:
    """The device plugin for some pools.

    The strategy `single` makes each instance of a divided GPU an `nvidia.com/gpu`. To see the instances the
    plugin needs CAP_SYS_ADMIN (NVIDIA/k8s-device-plugin, deployments/helm, _helpers.tpl: securityContext;
    azure-aks-docs, gpu-multi-instance, 2026-05: the variables).
    """
    environment = {"FAIL_ON_INIT_ERROR": "false"}
    capabilities: dict[str, list[str]] = {"drop": ["ALL"]}
    if mig:
        environment |= {"MIG_STRATEGY": "single", "NVIDIA_MIG_MONITOR_DEVICES": "all"}
        capabilities["add"] = ["SYS_ADMIN"]
    volumes, mounts = _mounts({"device-plugins": (_PLUGINS, _PLUGINS)})
    container = {
        "name": "plugin",
        "image": f"nvcr.io/nvidia/k8s-device-plugin:{PINS['nvidia-device-plugin'].version}",
        "resources": _requests("aks-gpu-node") | {"limits": {"memory": "256Mi"}},
        # The API server refuses SYS_ADMIN without the right to escalate (Kubernetes docs, security-context).
        "securityContext": {"allowPrivilegeEscalation": mig, "capabilities": capabilities},
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "volumeMounts": mounts,
    }
    return _daemon_set(
        name,
        pools,
        CloudKind.AKS,
        {
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": volumes,
            "containers": [container],
        },
    )


def has_operator(declaration: Cluster) -> bool:
    """Check that NVIDIA's operator is installed."""
    return declaration.addons.drivers == "gpu-operator" and bool(pools_left_to_us(declaration))


def operator_quota(declaration: Cluster) -> dict[str, Any]:
    """GKE lets no pod be critical outside of kube-system, except where a quota speaks of it (NVIDIA/aicr,
    gke-resource-quota; GKE docs, gpu-operator, 2026)."""
    nodes = sum(most_nodes(pool) for pool in pools_left_to_us(declaration)) + 1
    critical = {
        "operator": "In",
        "scopeName": "PriorityClass",
        "values": ["system-node-critical", "system-cluster-critical"],
    }
    return obj(
        "v1",
        "ResourceQuota",
        "critical-pods",
        OPERATOR_NAMESPACE,
        spec={
            "hard": {"pods": str(nodes * _PODS_OF_THE_OPERATOR)},
            "scopeSelector": {"matchExpressions": [critical]},
        },
    )


_OPERANDS = ("driver", "toolkit", "devicePlugin", "gfd", "validator")
_LEFT_OUT = ("dcgm", "dcgmExporter", "migManager", "nodeStatusExporter", "vgpuDeviceManager", "vfioManager")


def operator_values(declaration: Cluster, place: Home) -> dict[str, Any]:
    """Values of the operator's chart.

    It finds GPU nodes by what node feature discovery sees, and that looks at the nodes left to it alone; its
    operands tolerate the taints of those. Its driver is off on Container-Optimized OS, where Google's
    installer has put one into a directory of its own.
    """
    pools = pools_left_to_us(declaration)
    cloud = declaration.site.cloud
    own_driver = all(_is_ubuntu(pool) for pool in pools)
    here = {"nodeSelector": place.node_selector, "tolerations": place.tolerations}
    there = tolerated(pools, cloud)
    share = footprint("gpu-operator-node").requests
    resources = {
        "requests": {
            "cpu": f"{share.cpu_m / len(_OPERANDS):.0f}m",
            "memory": f"{share.memory_mib / len(_OPERANDS):.0f}Mi",
        }
    }
    values: dict[str, Any] = {name: {"resources": resources} for name in _OPERANDS}
    values |= {name: {"enabled": False} for name in _LEFT_OUT}
    values["driver"]["enabled"] = own_driver
    values["operator"] = here
    values["daemonsets"] = {"tolerations": there}
    values["node-feature-discovery"] = {
        "master": here,
        "gc": here,
        "worker": {"tolerations": there, "affinity": only_on(pools)},
    }
    if cloud is CloudKind.GKE and not own_driver:
        values["hostPaths"] = {"driverInstallDir": _NVIDIA}
        values["toolkit"]["installDir"] = _NVIDIA
    return values
