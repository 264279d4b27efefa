"""A machine on which tools are found or built, for tests, with a fake Go."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ebbtide_rehearsal.tools.download import directory
from ebbtide_rehearsal.tools.items import Step, Tool

_FAKE_GO = Path(__file__).with_name("fake_go.py")


class Machine:
    """A machine with nothing but what a test puts on its PATH."""

    def __init__(self, root: Path) -> None:
        self.bin, self.modules, self.builds = root / "bin", root / "modules", root / "builds"
        self.bin.mkdir()
        self.modules.mkdir()

    def program(self, name: str, script: str) -> Path:
        """Put a shell script on PATH."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def go(self) -> None:
        """Put the fake Go on PATH."""
        self.program("go", f'exec "{sys.executable}" "{_FAKE_GO}" "$@"')

    def module(self, address: str, *files: str, texts: Mapping[str, str] | None = None) -> None:
        """Put a module where Go gets modules, read-only as Go's own cache is; a file's text is its name where
        none is given."""
        for file, text in ({file: file for file in files} | dict(texts or {})).items():
            path = self.modules / address / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o444)
        for path in (self.modules / address).rglob("*"):
            if path.is_dir():
                path.chmod(0o555)

    def built(self) -> list[str]:
        """The packages that were built."""
        return (
            [line.split()[0] for line in self.builds.read_text().splitlines()] if self.builds.exists() else []
        )


def machine_in(root: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine below a directory, with an empty cache, as the environment has it."""
    made = Machine(root)
    for name in ("KUBEBUILDER_ASSETS", "GOGC"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "PATH": str(made.bin),
        "EBBTIDE_CACHE": str(root / "cache"),
        "EBBTIDE_RELEASES": "off",
        "FAKE_GO_VERSION": "go1.26.8",
        "FAKE_GO_MODULES": str(made.modules),
        "FAKE_GO_BUILDS": str(made.builds),
    }.items():
        monkeypatch.setenv(name, value)
    return made


def patched_files(tool: Tool) -> dict[str, str]:
    """Return the texts of a module's files that a tool's changes apply to."""
    texts: dict[str, str] = {}
    for change in tool.changes:
        texts[change.file] = texts.get(change.file, "") + change.before
    return texts


def silent(_: Step) -> None:
    """Ignore progress."""


def entries() -> set[str]:
    """Return the cache's directories of items, complete or not."""
    return {path.name for path in directory().iterdir()} - {"locks", "logs", "downloads"}
