"""A fake `go` command. It builds nothing, and refuses what Go refuses: a directory without
go.mod, a package of no required module, a module that go.sum has no hash of, one that no proxy has, and one
whose replacement is not there. What it builds of a replaced module has that one's files in it.

Environment: FAKE_GO_VERSION; FAKE_GO_MODULES, a directory with a directory `module@version` for each module
that can be had; FAKE_GO_BUILDS, a file that gets a line a build; FAKE_GO_MODE, `fail` or `hang` or `slow`.
"""

import json
import os
import sys
import time
from pathlib import Path


def refuse(*lines: str) -> None:
    """Fail as Go does: with a message and status 1."""
    print(*lines, sep="\n", file=sys.stderr)  # noqa: T201
    raise SystemExit(1)


def required() -> dict[str, str]:
    """The modules that go.mod requires, with their versions."""
    if not Path("go.mod").is_file():
        refuse("go: go.mod file not found in current directory or any parent directory")
    words = (line.removeprefix("require ").split() for line in Path("go.mod").read_text().splitlines())
    return {line[0]: line[1] for line in words if len(line) == 2 and line[1].startswith("v")}


def replaced() -> dict[str, str]:
    """The modules that go.mod replaces by a directory."""
    words = (line.split() for line in Path("go.mod").read_text().splitlines())
    return {line[1]: line[3] for line in words if len(line) == 4 and line[::2] == ["replace", "=>"]}


def check_sum(module: str, version: str) -> None:
    """Go's check that a module's hash is known; this one cannot compute it."""
    if f"{module} {version} h1:" not in Path("go.sum").read_text():
        refuse(f"{module}@{version}: missing go.sum entry for go.mod file")


def build(arguments: list[str]) -> None:
    """`go build FLAGS -o DIRECTORY/ PACKAGES`."""
    output = arguments.index("-o")
    directory, packages = arguments[output + 1], arguments[output + 2 :]
    if "-mod=readonly" not in arguments:
        refuse("this fake builds with -mod=readonly only")
    if not (directory.endswith("/") and Path(directory).is_dir()):
        refuse("this fake builds into a directory only")
    for package in packages:
        words = package.split("/")
        numbered = words[-1][0] == "v" and words[-1][1:].isdigit()
        linked = [argument for argument in arguments if argument.startswith(f"-ldflags={package}=")]
        build_one(package, linked, Path(directory) / words[-2 if numbered else -1])


def build_one(package: str, linked: list[str], target: Path) -> None:
    """Build one package's program."""
    modules = required()
    module = next((name for name in modules if package == name or package.startswith(f"{name}/")), None)
    if package == Path("go.mod").read_text().split()[1] and list(Path().glob("*.go")):
        module = next(iter(modules))
    if module is None:
        refuse(f"no required module provides package {package}; to add it:", f"\tgo get {package}")
        return
    check_sum(module, modules[module])
    source = replaced().get(module)
    if source and not Path(source).is_dir():
        refuse(f"go: {module}@{modules[module]} (replaced by {source}): no such file or directory")
    with Path(os.environ["FAKE_GO_BUILDS"]).open("a") as builds:
        builds.write(f"{package} {os.getpid()} {os.environ['GOGC']}\n")
    print(package, file=sys.stderr, flush=True)  # noqa: T201
    match os.environ.get("FAKE_GO_MODE"):
        case "fail":
            refuse("first", f"# {package}", "main.go:7:2: undefined: nothing", "too many errors")
        case "hang":
            target.write_text("half")
            time.sleep(3600)
        case "slow":
            time.sleep(0.5)
        case _:
            pass
    files = [path for path in Path(source).rglob("*") if path.is_file()] if source else []
    texts = [*linked, *(path.read_text() for path in files)]
    target.write_text("\n# ".join(["#!/bin/sh\necho built", *texts]) + "\n")
    target.chmod(0o755)


def download(arguments: list[str]) -> None:
    """`go mod download [-json] MODULE@VERSION`."""
    required()
    argument = arguments[-1]
    module, _, version = argument.partition("@")
    check_sum(module, version)
    directory = Path(os.environ["FAKE_GO_MODULES"]) / argument
    if not directory.is_dir():
        refuse(f"go: {argument}: reading {module}/@v/{version}.info: 404 Not Found")
    if "-json" in arguments:
        print(json.dumps({"Path": module, "Version": version, "Dir": str(directory)}))  # noqa: T201


match sys.argv[1:]:
    case ["env", "GOVERSION"]:
        print(os.environ["FAKE_GO_VERSION"])  # noqa: T201
    case ["build", *flags]:
        build(flags)
    case ["mod", "download", *flags]:
        download(flags)
    case words:
        refuse(f"go {' '.join(words)}: unknown command")
