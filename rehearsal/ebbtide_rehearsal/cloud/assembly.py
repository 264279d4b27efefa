"""The stand-in cloud put together: its providers, control planes and what goes on in node pools."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ebbtide_rehearsal.cloud.azure import AzureProvider
from ebbtide_rehearsal.cloud.control_planes import ControlPlanes
from ebbtide_rehearsal.cloud.existing import make
from ebbtide_rehearsal.cloud.gcp import Gcp
from ebbtide_rehearsal.cloud.nodes.loop import Nodes
from ebbtide_rehearsal.cloud.nodes.settings import Settings as NodeSettings
from ebbtide_rehearsal.cloud.provider import Provider
from ebbtide_rehearsal.cloud.settings import Settings
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane import ControlPlane


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
        yield Assembled((Gcp(store, clusters), AzureProvider(store, clusters)), clusters)
    finally:
        clusters.stop()
