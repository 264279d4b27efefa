"""Drivers and device plugins of GPU nodes that the cloud does not install, and the networks and plugins of
GPUDirect."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pulumi
from pulumi_kubernetes import helm

from ebbtide.declaration.catalog.clouds import POOL_LABEL
from ebbtide.declaration.catalog.gpu_direct import APERTURE, Strategy
from ebbtide.declaration.catalog.resources import footprint
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.addons import remote_inputs
from ebbtide.declaration.model.cluster import OPERATOR_NAMESPACE, Cluster
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.placement.derive import toleration
from ebbtide.values.cloud_kind import CloudKind

from .add_on import SystemPlacement, system_placement
from .manifest import InCluster, leaf_options, obj
from .security import driver_namespace

_REPOSITORY: Final = "https://helm.ngc.nvidia.com/nvidia"
SYSTEM: Final = "kube-system"
"""Namespace whose pods may be node-critical: on a full node, other pods are evicted first."""

_PLUGINS: Final = "/var/lib/kubelet/device-plugins"
_BINARIES: Final = "/home/kubernetes/bin"
_NVIDIA: Final = f"{_BINARIES}/nvidia"
_PODS_OF_THE_OPERATOR: Final = 12
"""Per node, with headroom; the controllers count as one more node."""

_OPERANDS: Final = ("driver", "toolkit", "devicePlugin", "gfd", "validator")
_LEFT_OUT: Final = (
    "dcgm",
    "dcgmExporter",
    "migManager",
    "nodeStatusExporter",
    "vgpuDeviceManager",
    "vfioManager",
)

_NETWORKING: Final = "networking.gke.io"
_IMAGES: Final = "us-docker.pkg.dev/gce-ai-infra"
_PRIVILEGED: Final = {"privileged": True}

_PREPARE: Final = f"""\
set -e
iptables -C INPUT -p tcp -j ACCEPT 2>/dev/null || iptables -I INPUT -p tcp -j ACCEPT
modprobe import-helper
for device in $(lspci -Dnn -d 1ae0:0084 | cut -d' ' -f1); do
  mkdir -p {APERTURE}/$device
  mountpoint -q {APERTURE}/$device ||
    mount --bind "$(readlink -f /sys/bus/pci/devices/$device)" {APERTURE}/$device
