"""The blocks of every example's page, run in order by a shell in the repository's root, as printed.

kubectl, gcloud, docker and make are fakes; the port of Kubeflow Pipelines is a free one.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.examples.cloud_tools import RECORD, TOOLS, calls
from tests.examples.workloads import EXAMPLES
from tests.pages import BLOCKS
from tests.repository import ROOT, STORIES

_WRITTEN = {".git", ".venv", "build", "dist"}
_OWN_IMAGE = re.compile(r"[\w.-]+-docker\.pkg\.dev/[\w./-]+:\w+")
_PORT = "8080"
_SHELL = shutil.which("bash") or "bash"


def _root(directory: Path) -> Path:
    """Return a directory with the repository's files and environment, in which commands may write."""
    root, tools = directory / "root", directory / "tools"
    root.mkdir()
    tools.mkdir()
    for entry in ROOT.iterdir():
        if entry.name not in _WRITTEN:
            (root / entry.name).symlink_to(entry)
    (root / ".venv").symlink_to(sys.prefix)
    for tool in TOOLS:
        command = f"exec {sys.executable} -m tests.examples.cloud_tools {tool}"
        (tools / tool).write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} {command} "$@"\n')
        (tools / tool).chmod(0o755)
    return root


def _free_port() -> str:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return str(listening.getsockname()[1])


def _runs(directory: Path) -> list[object]:
    """Return the created runs, which the forwarded port leaves when it is ended."""
    deadline = time.monotonic() + 600
    while not (directory / "runs").exists():
        assert time.monotonic() < deadline, "The page leaves the port forwarded."
        time.sleep(0.1)
    return json.loads((directory / "runs").read_text())


@pytest.mark.parametrize("story", STORIES)
def test_a_page_runs_as_printed(story: str, tmp_path: Path) -> None:
    """Every command ends, in an environment without the project's commands on PATH; a pipeline is submitted
    with the inputs that it requires, each image of one's own is built and pushed, and no process stays."""
    page = f"examples/{story}/README.md"
    blocks = [block for block in BLOCKS if block.page == page]
    assert {block.kind for block in blocks} == {"sh"}
    script = "".join(block.text for block in blocks).replace(_PORT, _free_port())
    root = _root(tmp_path)
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / 'tools'}:{os.defpath}",
        "PYTHONWARNINGS": "ignore",
        "WANDB_API_KEY": "a-key",
        RECORD: str(tmp_path),
    }
    log = tmp_path / "log"
    with log.open("w") as output:
        shell = subprocess.Popen(
            [_SHELL, "-eu", "-c", script],
            cwd=root,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        assert shell.wait() == 0, log.read_text()
        if " run create " in script:
            assert len(_runs(tmp_path)) == 1
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    pushed = {call[2] for call in calls(tmp_path) if call[:2] == ["docker", "push"]}
    written = [file.read_text() for file in root.glob("*.yaml") if not file.is_symlink()]
    assert set(_OWN_IMAGE.findall("\n".join([log.read_text(), *written]))) == pushed


def test_the_spot_page_names_the_published_archive() -> None:
    """The archive in the example has the name of the tutorial's, whose address the page gives."""
    (archive,) = (EXAMPLES / "aks-spot").glob("*.tar.gz")
    address = f"https://storage.googleapis.com/ml-pipeline-playground/{archive.name}"
    assert f"url={address}" in (EXAMPLES / "aks-spot" / "README.md").read_text(encoding="utf-8")
