"""Lookup of tools: on PATH, else among Pulumi's plugins, else in the cache, else acquired."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ebbtide_rehearsal.tools import cache
from ebbtide_rehearsal.tools.acquire import acquire
from ebbtide_rehearsal.tools.items import Item, Tool
from ebbtide_rehearsal.tools.on_path import on_path
from ebbtide_rehearsal.tools.plugins import installed_plugin
from ebbtide_rehearsal.tools.releases import downloadable, release_of
from ebbtide_rehearsal.tools.steps import OnStep
from ebbtide_rehearsal.tools.table import all_items


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
        name: its name in the table.
        version: its version.
        origin: its origin.
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
    root = cache.directory()
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
            available[item.name] = AvailableTool(item.name, str(version), Origin.PATH, path)
        elif isinstance(item, Tool) and (plugin := installed_plugin(item)):
            path, version = plugin
            available[item.name] = AvailableTool(item.name, version, Origin.PLUGINS, path)
        elif cached := _cached(root, item, Origin.CACHE):
            available[item.name] = cached
    return available


def _cached(root: Path, item: Item, origin: Origin) -> AvailableTool | None:
    """Return a tool from the cache, the download if it was also built."""
    release = release_of(item)
    if release and (path := cache.downloaded(root, release)).exists():
        return AvailableTool(item.name, release.version, origin, path)
    path = cache.content(root, item)
    return AvailableTool(item.name, item.version, origin, path) if path.exists() else None


def _acquired(root: Path, missing: Sequence[Item], on_step: OnStep) -> dict[str, AvailableTool]:
    """Download or build missing tools, except those that other processes make meanwhile."""
    releases = downloadable(missing)
    made: dict[str, AvailableTool] = {}
    while left := [item for item in missing if item.name not in made]:
        with cache.building(root, left, releases, on_step) as own:
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
