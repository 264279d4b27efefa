"""What the documentation shows: it is run, or held against what is there."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml

from docs.generate import PAGES
from ebbtide.model import declare
from ebbtide.placement.derive import profile
from tests.repository import ROOT, STACK_FILES, declaration, makefile_targets, relative

_PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    ROOT / "template" / "README.md",
]

_OF_OTHERS = {"az", "cp", "export", "gcloud", "kubectl", "mkdir", "pulumi"}
"""Commands that a page may name and a test cannot try."""

_PULUMI = {"destroy", "install", "login", "new", "stack", "up"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def _blocks() -> Iterator[Block]:
    for path in _PAGES:
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^```(.*)\n([\s\S]*?)^```$", text, flags=re.MULTILINE):
            yield Block(relative(path), text.count("\n", 0, match.start()) + 1, match[1], match[2])


_BLOCKS = list(_blocks())


def _of_kind(kind: str) -> list[Block]:
    return [block for block in _BLOCKS if block.kind == kind]


@pytest.mark.parametrize("block", _BLOCKS, ids=str)
def test_every_block_is_of_a_kind(block: Block) -> None:
    """A block says what it is, so that none escapes the tests below."""
    assert block.kind in {"json", "python", "sh", "text", "yaml"}


@pytest.mark.parametrize("block", _of_kind("yaml"), ids=str)
def test_yaml_is_a_declaration(block: Block) -> None:
    """A stack's file that a page shows is accepted as it stands."""
    declare(yaml.safe_load(block.text)["config"]["ebbtide:cluster"], default_name="ebbtide-dev")


@pytest.mark.parametrize("block", _of_kind("python"), ids=str)
def test_python_runs(block: Block, tmp_path: Path) -> None:
    """Code that a page shows runs where the profile of the dev stack lies."""
    dev = declare(declaration(ROOT / "Pulumi.dev.yaml"))
    (tmp_path / "profile.json").write_text(profile(dev).json(), encoding="utf-8")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{block.text}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", _of_kind("json") + _of_kind("yaml"), ids=str)
def test_data_parses(block: Block) -> None:
    """Data that a page shows is read without an error."""
    assert (json.loads if block.kind == "json" else yaml.safe_load)(block.text)


def _commands() -> Iterator[tuple[str, str]]:
    """Every command of every page: those in blocks, and those of make in a sentence."""
    for block in _of_kind("sh"):
        for line in block.text.splitlines():
            if line and not line.startswith("#"):
                yield str(block), line
    for path in _PAGES:
        for command in re.findall(r"`(make [^`]+)`", path.read_text(encoding="utf-8")):
            yield relative(path), " ".join(command.split())


@cache
def _help(command: str) -> str:
    asked = [sys.executable, "-m", "ebbtide", command, "--help"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _check_make(words: list[str]) -> None:
    for word in words:
        name, _, value = word.partition("=")
        if name == "STACK":
            assert ROOT / f"Pulumi.{value}.yaml" in STACK_FILES
        elif name == word:
            assert word in makefile_targets()
        else:
            assert re.search(rf"\b{name}\b", (ROOT / "Makefile").read_text(encoding="utf-8"))


def _check_ebbtide(words: list[str]) -> None:
    command, *rest = words
    text = _help(command)
    for word in rest:
        if word.startswith("--"):
            assert word in text
        elif "/" in word:
            assert (ROOT / word).is_file()


@pytest.mark.parametrize(("where", "command"), [*dict.fromkeys(_commands())])
def test_commands_are_there(where: str, command: str) -> None:
    """A command that a page names is one that can be called, with those options, on those files."""
    match shlex.split(command):
        case ["make", *words]:
            _check_make(words)
        case [".venv/bin/python", "-m", "ebbtide", *words] | ["ebbtide", *words]:
            _check_ebbtide(words)
        case [".venv/bin/python", file]:
            assert (ROOT / file).is_file(), where
        case ["pulumi", word, *_]:
            assert word in _PULUMI, where
        case [word, *_]:
            assert word in _OF_OTHERS, where
        case _:
            pytest.fail(where)


@pytest.mark.parametrize("path", _PAGES, ids=relative)
def test_links_lead_somewhere(path: Path) -> None:
    """A link to a file of the repository has one at its end."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    assert [it for it in targets if "://" not in it and not (path.parent / it).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_in_step(page: str) -> None:
    """A generated page says what its source says: else `make docs` was forgotten."""
    assert (ROOT / page).read_text(encoding="utf-8") == PAGES[page]()


def test_every_field_says_what_it_means() -> None:
    """No field of the declaration is without a meaning on its page, and so in editors."""
    assert [line for line in PAGES["docs/declaration.md"]().splitlines() if line.endswith("|  |")] == []


def test_decisions_are_listed() -> None:
    """Every decision is found from the list of them."""
    directory = ROOT / "docs" / "decisions"
    listed = set(
        re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (directory / "README.md").read_text(encoding="utf-8"))
    )
    assert listed == {path.name for path in directory.glob("[0-9]*.md")}
