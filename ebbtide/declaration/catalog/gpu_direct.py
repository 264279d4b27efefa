"""GPUDirect on GKE: the machines that have it, the networks of their NICs, and what their pods need.

Sources, unless another is stated: GoogleCloudPlatform/container-engine-accelerators@992db812, gpudirect-rdma
and gpudirect-tcpxo (2026-06); AI Hypercomputer docs, gke-ai-hypercompute-custom (2026).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Literal

from ebbtide.declaration.catalog.versions import PINS

Strategy = Literal["rdma", "tcpxo"]
"""GPUDirect-RDMA or GPUDirect-TCPXO (GKE v1 API, GPUDirectConfig.GPUDirectStrategy)."""

_STRATEGIES: Final[Mapping[str, Strategy]] = {"a3-mega": "tcpxo", "a3-ultra": "rdma", "a4": "rdma"}
_TUNERS: Final = {"a3-ultra": "tuner_config_a3u.txtpb", "a4": "tuner_config_a4.txtpb"}
VERSIONS: Final = {
    "a3-mega": "gke-gpudirect-tcpxo",
    "a3-ultra": "gke-gpudirect-rdma",
    "a4": "gke-gpudirect-rdma-a4",
}
"""Pins of the minimum GKE version, by machine family."""

SUBNET_BITS: Final = 5
"""Bits by which a subnet's prefix is longer than the whole range's, which has 17 subnets at most."""

_GPUS: Final = 8
_LIBRARIES: Final = "/usr/local/nvidia"
"""Directory of a container with a GPU, in which GKE's device plugin mounts `/home/kubernetes/bin/nvidia` of
the node (container-engine-accelerators@992db812, cmd/nvidia_gpu)."""
DEVICES: Final = (*(f"/dev/nvidia{number}" for number in range(_GPUS)), "/dev/nvidiactl", "/dev/nvidia-uvm")
APERTURE: Final = "/dev/aperture_devices"
DAEMON: Final = "tcpxo-daemon"
_HOST_LIBRARIES: Final = "/home/kubernetes/bin/nvidia"


@dataclass(frozen=True, slots=True)
class GpuNetwork:
    """A network of GPU NICs.

    Attributes:
        name: its name in Kubernetes, and the end of its subnet's name.
        vpc: the end of its VPC's name.
        mode: `NetDevice`, or `RDMA` for the subnets of one RoCE VPC.
        block: its number among the subnets of the whole range.
        interface: a pod's interface in it; empty if pods have none.
    """

    name: str
    vpc: str
    mode: Literal["NetDevice", "RDMA"]
    block: int
    interface: str

    def range_of(self, whole: str) -> str:
        """Return the range of its subnet."""
        network = IPv4Network(whole)
        base, size = int(network.network_address), network.num_addresses >> SUBNET_BITS
        return str(IPv4Network((base + self.block * size, network.prefixlen + SUBNET_BITS)))


_NETWORKS: Final[Mapping[Strategy, tuple[GpuNetwork, ...]]] = {
    "tcpxo": tuple(
        GpuNetwork(f"vpc{number}", f"vpc{number}", "NetDevice", number - 1, f"eth{number}")
        for number in range(1, _GPUS + 1)
    ),
    # The second gVNIC is the node's; pods communicate over the first.
    "rdma": (
        GpuNetwork("gvnic-1", "gvnic-1", "NetDevice", _GPUS, ""),
        *(
            GpuNetwork(f"rdma-{number}", "rdma", "RDMA", _GPUS + 1 + number, f"eth{number + 2}")
            for number in range(_GPUS)
        ),
    ),
}


STRATEGIES: Final = tuple(_NETWORKS)
"""All strategies."""


def strategy_of(family: str) -> Strategy | None:
    """Return the strategy of a machine family; None if it has no GPUDirect that is configured here."""
    return _STRATEGIES.get(family)


def networks_of(strategies: Iterable[Strategy | None]) -> tuple[GpuNetwork, ...]:
    """Return the networks of strategies, in the order of a node's interfaces."""
    used = set(strategies)
    return tuple(network for name, networks in _NETWORKS.items() if name in used for network in networks)


def vpcs_of(networks: Iterable[GpuNetwork]) -> dict[str, tuple[GpuNetwork, ...]]:
    """Return the networks by the end of their VPC's name."""
    return {vpc: tuple(group) for vpc, group in groupby(networks, attrgetter("vpc"))}


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """Additions to a pod that uses all GPUs of a node.

    Attributes:
        annotations: annotations of the pod.
        env: environment variables of its container.
        init_containers: sidecars.
        volumes: volumes of the node.
        mounts: mounts of the container.
    """

    annotations: dict[str, str]
    env: dict[str, str]
    init_containers: tuple[dict[str, Any], ...] = ()
    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()


