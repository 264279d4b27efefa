"""The stand-in cloud's process: `python -m ebbtide_rehearsal.cloud --directory DIR`.

It is told what `settings` has, says on which ports its providers listen, and ends when its standard input
does: with whoever started it, however that ends.
"""

import argparse
import contextlib
import os
import resource
import select
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Final

from ebbtide.recording import lazy_packages
from ebbtide_rehearsal.cloud.assembly import assembled
from ebbtide_rehearsal.cloud.protocol import serve
from ebbtide_rehearsal.cloud.settings import Settings, store_file, write_memory, write_ports
from ebbtide_rehearsal.cloud.store import Store

_LOOK_EVERY: Final = 2.0  # seconds
_KIB: Final = 1024


def main() -> None:
    """Be the cloud."""
    lazy_packages.install()
    asked = argparse.ArgumentParser(description="The stand-in cloud.")
    asked.add_argument("--directory", type=Path, required=True, help="Its own; see `settings`.")
    directory: Path = asked.parse_args().directory
    ending = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this ends it in order
    settings = Settings.read(directory)
    store = Store(store_file(directory), speed=settings.speed)
    with assembled(directory, settings, store) as cloud, contextlib.ExitStack() as serving:
        ports: dict[str, int] = {}
        for provider in cloud.providers:
            server, ports[provider.package] = serve(provider, store)
            serving.callback(server.stop, grace=None)
        write_ports(directory, ports)
        most = 0
        while not (ending.is_set() or _alone()):
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
            most = max(most, own + cloud.clusters.memory())
            write_memory(directory, most)


def _alone() -> bool:
    """Whether whoever started this has gone; looks for as long as between two looks at the memory."""
    readable, _, _ = select.select([sys.stdin], [], [], _LOOK_EVERY)
    return bool(readable) and not os.read(sys.stdin.fileno(), 1)


if __name__ == "__main__":
    main()
