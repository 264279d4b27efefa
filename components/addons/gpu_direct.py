"""Objects of pools with GPUDirect: the networks that pods attach to, and the installers of NCCL's plugins.

Sources: GKE docs, multinetwork-gke and gpu-bandwidth-gpudirect-tcpx; AI Hypercomputer docs,
gke-ai-hypercompute-custom (2026); GoogleCloudPlatform/gke-networking-api 0.2.11;
GoogleCloudPlatform/container-engine-accelerators@992db812, gpudirect-rdma, gpudirect-tcpxo and
nri_device_injector.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ebbtide.declaration.catalog.gpu_direct import APERTURE, Strategy
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.resolved_pool import ResolvedPool

from .drivers import daemon_set, mounts_of, requests_of
from .manifest import obj

_GROUP: Final = "networking.gke.io"
_IMAGES: Final = "us-docker.pkg.dev/gce-ai-infra"
_HOST: Final = "/home/kubernetes/bin"
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


def objects(declaration: Cluster) -> Iterator[dict[str, Any]]:
    """Yield the networks of a cluster's pools with GPUDirect, and the DaemonSets on those pools."""
    for network in declaration.gpu_networks:
        parameters = {
            "vpc": f"{declaration.name}-{network.vpc}",
            "vpcSubnet": f"{declaration.name}-{network.name}",
            "deviceMode": network.mode,
        }
        kind = "GKENetworkParamSet"
        reference = {"group": _GROUP, "kind": kind, "name": network.name}
        yield obj(f"{_GROUP}/v1", kind, network.name, spec=parameters)
        yield obj(
            f"{_GROUP}/v1", "Network", network.name, spec={"type": "Device", "parametersRef": reference}
        )
    if pools := _pools(declaration, "rdma"):
        yield _rdma_installer(pools)
    if pools := _pools(declaration, "tcpxo"):
        yield _tcpxo_installer(pools)
        yield _device_injector(pools)


def _pools(declaration: Cluster, strategy: Strategy) -> list[ResolvedPool]:
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
    return _installer(
        "ebbtide-nccl-rdma",
        pools,
        [_privileged("nccl-plugin", image, install, {"bin": (_HOST, "/host")})],
        {"bin": _HOST},
        "gpu-direct-rdma-node",
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
    paths = {"bin": (_HOST, "/usr/local"), "var-lib": ("/var/lib", "/var/lib")}
    prepare = _privileged("node", PINS["image-python"].version, _PREPARE, {})
    prepare["command"] = ["nsenter", "--all", "--target", "1", "--", "sh", "-c", _PREPARE]
    return _installer(
        "ebbtide-nccl-tcpxo",
        pools,
        [prepare, _privileged("nccl-plugin", image, install, paths)],
        {name: host for name, (host, _) in paths.items()},
        "gpu-direct-tcpxo-node",
    )


def _privileged(name: str, image: str, script: str, paths: dict[str, tuple[str, str]]) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "command": ["/bin/sh", "-c", script],
        "securityContext": _PRIVILEGED,
        "volumeMounts": mounts_of(paths)[1],
    }


def _installer(
    name: str,
    pools: Sequence[ResolvedPool],
    steps: list[dict[str, Any]],
    directories: dict[str, str],
    item: str,
) -> dict[str, Any]:
    """Build a DaemonSet that runs steps one after another on each node, and then sleeps."""
    pause = {
        "name": "pause",
        "image": f"gke.gcr.io/pause:{PINS['gke-pause'].version}",
        "resources": requests_of(item),
    }
    volumes = [{"name": name, "hostPath": {"path": path}} for name, path in directories.items()]
    pod = {"hostNetwork": True, "hostPID": True, "volumes": volumes, "initContainers": steps}
    return daemon_set(name, pools, {**pod, "containers": [pause]})


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
