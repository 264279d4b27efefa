"""`ebbtide rehearse --stay`, and commands in another terminal: engine and control plane are real."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.ids import GKE_CLUSTER
from ebbtide_rehearsal.cloud.rest.google_clusters import described
from ebbtide_rehearsal.cloud.running import store_file
from ebbtide_rehearsal.cloud.store import Store
from tests.pages import of_kind
from tests.repository import ROOT

pytestmark = [pytest.mark.rehearsal, pytest.mark.first]

_START = 3600.0  # seconds, with tools that are built first
_PAGES = ("docs/rehearsing.md", "docs/updating.md", "docs/running.md", "docs/destroying.md")
_README = [block.text for block in of_kind("sh") if block.page == "README.md"]
_BEFORE = {
    # A page destroys a permanent stack of another name.
    ".venv/bin/ebbtide destroy prod --confirm-name prod": (
        "pulumi stack init prod && .venv/bin/ebbtide up prod --yes"
    ),
    # Work that waits is kept, and runs after the stack is awake.
    ".venv/bin/ebbtide sleep dev --wait": "kubectl get nodes",
}
"""Commands that the pages do not show, since they only prepare others."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A rehearsal that stays, as its user sees it.

    Attributes:
        process: the command in the first terminal.
        exports: the file that its last line names.
    """

    process: subprocess.Popen[str]
    exports: Path

    def run(self, command: str) -> tuple[int, str]:
        """Status and output of a command in another terminal, whose questions are answered with yes."""
        master, terminal = pty.openpty()
        shell = subprocess.Popen(
            ["bash", "-c", f"source {self.exports} && {command}"],  # noqa: S607 - the first on PATH
            env=os.environ | {"COLUMNS": "80"},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        printed, answered = bytearray(), 0
        with shell:
            while part := _read(master):
                printed += part
                if (asked := printed.count(b"[y/N]:")) > answered:
                    answered = asked
                    os.write(master, b"y\n")
        os.close(master)
        return shell.returncode, printed.decode(errors="replace")


def _read(terminal: int) -> bytes:
    """Read what a terminal shows; empty at its end, which Linux reports as an error."""
    readable, _, _ = select.select([terminal], [], [], 1200)
    assert readable
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


@contextmanager
def _staying(*options: str, keep: Path, stack: str = "dev", project: Path = ROOT) -> Generator[Rehearsal]:
    command = [sys.executable, "-m", "ebbtide", "rehearse", stack, "--stay", "--keep", str(keep), *options]
    process = subprocess.Popen(
        command,
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        end = time.monotonic() + _START
        for line in process.stdout:
            lines.append(line)
            assert time.monotonic() < end, "".join(lines)
            if match := re.match(r"\s+source (.+)$", line):
                assert f"Stack {stack} is as declared, and stays" in "".join(lines), "".join(lines)
                assert not any(line.startswith("export ") for line in lines), "".join(lines)
                yield Rehearsal(process, Path(match[1]))
                break
        else:
            pytest.fail("".join(lines))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=600)


def _shown() -> list[str]:
    """The commands of the pages, in order, but for the rehearsals themselves."""
    blocks = [block.text for page in _PAGES for block in of_kind("sh") if block.page == page]
    return [line for text in blocks for line in text.splitlines() if "rehearse" not in line]


_TRAIN = next(block.text for block in of_kind("python") if block.page == "docs/daily-work.md")
# Only the second attempt ends, however slow this machine is.
_NOTEBOOK = """
set -m
ebbtide notebook lab --pool cpu-spot > log 2>&1 &
until url=$(grep -o 'http://127[^ ]*' log); do sleep 1; jobs %1 > /dev/null || { cat log; exit 1; }; done
curl --fail --silent "${url/lab?/api/contents?}"
kill -INT %1; wait %1; cat log
ebbtide cancel lab
"""


def _folder(directory: Path) -> Path:
    """Return a new folder with the program of the page about a day's work."""
    folder = directory / "model"
    folder.mkdir()
    (folder / "train.py").write_text(_TRAIN)
    (folder / ".dockerignore").write_text("log\nlive")
    return folder


@pytest.mark.long
def test_every_command_of_the_pages(tmp_path: Path) -> None:
    """Every command of the pages on a stack's life succeeds as it is printed; a notebook opens before."""
    with _staying(keep=tmp_path / "kept") as rehearsal:
        status, printed = rehearsal.run(f"cd {_folder(tmp_path)}\n{_NOTEBOOK}")
        assert (status, '"train.py"' in printed) == (0, True), printed
        for command in _shown():
            for line in filter(None, (_BEFORE.get(command), command)):
                # `pulumi` asks with a menu.
                prefix = "PULUMI_SKIP_CONFIRMATIONS=true " if line.startswith("pulumi up") else ""
                status, printed = rehearsal.run(f"{prefix}{line}")
                assert status == 0, f"{line}\n{printed}"


def _project(directory: Path, stack: str, declared: str) -> Path:
    """Return a copy of the project with one stack."""
    project = directory / "project"
    project.mkdir()
    for path in ROOT.iterdir():
        if not path.name.startswith("Pulumi.") or path.name == "Pulumi.yaml":
            (project / path.name).symlink_to(path)
    (project / f"Pulumi.{stack}.yaml").write_text(declared)
    return project


