"""The command `ebbtide replay`, with a scheduler of the tests in place of Kueue."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

import kueue_replay
from ebbtide.cli import app
from ebbtide_rehearsal.tools.items import ToolError
from first_in import use_first_in
from kueue_replay.cloud_model import read_cloud_model
from kueue_replay.mapping import read_table
from tests.declarations import GKE, only
from tests.pages import of_kind
from tests.repository import ROOT

TRACE = ROOT / "examples" / "traces" / "dev.csv"


def _invoke(trace: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["replay", str(trace), "dev", "--cwd", str(ROOT), *arguments])
    return done.exit_code, " ".join(done.output.split())


def _written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def first_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedule by quota alone, without Kueue's program."""
    use_first_in(monkeypatch)


@pytest.fixture
def eight(tmp_path: Path) -> Path:
    """The stack file of dev with eight T4 nodes."""
    written: dict[str, Any] = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8"))
    (pool,) = (item for item in written["config"]["ebbtide:cluster"]["pools"] if item["name"] == "t4-spot")
    pool["nodes"]["max"] = 8
    return _written(tmp_path / "eight.yaml", yaml.safe_dump(written))


@pytest.mark.usefixtures("first_in")
def test_two_declarations_have_two_columns(eight: Path, tmp_path: Path) -> None:
    """The earlier one is first; the verdict names the changed number of nodes."""
    out = tmp_path / "report.json"
    status, text = _invoke(
        TRACE, "--against", str(eight), "--seeds", "1", "--format", "json", "--out", str(out)
    )
    assert status == 0, text
    report = json.loads(out.read_text(encoding="utf-8"))
    assert [column["name"] for column in report["columns"]] == [str(eight), "dev"]
    assert report["verdict"][0].startswith("With 4 t4-spot nodes instead of 8: ")
    assert " more waiting" in report["verdict"][0]


@pytest.mark.usefixtures("first_in")
def test_a_stack_file_has_a_column_of_its_name(eight: Path) -> None:
    """The column is not named as the selected stack, which the file need not be."""
    status, text = _invoke(TRACE, "--config-file", str(eight), "--seeds", "1", "--format", "json")
    assert status == 0, text
    assert json.loads(text)["columns"][0]["name"] == "eight.yaml"


@pytest.mark.usefixtures("first_in")
def test_a_trace_on_the_calendar(tmp_path: Path) -> None:
    """A job waits from its date until the begin of its pool's reservation, and `--starts` moves the trace
    there; the pool costs its disks, beside the price of the reservation."""
    h100 = {
        "name": "h100",
        "machine": "a3-megagpu-8g",
        "zones": ["us-central1-a"],
        "nodes": {"max": 2},
        "capacity": {"kind": "reservation", "from": "2026-12-05T08:00Z", "until": "2026-12-12T08:00Z"},
    }
    declared = only(GKE) | {"queues": [{"name": "h100", "pools": ["h100"]}]}
    declared["pools"] = [declared["pools"][0], h100]
    stack = _written(tmp_path / "held.yaml", yaml.safe_dump({"config": {"ebbtide:cluster": declared}}))
    trace = _written(
        tmp_path / "held.csv", "submit,duration,gpus,queue", "2026-12-04T08:00Z,3600,8,default/h100"
    )
    given = ("--config-file", str(stack), "--seeds", "1")
    for starts, least, most in (((), 86400, 88400), (("--starts", "2026-12-05T10:00+02:00"), 60, 300)):
        status, text = _invoke(trace, *given, *starts, "--format", "json")
        assert status == 0, text
        report = json.loads(text)
        (column,) = report["columns"]
        assert least < column["waits"][0]["half"]["median"] < most
        (nodes,) = [pool["usd"]["median"] for pool in column["pools"] if pool["pool"] == "h100"]
        assert column["others"]["reservation of pool h100"]["median"] > 100 * nodes > 0
    status, text = _invoke(trace, *given, "--starts", "soon")
    assert (status, "--starts is soon. Write a date and time" in text) == (2, True)


@pytest.mark.usefixtures("first_in")
def test_the_report_is_text_or_a_page(tmp_path: Path) -> None:
    """Text goes to standard output, and a page to its file; what never fits is counted with its line."""
    status, text = _invoke(TRACE, "--seeds", "1")
    assert status == 0, text
    assert "177 jobs in 11 days; 1 seed" in text
    assert "exceed the most nodes of every pool of queue vision/t4" in text
    page = tmp_path / "report.html"
    assert _invoke(TRACE, "--seeds", "1", "--format", "html", "--out", str(page))[0] == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.usefixtures("first_in")
