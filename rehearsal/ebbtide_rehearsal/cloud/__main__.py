"""Process of the fake cloud: `python -m ebbtide_rehearsal.cloud --directory DIR`.

It reads `settings` from its directory, writes the addresses of its providers there, and ends when its
standard input closes, which also happens if its parent process is killed.
"""

import argparse
import os
import resource
import select
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

from ebbtide import lazy_packages
from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide_rehearsal.cloud.control_planes import ControlPlanes
from ebbtide_rehearsal.cloud.existing import make
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.ids import AZURE, GCP
from ebbtide_rehearsal.cloud.node_pools.loop import NodeLoop
from ebbtide_rehearsal.cloud.node_pools.pod_processes import PROCESSES
from ebbtide_rehearsal.cloud.protocol import serving
from ebbtide_rehearsal.cloud.running import MEMORY, PROVIDERS, CloudSettings, store_file, write
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import CloudName

_LOOK_EVERY: Final = 2.0  # seconds
_KIB: Final = 1024


def main() -> None:
    """Run the cloud."""
    lazy_packages.install()
    parser = argparse.ArgumentParser(description="The fake cloud.")
    parser.add_argument("--directory", type=Path, required=True, help="Its own; see `settings`.")
    directory: Path = parser.parse_args().directory
    ending = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops it
    settings = CloudSettings.read(directory)
    store = Store(store_file(directory), speed=settings.speed)

    def nodes(identity: str, cloud: CloudName, plane: ControlPlane) -> Callable[[threading.Event], None]:
        pods, sessions, speed = plane.plan.directory / PROCESSES, plane.plan.sessions, settings.speed
        return NodeLoop(identity, cloud, plane.api, store, pods, sessions, NodeSettings.at(speed)).run

    clusters = ControlPlanes(directory, Path(os.environ["SSL_CERT_FILE"]), settings, store, nodes)
    try:
        if settings.declaration:
            make(settings.declaration, store, clusters, settings.tools)
        clouds = (FakeProvider(package, store, clusters) for package in (GCP, AZURE))
        with serving(store, *clouds) as providers:
            write(directory, PROVIDERS, providers)
            most = 0
            while not (ending.is_set() or _alone()):
                own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
                most = max(most, own + clusters.memory())
                write(directory, MEMORY, most)
    finally:
        clusters.stop()


def _alone() -> bool:
    """Return whether the parent has ended; wait for one interval of the memory measurement."""
    readable, _, _ = select.select([sys.stdin], [], [], _LOOK_EVERY)
    return bool(readable) and not os.read(sys.stdin.fileno(), 1)


if __name__ == "__main__":
    main()