def pod_needs(strategy: Strategy, family: str) -> PodNeeds:
    """Return the additions to a pod that uses all GPUs of a node."""
    interfaces = [
        {"interfaceName": "eth0", "network": "default"},
        *(
            {"interfaceName": network.interface, "network": network.name}
            for network in networks_of([strategy])
            if network.interface
        ),
    ]
    annotations = {
        "networking.gke.io/default-interface": "eth0",
        "networking.gke.io/interfaces": json.dumps(interfaces, separators=(",", ":")),
    }
    if strategy == "rdma":
        return PodNeeds(annotations, _rdma_env(family))
    devices = "".join(f"- path: {path}\n" for path in (*DEVICES, "/dev/dmabuf_import_helper"))
    annotations[f"devices.gke.io/container.{DAEMON}"] = devices
    directories = {
        "nvidia": _HOST_LIBRARIES,
        "sys": "/sys",
        "proc-sys": "/proc/sys",
        "aperture-devices": APERTURE,
    }
    return PodNeeds(
        annotations,
        _tcpxo_env(),
        (_daemon(),),
        tuple({"name": name, "hostPath": {"path": path}} for name, path in directories.items()),
        ({"name": "aperture-devices", "mountPath": APERTURE},),
    )


def _rdma_env(family: str) -> dict[str, str]:
    """Return NCCL's settings for gIB (AI Hypercomputer docs, nccl/overview and gke workloads, 2026): the
    installer's `set_nccl_env.sh`, with its directory in the one that the device plugin mounts."""
    return {
        "LD_LIBRARY_PATH": f"{_LIBRARIES}/lib64",
        "NCCL_NET": "gIB",
        "NCCL_CROSS_NIC": "0",
        "NCCL_NET_GDR_LEVEL": "PIX",
        "NCCL_P2P_NET_CHUNKSIZE": "131072",
        "NCCL_NVLS_CHUNKSIZE": "524288",
        "NCCL_IB_ADAPTIVE_ROUTING": "1",
        "NCCL_IB_QPS_PER_CONNECTION": "4",
        "NCCL_IB_TC": "52",
        "NCCL_IB_FIFO_TC": "84",
        "NCCL_TUNER_CONFIG_PATH": f"{_LIBRARIES}/gib/configs/{_TUNERS[family]}",
    }


def _tcpxo_env() -> dict[str, str]:
    """Return NCCL's settings for TCPXO (gpudirect-tcpxo/README.md, release of 2026-01-09)."""
    libraries = f"{_LIBRARIES}/lib64"
    return {
        "LD_LIBRARY_PATH": libraries,
        "NCCL_FASTRAK_CTRL_DEV": "eth0",
        "NCCL_FASTRAK_IFNAME": ",".join(network.interface for network in networks_of(["tcpxo"])),
        "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": APERTURE,
        "NCCL_FASTRAK_NUM_FLOWS": "2",
        "NCCL_FASTRAK_USE_SNAP": "1",
        "NCCL_FASTRAK_USE_LLCM": "1",
        "NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL": "0",
        "NCCL_FASTRAK_ENABLE_HOTPATH_LOGGING": "0",
        "NCCL_FASTRAK_PLUGIN_ACCEPT_TIMEOUT_MS": "600000",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_CROSS_NIC": "0",
        "NCCL_PROTO": "Simple,LL128",
        "NCCL_MIN_NCHANNELS": "4",
        "NCCL_TUNER_PLUGIN": "libnccl-tuner.so",
        "NCCL_TUNER_CONFIG_PATH": f"{libraries}/a3plus_tuner_config.textproto",
        "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE": f"{libraries}/a3plus_guest_config.textproto",
        "NCCL_NVLSTREE_MAX_CHUNKSIZE": "131072",
        "NCCL_P2P_NET_CHUNKSIZE": "524288",
        "NCCL_P2P_PCI_CHUNKSIZE": "524288",
        "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
        "NCCL_BUFFSIZE": "8388608",
        "NCCL_NET_GDR_LEVEL": "PIX",
        "NCCL_NVLS_ENABLE": "1",
    }


def _daemon() -> dict[str, Any]:
    """Return the sidecar that receives and sends for the GPUs of a pod.

    An init container that is restarted ends with the pod's work (gpudirect-tcpxo/best-practice.md).
    """
    image = f"us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:{PINS['tcpxo-daemon'].version}"
    script = "/fts/entrypoint_rxdm_container.sh"
    start = f"chmod 755 {script} && exec {script} --num_hops=2 --num_nics=8"
    return {
        "name": DAEMON,
        "image": image,
        "restartPolicy": "Always",
        "command": ["/bin/sh", "-c", start],
        "env": [{"name": "LD_LIBRARY_PATH", "value": f"{_LIBRARIES}/lib64"}],
        "securityContext": {"capabilities": {"add": ["NET_ADMIN", "NET_BIND_SERVICE"]}},
        "volumeMounts": [
            {"name": "nvidia", "mountPath": _LIBRARIES},
            {"name": "sys", "mountPath": "/hostsysfs"},
            {"name": "proc-sys", "mountPath": "/hostprocsysfs"},
        ],
    }
