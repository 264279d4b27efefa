"""Output of `--help` and `--version`, and shell completion."""

import os
import shlex
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import pytest

from ebbtide import __version__
from ebbtide.cli.entry_point import EXAMPLES
from ebbtide.text import command_line
from tests.commands import ebbtide_with, started
from tests.repository import ROOT

_COLUMNS = 80
_LOCAL = (
    *("init", "schema", "preview", "machines", "profile", "config set", "config get", "job", "sweep"),
    "config unset",
)
"""The commands whose examples need neither a cluster nor a cloud, in the order in which they follow."""


def _run(*words: str, cwd: Path = ROOT, **environment: str) -> str:
    done = ebbtide_with({**os.environ, "COLUMNS": str(_COLUMNS), **environment}, *words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def _help(command: str = "") -> str:
    return _run(*command.split(), "--help")


def _summaries() -> dict[str, str]:
    lines = _help().partition("\n\nReview:\n")[2].splitlines()
    return {name: text for line in lines if line[:2] == "  " for name, text in [line.split(maxsplit=1)]}


def test_summaries_fit() -> None:
    """Every command is listed with a whole sentence in an 80-column terminal."""
    summaries = _summaries()
    assert summaries.keys() == {command.split()[0] for command in EXAMPLES}
    assert [text for text in summaries.values() if not text.endswith(".") or "..." in text] == []


@pytest.mark.parametrize("command", ["", *EXAMPLES])
def test_help_fits(command: str) -> None:
    """No line of any help is longer than the terminal is wide."""
    lines = _help(command).splitlines()
    assert [line for line in lines if len(line) > _COLUMNS] == []


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_ends_with_an_example(command: str) -> None:
    """The example is printed line by line, and begins as this environment's command does."""
    _, _, example = _help(command).partition("\n  Example:\n")
    assert example.startswith(f"    {command_line(*command.split())}")
    assert shlex.split(example.replace("\\\n", "")) == shlex.split(
        f"{command_line()} {EXAMPLES[command]}".replace("\\\n", "")
    )


def test_an_example_has_no_path_of_this_machine(tmp_path: Path) -> None:
    """Outside of the environment's directory, the example's command is the bare name."""
    done = started("preview", "--help", cwd=tmp_path)
    assert "Example:\n    ebbtide preview dev" in done.stdout


def test_examples_run(tmp_path: Path) -> None:
    """Every example that needs no cluster runs as it is printed, one after the other."""
    for name in ("__main__.py", "Pulumi.yaml", "Pulumi.dev.yaml", "components"):
        (tmp_path / name).symlink_to(ROOT / name)
    for command in _LOCAL:
        words = shlex.split(EXAMPLES[command].replace("\\\n", ""))
        shown = _run(*words, cwd=tmp_path, PYTHONPATH=str(ROOT))
        file = tmp_path / words[words.index("--out") + 1] if "--out" in words else tmp_path / ".ebbtide.json"
        assert shown or file.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", [name for name in EXAMPLES if name not in _LOCAL])
def test_options_of_other_examples_exist(command: str) -> None:
    """An example that needs a cluster or a cloud names no option that its command does not have."""
    options = [word for word in shlex.split(EXAMPLES[command]) if word.startswith("-")]
    assert [option for option in options if f"{option} " not in _help(command)] == []


_OFFLINE = {"config", "init", "job", "machines", "preview", "profile", "replay", "review", "schema", "sweep"}


def test_commands_that_need_access_are_listed() -> None:
    """The help names every command that reaches a backend, a cloud or a cluster."""
    listed = {
        words.split()[0] for words in _help().partition("Only ")[2].partition("need")[0].split("`")[1::2]
    }
    commands = {command.split()[0] for command in EXAMPLES}
    assert commands - listed == _OFFLINE | {"rehearse"}


def test_version() -> None:
    """`--version` prints the package's version alone."""
    assert _run("--version") == f"ebbtide {__version__}\n"


_COMPLETE = """
eval "$("$1" --show-completion)"
read -ra COMP_WORDS <<< "$2"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_ebbtide_completion "$1"
printf "%s\\n" "${COMPREPLY[@]}"
"""


def _completed(words: str) -> list[str]:
    script = Path(sysconfig.get_path("scripts"), "ebbtide")
    command = ["bash", "-c", _COMPLETE, "bash", str(script), words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def test_commands_are_in_groups() -> None:
    """The help lists the commands by what they are for."""
    lines = _help().splitlines()
    groups = [line for line in lines if line.endswith(":") and line[0] != " "]
    assert groups == ["Options:", "Review:", "Cluster:", "Work:", "Rehearsal:"]


def test_lines_in_a_pipe_end_without_blanks() -> None:
    """Tables do not pad their last column where no terminal shows them."""
    for command in ("preview dev", "preview dev --tree", "machines --gpu t4", "rehearse --list"):
        assert [line for line in _run(*command.split()).splitlines() if line != line.rstrip()] == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("ebbtide job x --pool t", {"t4-spot"}),
        ("ebbtide sweep x --queue a", {"a100"}),
        ("ebbtide machines --gpu nvidia-l", {"nvidia-l4"}),
        ("ebbtide machines --region us-central", {"us-central1", "us-central2"}),
    ],
)
def test_bash_completes_pools_queues_accelerators_and_regions(
    words: str, completions: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pools and queues are those of the profile; without a readable one there are none."""
    profile = tmp_path / "profile.json"
    monkeypatch.setenv("EBBTIDE_PROFILE", str(profile))
    assert "job" not in words or _completed(words) == []
    _run("profile", "dev", "--out", str(profile))
    assert completions <= set(_completed(words))


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_stacks() -> None:
    """The script of `--show-completion` completes a project's stacks."""
    assert _completed("ebbtide preview dev") == ["dev", "dev-aks"]
