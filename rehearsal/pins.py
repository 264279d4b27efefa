"""The pinned versions: `python -m rehearsal.pins` compares them with the newest published ones, `python -m
rehearsal.pins NAME VERSION` moves one, with what it determines, as the first step of `make pin`, and `python
-m rehearsal.pins NAME` lists what is left to do by hand, as its last one.

Go modules are looked up in the first proxy of `GOPROXY`, Python packages in PyPI, tags on GitHub. Renovate
watches the same packages weekly, and images and charts besides (`renovate.json`). The exit status is 1 if a
pin is behind.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ebbtide.declaration.catalog.versions import PINS, Pin
from ebbtide_rehearsal.tools.items import Tool
from ebbtide_rehearsal.tools.table import all_items

_ROOT: Final = Path(__file__).parent.parent
VERSIONS: Final = _ROOT / "ebbtide/declaration/catalog/versions.py"

_SEARCHED: Final = (
    ".",
    *(
        f":!{path}"
        for path in ("CHANGELOG.md", "*.sum", "*package-lock.json", "tests/examples/golden", "*/released/*")
    ),
)
"""Files that may have a pin's version: not the history, nor what is written from elsewhere."""
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


def _pypi(name: str, read: Callable[[str], str]) -> dict[str, list[dict[str, str]]]:
    return json.loads(read(f"https://pypi.org/pypi/{name}/json"))["releases"]


def _github_tags(name: str, read: Callable[[str], str]) -> list[str]:
    return [tag["name"] for tag in json.loads(read(f"https://api.github.com/repos/{name}/tags?per_page=100"))]


_DATASOURCES: Final[dict[str, Callable[[str, Callable[[str], str]], Iterable[str]]]] = {
    "go": _go,
    "pypi": _pypi,
    "github-tags": _github_tags,
}


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


def read(request: str | Request, header: str = "") -> str:
    """Return the text at an address, or a header of the answer; an error names the address."""
    address = request if isinstance(request, str) else request.full_url
    try:
        with urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310 - the addresses of this module
            return answer.headers[header] if header else answer.read().decode()
    except HTTPError as error:
        error.close()  # It is an open answer, of which Python 3.14 warns.
        raise OSError(f"{address}: {error}") from None
    except URLError as error:
        raise OSError(f"{address}: {error.reason}") from None
    except OSError as error:
        raise OSError(f"{address}: {error}") from None


def report(pins: Mapping[str, Pin]) -> int:
    """Print the pins that are behind or could not be looked up; return the number of those behind."""
    found = list(behind(pins, read))
    for item in found:
        if item.newest is None:
            sys.stdout.write(f"{item.name} {item.pinned}: unknown ({item.problem})\n")
        elif item.is_behind:
            sys.stdout.write(f"{item.name} {item.pinned}: {item.newest} is published\n")
    late = sum(item.is_behind for item in found)
    sys.stdout.write(f"{late} of {len(found)} pins {'is' if late == 1 else 'are'} behind.\n")
    return late


def _tag(repository: str, tag: str, read: Callable[[str], str]) -> tuple[str, str]:
    """Return the day and the hash of the commit of a tag on GitHub."""
    found = json.loads(read(f"https://api.github.com/repos/{repository}/commits/{tag}"))
    return found["commit"]["committer"]["date"][:10], found["sha"]


def released(pin: Pin, version: str, read: Callable[[str], str]) -> tuple[str, str]:
    """Return the day of a release, and the commit of its tag if the pin has one.

    A proxy has the hash of the module's origin (go.dev/ref/mod, `$module/@v/$version.info`); GitHub is asked
    for it if it has not.

    Raises:
        OSError: there is no such version, or its host cannot be reached.
        ValueError: versions of the pin's package are not looked up here.
    """
    datasource, _, package = pin.package.partition(":")
    if datasource == "go":
        info = json.loads(read(f"{_proxy()}/{_module(package)}/@v/v{version}.info"))
        commit = info.get("Origin", {}).get("Hash", "")
        if pin.commit and not commit:
            repository = "/".join(package.removeprefix("github.com/").split("/")[:2])
            _, commit = _tag(repository, f"v{version}", read)
        return info["Time"][:10], pin.commit and commit
    if datasource == "github-tags":
        return _tag(package, version, read)
    if datasource == "pypi":
        if not (files := _pypi(package, read).get(version)):
            raise OSError(f"PyPI has no {package} {version}")
        return files[0]["upload_time"][:10], ""
    raise ValueError(
        "its releases are not looked up; write version, date and source into the catalog by hand"
    )


