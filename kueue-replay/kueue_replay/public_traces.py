"""Public traces: their sources, pinned by commit and hash, and their download.

None of them is part of this distribution. Licences were read at the commits, 2026-11.
"""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from ebbtide.text import did_you_mean
from ebbtide_rehearsal import RehearsalError

SITE: Final = "https://raw.githubusercontent.com"
_TIMEOUT: Final = 60
_LARGEST: Final = 1 << 24


class PublicTraceError(RehearsalError):
    """A public trace is unknown or cannot be fetched."""

    rule = "public-trace"


@dataclass(frozen=True, slots=True)
class PublicTrace:
    """A public trace.

    Attributes:
        commit: commit of the pinned version.
        sha256: hash of the file.
        member: the member of the file, which is an archive; empty for the file itself.
    """

    repository: str
    commit: str
    path: str
    sha256: str
    licence: str
    content: str
    member: str = ""

    @property
    def location(self) -> str:
        """Repository, commit and path, as a part of an address."""
        return f"{self.repository}/{self.commit}/{self.path}"

    @property
    def file_name(self) -> str:
        """Default name of the written file."""
        return "spot.json" if self.member else Path(self.path).name


TRACES: Final[Mapping[str, PublicTrace]] = {
    "philly": PublicTrace(
        "pkusys/ElasticFlow",
        "04a0109a6acdd7d89f4cb31b6a6a7a128bee6bb0",
        "pollux/pollux_simulator/traces/philly.csv",
        "ebffb3dd1589bdf4e7bcd74496201c5ded1d557d498ee14f560463f37ec353da",
        "Apache-2.0",
        "82,247 GPU jobs of Microsoft's Philly, 2017",
    ),
    "pai": PublicTrace(
        "umassos/GAIA",
        "62a5efccb20fa04d6e507e12350eb4468eab9888",
        "src/cluster_traces/pai-100k.csv",
        "b2325599b3b3ac19dcf7377f2452633f9c02cd0e4a8f1e0cf553f63b68558a2d",
        "MIT",
        "99,998 jobs sampled from Alibaba's PAI, 2020, as CPUs",
    ),
    "openb": PublicTrace(
        "alibaba/clusterdata",
        "7a6c496e4f4b6ce6150be8f881cb051bf2abff42",
        "cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv",
        "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
        "for research and study",
        "8,152 pods of Alibaba's GPU cluster, 2023",
    ),
    "spot": PublicTrace(
        "FrontierCS/Frontier-CS",
        "4d508c1954766e0dda0347e1f14946978ef6b761",
        "research/problems/cant_be_late/common/real_traces.tar.gz",
        "95d73bd1849e904643800686a90762a2c176e32166a271b0cbe267e20bb5fc61",
        "MIT",
        "availability of a V100 spot machine, 4 days, for --cloud-model",
        "real/ddl=search+task=48+overhead=0.02/real/us-west-2a_v100_1/traces/random_start/0.json",
    ),
}
"""Public traces by name."""


def public_trace(name: str) -> PublicTrace:
    """Return a public trace by name.

    Raises:
        PublicTraceError: there is none.
    """
    if name not in TRACES:
        known = ", ".join(TRACES)
        raise PublicTraceError(f"There is no public trace {name}{did_you_mean(name, TRACES)} Known: {known}.")
    return TRACES[name]


def fetch(trace: PublicTrace, path: Path, site: str = SITE) -> None:
    """Download a public trace to a file, after a check of its hash.

    Raises:
        PublicTraceError: it cannot be downloaded, or has another content.
    """
    address = f"{site}/{trace.location}"
    advice = f"Download {address} by other means: its SHA-256 is {trace.sha256}."
    try:
        with urlopen(address, timeout=_TIMEOUT) as response:  # noqa: S310 - the site is https
            content: bytes = response.read(_LARGEST)
    except (URLError, TimeoutError, OSError) as error:
        if isinstance(error, HTTPError):
            error.close()  # It is an open response, of which Python 3.14 warns.
        reason = error.reason if isinstance(error, URLError) else error
        raise PublicTraceError(f"{address} cannot be downloaded: {reason}. {advice}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != trace.sha256:
        raise PublicTraceError(
            f"{address} has SHA-256 {found} instead of {trace.sha256}, so nothing was written. Report it."
        )
    path.write_bytes(_member(content, trace.member) if trace.member else content)


def _member(archive: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        file = members.extractfile(name)
        assert file is not None  # noqa: S101 # the archive's hash is pinned
        return file.read()
