"""Released binaries, pinned by the hashes that their projects publish: `releases.csv`.

A program whose patches change its behavior has no row and is built: kwok. The release of the Kubernetes
provider is of the commit that is built (its tag v4.25.0 is f47bc2d6), whose patches only name embedded files.
"""

import csv
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ebbtide_rehearsal.tools.errors import ToolError
from ebbtide_rehearsal.tools.items import Item

MIRROR: Final = "EBBTIDE_RELEASES"
_OFF: Final = "off"
_TABLE: Final = Path(__file__).with_name("releases.csv")
_ARCHITECTURES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Release:
    """A released binary.

    Attributes:
        program: the tool's name.
        platform: operating system and architecture as Go names them: `linux-amd64`.
        version: its version.
        url: the address of the binary or archive.
        digest: `sha256:` or `sha512:` and the hexadecimal hash of what the address serves.
        member: the program's path in the archive; empty if the address serves the program itself.
        source: where the hash was read.
    """

    program: str
    platform: str
    version: str
    url: str
    digest: str
    member: str
    source: str

    @property
    def key(self) -> str:
        """Return the name of its directory in the cache."""
        return f"{self.program}-{self.version}-{self.digest.partition(':')[2][:12]}"


@cache
def releases() -> tuple[Release, ...]:
    """Return all rows of the table."""
    with _TABLE.open(encoding="utf-8", newline="") as rows:
        return tuple(Release(**row) for row in csv.DictReader(rows))


def release_of(item: Item) -> Release | None:
    """Return the release of a tool for this machine; None if it must be built."""
    machine = platform.machine().lower()
    here = f"{platform.system().lower()}-{_ARCHITECTURES.get(machine, machine)}"
    return next((row for row in releases() if (row.program, row.platform) == (item.name, here)), None)


def downloadable(items: Iterable[Item]) -> dict[str, Release]:
    """Return the releases of tools by name, none if `$EBBTIDE_RELEASES` is `off`."""
    if os.environ.get(MIRROR) == _OFF:
        return {}
    return {item.name: release for item in items if (release := release_of(item))}


def address(url: str) -> str:
    """Return where a release is downloaded: its own address, or the host and path below `$EBBTIDE_RELEASES`.

    Raises:
        ToolError: the variable is not an address.
    """
    mirror = os.environ.get(MIRROR)
    if not mirror:
        return url
    if urlsplit(mirror).scheme not in {"http", "https"}:
        raise ToolError(
            f"{MIRROR} is {mirror!r}: write the http or https address of a mirror of released binaries, or "
            f"{_OFF} to build from Go modules."
        )
    return f"{mirror.rstrip('/')}/{url.partition('://')[2]}"
