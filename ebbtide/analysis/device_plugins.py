"""DaemonSets that install drivers or device plugins of GPUs on a stack's pools, beside those that the stack
or the cloud installs there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from ebbtide.analysis.reading.pools import read_pools
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.declaration.catalog.accelerators import AMD, NVIDIA, resource_name
from ebbtide.declaration.catalog.machines import ARCHITECTURE
from ebbtide.declaration.model.cluster import OPERATOR_NAMESPACE
from ebbtide.declaration.model.resolved_pool import NO_PLUGIN_LABEL, ResolvedPool
from ebbtide.text import and_list
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import Manifest
from ebbtide.values.selectors import selects_node, untolerated

DAEMON_SETS: Final = "/apis/apps/v1/daemonsets"
"""Path of all of them in the API."""
OF_DRIVERS: Final = "ebbtide:addons:Drivers"
"""Component that installs drivers and device plugins."""

Role: TypeAlias = Literal["device plugin", "driver installer"]

_PLUGIN: Final = "device plugin"
_KIND: Final = ("apps/v1", "DaemonSet")

_DIRECTORY: Final = "/var/lib/kubelet/device-plugins"
_PLUGIN_IMAGES: Final = {"k8s-device-plugin", "nvidia-gpu-device-plugin", "nvidia-device-plugin", "hami"}
"""Images of device plugins of GPUs, without their registry: NVIDIA's and AMD's, GKE's and HAMi's, which
register `nvidia.com/gpu` or `amd.com/gpu` (their manifests, 2026). Other plugins register other resources."""
_INSTALLERS: Final = {
    "cos-nvidia-installer",
    "gke-nvidia-installer",
    "cos-gpu-installer",
    "ubuntu-nvidia-driver-installer",
}
"""Images of Google's driver installers (GoogleCloudPlatform/container-engine-accelerators@992db812). The
driver of NVIDIA's operator is none of them: the operator keeps a driver that the node has already."""
_AMD_NAMES: Final = (AMD, "rocm")
_MANAGED: Final = ("addonmanager.kubernetes.io/mode", "kubernetes.azure.com/managedby")
"""Labels of what a cloud installs in kube-system (Kubernetes, addon-manager's README; azure-aks-docs,
2026)."""
_GKE_PLUGINS: Final = ("nvidia-gpu-device-plugin", "tpu-device-plugin")
"""Beginnings of the names of GKE's own DaemonSets in kube-system, such as
`nvidia-gpu-device-plugin-large-cos` (public listings of clusters up to 1.35)."""
_GKE_PLUGIN: Final = "GKE's device plugin"
_DAEMON_SET: Final = "kubernetes:apps/v1:DaemonSet"
_DRIVER_VERSION: Final = "cloud.google.com/gke-gpu-driver-version"
"""Label of the nodes on which GKE installs the driver: Google's installers avoid it (as above,
daemonset-preloaded.yaml)."""
_LABELLERS: Final = ("nvidia.com", "amd.com", "node.kubernetes.io", "cloud.google.com", "azure.com")
"""Endings of the domains of labels that the clouds, node feature discovery and NVIDIA's operator add."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A DaemonSet that would do what is done on some pools already.

    Attributes:
        pools: names of the pools.
        urns: their resources.
        is_certain: False if that depends on labels of nodes that a declaration does not tell.
        problem: which it is, and the consequence.
        fix: what to write or to run instead.
    """

    pools: tuple[str, ...]
    urns: frozenset[str]
    is_certain: bool
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.problem} {self.fix}"


@dataclass(frozen=True, slots=True)
class _Installer:
    """An installer of drivers or a device plugin on some pools.

    Attributes:
        title: its name, for messages.
        vendor: vendor of its GPUs.
    """

    title: str
    role: Role
    vendor: str
    pools: Mapping[str, bool]
    """By the pool's name: true if it runs there for certain."""


def has_gpus(recording: Recording) -> bool:
    """Return whether a program has pools with GPUs."""
    return any(pool.has_gpus for pool in read_pools(recording))


