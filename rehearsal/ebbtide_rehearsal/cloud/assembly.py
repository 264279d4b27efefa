"""Assembly of the fake cloud: its providers, control planes and node pools."""

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
from ebbtide_rehearsal.cloud.nodes.loop import NodeLoop
from ebbtide_rehearsal.cloud.nodes.processes import PROCESSES
from ebbtide_rehearsal.cloud.nodes.settings import NodeSettings
from ebbtide_rehearsal.cloud.provider import Provider
from ebbtide_rehearsal.cloud.settings import CloudSettings
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane import ControlPlane


@dataclass(frozen=True, slots=True)
class Assembled:
    """The assembled cloud.

    Attributes:
        providers: one provider per package.
        clusters: the control planes.
    """

    providers: Sequence[Provider]
    clusters: ControlPlanes


@contextmanager
def assembled(directory: Path, settings: CloudSettings, store: Store) -> Generator[Assembled]:
    """Assemble the cloud; its control planes end with the block.

    Args:
        directory: directory of the cloud.
        settings: its settings.
        store: its state.

    Raises:
        KeyError: the settings lack a required tool.
        RefusedError: an existing resource of the declaration cannot be created.
    """

    def nodes(identity: str, cloud: Literal["gke", "aks"], plane: ControlPlane) -> NodeLoop:
        pods = plane.plan.directory / PROCESSES
        return NodeLoop(identity, cloud, plane.api, store, pods, NodeSettings.at(settings.speed))

    clusters = ControlPlanes(directory, Path(os.environ["SSL_CERT_FILE"]), settings, store, nodes)
    try:
        if settings.declaration:
            make(settings.declaration, store, clusters)
        yield Assembled((Gcp(store, clusters), AzureProvider(store, clusters)), clusters)
    finally:
        clusters.stop()
