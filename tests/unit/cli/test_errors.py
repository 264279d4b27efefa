"""Errors through the real command line: in a terminal, in a pipe, and as a document for bots."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from tests.commands import ebbtide
from tests.repository import ROOT

_FAULTY = """\
config:
  ebbtide:cluster:
    owner: vision-team
    cloud: {kind: gke, project: acme-ml, location: us-central1-a}
    pools:
      - {name: system, role: system, machine: e2-standard-4, nodes: {max: 3}}
      - name: t4-spot
        machine: n1-highmen-8
        accelerator:
          type: t4
        nodes: {max: 4}
"""
_ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)}


def _project(directory: Path, dev: str = _FAULTY) -> Path:
    (directory / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (directory / "Pulumi.dev.yaml").write_text(dev)
    (directory / "__main__.py").write_text((ROOT / "__main__.py").read_text())
    return directory


def _ebbtide(cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return ebbtide(*args, cwd=cwd)


def _in_terminal(cwd: Path, columns: int, *args: str, **environment: str) -> str:
    """Return a command's output in a terminal of a given width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", "ebbtide", *args],
        cwd=cwd,
        env=_ENVIRONMENT | {"TERM": "xterm-256color"} | environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # Linux ends a terminal so
            pass
    os.close(ours)
    assert process.returncode == 2
    return shown.decode().replace("\r\n", "\n")


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize(("columns", "widest"), [(80, 80), (60, 60), (200, 100)])
def test_a_terminal_wraps(tmp_path: Path, columns: int, widest: int) -> None:
    """Lines are as wide as the terminal, and at most what reads well."""
    lines = _plain(_in_terminal(_project(tmp_path), columns, "profile")).splitlines()
    longest = max(map(len, lines))
    assert widest - 20 < longest <= widest
    assert "  Write type: nvidia-tesla-t4." in lines


def test_a_long_message_wraps_too(tmp_path: Path) -> None:
    """Also what is not a fault of a declaration."""
    shown = _plain(_in_terminal(_project(tmp_path, "a:\n- b: 1\nc: {d: 1\ne: f\n"), 80, "profile"))
    assert max(map(len, shown.splitlines())) <= 80
    assert " ".join(shown.split()).startswith("Pulumi.dev.yaml:4:2: A comma or the closing `}`")


def test_a_terminal_has_colour(tmp_path: Path) -> None:
    """Headings and suggestions stand out, unless NO_COLOR is set."""
    project = _project(tmp_path)
    assert "\x1b[32m  Write type: nvidia-tesla-t4." in _in_terminal(project, 80, "profile")
    assert "\x1b[3" not in _in_terminal(project, 80, "profile", NO_COLOR="1")


def test_a_pipe_is_plain(tmp_path: Path) -> None:
    """One line for each message, in the order of the file, with file, line and column."""
    done = _ebbtide(_project(tmp_path), "profile")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "The declaration has 2 errors.\n"
        "\n"
        "Pulumi.dev.yaml:8:9: pools[1].machine\n"
        "  No machine type n1-highmen-8 is known on GKE; did you mean n1-highmem-8? "
        "The node pool could not be created.\n"
        "  Write a known machine type, or declare vcpus and memoryGib with it.\n"
        "\n"
        "Pulumi.dev.yaml:10:11: pools[1].accelerator.type\n"
        "  No accelerator t4 is known on GKE; did you mean nvidia-tesla-t4? "
        "The node pool could not be created.\n"
        "  Write type: nvidia-tesla-t4.\n"
    )


def _document(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert document["version"] == "ebbtide.dev/errors/v1"
    return document["errors"]


@pytest.mark.parametrize("command", ["preview", "profile", "rehearse"])
def test_faults_as_a_document(tmp_path: Path, command: str) -> None:
    """Standard output has path, position, message, suggestion and rule; standard error the text."""
    project = _project(tmp_path)
    (project / "components").symlink_to(ROOT / "components")
    done = _ebbtide(project, command, "--format", "json")
    machine, accelerator = _document(done)
    assert machine["rule"] == "known-machine-type"
    assert accelerator == {
        "path": "pools[1].accelerator.type",
        "file": "Pulumi.dev.yaml",
        "line": 10,
        "column": 11,
        "message": (
            "No accelerator t4 is known on GKE; did you mean nvidia-tesla-t4? "
            "The node pool could not be created."
        ),
        "suggestion": "Write type: nvidia-tesla-t4.",
        "rule": "known-accelerator",
    }
    assert "Pulumi.dev.yaml:10:11: pools[1].accelerator.type" in done.stderr


def test_a_document_in_a_file(tmp_path: Path) -> None:
    """`--out` takes the document of errors too, so that it never keeps an older preview."""
    (tmp_path / "preview.json").write_text("{}")
    done = _ebbtide(_project(tmp_path), "profile", "--format", "json", "--out", "preview.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(json.loads((tmp_path / "preview.json").read_text())["errors"]) == 2


def test_a_document_that_cannot_be_written(tmp_path: Path) -> None:
    """The faults are shown all the same, and the file that cannot be written is named."""
    done = _ebbtide(_project(tmp_path), "profile", "--format", "json", "--out", "no/such/file.json")
    assert done.returncode == 2
    assert done.stderr.startswith("The declaration has 2 errors.")
    assert done.stderr.endswith("no/such/file.json: No such file or directory.\n")
    assert "Traceback" not in done.stderr


def test_other_errors_as_a_document(tmp_path: Path) -> None:
    """A broken file has its position, a failed program its line, a missing stack its message."""
    project = _project(tmp_path, "config:\n\ta: 1\n")
    (broken,) = _document(_ebbtide(project, "preview", "--format", "json"))
    assert broken == {
        "path": None,
        "file": "Pulumi.dev.yaml",
        "line": 2,
        "column": 1,
        "message": "The line is indented with a tab, which YAML does not allow.",
        "suggestion": "Indent with spaces.",
        "rule": "yaml-syntax",
    }
    (missing,) = _document(_ebbtide(project, "preview", "prod", "--format", "json"))
    assert (missing["rule"], missing["file"]) == ("stack-file", None)
    assert missing["message"].startswith("There is no stack prod")
    (project / "Pulumi.dev.yaml").write_text("config: {}\n")
    (project / "__main__.py").write_text("\n{}['x']\n")
    (failed,) = _document(_ebbtide(project, "preview", "--format", "json"))
    assert (failed["rule"], failed["file"], failed["line"]) == ("program", "__main__.py", 2)
