"""The command `ebbtide rehearse`, before anything is started."""

import os
import subprocess
import sys
import sysconfig
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ebbtide import __version__
from ebbtide.cli import app
from ebbtide.text import install_command
from ebbtide_rehearsal import rehearse
from ebbtide_rehearsal.report.document import Report, StepReport
from ebbtide_rehearsal.scenarios.model import built_in
from tests.repository import ROOT


def _invoke(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["rehearse", "--cwd", str(ROOT), *arguments])
    return done.exit_code, done.output


def test_the_scenarios_that_come_along_are_listed() -> None:
    """Each with its name and what it shows."""
    status, text = _invoke("--list")
    assert status == 0
    assert [line.split()[0] for line in text.splitlines()] == list(built_in())


def test_a_shell_completes_scenarios() -> None:
    """The names of the built-in scenarios."""
    words = "ebbtide rehearse --scenario spot-s"
    done = subprocess.run(
        [Path(sysconfig.get_path("scripts"), "ebbtide")],
        env={**os.environ, "_EBBTIDE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [name for name in built_in() if name.startswith("spot-s")]


def test_a_scenario_that_is_not_there_is_a_wrong_call() -> None:
    """Status 2, and the one that was meant."""
    status, text = _invoke("--scenario", "spot-strom")
    assert status == 2
    assert "Did you mean spot-storm?" in text


def test_a_stack_with_faults_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    """Status 2, and every fault; no tool is looked for."""
    faulty = tmp_path / "Pulumi.faulty.yaml"
    faulty.write_text("config: {'ebbtide:cluster': {cloud: {kind: gke}, pools: []}}")
    status, text = _invoke("--config-file", str(faulty))
    assert status == 2
    assert "cloud.project" in text


@pytest.mark.parametrize(
    ("option", "directory", "wrong"),
    [
        ("--manifests", "none", "there is no such directory"),
        ("--charts", "none", "there is no such directory"),
        ("--manifests", ".", "has no index.yaml"),
    ],
)
def test_directories_are_checked_before_anything_is_built(
    tmp_path: Path, option: str, directory: str, wrong: str
) -> None:
    """Status 2, with what is wrong with the directory or its index."""
    status, text = _invoke("dev", option, str(tmp_path / directory))
    assert (status, wrong in " ".join(text.split())) == (2, True)


def test_a_program_that_completes_its_declaration_cannot_be_rehearsed(tmp_path: Path) -> None:
    """The fields that the stack's file lacks are named, in place of faults that the program has not."""
    (tmp_path / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {'ebbtide:cluster': {owner: us, pools: []}}")
    (tmp_path / "__main__.py").write_text("import pulumi\npulumi.export('a', 1)\n")
    done = CliRunner().invoke(app, ["rehearse", "--cwd", str(tmp_path)])
    assert done.exit_code == 2
    assert "declares a part of the cluster, and the program adds the rest" in done.output
    assert "`cloud`" in done.output
    assert "The declaration has" not in done.output


@pytest.mark.parametrize("format_", ["text", "json", "html"])
def test_a_report_in_a_file_is_named(format_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends with the result and the file's path, in every format."""
    report = Report(
        title="A trial",
        stack="dev",
        speed=60,
        steps=(StepReport(title="pulumi up", at=0, seconds=1, misses=()),),
        events=(),
        jobs=(),
        minutes_to_zero={},
        cost={},
        other_costs={},
        total_cost=0,
        without_price=(),
        estimated=(),
        money=(),
        seconds=61,
        memory_mib=700,
    )

    def played(*_: object, **_options: object) -> Report:
        return report

    def staged(*_: object, **_options: object) -> AbstractContextManager[None]:
        return nullcontext()

    monkeypatch.setattr(rehearse, "narrated", played)
    monkeypatch.setattr(rehearse, "play", played)
    monkeypatch.setattr(rehearse, "stage", staged)
    out = tmp_path / "report"
    status, text = _invoke("dev", "--format", format_, "--out", str(out))
    assert (status, "A trial" in out.read_text(encoding="utf-8")) == (0, True)
    assert text.splitlines()[-1] == f"All 1 steps were met: 61 s, at most 700 MiB. The report is in {out}."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--stay", "--scenario", "spot-storm"), "--stay excludes --scenario, --format and --out."),
        (("--stay", "--out", "report"), "--stay excludes --scenario, --format and --out."),
        (("--for", "2h"), "--for limits the time of --stay: add --stay."),
        (("--stay", "--for", "long"), "such as 90m"),
        (("--reclaim", "cpu-spot"), "--reclaim needs a rehearsal that stays: start one with --stay"),
    ],
)
def test_options_of_a_rehearsal_that_stays(arguments: tuple[str, ...], message: str) -> None:
    """A rehearsal that stays has no scenario and no report; only it has a time limit."""
    status, text = _invoke("dev", *arguments)
    assert status == 2
    assert message in " ".join(text.split())


_MISSING = "import sys; sys.modules['{}'] = None; from ebbtide.cli import main; main()"
_OTHER = "import ebbtide_rehearsal as r; r.__version__ = '9'; from ebbtide.cli import main; main()"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        *(
            (
                _MISSING.format(name),
                f"`ebbtide rehearse` needs {name}, which is not installed. Install it with: ",
            )
            for name in ("ebbtide_rehearsal", "trustme", "aiohttp")
        ),
        (
            _OTHER,
            f"The rehearsal is 9 and runs the internals of Ebbtide, which is {__version__}. Install ",
        ),
    ],
    ids=["rehearsal", "trustme", "aiohttp", "another version"],
)
def test_a_missing_package_is_named(program: str, message: str) -> None:
    """The status is 2, with the command that installs the rehearsal, its version or a package of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program, "rehearse", "dev"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.endswith(f" with: {install_command('rehearse')}.\n")