def _digest(pin: Pin, version: str) -> str:
    """Return the digest of a chart in its registry, which the pin's source names first."""
    host, _, path = pin.source.partition(";")[0].partition("/")
    request = Request(
        f"https://{host}/v2/{path}/manifests/{version}",
        headers={"Accept": "application/vnd.oci.image.manifest.v1+json"},
        method="HEAD",
    )
    return read(request, "Docker-Content-Digest")


def moved(text: str, name: str, old: Pin, new: Pin) -> str:
    """Return the source of the catalog's versions with a pin moved."""
    begin = text.index(f'    "{name}": Pin(')
    end = text.index('\n    "', begin + 1) if '\n    "' in text[begin + 1 :] else len(text)
    block = text[begin:end]
    for field in ("version", "as_of", "commit", "digest"):
        block = block.replace(f'"{getattr(old, field)}"', f'"{getattr(new, field)}"', 1)
    return text[:begin] + block + text[end:]


def move(name: str, version: str, digest: str = "") -> None:
    """Move a pin to another version: its date, digest and commit, go.mod and go.sum.

    Args:
        version: the new version, as the pin has it.
        digest: the digest of its chart; by default the one in its registry.

    Raises:
        OSError: there is no such version, or its host or the registry cannot be reached.
        ValueError: versions of the pin's package are not looked up here.
        subprocess.CalledProcessError: Go could not resolve the module.
    """
    old = PINS[name]
    package = old.package.removeprefix("go:")
    day, commit = released(old, version.removeprefix("v"), read)
    new = replace(
        old,
        version=version,
        as_of=day,
        commit=commit,
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


def left(name: str, old: str) -> Iterator[str]:
    """Yield what the move of a pin leaves to do by hand: the steps, and each file that has the old version.

    Args:
        old: the version before the move.
    """
    yield f"{name} is {PINS[name].version}. Left to do by hand (CONTRIBUTING.md, Update a pin):"
    yield f"- read the release notes since {old}: renamed fields, requests of pods, ports, minimum versions;"
    number = re.escape(old.removeprefix("v"))
    if name == "kubernetes":
        number = f"[01]{number[1:]}"  # its staging modules are required and replaced as 0.MINOR.PATCH
    found = _git("grep", "-nE", "-e", rf"(^|[^0-9.]){number}($|[^0-9.]|\.($|[^0-9]))", "--", *_SEARCHED)
    lines: dict[str, list[str]] = {}
    for line in found.splitlines():
        file, number, _ = line.split(":", 2)
        lines.setdefault(file, []).append(number)
    if lines:
        yield "- read each line with the old version again (other projects may have the same one), fix it:"
    for file, numbers in lines.items():
        yield f"    {file}: {', '.join(numbers)}"
    yield "- the row of docs/pins.csv, if the pin has reached its release;"
    yield "- make test, and make rehearse."


def _git(*arguments: str) -> str:
    """Return the output of git in the checkout; empty if it finds nothing."""
    return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False).stdout  # noqa: S603, S607


def main(arguments: list[str]) -> int:
    """Compare the pins, move the one of the arguments, or list what its move has left; return the exit
    status."""
    if not arguments:
        return 1 if report(PINS) else 0
    name, *version = arguments
    if name not in PINS:
        sys.stderr.write(f"There is no pin {name}. Write one of {', '.join(PINS)}.\n")
        return 2
    if not version:
        committed = _git("show", f"HEAD:{VERSIONS.relative_to(_ROOT)}")
        before = re.search(rf'"{name}": Pin\(\s*"([^"]+)"', committed)
        if before and before[1] != PINS[name].version:
            sys.stdout.writelines(f"{line}\n" for line in left(name, before[1]))
        return 0
    try:
        move(name, *version)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"{name} stays at {PINS[name].version}: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
