"""Compare the pinned versions with the newest published ones: `python -m rehearsal.behind`.

Go modules are looked up in the first proxy of `GOPROXY`, Python packages in PyPI, tags on GitHub. Renovate
watches the same packages weekly, and images and charts besides (`renovate.json`). The exit status is 1 if a
pin is behind.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.request import urlopen

from ebbtide.declaration.catalog import PINS, Pin

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
        name: name of the pin.
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
    with urlopen(address, timeout=_TIMEOUT) as answer:  # noqa: S310 - the addresses above
        return answer.read().decode()


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


if __name__ == "__main__":
    sys.exit(1 if report(PINS) else 0)