def conflicts(recording: Recording, daemon_sets: Iterable[Manifest]) -> Iterator[Conflict]:
    """Yield the DaemonSets that would run beside a driver or device plugin of the stack or the cloud.

    Args:
        recording: the stack's program.
        daemon_sets: the cluster's DaemonSets; those of the stack and of the cloud are ignored.
    """
    pools = [pool for pool in read_pools(recording) if pool.has_gpus]
    own = list(_own(recording, pools))
    for manifest in _foreign(recording, daemon_sets):
        found = _installer(manifest, pools)
        if found is None:
            continue
        for other in own:
            if (found.role, found.vendor) != (other.role, other.vendor):
                continue
            both = {name: is_known for name, is_known in found.pools.items() if name in other.pools}
            for is_certain in dict.fromkeys(both.values()):
                names = tuple(name for name, is_known in both.items() if is_known is is_certain)
                urns = frozenset(pool.urn for pool in pools if pool.name in names)
                problem = _problem(manifest, other, names, is_certain=is_certain)
                yield Conflict(names, urns, is_certain, problem, _fix(manifest, other))


def of_others(recording: Recording, daemon_sets: Iterable[Manifest]) -> Iterator[str]:
    """Yield sentences about the drivers and device plugins that others install on the stack's pools.

    Args:
        recording: as for `conflicts`.
        daemon_sets: as for `conflicts`; all of the cluster's.
    """
    listed = list(daemon_sets)
    yield from map(str, conflicts(recording, listed))
    pools = [pool for pool in read_pools(recording) if pool.has_gpus]
    own = {name for item in _own(recording, pools) if item.role == _PLUGIN for name in item.pools}
    found = (_installer(manifest, pools) for manifest in _foreign(recording, listed))
    titles = {name: item.title for item in found if item and item.role == _PLUGIN for name in item.pools}
    for pool in pools:
        if pool.name in own:
            continue
        resource = resource_name(pool.accelerator_type)
        where = f"registers {resource} on the nodes of pool {pool.name}"
        yield (
            f"{titles[pool.name]} {where}, and stays as it is."
            if pool.name in titles
            else f"No DaemonSet {where}: unless the nodes do so themselves, pods that request it stay "
            "pending."
        )


def daemon_sets_of(document: object) -> tuple[Manifest, ...]:
    """Return the DaemonSets in a document, as `kubectl get --output json` prints one object or a List."""
    if not isinstance(document, Mapping):
        return ()
    whole = cast("Manifest", document)
    items = whole.get("items", [whole])
    listed = cast("list[object]", items) if isinstance(items, list) else []
    objects = (cast("Manifest", item) for item in listed if isinstance(item, Mapping))
    return tuple(item for item in objects if (item.get("apiVersion"), item.get("kind")) == _KIND)


def _foreign(recording: Recording, daemon_sets: Iterable[Manifest]) -> Iterator[Manifest]:
    """Yield the DaemonSets that neither the stack nor the cloud has created."""
    own = {_place(item.inputs) for item in recording.of_type(_DAEMON_SET)}
    has_operator = any(True for _ in _operators(recording))
    for manifest in daemon_sets:
        namespace, name = _place(manifest)
        labels = part(manifest, "metadata", "labels")
        is_clouds = namespace == "kube-system" and (
            any(label in labels for label in _MANAGED) or name.startswith(_GKE_PLUGINS)
        )
        if (
            not is_clouds
            and (namespace, name) not in own
            and not (has_operator and namespace == OPERATOR_NAMESPACE)
        ):
            yield manifest


def _own(recording: Recording, pools: Sequence[ResolvedPool]) -> Iterator[_Installer]:
    """Yield the drivers and device plugins of the stack and of the cloud on its pools."""
    for resource in recording.of_type(_DAEMON_SET):
        if installer := _installer(resource.inputs, pools):
            yield installer
    of_nvidia = [pool for pool in pools if not pool.has_amd_gpus]
    if any(True for _ in _operators(recording)):
        driven = {pool.name: True for pool in of_nvidia if not pool.has_cloud_driver}
        yield _Installer("the stack's NVIDIA GPU Operator", _PLUGIN, NVIDIA, driven)
    on_gke = [pool for pool in of_nvidia if pool.site.cloud is CloudKind.GKE]
    served = {pool.name: True for pool in on_gke if pool.labels.get(NO_PLUGIN_LABEL) != "true"}
    yield _Installer(_GKE_PLUGIN, _PLUGIN, NVIDIA, served)
    driven = {pool.name: True for pool in on_gke if pool.has_cloud_driver}
    yield _Installer("GKE's driver", "driver installer", NVIDIA, driven)


