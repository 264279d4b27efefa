"""Missing tools: downloaded if their release can be had, else built with the Go toolchain, several at once.

A build of programs or of a data directory is published atomically.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from threading import Event
from typing import Final

from ebbtide_rehearsal.tools.download import (
    Release,
    added,
    adding,
    download,
    in_background,
    inputs,
    location,
    pins,
)
from ebbtide_rehearsal.tools.items import Data, Finished, Item, OnStep, Part, Started, Tool, ToolError, Worked

_HAS: Final = re.compile(r"\bgo(\d+)\.(\d+)")
_NEEDS: Final = re.compile(r"^go (\d+)\.(\d+)", flags=re.MULTILINE)
_INSTALL: Final = "install it (https://go.dev/doc/install) and run this again"
_LAST_LINES: Final = 3
_DECIDED_HERE: Final = {
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly",
}
"""Fixed build settings. Module sources and their verification stay the user's settings."""
_DEFAULTS: Final = {"GOGC": "400"}
"""Default build settings, which the user's environment overrides. With fewer garbage collections of the
compiler, kwok and Kueue take 150 s instead of 166 s (2026-11).
"""
_CROSS: Final = frozenset({"GOOS", "GOARCH"})
_MAJOR_VERSION: Final = re.compile(r"/v\d+$")
_AT_ONCE: Final = 2
"""Modules that are built at once: for large packages, Go's compiler uses one core."""


@dataclass(frozen=True, slots=True)
class Go:
    """The `go` command.

    Attributes:
        on_step: called with every line of progress output.
        name: the item that it builds.
        stopped: set by `stop`.
        processes: the running ones.
    """

    path: str
    on_step: OnStep
    name: str = ""
    stopped: Event = field(default_factory=Event)
    processes: set[subprocess.Popen[str]] = field(default_factory=set[subprocess.Popen[str]])

    def run(self, arguments: Sequence[str], *, directory: Path, log: Path, purpose: str) -> str:
        """Run a Go command and wait for it; Go and its compilers are terminated with this call.

        Args:
            directory: the directory of go.mod.
            log: a file for Go's output.
            purpose: the beginning of an error message: `kwok 0.8.0 could not be built`.

        Returns:
            Its standard output.

        Raises:
            ToolError: Go failed; with the last lines of its output.
        """
        messages: list[str] = []
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as output,
            log.open("a", encoding="utf-8") as lines,
            subprocess.Popen(  # noqa: S603
                [self.path, *arguments],
                cwd=directory,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                process_group=0,
            ) as process,
        ):
            self.processes.add(process)
            try:
                if self.stopped.is_set():
                    _terminate(process)
                for line in process.stderr or ():
                    lines.write(line)
                    messages.append(line.strip())
                    self.on_step(Worked(self.name, line.strip()))
                status = process.wait()
            except BaseException:
                _terminate(process)
                raise
            finally:
                self.processes.discard(process)
            output.seek(0)
            result = output.read()
        if status:
            last = " / ".join([line for line in messages if line][-_LAST_LINES:]) or f"exit status {status}"
            raise ToolError(f"{purpose}; Go's last output: {last} (full log: {log}).")
        return result

    def stop(self) -> None:
        """Terminate the running commands, and refuse further ones; called from another thread."""
        self.stopped.set()
        for process in tuple(self.processes):
            _terminate(process)


