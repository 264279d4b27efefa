"""The stand-in cloud put together: its providers, control planes and what goes on in node pools."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ebbtide.catalog.versions import PINS
from ebbtide_rehearsal.cloud.azure import AzureProvider
from ebbtide_rehearsal.cloud.control_planes import ControlPlanes
from ebbtide_rehearsal.cloud.existing import make
from ebbtide_rehearsal.cloud.gcp import Gcp
from ebbtide_rehearsal.cloud.kubernetes.provider import KubernetesProvider
from ebbtide_rehearsal.cloud.kubernetes.sources import Sources, indexed
from ebbtide_rehearsal.cloud.nodes.loop import Nodes
from ebbtide_rehearsal.cloud.nodes.settings import Settings as NodeSettings
from ebbtide_rehearsal.cloud.provider import Provider
from ebbtide_rehearsal.cloud.settings import Settings
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane import ControlPlane

_CHARTS: Final = {
    "oci://registry.k8s.io/kueue/charts/kueue": "kueue-chart",
    "oci://ghcr.io/kubeflow/charts/kubeflow-trainer": "trainer-chart",
}
"""Where the tools have the charts that the program installs, by its address."""

_KUSTOMIZATIONS: Final = {
    f"github.com/kubeflow/katib/manifests/v1beta1/installs/katib-standalone?ref=v{PINS['katib'].version}": (
        "katib-manifests",
        "installs/katib-standalone",
    ),
    f"github.com/kubeflow/trainer/manifests/overlays/runtimes?ref=v{PINS['trainer'].version}": (
        "trainer-manifests",
        "overlays/runtimes",
    ),
}
"""The same of kustomizations: the data, and the directory in it."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """The cloud.

    Attributes:
        providers: one a package.
        clusters: the control planes.
    """

    providers: Sequence[Provider]
    clusters: ControlPlanes


@contextmanager
def assembled(directory: Path, settings: Settings, store: Store) -> Generator[Assembled]:
    """Put the cloud together; its control planes end with the block.

    Args:
        directory: its own.
        settings: what it is told.
        store: its memory.

    Raises:
        KeyError: it is not told of a tool that it cannot do without.
        RefusedError: what is said to exist already cannot.
    """

    def nodes(identity: str, cloud: Literal["gke", "aks"], plane: ControlPlane) -> Nodes:
        pods = plane.plan.directory / "processes"
        return Nodes(identity, cloud, plane.api, store, pods, NodeSettings.at(settings.speed))

    clusters = ControlPlanes(directory, Path(os.environ["SSL_CERT_FILE"]), settings, store, nodes)
    try:
        if settings.declaration:
            make(settings.declaration, store, clusters)
        yield Assembled(
            (
                Gcp(store, clusters),
                AzureProvider(store, clusters),
                KubernetesProvider(store, _sources(settings)),
            ),
            clusters,
        )
    finally:
        clusters.stop()


def _sources(told: Settings) -> Sources:
    """Charts and kustomizations that are at hand: what the tools have of them, and the user's."""
    kustomizations = {
        address: told.path(data) / path
        for address, (data, path) in _KUSTOMIZATIONS.items()
        if data in told.tools
    }
    for directory in told.manifests:
        kustomizations |= indexed(Path(directory))
    return Sources(
        helm=told.path("helm"),
        kubectl=told.path("kubectl"),
        charts={address: told.path(data) for address, data in _CHARTS.items() if data in told.tools},
        chart_directories=tuple(Path(directory) for directory in told.charts),
        kustomizations=kustomizations,
    )
