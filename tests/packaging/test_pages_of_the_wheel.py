"""Pages for users of the wheel, followed in an empty directory with nothing else installed."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from tests.pages import BLOCKS
from tests.repository import ROOT, ran

Install = Callable[[Path, Requirement], None]

_PIP = ".venv/bin/python -m pip install "
_WITH_A_CLOUD = ("pulumi ", ".venv/bin/ebbtide up ", ".venv/bin/ebbtide destroy ")
"""Commands that the tests of `rehearsal/tests/engine` run."""


class Reader:
    """A reader in an empty directory, whose files and commands are those of a page.

    Args:
        directory: the directory.
        install: what pip would do, without an index.
    """

    def __init__(self, directory: Path, install: Install) -> None:
        self.directory, self._install = directory, install
        tools = directory.parent / "tools"
        tools.mkdir()
        # Neither this environment nor the checkout can be imported.
        base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        (tools / "python3").symlink_to(base)
        self._environment = {
            "PATH": f"{tools}:{os.defpath}",
            "HOME": str(directory.parent),
            "PYTHONWARNINGS": "ignore",
        }

    def run(self, command: str) -> str:
        """Run a command that must succeed, and return its output."""
        if command.startswith(_PIP):
            for requirement in _requirements(shlex.split(command.removeprefix(_PIP)), self.directory):
                self._add(requirement)
            return ""
        return ran("/bin/sh", "-c", command, cwd=self.directory, env=self._environment).stdout

    def _add(self, requirement: Requirement) -> None:
        (site,) = self.directory.glob(".venv/lib/python*/site-packages")
        self._install(site, requirement)
        command = self.directory / ".venv/bin/ebbtide"
        command.write_text(f"#!{command.parent}/python\nfrom ebbtide.cli import main\nmain()\n")
        command.chmod(0o755)


def _requirements(words: list[str], directory: Path) -> list[Requirement]:
    """Return the requirements of pip's arguments: wheels by their file, others by name, and files of them."""
    if words[:1] == ["-r"]:
        lines = (directory / words[1]).read_text(encoding="utf-8").splitlines()
        return [
            it for line in lines if not line.startswith("#") for it in _requirements(line.split(), directory)
        ]
    return [Requirement(re.sub(r"^\./(\w+)-[^\[]*\.whl", r"\1", word)) for word in words]


@pytest.fixture
def reader(tmp_path: Path, install: Install) -> Reader:
    """A reader in an empty directory."""
    (tmp_path / "shared").mkdir()
    return Reader(tmp_path / "shared", install)


def _files(page: str) -> dict[str, str]:
    """The files that a page shows, each after a paragraph that ends with its name and a colon."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return dict(re.findall(r"`([\w.-]+)`(?:, [^`\n]+)?:\n\n```\w+\n([\s\S]*?)```", text))


def _commands(page: str) -> list[str]:
    """The commands that a page shows, in order."""
    return [line for it in BLOCKS if it.page == page and it.kind == "sh" for line in it.text.splitlines()]


_EXISTING = "docs/existing-cluster.md"


@pytest.mark.parametrize(("extra", "pool"), [("gke", "cpu-spot"), ("aks", "cpuspot")])
def test_existing_cluster(extra: str, pool: str, reader: Reader) -> None:
    """A new directory with the page's files previews one pool of the existing cluster and prints a Job for
    it, with that cloud's packages alone."""
    files = _files(_EXISTING)
    files["Pulumi.shared.yaml"] = next(
        it.text for it in BLOCKS if it.page == _EXISTING and f"kind: {extra}" in it.text
    )
    for name, text in files.items():
        (reader.directory / name).write_text(text, encoding="utf-8")
    first, second, _, _, *rest = _commands(_EXISTING)
    assert (first, second) == ("make wheel", "mkdir ../shared")
    outputs = [
        reader.run(line.replace("[gke,", f"[{extra},").replace("cpu-spot", pool).replace(" --submit", ""))
        for line in rest
        if not line.startswith(_WITH_A_CLOUD)
    ]
    (preview,) = (text for text in outputs if text.startswith("shared/shared: "))
    assert "1 resource to create" in preview
    assert pool in preview
    assert yaml.safe_load(outputs[-1])["spec"]["template"]["spec"]["tolerations"]


_TESTING = "docs/testing.md"


def test_testing(reader: Reader) -> None:
    """The page's tests pass in a new project of the template for GKE, with that cloud's packages alone."""
    template = ROOT / "template" / "gke"
    shutil.copytree(template, reader.directory, dirs_exist_ok=True)
    (reader.directory / "Pulumi.yaml").write_text("name: my-cluster\nruntime: python\n", encoding="utf-8")
    answers = {"ebbtide:owner": "us", "ebbtide:project": "acme-ml", "ebbtide:location": "us-central1-a"}
    written = yaml.safe_load((template / "Pulumi.dev.yaml").read_text(encoding="utf-8"))
    stack_file = yaml.safe_dump({"config": answers | written["config"]})
    (reader.directory / "Pulumi.dev.yaml").write_text(stack_file, encoding="utf-8")
    for number, block in enumerate(it for it in BLOCKS if it.page == _TESTING and it.kind == "python"):
        (reader.directory / f"test_page_{number}.py").write_text(block.text, encoding="utf-8")
    reader.run("python3 -m venv --without-pip .venv")
    printed = [reader.run(line) for line in _commands(_TESTING)]
    assert "8 passed" in printed[-1]