def _terminate(process: subprocess.Popen[str]) -> None:
    """Terminate a command and its compilers."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)


def find_go(items: Iterable[Item], on_step: OnStep) -> Go:
    """Return the Go on PATH.

    Args:
        items: all items to build, for the error message.
        on_step: called with progress output.

    Raises:
        ToolError: Go is missing, or too old for the go.mod of an item.
    """
    required = tuple(items)
    needed = max(_needed(item.group) for item in required)
    release = ".".join(map(str, needed))
    missing = ", ".join(f"{item.name} {item.version}" for item in required)
    path = shutil.which("go")
    if path is None:
        raise ToolError(
            f"Neither on PATH in an accepted version nor built yet: {missing}; building needs Go {release} "
            f"or later, which is not on PATH either: {_INSTALL}."
        )
    reported = subprocess.run(  # noqa: S603
        [path, "env", "GOVERSION"],
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    match _HAS.search(reported.stdout):
        case None:
            raise ToolError(
                f"`{path} env GOVERSION` does not report Go's version; building {missing} needs Go {release} "
                f"or later: {_INSTALL}."
            )
        case version if (int(version[1]), int(version[2])) < needed:
            raise ToolError(
                f"Building {missing} needs Go {release} or later, and {path} is {reported.stdout.strip()}: "
                f"{_INSTALL}."
            )
        case _:
            return Go(path, on_step)


def _needed(group: str) -> tuple[int, int]:
    go_mod, _ = pins(group)
    match = _NEEDS.search(go_mod.read_text(encoding="utf-8"))
    if match is None:
        raise ValueError(f"{go_mod} has no go line.")
    return int(match[1]), int(match[2])


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in _CROSS}
    return {**_DEFAULTS, **inherited, **_DECIDED_HERE}


def build(go: Go, root: Path, items: Sequence[Item]) -> None:
    """Build or fetch items into the cache.

    Args:
        go: the Go toolchain.
        root: the cache; the caller holds the build locks.
        items: programs of one module with the same compiler flags, or data.

    Raises:
        ToolError: the build failed; the cache is unchanged.
    """
    logs = root / "logs"
    logs.mkdir(exist_ok=True)
    log = logs / f"{'+'.join(f'{item.name}-{item.version}' for item in items)}.log"
    log.unlink(missing_ok=True)
    with ExitStack() as stack:
        targets = [stack.enter_context(adding(root, location(root, item))) for item in items]
        work = targets[0].parent / "module"
        work.mkdir()
        for path in inputs(items[0].group):
            shutil.copyfile(path, work / path.name)
        programs: dict[Path, Tool] = {}
        for item, target in zip(items, targets, strict=True):
            match item:
                case Tool():
                    _change(go, item, work, log)
                    programs[target / item.name] = item
                case Data():
                    for part in item.parts:
                        _copy(module_directory(go, part.module, part.version, work, log), part, target)
        if programs:
            _compile(go, programs, work, log)


def _compile(go: Go, programs: Mapping[Path, Tool], work: Path, log: Path) -> None:
    """Compile programs to their files; one is linked while the next is compiled."""
    tools = tuple(programs.values())
    compiled = work.parent / "compiled"
    compiled.mkdir()
    linked = (f"-ldflags={tool.package}={tool.linker_flags}" for tool in tools)
    packages = (tool.package for tool in tools)
    go.run(
        ["build", "-v", *tools[0].compiler_flags, *linked, "-o", f"{compiled}/", *packages],
        directory=work,
        log=log,
        purpose=f"{', '.join(f'{tool.name} {tool.version}' for tool in tools)} could not be built",
    )
    for target, tool in programs.items():
        # Go's name for a program, unless -o names a file.
        program = compiled / Path(_MAJOR_VERSION.sub("", tool.package)).name
        if not program.is_file():
            raise ToolError(f"Go built no {tool.name} of {tool.package}, and reported no reason: {log}.")
        program.rename(target)


def _change(go: Go, tool: Tool, work: Path, log: Path) -> None:
    """Build a tool's module from a copy, if it is patched or files are added to it.

    Go's overlays do not apply to its module cache (cmd/go, modload, 1.26).
    """
    files = added(tool.group)
    if not (tool.changes or files.is_dir()):
        return
    source = work.parent / f"source-of-{tool.name}"
    _writable_copy(module_directory(go, tool.module, f"v{tool.version}", work, log), source)
    for change in tool.changes:
        file = source / change.file
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        if text.count(change.before) != 1:
            raise ToolError(
                f"{tool.module} v{tool.version} does not have {change.before!r} once in {change.file}."
            )
        file.write_text(text.replace(change.before, change.after), encoding="utf-8")
    if files.is_dir():
        shutil.copytree(files, source, dirs_exist_ok=True)
    with (work / "go.mod").open("a", encoding="utf-8") as pins_file:
        pins_file.write(f"\nreplace {tool.module} => ../{source.name}\n")


def module_directory(go: Go, module: str, version: str, work: Path, log: Path) -> Path:
    """Return the directory of a module in Go's cache, verified by go.sum.

    Args:
        go: the Go toolchain.
        work: a directory with a go.mod that requires it, and the go.sum.
        log: a file for Go's output.

    Raises:
        ToolError: the module is unavailable or does not match go.sum.
    """
    request = f"{module}@{version}"
    purpose = f"{request} could not be fetched"
    # Two calls, since -json prints errors on standard output; the second call finds the module in the cache.
    go.run(["mod", "download", request], directory=work, log=log, purpose=purpose)
    result = json.loads(
        go.run(["mod", "download", "-json", request], directory=work, log=log, purpose=purpose)
    )
    return Path(result["Dir"])


def _copy(module: Path, part: Part, target: Path) -> None:
    source, copy = module / part.source, target / part.into
    if not source.is_dir():
        raise ToolError(f"{part.module} {part.version} has no directory {part.source}.")
    _writable_copy(source, copy)


def _writable_copy(source: Path, copy: Path) -> None:
    shutil.copytree(source, copy, dirs_exist_ok=True)
    # Go's cache is read-only, including directories; a copy must be removable.
    for path in (copy, *copy.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def acquire(
    root: Path, missing: Sequence[Item], releases: Sequence[Release], on_step: OnStep
) -> frozenset[str]:
    """Download or build tools into the cache.

    Args:
        root: the cache; the caller holds the build locks.
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
