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
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Followed:
    """A page whose commands a shell runs.

    Attributes:
        directory: where the fakes record their calls.
        root: where the commands run.
        script: the commands.
        shell: the process.
    """

    directory: Path
    root: Path
    script: str
    shell: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        """Output of the commands."""
        return (self.directory / "log").read_text()


def _followed(story: str, directory: Path) -> Followed:
    page = f"examples/{story}/README.md"
    blocks = [block for block in BLOCKS if block.page == page]
    assert {block.kind for block in blocks} == {"sh"}
    script = "".join(block.text for block in blocks).replace(_PORT, _free_port())
    root = _root(directory)
    environment = {
        "HOME": str(directory),
        "PATH": f"{directory / 'tools'}:{os.defpath}",
        "PYTHONWARNINGS": "ignore",
        "WANDB_API_KEY": "a-key",
        RECORD: str(directory),
    }
    with (directory / "log").open("w") as output:
        shell = subprocess.Popen(
            [_SHELL, "-eu", "-c", script],
            cwd=root,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Followed(directory, root, script, shell)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Followed]]:
    """Every story's page, all of them at once: each sleeps until its forwarded port is there."""
    followed = {story: _followed(story, tmp_path_factory.mktemp(story)) for story in STORIES}
    yield followed
    for page in followed.values():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(page.shell.pid, signal.SIGKILL)


@pytest.mark.parametrize("story", STORIES)
def test_a_page_runs_as_printed(story: str, pages: dict[str, Followed]) -> None:
    """Every command ends, in an environment without the project's commands on PATH; a pipeline is submitted
    with the inputs that it requires, each image of one's own is built and pushed, and no process stays."""
    page = pages[story]
    assert page.shell.wait() == 0, page.log
    if " run create " in page.script:
        assert len(_runs(page.directory)) == 1
    pushed = {call[2] for call in calls(page.directory) if call[:2] == ["docker", "push"]}
    written = [file.read_text() for file in page.root.glob("*.yaml") if not file.is_symlink()]
    assert set(_OWN_IMAGE.findall("\n".join([page.log, *written]))) == pushed


def test_the_spot_page_names_the_published_archive() -> None:
    """The archive in the example has the name of the tutorial's, whose address the page gives."""
    (archive,) = (EXAMPLES / "aks-spot").glob("*.tar.gz")
    address = f"https://storage.googleapis.com/ml-pipeline-playground/{archive.name}"
    assert f"url={address}" in (EXAMPLES / "aks-spot" / "README.md").read_text(encoding="utf-8")
