"""`ebbtide destroy` on the real engine: work on an existing cluster is named, and the cluster stays."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import jsonschema
import pytest

from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.operations.status_report import Status
from ebbtide.placement import Profile
from ebbtide.text import command_line
from ebbtide.values.documents import json_schema
from ebbtide.work.jobs import job
from ebbtide_rehearsal.cloud.running import CloudSettings
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from ebbtide_rehearsal.stage import Stage, stage
from ebbtide_rehearsal.tools.progress import narrated
from ebbtide_rehearsal.tools.table import needed
from rehearsal.tests.control_plane.cluster import wait
from rehearsal.tests.control_plane.live import on_existing
from tests.repository import ROOT

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

JOBS = "/apis/batch/v1/namespaces/research/jobs"


@pytest.fixture
def added() -> Iterator[Stage]:
    """A stack that adds pools, a queue and a team to a cluster, with a Job that runs and one that waits."""
    declared = on_existing()
    files = read_stack(ROOT, "dev").declaring(declared)
    tools = narrated(needed(()))
    with stage(files, CloudSettings(speed=60, declaration=declared), tools) as made:
        assert made.engine.up().errors == ()
        profile = Profile.load(made.engine.outputs()["placementProfile"])
        api = made.api()
        for name in ("first", "second"):
            manifest = job(
                profile, name=name, image="busybox", queue="cpu", cpu="3", memory="2Gi", namespace="research"
            )
            manifest["spec"]["template"]["metadata"] = {"annotations": {RUNS_FOR: "3600"}}
            api.create(JOBS, manifest)
            if name == "first":
                path = f"{JOBS}/{name}"
                wait(
                    lambda path=path: api.get(path).get("status", {}).get("ready"),
                    lambda ready: ready == 1,
                )
        yield made


def _destroy(on: Stage, *args: str) -> subprocess.Popen[str]:
    """Start `ebbtide destroy`."""
    return _ebbtide(on, "destroy", *args)


def _ebbtide(on: Stage, command: str, *args: str) -> subprocess.Popen[str]:
    """Start a command as a user would, in the rehearsal's environment; a session of its own is what a
    terminal sends Ctrl-C to."""
    return subprocess.Popen(
        [sys.executable, "-m", "ebbtide", command, on.engine.name, "--cwd", str(on.engine.project), *args],
        cwd=ROOT,
        env={**os.environ, **on.engine.environment, "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, errors = process.communicate(timeout=300)
    assert "Traceback" not in errors, errors
    return process.returncode, out, errors


def _shows_its_status(on: Stage) -> None:
    """Check `ebbtide status`: one Job runs and one waits, with Kueue's reason; what it costs is not zero."""
    status, out, errors = _ended(_ebbtide(on, "status"))
    assert (status, errors) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:3] == ["cpu", "spot", "1"] for line in lines), out
    assert any(line.split()[:5] == ["Job", "first", "research", "1", "cpu"] for line in lines), out
    assert any(line.startswith("Job second in research waits in cpu for ") for line in lines), out
    assert "of free quota in flavor cpu, held by first (3 CPU)" in " ".join(out.split())
    status, out, errors = _ended(_ebbtide(on, "status", "--format", "json"))
    document = json.loads(out)
    jsonschema.validate(document, json_schema(Status))
    assert (status, errors, document["version"]) == (0, "", "ebbtide.dev/status/v1")
    assert document["cost"]["usd_per_hour"] > document["cost"]["always_usd_per_hour"] >= 0
    watching = _ebbtide(on, "status", "--watch")
    assert watching.stdout is not None
    assert watching.stdout.readline().startswith(f"Stack {on.engine.name}, cluster ")
    os.killpg(watching.pid, signal.SIGINT)
    assert _ended(watching)[0] == 0


def test_work_is_named_and_the_cluster_stays(added: Stage) -> None:
    """Nothing changes without confirmation; Ctrl-C ends in good order; the next destroy continues and leaves
    the cluster as it was, whose status was shown before."""
    _shows_its_status(added)
    status, out, errors = _ended(_destroy(added))
    assert (status, errors) == (1, "")
    assert "Unfinished work: 2 pieces, 1 pod." in out
    assert "Job first in research: 1 pod on cpu, for " in out
    assert "Job second in research: pending in queue cpu, for " in out
    assert f"Continue with: {command_line('destroy', added.engine.name, '--yes', '--cwd')}" in out
    assert {item["metadata"]["name"] for item in added.api().items(JOBS)} == {"first", "second"}

    begun = _destroy(added, "--yes")
    assert begun.stdout is not None
    for line in begun.stdout:
        if line.startswith("deleted: "):
            break
    os.killpg(begun.pid, signal.SIGINT)
    status, out, errors = _ended(begun)
    assert (status, errors) == (130, ""), out
    assert "The engine finishes its current operations" in out
    assert re.search(rf"Continue with: .* destroy {added.engine.name} .*--yes", out), out

    status, out, errors = _ended(_destroy(added, "--yes"))
    assert (status, errors) == (0, ""), out
    assert f"Stack {added.engine.name} is destroyed." in out
    assert added.leftovers() == []