done
if [ -d {APERTURE} ]; then
  chmod -R a+r {APERTURE}
  chmod a+rw {APERTURE}/*/resource*
fi
"""
"""Admits TCP to the node's NICs, and makes their apertures and the import of GPU memory available to pods."""


def has_drivers(declaration: Cluster) -> bool:
    """Check that a declaration has GPU nodes that need a driver installation."""
    return bool(installers(declaration) or device_plugins(declaration) or has_operator(declaration))


class Drivers(InCluster):
    """Google's installers, the device plugin for AKS, or NVIDIA's operator, each only on its GPU pools.

    Exactly one source installs the driver of a pool: the cloud, an installer, or the operator. The rules of
    the declaration ensure that.
    """

    def __init__(
        self,
        name: str,
        declaration: Cluster,
        depends_on: Sequence[pulumi.Resource],
        deleted_with: pulumi.Resource | None,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("ebbtide:addons:Drivers", name, opts, deleted_with)
        for manifest in [*installers(declaration), *device_plugins(declaration)]:
            role = manifest["metadata"]["name"].removeprefix("ebbtide-nvidia-")
            self._create(f"{name}-{role}", manifest, depends_on)
        operator = self._operator(name, declaration, depends_on) if has_operator(declaration) else {}
        self.register_outputs(operator)

    def _operator(
        self, name: str, declaration: Cluster, depends_on: Sequence[pulumi.Resource]
    ) -> dict[str, str]:
        """Install NVIDIA's operator; return its outputs."""
        namespace = self._create(
            f"{name}-operator-namespace", driver_namespace(OPERATOR_NAMESPACE), depends_on
        )
        first: list[pulumi.Resource] = [namespace]
        if declaration.site.cloud is CloudKind.GKE:
            quota = operator_quota(declaration)
            first.append(self._create(f"{name}-operator-quota", quota, [namespace]))
        inputs: dict[str, Any] = {
            "chart": "gpu-operator",
            "repository_opts": {"repo": _REPOSITORY},
            "version": PINS["gpu-operator"].version,
            "name": "gpu-operator",
            "namespace": OPERATOR_NAMESPACE,
            "values": operator_values(declaration, system_placement(declaration)),
        }
        helm.v4.Chart(
            f"{name}-operator",
            **inputs,
            opts=leaf_options(self, self._deleted_with, first),
        )
        return remote_inputs(inputs)


def tolerated(pools: Iterable[ResolvedPool]) -> list[dict[str, Any]]:
    """Return a toleration for each taint of the pools' nodes. A pod that tolerates everything is also
    scheduled on nodes that are being removed, and blocks their removal."""
    taints = {taint: None for pool in pools for taint in pool.labels_and_taints.all_taints}
    return [dict(toleration(taint).manifest()) for taint in taints]


def only_on(pools: Iterable[Pool]) -> dict[str, Any]:
    """Return the node affinity for these pools."""
    names = [pool.name for pool in pools]
    term = {"matchExpressions": [{"key": POOL_LABEL, "operator": "In", "values": names}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def requests_of(item: str) -> dict[str, Any]:
    """Return the requests of a footprint, as the resources of a container."""
    need = footprint(item).requests
    return {"requests": {"cpu": f"{need.cpu_m:.0f}m", "memory": f"{need.memory_mib:.0f}Mi"}}


def daemon_set(name: str, pools: Sequence[ResolvedPool], pod: dict[str, Any]) -> dict[str, Any]:
    """Build a DaemonSet in kube-system on the nodes of these pools."""
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
                    "tolerations": tolerated(pools),
                    "automountServiceAccountToken": False,
                    **pod,
                },
            },
        },
    )


def mounts_of(paths: dict[str, tuple[str, str]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return volumes and mounts of node directories: by name, the path on the node and the path in the
    container."""
    volumes = [{"name": name, "hostPath": {"path": host}} for name, (host, _) in paths.items()]
    return volumes, [{"name": name, "mountPath": inside} for name, (_, inside) in paths.items()]


def _installer(
    name: str,
    pools: Sequence[ResolvedPool],
    steps: list[dict[str, Any]],
    paths: dict[str, tuple[str, str]],
    pause: dict[str, Any],
) -> dict[str, Any]:
    """Build a DaemonSet that runs steps one after another on each node, and then sleeps to keep the pod
    running.

    Args:
        paths: node directories, as for `mounts_of`.
        pause: resources of the container that sleeps.
    """
    sleeps = {"name": "pause", "image": f"gke.gcr.io/pause:{PINS['gke-pause'].version}", "resources": pause}
    pod = {"hostNetwork": True, "hostPID": True, "volumes": mounts_of(paths)[0], "initContainers": steps}
    return daemon_set(name, pools, {**pod, "containers": [sleeps]})


def _driver_installer(
    name: str, pools: Sequence[ResolvedPool], container: dict[str, Any], paths: dict[str, tuple[str, str]]
) -> dict[str, Any]:
    installer = {
        "name": "installer",
        # Part of the node's image, and of its version; there is nothing to pull.
        "imagePullPolicy": "Never",
        "resources": requests_of("driver-daemonset"),
        "securityContext": _PRIVILEGED,
        "volumeMounts": mounts_of(paths)[1],
        **container,
    }
    least = {"cpu": "1m", "memory": "8Mi"}
    return _installer(name, pools, [installer], paths, {"requests": least, "limits": {"memory": "8Mi"}})


def _on_cos(pools: Sequence[ResolvedPool]) -> dict[str, Any]:
    """Google's installer for Container-Optimized OS. It keeps a driver that is already loaded."""
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
    return _driver_installer("ebbtide-nvidia-installer-cos", pools, container, paths)


def _on_ubuntu(pools: Sequence[ResolvedPool]) -> dict[str, Any]:
    """Google's installer for Ubuntu."""
    paths = {"boot": ("/boot", "/boot"), "dev": ("/dev", "/dev"), "root": ("/", "/root")}
    image = {"image": "gke-nvidia-installer:fixed"}
    return _driver_installer("ebbtide-nvidia-installer-ubuntu", pools, image, paths)


def _is_ubuntu(pool: Pool) -> bool:
    return pool.image == "ubuntu"


def installers(declaration: Cluster) -> list[dict[str, Any]]:
    """Return the driver installers of a complete declaration, for GKE pools whose driver GKE does not
    install. With NVIDIA's operator, only for Container-Optimized OS, for which the operator has no driver.

    Source: GoogleCloudPlatform/container-engine-accelerators@992db812, nvidia-driver-installer (2026-06).
    """
    if declaration.site.cloud is not CloudKind.GKE:
        return []
    pools = declaration.driver_pools
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
    """Return the device plugins for AKS: one for pools of whole GPUs, and one for partitioned GPUs; none if
    the declaration has `drivers: none`.

    AKS installs the driver but no plugin; without one, no pod can request a GPU. Source: azure-aks-docs,
    use-nvidia-gpu (2026): the DaemonSet, version and directory.
    """
    if declaration.site.cloud is not CloudKind.AKS or declaration.addons.drivers == "none":
        return []
    pools = [pool for pool in declaration.gpu_pools if pool.has_cloud_driver]
    whole, divided = ([pool for pool in pools if _is_divided(pool) is is_mig] for is_mig in (False, True))
    return [
        *([_device_plugin("ebbtide-nvidia-device-plugin", whole)] if whole else []),
        *([_device_plugin("ebbtide-nvidia-device-plugin-mig", divided, mig=True)] if divided else []),
    ]


def _device_plugin(name: str, pools: Sequence[ResolvedPool], *, mig: bool = False) -> dict[str, Any]:
    """Build the device plugin for these pools.

    The strategy `single` advertises each instance of a partitioned GPU as an `nvidia.com/gpu`. To list the
    instances, the plugin needs CAP_SYS_ADMIN (NVIDIA/k8s-device-plugin, deployments/helm, _helpers.tpl:
    securityContext; azure-aks-docs, gpu-multi-instance, 2026-05: the variables).
    """
    environment = {"FAIL_ON_INIT_ERROR": "false"}
    capabilities: dict[str, list[str]] = {"drop": ["ALL"]}
    if mig:
        environment |= {"MIG_STRATEGY": "single", "NVIDIA_MIG_MONITOR_DEVICES": "all"}
        capabilities["add"] = ["SYS_ADMIN"]
    volumes, mounts = mounts_of({"device-plugins": (_PLUGINS, _PLUGINS)})
    container = {
        "name": "plugin",
        "image": f"nvcr.io/nvidia/k8s-device-plugin:{PINS['nvidia-device-plugin'].version}",
        "resources": requests_of("aks-gpu-node") | {"limits": {"memory": "256Mi"}},
        # The API server rejects SYS_ADMIN without allowPrivilegeEscalation (Kubernetes docs,
        # security-context).
        "securityContext": {"allowPrivilegeEscalation": mig, "capabilities": capabilities},
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "volumeMounts": mounts,
    }
    return daemon_set(
        name,
        pools,
        {
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": volumes,
            "containers": [container],
        },
    )


def has_operator(declaration: Cluster) -> bool:
    """Check that NVIDIA's operator is installed."""
    return declaration.addons.drivers == "gpu-operator" and bool(declaration.driver_pools)


def operator_quota(declaration: Cluster) -> dict[str, Any]:
    """Return the resource quota that allows critical pods in the operator's namespace: outside of
    kube-system, GKE admits them only with a quota (NVIDIA/aicr, gke-resource-quota; GKE docs, gpu-operator,
    2026)."""
    nodes = sum(pool.max_nodes for pool in declaration.driver_pools) + 1
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


def operator_values(declaration: Cluster, placement: SystemPlacement) -> dict[str, Any]:
    """Return the values of the operator's chart.

    The operator finds GPU nodes by the labels of node feature discovery, which runs only on the operator's
    pools; its operands tolerate the taints of those pools. Its driver is disabled on Container-Optimized OS,
    where Google's installer uses a different directory.
    """
    pools = declaration.driver_pools
    cloud = declaration.site.cloud
    own_driver = all(_is_ubuntu(pool) for pool in pools)
    controllers = {"nodeSelector": placement.node_selector, "tolerations": placement.tolerations}
    daemons = tolerated(pools)
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
    values["operator"] = controllers
    values["daemonsets"] = {"tolerations": daemons}
    values["node-feature-discovery"] = {
        "master": controllers,
        "gc": controllers,
        "worker": {"tolerations": daemons, "affinity": only_on(pools)},
    }
    if cloud is CloudKind.GKE and not own_driver:
        values["hostPaths"] = {"driverInstallDir": _NVIDIA}
        values["toolkit"]["installDir"] = _NVIDIA
    return values


def gpu_direct(declaration: Cluster) -> Iterator[dict[str, Any]]:
    """Yield the networks that pods of pools with GPUDirect attach to, and the DaemonSets that install NCCL's
    plugins on those pools.

    Sources: GKE docs, multinetwork-gke and gpu-bandwidth-gpudirect-tcpx; AI Hypercomputer docs,
    gke-ai-hypercompute-custom (2026); GoogleCloudPlatform/gke-networking-api 0.2.11;
    GoogleCloudPlatform/container-engine-accelerators@992db812, gpudirect-rdma, gpudirect-tcpxo and
    nri_device_injector.
    """
    for network in declaration.gpu_networks:
        parameters = {
            "vpc": f"{declaration.name}-{network.vpc}",
            "vpcSubnet": f"{declaration.name}-{network.name}",
            "deviceMode": network.mode,
        }
        kind = "GKENetworkParamSet"
        reference = {"group": _NETWORKING, "kind": kind, "name": network.name}
        yield obj(f"{_NETWORKING}/v1", kind, network.name, spec=parameters)
        yield obj(
            f"{_NETWORKING}/v1", "Network", network.name, spec={"type": "Device", "parametersRef": reference}
        )
    if pools := _direct_pools(declaration, "rdma"):
        yield _rdma_installer(pools)
    if pools := _direct_pools(declaration, "tcpxo"):
        yield _tcpxo_installer(pools)
        yield _device_injector(pools)


def _direct_pools(declaration: Cluster, strategy: Strategy) -> list[ResolvedPool]:
    return [pool for pool in declaration.resolved_pools if pool.gpu_direct == strategy]


def _rdma_installer(pools: Sequence[ResolvedPool]) -> dict[str, Any]:
    """Return the installer of gIB.

    It copies to the directory that the device plugin mounts in every container with a GPU: directories of the
    node are forbidden to pods by the Pod Security Standard `baseline`.
    """
    install = """\
set -e
/scripts/container_entry.sh install
mkdir -p /host/nvidia/lib64 /host/nvidia/gib
cp -r /var/lib/gib/lib64/. /host/nvidia/lib64
cp -r /var/lib/gib/. /host/nvidia/gib
ln -sfn nvidia/gib /host/gib
"""
    image = f"{_IMAGES}/gpudirect-gib/nccl-plugin-gib:{PINS['nccl-gib'].version}"
    paths = {"bin": (_BINARIES, "/host")}
    return _installer(
        "ebbtide-nccl-rdma",
        pools,
        [_privileged("nccl-plugin", image, install, paths)],
        paths,
        requests_of("gpu-direct-rdma-node"),
    )


def _tcpxo_installer(pools: Sequence[ResolvedPool]) -> dict[str, Any]:
    install = """\
set -e
chmod 755 /scripts/container_entry.sh
/scripts/container_entry.sh install --install-nccl
mkdir -p /usr/local/nvidia/lib64
cp -r /var/lib/tcpxo/lib64/. /usr/local/nvidia/lib64
"""
    image = f"{_IMAGES}/gpudirect-tcpxo/nccl-plugin-gpudirecttcpx-dev:{PINS['nccl-tcpxo'].version}"
    paths = {"bin": (_BINARIES, "/usr/local"), "var-lib": ("/var/lib", "/var/lib")}
    prepare = _privileged("node", PINS["image-python"].version, _PREPARE, {})
    prepare["command"] = ["nsenter", "--all", "--target", "1", "--", "sh", "-c", _PREPARE]
    return _installer(
        "ebbtide-nccl-tcpxo",
        pools,
        [prepare, _privileged("nccl-plugin", image, install, paths)],
        paths,
        requests_of("gpu-direct-tcpxo-node"),
    )


def _privileged(name: str, image: str, script: str, paths: dict[str, tuple[str, str]]) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "command": ["/bin/sh", "-c", script],
        "securityContext": _PRIVILEGED,
        "volumeMounts": mounts_of(paths)[1],
    }


def _device_injector(pools: Sequence[ResolvedPool]) -> dict[str, Any]:
    """Return the NRI plugin that adds GPUs to the sidecar of TCPXO, which requests none."""
    volumes, mounts = mounts_of({"dev": ("/dev", "/dev"), "nri": ("/var/run/nri", "/var/run/nri")})
    container = {
        "name": "device-injector",
        "image": f"gcr.io/gke-release/nri-device-injector@{PINS['nri-device-injector'].version}",
        "resources": requests_of("gpu-direct-injector-node"),
        "securityContext": _PRIVILEGED,
        "volumeMounts": mounts,
    }
    pod = {"hostNetwork": True, "hostPID": True, "volumes": volumes, "containers": [container]}
    return daemon_set("ebbtide-device-injector", pools, pod)
