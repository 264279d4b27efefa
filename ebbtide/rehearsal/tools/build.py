"""Building a program, or putting data together, in a directory that appears only when all of it is there."""

import json
import shutil
import stat
from pathlib import Path

from ebbtide.rehearsal.tools.cache import adding, pins
from ebbtide.rehearsal.tools.errors import ToolError
from ebbtide.rehearsal.tools.items import Data, Item, Part, Tool
from ebbtide.rehearsal.tools.toolchain import Go


def build(go: Go, root: Path, item: Item) -> None:
    """Build an item, or fetch it, into the cache.

    Args:
        go: what it is built with.
        root: the cache; the caller has the right to build into it.
        item: what.

    Raises:
        ToolError: it could not be had; the cache is as it was.
    """
    logs = root / "logs"
    logs.mkdir(exist_ok=True)
    log = logs / f"{item.name}-{item.version}.log"
    log.unlink(missing_ok=True)
    with adding(root, item) as target:
        work = target.parent / "module"
        work.mkdir()
        for path in pins(item.group):
            shutil.copyfile(path, work / path.name)
        match item:
            case Tool():
                _compile(go, item, work, target, log)
            case Data():
                for part in item.parts:
                    _copy(module_directory(go, part, work, log), part, target)


def _compile(go: Go, tool: Tool, work: Path, target: Path, log: Path) -> None:
    go.run(
        ["build", "-v", *tool.flags, "-o", str(target / tool.name), tool.package],
        directory=work,
        log=log,
        purpose=f"{tool.name} {tool.version} could not be built",
    )
    if not (target / tool.name).is_file():
        raise ToolError(f"Go built no {tool.name} of {tool.package}, and did not say why: {log}.")


def module_directory(go: Go, part: Part, work: Path, log: Path) -> Path:
    """The files of a module, checked against go.sum, in Go's own cache.

    Raises:
        ToolError: the module cannot be had, or is not the one that go.sum knows.
    """
    asked = f"{part.module}@{part.version}"
    purpose = f"{asked} could not be fetched"
    # Twice, since with -json Go says what went wrong on standard output; the second one finds it fetched.
    go.run(["mod", "download", asked], directory=work, log=log, purpose=purpose)
    told = json.loads(go.run(["mod", "download", "-json", asked], directory=work, log=log, purpose=purpose))
    return Path(told["Dir"])


def _copy(module: Path, part: Part, target: Path) -> None:
    source, copy = module / part.source, target / part.into
    if not source.is_dir():
        raise ToolError(f"{part.module} {part.version} has no directory {part.source}.")
    shutil.copytree(source, copy, dirs_exist_ok=True)
    # Go's cache is read-only, directories too; a copy has to be removable.
    for path in (copy, *copy.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
