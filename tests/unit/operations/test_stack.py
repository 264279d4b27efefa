"""The progress of an engine run on a terminal of 80 columns, and files that another engine writes."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from ebbtide.operations.engine.backend import Backend, repaired
from ebbtide.operations.engine.events import Step, narration
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.stack import Stack

_ESCAPES = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
_POLICY = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding"


@pytest.mark.parametrize(("total", "count"), [(47, "2/47"), (None, "2 done")])
def test_a_long_name_hides_neither_bar_nor_count(total: int | None, count: str) -> None:
    """A resource counts once, if it is one of the total; its name is cut at the end of the line."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, color_system=None)
    with narration(console, total, lambda step: step.name.startswith("train")) as show:
        for name in ("train-a", "train-b", "other", "train-b"):
            step = Step(_POLICY, f"{name}-addons-validatingadmissionpolicybinding-members", done=False)
            show(step)
            show(Step(step.type, step.name, done=True))
    lines = [line for line in re.split(r"[\r\n]+", _ESCAPES.sub("", out.getvalue())) if line.strip()]
    assert re.match(
        rf"[━╸ ]{{16}} +{count} \d:\d\d:\d\d ValidatingAdmissionPolicyBinding train-b-addo", lines[-1]
    )
    assert len(lines[-1]) <= 80
    assert lines[-1].endswith("…")


@pytest.mark.parametrize("parameters", ["", "?no_tmp_dir=true"])
def test_empty_ones_are_deleted(tmp_path: Path, parameters: str) -> None:
    """All other files stay."""
    stacks = tmp_path / ".pulumi" / "stacks" / "ebbtide"
    stacks.mkdir(parents=True)
    files = {"dev.json": "{}", "dev.json.attrs": "", "prod.json": "", "prod.json.attrs": "{}"}
    for name, text in files.items():
        (stacks / name).write_text(text)
    url = f"file://{tmp_path}{parameters}"
    assert repaired(url)
    assert {file.name for file in stacks.iterdir()} == files.keys() - {"dev.json.attrs"}
    assert not repaired(url)


def test_other_backends_have_none() -> None:
    """A bucket has attributes of its own."""
    assert not repaired("gs://acme-ml-pulumi")


_WARNING = "warning: using pulumi-language-python from $PATH at /opt/pulumi/bin/pulumi-language-python"


_FAILING = """#!/bin/sh
if [ "$1" = version ]; then echo v3.259.0; exit; fi
echo >> "$0.calls"
if [ $(wc -l < "$0.calls") = 3 ]; then echo '[]'; exit; fi
echo '{warning}' >&2
echo 'error: {error}' >&2
exit 255
"""


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A `pulumi` whose first two commands fail with a warning and an error."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def write(error: str) -> None:
        program = tmp_path / "pulumi"
        program.write_text(_FAILING.format(warning=_WARNING, error=error))
        program.chmod(0o755)

    return write


@pytest.mark.parametrize(
    "error",
    [
        "failed to load checkpoint: EOF",
        "error listing stacks: could not list bucket: EOF",
        "reading history file .pulumi/history/train/dev/dev-1.history.json: EOF",
    ],
)
def test_a_file_that_is_being_written_is_read_again(
    tmp_path: Path, failing: Callable[[str], None], error: str
) -> None:
    """A warning before the error, such as that a plugin is from PATH, changes nothing in that."""
    failing(error)
    assert Backend(tmp_path).stacks == ()


def test_no_other_error_repeats_a_command(tmp_path: Path, failing: Callable[[str], None]) -> None:
    """The message begins with the error, not with the warning."""
    error = "rpc error: code = Unavailable desc = error reading from server: EOF"
    failing(error)
    with pytest.raises(OperationError, match=f"^`pulumi` failed: {error}$"):
        Backend(tmp_path)


def test_a_refresh_is_no_completed_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update ends as declared; a refresh, an import and a step of an update do not."""
    rows = (
        ("update", "failed", "", 9),
        ("refresh", "failed", "", 8),
        ("import", "succeeded", "", 7),
        ("refresh", "succeeded", "", 6),
        ("update", "succeeded", "ebbtide: a step of an update", 5),
        ("update", "succeeded", "", 4),
        ("update", "succeeded", "", 3),
    )
    runs = [
        {"kind": kind, "result": result, "message": message, "endTime": f"2026-11-20T10:0{minute}:00.000Z"}
        for kind, result, message, minute in rows
    ]

    def run(_: Stack, *command: str) -> str:
        """Answer as the engine, which has ten runs on a page unless told otherwise."""
        assert command == ("stack", "history", "--json", "--page-size", "100")
        return json.dumps(runs)

    monkeypatch.setattr(Stack, "run", run)
    completed = Stack("dev", cast("Any", None), None).completed()
    assert [end and end.minute for end in completed] == [4, 8]
    runs.clear()
    assert Stack("dev", cast("Any", None), None).completed() == (None, None)
