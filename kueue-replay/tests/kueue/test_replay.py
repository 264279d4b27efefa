"""The command `ebbtide replay` with the real Kueue: the example of its page."""

import json
import os
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

from ebbtide.analysis.preview.stack_files import read_stack, record_stack
from ebbtide.operations.traces.clusters import recorded_cluster
from ebbtide_rehearsal.tools.progress import narrated
from kueue_replay.cloud_model import Cloud, CloudModel
from kueue_replay.cluster import Cluster, Declaration
from kueue_replay.kueue import PROGRAM
from kueue_replay.mapping import Mapper, Table
from kueue_replay.scheduler import Decision, Forwarding, schedulers
from kueue_replay.simulation import simulate
from kueue_replay.trace import read_trace
from tests.pages import output
from tests.repository import ROOT, commit_all

pytestmark = pytest.mark.rehearsal

EXAMPLES = sorted(path.parent.name for path in ROOT.glob("examples/*/Pulumi.*.yaml"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The repository's project with eight T4 nodes in the stack dev, and four in `four.yaml`."""
    narrated([PROGRAM])
    for name in ("__main__.py", "Pulumi.yaml", "components", "stacks", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    written = (ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    (tmp_path / "four.yaml").write_text(written, encoding="utf-8")
    eight = written.replace("nodes: {max: 4}", "nodes: {max: 8}")
    (tmp_path / "Pulumi.dev.yaml").write_text(eight, encoding="utf-8")
    return tmp_path


def _printed(project: Path, *arguments: str, width: int = 120) -> str:
    done = subprocess.run(
        [Path(sysconfig.get_path("scripts"), "ebbtide"), *arguments],
        cwd=project,
        env={**os.environ, "COLUMNS": str(width)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_of_the_page_has_its_output(project: Path) -> None:
    """Eight nodes instead of four: the page's parts of the report are those that the command prints."""
    printed = _printed(project, "replay", "examples/traces/dev.csv", "dev", "--against", "four.yaml")
    for part in output("docs/replay.md", "With 8 t4-spot"):
        assert part.strip() in printed


class _Stepwise(Forwarding):
    """Kueue that is asked again at each of its own events."""

    def step(self, at: float, before: float) -> Sequence[Decision]:
        """Decide at a time alone."""
        del before
        return self._scheduler.step(at, at)


def test_jobs_are_the_same_if_kueue_is_asked_at_each_event() -> None:
    """Kueue goes on alone until its next decision, or until something happens to nodes: no job starts or ends
    at another time."""
    program = narrated([PROGRAM]).path(PROGRAM)
    cluster = recorded_cluster("dev", record_stack(read_stack(ROOT, "dev")))
    declared = Declaration.of(Cluster.model_validate(cluster))
    trace = read_trace(ROOT / "examples/traces/dev.csv", lambda _: ())
    work = Mapper(declared, Table(), own=True).mapped(trace).work
    jobs: list[list[tuple[object, ...]]] = []
    for stepwise in (False, True):
        with schedulers(program)(declared) as scheduler:
            asked = _Stepwise(scheduler) if stepwise else scheduler
            outcome = simulate(declared, work, asked, Cloud(CloudModel(), {}, 1, trace.midnight))
        jobs.append(
            [
                (*(at and round(at, 6) for at in (job.started, job.ended)), job.preemptions, job.why_not)
                for job in outcome.jobs
            ]
        )
    assert jobs[0] == jobs[1]
    assert any(job[2] for job in jobs[0])


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_have_traces(example: str) -> None:
    """The trace of each example is replayed: every job ends, except the one that needs two nodes at once."""
    options = (
        "--config-file",
        f"examples/{example}/Pulumi.{example}.yaml",
        "--seeds",
        "1",
        "--format",
        "json",
    )
    report = json.loads(_printed(ROOT, "replay", f"examples/traces/{example}.csv", *options))
    (column,) = report["columns"]
    assert sum(never["jobs"] for never in column["never"]) == (example == "queued-gpus")
    assert column["ended"]["median"] == report["jobs"] - (example == "queued-gpus")
    assert column["usd"]["median"] > 0


def test_a_review_has_the_verdict_of_the_replay(project: Path) -> None:
    """The comment on a pull request has the sentence of the replay's page, and both columns."""
    options = ("--against", "four.yaml", "--trace", "examples/traces/dev.csv", "--format", "markdown")
    text = _printed(project, "review", "dev", *options)
    assert (
        "nodes instead of 4: 177 of 177 jobs ended instead of 176, 44 % less waiting, 2 % more cost.**"
        in text
    )
    assert "|  | `four.yaml` | `dev` |" in text


def test_a_review_has_the_replay_of_the_page(project: Path) -> None:
    """With a larger machine and fewer GPU nodes, as in the page's review: the page shows what is printed."""
    file, earlier = project / "Pulumi.dev.yaml", project / "four.yaml"
    earlier.rename(file)
    commit_all(project)
    changed = file.read_text(encoding="utf-8").replace("n2-standard-8", "n2-standard-16")
    file.write_text(changed.replace("nodes: {max: 4}", "nodes: {max: 2}"), encoding="utf-8")
    options = ("--against", "main", "--trace", "examples/traces/dev.csv")
    (shown,) = output("docs/review.md", "Replay of")
    assert shown in _printed(project, "review", "dev", *options, width=80)
