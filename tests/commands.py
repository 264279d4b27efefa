"""The command line in processes of its own, forked from one that has imported it: each starts at once.

`python -m tests.commands` is that process: it answers a request, a line of JSON, with the exit status.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from ebbtide import lazy_packages
from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.stack_files import read_stack, record_stack
from tests.repository import ROOT

_ALONE: Final = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)}
"""No credentials, no configuration, no home: what the tests' user has must not matter."""
_IMPORTED: Final = ("components.aks", "components.gke", "ebbtide.cli", "rich.console", "stacks.stack")


def ebbtide(*words: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user without settings, in a pipe."""
    return ebbtide_with(_ALONE | environment, *words, cwd=cwd)


def refused(*words: str | Path, **environment: str) -> str:
    """Run a command that is refused with exit status 2, and return what it says."""
    done = ebbtide_with(_ALONE | environment, *words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def started(*words: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in an interpreter that has imported nothing."""
    command = [sys.executable, "-m", "ebbtide", *map(str, words)]
    return subprocess.run(
        command, cwd=cwd, env=_ALONE | environment, capture_output=True, text=True, check=False
    )


def ebbtide_with(
    environment: Mapping[str, str], *words: str | Path, cwd: Path = ROOT, **streams: str
) -> subprocess.CompletedProcess[str]:
    """Run a command with these environment variables alone; `output` and `errors` name other files for its
    streams."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
        request: dict[str, Any] = {
            "words": [*map(str, words)],
            "cwd": str(cwd),
            "environment": dict(environment),
            "files": [os.devnull, streams.get("output", output.name), streams.get("errors", errors.name)],
        }
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        return subprocess.CompletedProcess(
            request["words"], status, output.read().decode(), errors.read().decode()
        )


@cache
def _server() -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.commands"]
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


def _run(request: Mapping[str, Any]) -> None:
    """Become the process of a command."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, name in enumerate(request["files"]):
        os.dup2(os.open(name, os.O_RDWR), number)
    sys.path[0] = request["cwd"]
    sys.argv[1:] = request["words"]
    runpy.run_module("ebbtide", run_name="__main__", alter_sys=True)


def _status(request: Mapping[str, Any]) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 70
    try:
        _run(request)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException as error:  # noqa: BLE001 - as the interpreter shows it
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Answer requests until there are no more."""
    lazy_packages.install()
    for name in _IMPORTED:
        importlib.import_module(name)
    for stack in ("dev", "dev-aks"):
        preview_of(record_stack(read_stack(ROOT, stack)))
    gc.freeze()
    for line in sys.stdin:
        status = _status(json.loads(line))
        print(status, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
