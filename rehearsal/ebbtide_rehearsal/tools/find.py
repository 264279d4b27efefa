"""Lookup of tools: on PATH, else among Pulumi's plugins, else in the cache, else acquired."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Final, TypeAlias, assert_never

from ebbtide_rehearsal.tools import download
from ebbtide_rehearsal.tools.build import acquire
from ebbtide_rehearsal.tools.download import downloadable, release_of
from ebbtide_rehearsal.tools.items import Item, OnStep, Tool, VersionRule
from ebbtide_rehearsal.tools.table import all_items

_VERSION: Final = re.compile(r"(?<![\d.])(\d+)\.(\d+)\.(\d+)")
_SECONDS: Final = 60  # for a busy machine; a program that does not answer is built instead
_QUIET: Final = {"PULUMI_SKIP_UPDATE_CHECK": "true"}
"""Disables version checks over the network."""
_ASSETS: Final = "KUBEBUILDER_ASSETS"
"""The directory of etcd, kube-apiserver and kubectl for tests of controllers (setup-envtest)."""


Version: TypeAlias = tuple[int, int, int]
"""A semantic version without suffixes such as `-dispatcher` and `+k3s1`, which identify the builder."""


def version_in(text: str) -> Version | None:
    """Return the first version in a text, as `v1.36.2` or `etcd Version: 3.6.14`."""
    match = _VERSION.search(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def suits(has: Version, pinned: Version, rule: VersionRule) -> bool:
    """Check that a version can replace the pinned one."""
    match rule:
        case VersionRule.SAME_MINOR:
            return has[:2] == pinned[:2]
        case VersionRule.NO_OLDER:
            return has[0] == pinned[0] and has >= pinned
        case VersionRule.NO_OLDER_MINOR:
            return has[0] == pinned[0] and has[1] >= pinned[1]
    assert_never(rule)


def on_path(tool: Tool) -> tuple[Path, Version] | None:
    """Return an accepted program with its version; None if there is none, or none reports its version."""
    pinned = version_in(tool.version)
    if tool.on_path is None or pinned is None:
        return None
    for directories in (os.environ.get(_ASSETS), os.environ.get("PATH", os.defpath)):
        path = directories and shutil.which(tool.name, path=directories)
        has = _reported_version(path, tool.on_path.version_arguments) if path else None
        if path and has and suits(has, pinned, tool.on_path.accepts):
            return Path(path).absolute(), has
    return None


def _reported_version(path: str, arguments: tuple[str, ...]) -> Version | None:
    try:
        answer = subprocess.run(  # noqa: S603
            [path, *arguments],
            env={**os.environ, **_QUIET},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return version_in(answer.stdout) if answer.returncode == 0 else None


def sdk_version(package: str) -> str:
    """Return the version of a package's Python SDK, for which a program requests the provider."""
    return metadata.version(f"pulumi-{package}")


def plugin_file(home: Path, package: str) -> Path:
    """Return the location of the provider that a program requests, below a `PULUMI_HOME`.

    Source: pulumi 3.259, sdk/go/common/workspace/plugins.go (`GetPluginDir`, `PluginInfo.Path`).
    """
    version = sdk_version(package)
    return home / "plugins" / f"resource-{package}-v{version}" / f"pulumi-resource-{package}"


def install(home: Path, package: str, program: Path) -> None:
    """Link a provider as the plugin that a program requests, below a new `PULUMI_HOME`."""
    plugin = plugin_file(home, package)
    plugin.parent.mkdir(parents=True)
    plugin.symlink_to(program)


def installed_plugin(tool: Tool) -> tuple[Path, str] | None:
    """Return the provider that Pulumi has installed for the Python SDK, with its version; None if missing."""
    if tool.plugin is None:
        return None
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    path = plugin_file(home, tool.plugin)
    return (path, sdk_version(tool.plugin)) if path.is_file() else None


class Origin(StrEnum):
    """The origin of a tool."""

    PATH = "PATH"
    PLUGINS = "Pulumi's plugins"
    CACHE = "cache"
    DOWNLOADED = "downloaded now"
    BUILT = "built now"


@dataclass(frozen=True, slots=True)
class AvailableTool:
    """An available tool.

    Attributes:
        path: the program, or the directory of data.
    """

    name: str
    version: str
    origin: Origin
    path: Path


@dataclass(frozen=True, slots=True)
class Tools:
    """The requested tools.

    Attributes:
        by_name: the tools by name, in order of request.
    """

    by_name: Mapping[str, AvailableTool]

    def path(self, name: str) -> Path:
        """Return a program's file, or a directory of data.

        Raises:
            KeyError: it was not requested.
        """
        return self.by_name[name].path


def ensure(names: Iterable[str], *, on_step: OnStep) -> Tools:
    """Find tools by name, and download or build missing ones.

    Args:
        names: names in the table; duplicates are ignored.
        on_step: called with progress, since builds can take a quarter of an hour.

    Raises:
        KeyError: the table has no such name.
        ToolError: a tool can be neither found, downloaded nor built. Completed ones stay in the cache.
    """
    items = [all_items()[name] for name in dict.fromkeys(names)]
    root = download.directory()
    available = _available(root, items)
    missing = [item for item in items if item.name not in available]
    if missing:
        available |= _acquired(root, missing, on_step)
    return Tools({item.name: available[item.name] for item in items})


def _available(root: Path, items: Sequence[Item]) -> dict[str, AvailableTool]:
    """Return tools that exist. Versions are queried concurrently: some programs take half a
    second.
    """
    tools = [item for item in items if isinstance(item, Tool)]
    with ThreadPoolExecutor(max_workers=max(len(tools), 1)) as pool:
        answers = dict(zip((tool.name for tool in tools), pool.map(on_path, tools), strict=True))
    available: dict[str, AvailableTool] = {}
    for item in items:
        answer = answers.get(item.name)
        if answer:
            path, version = answer
            number = ".".join(map(str, version))
            available[item.name] = AvailableTool(item.name, number, Origin.PATH, path)
        elif isinstance(item, Tool) and (plugin := installed_plugin(item)):
            path, version = plugin
            available[item.name] = AvailableTool(item.name, version, Origin.PLUGINS, path)
        elif cached := _cached(root, item, Origin.CACHE):
            available[item.name] = cached
    return available


def _cached(root: Path, item: Item, origin: Origin) -> AvailableTool | None:
    """Return a tool from the cache, the download if it was also built."""
    release = release_of(item)
    if release and (path := download.downloaded(root, release)).exists():
        return AvailableTool(item.name, release.version, origin, path)
    path = download.content(root, item)
    return AvailableTool(item.name, item.version, origin, path) if path.exists() else None


def _acquired(root: Path, missing: Sequence[Item], on_step: OnStep) -> dict[str, AvailableTool]:
    """Download or build missing tools, except those that other processes make meanwhile."""
    releases = downloadable(missing)
    made: dict[str, AvailableTool] = {}
    while left := [item for item in missing if item.name not in made]:
        with download.building(root, left, releases, on_step) as own:
            made |= {item.name: cached for item in own if (cached := _cached(root, item, Origin.CACHE))}
            lacking = [item for item in own if item.name not in made]
            wanted = [releases[item.name] for item in lacking if item.name in releases]
            built = acquire(root, lacking, wanted, on_step)
        for item in lacking:
            origin = Origin.BUILT if item.name in built else Origin.DOWNLOADED
            tool = _cached(root, item, origin)
            assert tool, item.name  # noqa: S101 - acquire raises otherwise
            made[item.name] = tool
    return made