def _begun(cloud: CloudKind, directory: Path) -> tuple[Path, str]:
    """Type what README prints until there is a declaration: `init`, then on GKE the page's own declaration in
    the checkout, and on AKS that of `init` with the page's team and limit. Return project and stack."""
    init = _README[0].splitlines()[1]
    (declared,) = (block.text for block in of_kind("yaml") if block.page == "README.md")
    project = _project(directory, "mine", declared)
    if cloud is CloudKind.AKS:
        init = init.replace("--project acme-ml", "--subscription 11111111-2222-3333-4444-555555555555")
    shell = ["bash", "-ec", init]
    subprocess.run(shell, cwd=project, check=True)
    if cloud is CloudKind.GKE:
        return project, "mine"
    ml = directory / "ml"
    (ml / ".venv").symlink_to(ROOT / ".venv")
    own, page = (yaml.safe_load(text)["config"] for text in ((ml / "Pulumi.dev.yaml").read_text(), declared))
    cluster = own["ebbtide:cluster"]
    own["ebbtide:policy"] = page["ebbtide:policy"]
    cluster["teams"] = page["ebbtide:cluster"]["teams"]
    cluster["queues"] = [{"name": "t4", "pools": [cluster["pools"][1]["name"]]}]
    (ml / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": own}))
    return ml, "dev"


@pytest.mark.parametrize("cloud", CloudKind)
def test_a_newcomers_way(cloud: CloudKind, tmp_path: Path) -> None:
    """README's commands, as printed, lead to a Job of one's own that has run; Ctrl-C ends the rehearsal with
    status 0."""
    project, stack = _begun(cloud, tmp_path)
    preview = _README[1].replace("mine", stack)
    shell = ["bash", "-ec", preview]
    shown = subprocess.run(shell, cwd=project, capture_output=True, text=True, check=True).stdout
    assert "t4" in shown
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / "train.py").write_text("print('a first step')\n")
    with _staying("--for", "2h", keep=tmp_path / "kept", stack=stack, project=project) as rehearsal:
        for command, text in (
            ("kubectl get nodes", "Ready"),
            (f"{sys.executable} -m ebbtide doctor {stack}", "answers."),
            (f"cd {folder} && {_README[2]}", "a first step"),
            (f"cd {folder} && .venv/bin/ebbtide jobs --all", "1 completed"),
        ):
            status, printed = rehearsal.run(command)
            assert (status, text in printed) == (0, True), printed
        os.killpg(rehearsal.process.pid, signal.SIGINT)
        assert rehearsal.process.wait(600) == 0
    assert "encryptionsalt" not in (project / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_page_about_adopting(tmp_path: Path) -> None:
    """A cluster of another stack is adopted, updated, let go and kept, as the page does it on GKE."""
    page = "docs/adopting.md"
    (declared,) = (block.text for block in of_kind("yaml") if block.page == page)
    rehearse, *blocks = (block.text for block in of_kind("sh") if block.page == page)
    assert rehearse == ".venv/bin/ebbtide rehearse others --stay\n"
    kept = tmp_path / "kept"
    with _staying(keep=kept, stack="others", project=_project(tmp_path, "others", declared)) as rehearsal:
        store = Store(store_file(kept))
        (cluster,) = store.resources("gcp", GKE_CLUSTER)
        before = {item.id for item in store.resources("gcp")}
        (kept / "project" / "cluster.json").write_text(json.dumps(described(store, cluster)))
        shown = [line for text in blocks for line in text.splitlines() if "--subscription" not in line]
        printed = ""
        for line in shown:
            status, output = rehearsal.run(line)
            assert status == 0, f"{line}\n{output}"
            printed += output
        assert printed.count("Written: Pulumi.") == 3, printed
        assert "The state has 3 adopted resources; none of them was changed." in printed
        assert "Stack shared matches its declaration." in printed
        assert {item.id for item in store.resources("gcp")} == before


def test_the_tutorial(tmp_path: Path) -> None:
    """Files and commands of the tutorial's page, in each terminal: the Job goes on after its node was
    reclaimed, and the change of the cluster is made."""
    page = "docs/tutorial.md"
    declared, changed = (block.text for block in of_kind("yaml") if block.page == page)
    (program,) = (block.text for block in of_kind("python") if block.page == page)
    first, rehearse, look, run, reclaim, after, up = (
        block.text for block in of_kind("sh") if block.page == page
    )
    project = _project(tmp_path, "first", declared)
    shell = ["bash", "-ec", first.replace("make install", "")]
    preview = subprocess.run(shell, cwd=project, capture_output=True, text=True, check=True).stdout
    assert "33 resources to create" in preview
    assert rehearse == ".venv/bin/ebbtide rehearse first --stay\n"
    with _staying(keep=tmp_path / "kept", stack="first", project=project) as rehearsal:
        assert rehearsal.run(f"set -e\n{look}")[0] == 0
        *prepare, work = run.splitlines()
        status, printed = rehearsal.run(
            "\n".join(
                (
                    f"set -e; mkdir model; cat > model/train.py <<'EOF'\n{program}EOF",
                    *prepare,
                    f"{work} > log 2>&1 & run=$!",
                    "until grep -q 'step 5' log; do sleep 0.5; kill -0 $run; done",
                    reclaim,
                    "wait $run || { cat log; exit 1; }; cat log",
                    after,
                    "cat results/step",
                )
            )
        )
        assert (status, "1 disruption survived" in printed) == (0, True), printed
        steps = [int(number) for number in re.findall(r"^step (\d+)\s*$", printed, flags=re.MULTILINE)]
        again = len(steps) - 40
        assert again in (0, 1), printed
        assert sorted(set(steps)) == list(range(40))
        assert printed.rstrip().endswith("40"), printed
        rehearsal.run(f"cat > Pulumi.first.yaml <<'EOF'\n{changed}EOF")
        status, printed = rehearsal.run(f"set -e\n{up}")
        assert (status, "t4-spot" in printed) == (0, True), printed
