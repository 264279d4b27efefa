"""The command `ebbtide replay` with the real Kueue: the example of its page."""

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest
from rich.console import Console

from ebbtide_rehearsal.replay.kueue import PROGRAM
from ebbtide_rehearsal.tools import ensure, narration
from tests.pages import BLOCKS
from tests.repository import ROOT

pytestmark = pytest.mark.rehearsal

_OMITTED = "[...]\n"


def test_the_example_of_the_page_has_its_output(tmp_path: Path) -> None:
    """Eight nodes instead of four: the page's parts of the report are those that the command prints."""
    with narration(Console(stderr=True)) as say:
        ensure([PROGRAM], on_step=say)
    for name in ("__main__.py", "Pulumi.yaml", "components", "stacks", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    written = (ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    (tmp_path / "four.yaml").write_text(written, encoding="utf-8")
    eight = written.replace("nodes: {max: 4}", "nodes: {max: 8}")
    (tmp_path / "Pulumi.dev.yaml").write_text(eight, encoding="utf-8")
    (shown,) = (block.text for block in BLOCKS if block.page == "docs/replay.md" and block.kind == "text")
    done = subprocess.run(
        [
            Path(sysconfig.get_path("scripts"), "ebbtide"),
            *("replay", "examples/traces/dev.csv", "dev", "--against", "four.yaml"),
        ],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for part in shown.split(_OMITTED):
        assert part.strip() in done.stdout