def test_a_trace_of_which_no_job_runs_fails(tmp_path: Path) -> None:
    """Status 1 after the report, whose first line says it, if every job is too large."""
    trace = _written(tmp_path / "t.csv", "submit,duration,pods,gpus,queue", "0,60,900,1,t4", "9,60,1,64,t4")
    status, text = _invoke(trace, "--seeds", "1")
    assert status == 1, text
    assert text.startswith("2 of 2 jobs never ended; no job ran; ")
    assert "a pod is larger than every node of queue vision/t4" in text


def test_faults_of_a_trace_are_reported_with_their_lines(tmp_path: Path) -> None:
    """Status 2 and every fault, before Kueue is built."""
    trace = _written(
        tmp_path / "t.csv", "submit,duration,gpus,queue", "0,60,1,t4", "9,-1,1,t4", "5,60,x,t4", "9,60,1,t5"
    )
    status, text = _invoke(trace)
    assert status == 2
    for fault in (":3: duration is -1", ":4: gpus is x", ":5: No queue t5 is declared"):
        assert fault in text


def test_a_map_with_unknown_names_is_refused(tmp_path: Path) -> None:
    """Status 2, with the queue that was meant."""
    table = _written(tmp_path / "map.yaml", "queues: {'*': vision/t5}")
    status, text = _invoke(TRACE, "--map", str(table))
    assert status == 2
    assert "vision/t5, which is not declared" in text


def test_a_cloud_model_with_unknown_fields_is_refused(tmp_path: Path) -> None:
    """Status 2, with the field."""
    model = _written(tmp_path / "cloud.yaml", "startup: {second: 5}")
    status, text = _invoke(TRACE, "--cloud-model", str(model))
    assert status == 2
    assert "startup" in text
    assert "second" in text


def test_a_deployed_state_is_no_declaration(tmp_path: Path) -> None:
    """Status 2: quotas of a state may be those of another version of Ebbtide."""
    urn = "urn:pulumi:dev::ebbtide::pulumi:pulumi:Stack::ebbtide-dev"
    state = {"version": 3, "deployment": {"resources": [{"urn": urn, "type": "pulumi:pulumi:Stack"}]}}
    exported = _written(tmp_path / "state.json", json.dumps(state))
    status, text = _invoke(TRACE, "--against", str(exported))
    assert status == 2
    assert "is a deployed state" in text


def _review(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["review", "dev", "--cwd", str(ROOT), *arguments])
    return done.exit_code, done.output


@pytest.mark.usefixtures("first_in")
def test_a_review_has_the_replay_of_both_versions(eight: Path, tmp_path: Path) -> None:
    """The verdict and a column for each version; the trace's faults are errors of the review."""
    out = tmp_path / "review.json"
    options = ("--against", str(eight), "--trace", str(TRACE), "--format", "json", "--out", str(out))
    status, text = _review(*options)
    assert status == 0, text
    replayed = json.loads(out.read_text(encoding="utf-8"))["replay"]
    assert [column["name"] for column in replayed["columns"]] == [str(eight), "dev"]
    assert replayed["verdict"].startswith("With 4 t4-spot nodes instead of 8: ")
    status, text = _review("--trace", str(_written(tmp_path / "t.csv", "submit,duration", "0,x")))
    assert status == 2
    assert ":2: duration is x" in text


def test_a_review_is_complete_without_the_replay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A review without its replay says why in a sentence: a missing tool, or unknown names."""

    def missing(_: Console) -> Path:
        raise ToolError("kueue-replay is built with Go 1.26, which is not installed.")

    monkeypatch.setattr(kueue_replay, "program", missing)
    status, text = _review("--trace", str(TRACE))
    assert status == 0
    assert " ".join(f"{TRACE} was not replayed. kueue-replay is built".split()) in " ".join(text.split())
    assert "PREEMPTIBLE_NVIDIA_T4_GPUS" in text
    unknown = _written(tmp_path / "t.csv", "submit,duration,queue", "0,60,t5", "1,60,t5")
    status, text = _review("--trace", str(unknown))
    assert status == 0
    assert "No queue t5 is declared" in " ".join(text.split())
    assert "(1 more line)" in " ".join(text.split())


def test_the_files_of_the_page_are_read(tmp_path: Path) -> None:
    """The maps and the cloud model that the page shows are valid."""
    table, model = (
        _written(tmp_path / f"{number}.yaml", block.text)
        for number, block in enumerate(of_kind("yaml"))
        if block.page == "docs/replay.md"
    )
    assert read_table(table).queues["*"] == "vision/big"
    assert read_cloud_model(model)[0].stock["t4-spot"].lasts == 3600
