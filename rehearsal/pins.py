"""The pinned versions: `python -m rehearsal.pins` compares them with the newest published ones, and
`python -m rehearsal.pins NAME VERSION` moves one, with what it determines, as the first step of `make pin`.

Go modules are looked up in the first proxy of `GOPROXY`, Python packages in PyPI, tags on GitHub. Renovate
watches the same packages weekly, and images and charts besides (`renovate.json`). The exit status is 1 if a
pin is behind.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ebbtide.declaration.catalog.versions import PINS, Pin
from ebbtide_rehearsal.tools.items import Tool
from ebbtide_rehearsal.tools.table import all_items

_ROOT: Final = Path(__file__).parent.parent
VERSIONS: Final = _ROOT / "ebbtide/declaration/catalog/versions.py"

_RELEASE: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_TIMEOUT: Final = 20.0


def _proxy() -> str:
    first = re.split(r"[,|]", os.environ.get("GOPROXY", ""))[0]
    return first.rstrip("/") if first.startswith("http") else "https://proxy.golang.org"


def _module(name: str) -> str:
    """Return a module's name in a proxy: upper case as `!` and lower case (go.dev/ref/mod, 2026)."""
    return re.sub("[A-Z]", lambda letter: f"!{letter[0].lower()}", name)


def _go(name: str, read: Callable[[str], str]) -> list[str]:
    return read(f"{_proxy()}/{_module(name)}/@v/list").split()


def _pypi(name: str, read: Callable[[str], str]) -> list[str]:
    return list(json.loads(read(f"https://pypi.org/pypi/{name}/json"))["releases"])


def _github_tags(name: str, read: Callable[[str], str]) -> list[str]:
    return [tag["name"] for tag in json.loads(read(f"https://api.github.com/repos/{name}/tags?per_page=100"))]


_DATASOURCES: Final = {"go": _go, "pypi": _pypi, "github-tags": _github_tags}


@dataclass(frozen=True, slots=True)
class Behind:
    """A pin and what is published.

    Attributes:
        pinned: its version.
        newest: the newest release; None if the lookup failed.
        problem: why the lookup failed.
    """

    name: str
    pinned: str
    newest: str | None
    problem: str = ""

    @property
    def is_behind(self) -> bool:
        """True if a later release than the pinned one is published."""
        return self.newest is not None and order(self.newest) > order(self.pinned)


def order(version: str) -> tuple[int, ...]:
    """Return the numbers of a release, in which releases are ordered; empty for others."""
    match = _RELEASE.fullmatch(version)
    return tuple(map(int, match.groups())) if match else ()


def behind(pins: Mapping[str, Pin], read: Callable[[str], str]) -> Iterator[Behind]:
    """Yield the pins with a known list of versions, and the newest release of each; pre-releases do not
    count.

    Args:
        pins: the pins by name.
        read: returns the text at an address; raises `OSError` or `ValueError` if there is none.
    """
    for name, pin in pins.items():
        datasource, _, package = pin.package.partition(":")
        if datasource not in _DATASOURCES:
            continue
        try:
            published = _DATASOURCES[datasource](package, read)
        except (OSError, ValueError, KeyError) as error:
            yield Behind(name, pin.version, None, str(error))
        else:
            newest = max((item for item in published if order(item)), key=order, default=None)
            yield Behind(name, pin.version, newest and newest.removeprefix("v"), "no release is listed")


def _read(address: str) -> str:
    try:
        with urlopen(address, timeout=_TIMEOUT) as answer:  # noqa: S310 - the addresses above
            return answer.read().decode()
    except HTTPError as error:
        error.close()  # It is an open answer, of which Python 3.14 warns.
        raise


def report(pins: Mapping[str, Pin]) -> int:
    """Print the pins that are behind or could not be looked up; return the number of those behind."""
    found = list(behind(pins, _read))
    for item in found:
        if item.newest is None:
            sys.stdout.write(f"{item.name} {item.pinned}: unknown ({item.problem})\n")
        elif item.is_behind:
            sys.stdout.write(f"{item.name} {item.pinned}: {item.newest} is published\n")
    late = sum(item.is_behind for item in found)
    sys.stdout.write(f"{late} of {len(found)} pins {'is' if late == 1 else 'are'} behind.\n")
    return late


def _released(pin: Pin, version: str, read: Callable[[str], str]) -> str:
    """Return the day on which a Go module's version was tagged; raises `OSError` if there is none."""
    _, _, package = pin.package.partition(":")
    return json.loads(read(f"{_proxy()}/{_module(package)}/@v/v{version}.info"))["Time"][:10]


def _commit(pin: Pin, version: str, read: Callable[[str], str]) -> str:
    repository = "/".join(pin.package.partition(":")[2].removeprefix("github.com/").split("/")[:2])
    tag = f"v{version}" if pin.package.startswith("go:") else version
    return json.loads(read(f"https://api.github.com/repos/{repository}/commits/{tag}"))["sha"]


def _digest(pin: Pin, version: str) -> str:
    """Return the digest of a chart in its registry, which the pin's source names first."""
    host, _, path = pin.source.partition(";")[0].partition("/")
    request = Request(
        f"https://{host}/v2/{path}/manifests/{version}",
        headers={"Accept": "application/vnd.oci.image.manifest.v1+json"},
        method="HEAD",
    )
    with urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310 - https
        return answer.headers["Docker-Content-Digest"]


def moved(text: str, name: str, old: Pin, new: Pin) -> str:
    """Return the source of the catalog's versions with a pin moved."""
    begin = text.index(f'    "{name}": Pin(')
    end = text.index('\n    "', begin + 1) if '\n    "' in text[begin + 1 :] else len(text)
    block = text[begin:end]
    for field in ("version", "as_of", "commit", "digest"):
        block = block.replace(f'"{getattr(old, field)}"', f'"{getattr(new, field)}"', 1)
    return text[:begin] + block + text[end:]


def move(name: str, version: str, digest: str = "") -> None:
    """Move a pin of a Go module to another version: its date, digest and commit, go.mod and go.sum.

    Args:
        version: the new version, as the pin has it.
        digest: the digest of its chart; by default the one in its registry.

    Raises:
        OSError: there is no such version, or the registry or GitHub cannot be reached.
        subprocess.CalledProcessError: Go could not resolve the module.
    """
    old = PINS[name]
    package = old.package.removeprefix("go:")
    new = replace(
        old,
        version=version,
        as_of=_released(old, version.removeprefix("v"), _read),
        commit=_commit(old, version, _read) if old.commit else "",
        digest=(digest or _digest(old, version)) if old.digest else "",
    )
    tools = [item for item in all_items().values() if isinstance(item, Tool)]
    for file in _ROOT.glob("rehearsal/**/go.mod"):
        if f"{package} v{old.version}" in file.read_text():
            built = [tool.package for tool in tools if tool.group == file.parent.name]
            for command in (["get", f"{package}@v{version}"], ["list", "-mod=mod", "-deps", *built]):
                subprocess.run(["go", *command], cwd=file.parent, check=True, stdout=subprocess.DEVNULL)  # noqa: S603, S607
            sys.stdout.write(f"{file.relative_to(_ROOT)}: {package} {version}\n")
    VERSIONS.write_text(moved(VERSIONS.read_text(), name, old, new))


def main(arguments: list[str]) -> int:
    """Compare the pins, or move the one of the arguments; return the exit status."""
    if not arguments:
        return 1 if report(PINS) else 0
    try:
        move(*arguments)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"{arguments[0]} stays at {PINS[arguments[0]].version}: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