def _operators(recording: Recording) -> Iterator[Resource]:
    """Yield the charts of NVIDIA's operator."""
    return (item for item in recording if item.inputs.get("chart") == "gpu-operator")


def _place(manifest: Manifest) -> tuple[str, str]:
    return text(manifest, "metadata", "namespace"), text(manifest, "metadata", "name")


def _installer(manifest: Manifest, pools: Sequence[ResolvedPool]) -> _Installer | None:
    """Return the driver installer or device plugin that a DaemonSet is, on the pools whose nodes it selects
    and whose taints it tolerates; None for any other."""
    spec = part(manifest, "spec", "template", "spec")
    containers = (*parts(spec, "initContainers"), *parts(spec, "containers"))
    images = [text(item, "image") for item in containers]
    names = {image.rpartition("/")[2].partition("@")[0].partition(":")[0] for image in images}
    directories = (text(volume, "hostPath", "path").rstrip("/") for volume in parts(spec, "volumes"))
    role: Role
    if names & _PLUGIN_IMAGES and _DIRECTORY in directories:
        role = _PLUGIN
    elif names & _INSTALLERS:
        role = "driver installer"
    else:
        return None
    namespace, name = _place(manifest)
    is_amd = any(word in written for word in _AMD_NAMES for written in (name, *images))
    vendor = AMD if is_amd else NVIDIA
    admitted = (
        (pool.name, selects_node(spec, _labels(pool), _is_unknown))
        for pool in pools
        if pool.has_amd_gpus is is_amd and not any(untolerated(spec, pool.labels_and_taints.all_taints))
    )
    fits = {pool: selected is True for pool, selected in admitted if selected is not False}
    return _Installer(f"DaemonSet {name} in {namespace}", role, vendor, fits)


def _labels(pool: ResolvedPool) -> dict[str, str]:
    """Return the labels of a pool's nodes that are known."""
    is_by_gke = pool.site.cloud is CloudKind.GKE and pool.has_cloud_driver
    version = {_DRIVER_VERSION: pool.accelerator.driver or ""} if is_by_gke and pool.accelerator else {}
    absent = {ARCHITECTURE: pool.architecture, "kubernetes.io/os": "linux"}
    return {**absent, **version, **pool.labels_and_taints.all_labels}


def _is_unknown(label: str) -> bool:
    return label.partition("/")[0].endswith(_LABELLERS)


def _problem(manifest: Manifest, other: _Installer, pools: Sequence[str], *, is_certain: bool) -> str:
    namespace, name = _place(manifest)
    may = "would" if is_certain else "may"
    where = f"{'pool' if len(pools) == 1 else 'pools'} {and_list(pools)}"
    beside = f"DaemonSet {name} in {namespace} {may} run on the nodes of {where}, beside {other.title}."
    effect = (  # Kubernetes 1.36, pkg/kubelet/cm/devicemanager/manager.go: PluginDisconnected
        "Both write GKE's directory of the driver and load it: with two versions, pods fail because the "
        "libraries do not match the driver."
        if other.role == "driver installer"
        else f"Both register {other.vendor}.com/gpu with the kubelet, which counts the node's GPUs as "
        "unhealthy when either restarts: pods that request them stay pending until one registers again."
    )
    return f"{beside} {effect}"


def _fix(manifest: Manifest, other: _Installer) -> str:
    keep = "Write `addons: {drivers: none}`, and no `driver` in the pool, to leave these nodes to it"
    if other.title == _GKE_PLUGIN:
        keep += f', and the label `{NO_PLUGIN_LABEL}: "true"` in the pool to keep GKE\'s off'
    return f"{keep}; or {_removal(manifest)}."


def _removal(manifest: Manifest) -> str:
    """Return how its owner removes a DaemonSet."""
    namespace, name = _place(manifest)
    owners = [text(owner, "kind") for owner in parts(manifest, "metadata", "ownerReferences")]
    release = part(manifest, "metadata", "annotations").get("meta.helm.sh/release-name")
    if owners:
        return f"let its owner remove the {and_list(owners)} that manages it"
    command = (
        f"helm uninstall {release} --namespace {namespace}"
        if release
        else f"kubectl delete daemonset {name} --namespace {namespace}"
    )
    return f"remove it with `{command}`"
