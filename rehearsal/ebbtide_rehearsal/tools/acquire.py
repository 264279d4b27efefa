"""Missing tools: downloaded if their release can be had, else built, several at once."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event
from typing import Final

from ebbtide_rehearsal.tools.background import in_background
from ebbtide_rehearsal.tools.build import build
from ebbtide_rehearsal.tools.download import download
from ebbtide_rehearsal.tools.items import Item, Tool
from ebbtide_rehearsal.tools.releases import Release
from ebbtide_rehearsal.tools.steps import Finished, OnStep, Started
from ebbtide_rehearsal.tools.toolchain import Go, find_go

_AT_ONCE: Final = 2
"""Modules that are built at once: for large packages, Go's compiler uses one core."""


def acquire(
    root: Path, missing: Sequence[Item], releases: Sequence[Release], on_step: OnStep
) -> frozenset[str]:
    """Download or build tools into the cache.

    Args:
        root: the cache; the caller holds the build locks.
        missing: the tools.
        releases: releases of some of them; those that cannot be downloaded are built.
        on_step: called with progress.

    Returns:
        The names of the tools that were built.

    Raises:
        ToolError: Go is missing or too old, or a build failed.
    """
    commands: list[Sequence[Item]] = []
    toolchains: list[Go] = []
    tasks: set[Future[frozenset[str]]] = set()
    numbers, stopped = count(1), Event()

    def build_all(go: Go, module: Sequence[Sequence[Item]]) -> frozenset[str]:
        for items in module:
            name = ", ".join(item.name for item in items)
            minutes = sum(item.minutes for item in items)
            on_step(Started(name, next(numbers), len(commands), minutes))
            start = time.monotonic()
            build(replace(go, name=name), root, items)
            on_step(Finished(name, time.monotonic() - start))
        return frozenset()

    def submit(items: Sequence[Item]) -> None:
        if not items:
            return
        toolchains.append(find_go(items, on_step))
        modules = [_by_command(module) for module in _by_module(items)]
        commands.extend(command for module in modules for command in module)
        tasks.update(pool.submit(build_all, toolchains[-1], module) for module in modules)

    released = {release.program for release in releases}
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        try:
            submit([item for item in missing if item.name not in released])
            if releases:
                tasks.add(in_background(download, root, releases, on_step, stopped))
            while tasks:
                done, _ = wait(tasks, return_when=FIRST_COMPLETED)
                for task in done:
                    tasks.remove(task)
                    failed = task.result()
                    submit([item for item in missing if item.name in failed])
        except BaseException:
            stopped.set()
            for go in toolchains:
                go.stop()
            pool.shutdown(cancel_futures=True)
            raise
    return frozenset(item.name for items in commands for item in items)


def _by_module(items: Iterable[Item]) -> list[list[Item]]:
    """Group items by module, the longest first; those of one module share compiled packages."""
    modules: dict[str, list[Item]] = {}
    for item in items:
        modules.setdefault(item.group, []).append(item)
    return sorted(modules.values(), key=lambda module: -sum(item.minutes for item in module))


def _by_command(module: Iterable[Item]) -> list[list[Item]]:
    """Group the items of a module by command: one program is linked while the next is compiled."""
    commands: dict[object, list[Item]] = {}
    for item in module:
        key = item.compiler_flags if isinstance(item, Tool) else item.name
        commands.setdefault(key, []).append(item)
    return list(commands.values())
