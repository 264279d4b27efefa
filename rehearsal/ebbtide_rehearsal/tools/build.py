"""Build of programs or of a data directory, published atomically."""

import json
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ebbtide_rehearsal.tools.cache import added, adding, inputs, location
from ebbtide_rehearsal.tools.errors import ToolError
from ebbtide_rehearsal.tools.items import Data, Item, Part, Tool
from ebbtide_rehearsal.tools.toolchain import Go

_MAJOR_VERSION: Final = re.compile(r"/v\d+$")


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
        module: the module.
        version: its Go version string.
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
