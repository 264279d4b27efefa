"""Lookup of tools: on PATH, else among Pulumi's plugins, else in the cache, else built."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Final

from ebbtide_rehearsal.tools import cache
from ebbtide_rehearsal.tools.build import build
from ebbtide_rehearsal.tools.items import Item, Tool
from ebbtide_rehearsal.tools.on_path import on_path
from ebbtide_rehearsal.tools.plugins import installed_plugin
from ebbtide_rehearsal.tools.steps import Finished, OnStep, Started
from ebbtide_rehearsal.tools.table import all_items
from ebbtide_rehearsal.tools.toolchain import find_go

_AT_ONCE: Final = 2
"""Modules that are built at once: for large packages, Go's compiler uses one core."""


class Origin(StrEnum):
    """The origin of a tool."""

    PATH = "PATH"
    PLUGINS = "Pulumi's plugins"
    CACHE = "cache"
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
    """Find tools by name, and build missing ones.

    Args:
        names: names in the table; duplicates are ignored.
        on_step: called with build progress, since a build can take a quarter of an hour.

    Raises:
        KeyError: the table has no such name.
        ToolError: a tool can be neither found nor built. Completed builds stay in the cache.
    """
    items = [all_items()[name] for name in dict.fromkeys(names)]
    root = cache.directory()
    available = _available(root, items)
    missing = [item for item in items if item.name not in available]
    if missing:
        available |= _built(root, missing, on_step)
    return Tools({item.name: available[item.name] for item in items})


def _available(root: Path, items: Sequence[Item]) -> dict[str, AvailableTool]:
    """Return tools that need no build. Versions are queried concurrently: some programs take half a
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
    path = cache.content(root, item)
    return AvailableTool(item.name, item.version, origin, path) if path.exists() else None


def _built(root: Path, missing: Sequence[Item], on_step: OnStep) -> dict[str, AvailableTool]:
    """Build missing tools, except those that another process built meanwhile; several modules at once."""
    go = find_go(missing, on_step)
    with cache.building(root, on_step):
        built = {item.name: cached for item in missing if (cached := _cached(root, item, Origin.CACHE))}
        unbuilt = [item for item in missing if item.name not in built]
        numbers = count(1)

        def build_all(items: Sequence[Item]) -> None:
            for item in items:
                on_step(Started(item.name, item.version, next(numbers), len(unbuilt), item.minutes))
                start = time.monotonic()
                build(replace(go, name=item.name), root, item)
                on_step(Finished(item.name, time.monotonic() - start))
                built[item.name] = AvailableTool(
                    item.name, item.version, Origin.BUILT, cache.content(root, item)
                )

        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            builds = [pool.submit(build_all, items) for items in _by_module(unbuilt)]
            try:
                for finished in as_completed(builds):
                    finished.result()
            except BaseException:
                go.stop()
                pool.shutdown(cancel_futures=True)
                raise
    return built


def _by_module(items: Iterable[Item]) -> list[list[Item]]:
    """Group items by module, the longest first; those of one module share compiled packages."""
    modules: dict[str, list[Item]] = {}
    for item in items:
        modules.setdefault(item.group, []).append(item)
    return sorted(modules.values(), key=lambda module: -sum(item.minutes for item in module))
