"""A step's pod settings reach the pods of its objects."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ebbtide_rehearsal.failures import RehearsalError
from ebbtide_rehearsal.scenarios.model import EveryPool, Submit
from ebbtide_rehearsal.scenarios.observer import on_every_pool, submitted
from tests.repository import ROOT, declaration
from tests.unit.work.clusters import DEV, derived

POD: dict[str, Any] = {"spec": {"containers": [{"name": "a"}]}}
JOB: dict[str, Any] = {"spec": {"template": POD}}
WORK: dict[str, dict[str, Any]] = {
    "Pod": POD,
    "Job": JOB,
    "JobSet": {"spec": {"replicatedJobs": [{"name": "a", "template": JOB}, {"name": "b", "template": JOB}]}},
}
TRAIN_JOB = {"kind": "TrainJob", "metadata": {"name": "t"}, "spec": {"trainer": {"numNodes": 2}}}
MAP = {"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}


def _submitted(directory: Path, *objects: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    (directory / "work.yaml").write_text(yaml.safe_dump_all(objects))
    return list(submitted(Submit(do="submit", manifests="work.yaml", **fields), DEV, directory))


@pytest.mark.parametrize("kind", WORK)
def test_it_is_written_on_every_pod(kind: str, tmp_path: Path) -> None:
    """Every kind of object with pods gets them; others are unchanged."""
    work = {"kind": kind, "metadata": {"name": "w"}, **WORK[kind]}
    made, other = _submitted(tmp_path, work, MAP, runs_for=2, exit_code=3)
    text = yaml.safe_dump(made)
    assert text.count("rehearsal.ebbtide.dev/runs-for: '2'") == text.count("containers:")
    assert text.count("rehearsal.ebbtide.dev/exit-code: '3'") == text.count("containers:")
    assert "annotations" not in other["metadata"]


def test_every_pool_gets_a_job_in_a_shared_queue() -> None:
    """The Job for a queue of several teams is created in the namespace of one of them."""
    written = declaration(ROOT / "Pulumi.dev.yaml")
    shared = {**written, "teams": [*written["teams"], {"name": "speech"}]}
    profile = derived({**shared, "name": "dev"})
    assert any(len(queue.local_queues) > 1 for queue in profile.queues)
    made = list(on_every_pool(EveryPool(do="every-pool"), profile))
    work = {pool.name for pool in profile.pools if pool.role != "system"}
    assert {job["metadata"]["name"] for job in made} == {f"try-{name}" for name in work}


def test_it_is_refused_where_there_are_no_pods(tmp_path: Path) -> None:
    """A TrainJob's pods are described by its runtime: settings of pods would have no effect."""
    assert len(_submitted(tmp_path, TRAIN_JOB)) == 1
    with pytest.raises(RehearsalError, match="no pods in TrainJob"):
        _submitted(tmp_path, TRAIN_JOB, runs_for=2)
