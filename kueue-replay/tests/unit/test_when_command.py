"""The option --when, with a scheduler of the tests in place of Kueue, and objects in the form of the API."""

import json
import time
from pathlib import Path
from typing import cast

import pytest
from typer.testing import CliRunner

from ebbtide.cli import app, error_output
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.values.paths import Object
from first_in import use_first_in
from tests.declarations import GKE, changed
from tests.declarations import pool as pool_in
from tests.pages import output
from tests.unit.costs.cluster import when as timestamp

_KUEUE = "/apis/kueue.x-k8s.io/v1beta2/namespaces/vision"


@pytest.fixture(scope="module")
def cluster() -> Profile:
    """The profile of a cluster with one node of four T4, and a queue for it."""
    declared = changed(GKE, queues=[{"name": "t4", "pools": ["t4"]}], teams=[{"name": "vision"}])
    pool_in(declared, "t4")["nodes"] = {"max": 1}
    return profile(declare(declared))


class _Server:
    """A namespace with a running and a waiting Job; nothing else may be read, or written."""

    namespace = "vision"

    def __init__(self, limit: int | None) -> None:
        self._jobs = [self._job(name, limit) for name in ("running", "waiting")]

    def _job(self, name: str, limit: int | None) -> Object:
        resources = {"requests": {"nvidia.com/gpu": "4", "cpu": "1", "memory": "1Gi"}}
        pod = {"containers": [{"name": "main", "resources": resources}]}
        labels = {"kueue.x-k8s.io/queue-name": "t4"}
        return {
            "metadata": {
                "name": name,
                "namespace": "vision",
                "uid": name,
                "labels": labels,
                "creationTimestamp": "2026-11-02T08:00:00Z",
            },
            "spec": {
                "suspend": name == "waiting",
                "template": {"spec": pod | ({"activeDeadlineSeconds": limit} if limit else {})},
            },
            "status": {},
        }

    def _workload(self, job: Object, *kinds: str) -> Object:
        since = timestamp(time.time() - 60)
        uid = job["metadata"]["uid"]
        metadata = job["metadata"] | {"labels": {"kueue.x-k8s.io/job-uid": uid}}
        owner = {"kind": "Job", "name": job["metadata"]["name"], "uid": uid}
        return {
            "metadata": {**metadata, "name": f"job-{uid}", "ownerReferences": [owner]},
            "spec": {"queueName": "t4", "podSets": [{"count": 1, "template": job["spec"]["template"]}]},
            "status": {
                "conditions": [
                    {"type": kind, "status": "True", "lastTransitionTime": since} for kind in kinds
                ]
            },
        }

    def items(self, path: str, **query: str) -> list[Object]:
        """Return the list of a kind."""
        del query
        running, waiting = self._jobs
        lists: dict[str, list[Object]] = {
            "/apis/batch/v1/namespaces/vision/jobs": self._jobs,
            "/api/v1/namespaces/vision/pods": [],
            "/api/v1/namespaces/vision/events": [],
            f"{_KUEUE}/workloads": [
                self._workload(running, "QuotaReserved", "Admitted", "PodsReady"),
                self._workload(waiting),
            ],
        }
        if path not in lists:
            raise ApiError(403, f"{path} is forbidden")
        return lists[path]

    def find(self, path: str, **query: str) -> Object | None:
        """Return a list as an object."""
        return {"items": self.items(path, **query)}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, cluster: Profile, tmp_path: Path) -> None:
    """Commands use the cluster, whose running Job has a limit of an hour."""
    _use(monkeypatch, cluster, tmp_path, 3600)


def _use(monkeypatch: pytest.MonkeyPatch, cluster: Profile, home: Path, limit: int | None) -> None:
    use_first_in(monkeypatch)
    monkeypatch.setenv("EBBTIDE_PROFILE", cluster.json())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.chdir(home)
    monkeypatch.setattr(Api, "of_user", lambda _="": cast("Api", _Server(limit)))


def _invoke(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, " ".join(done.output.split())


_JOB = ("--image", "busybox", "--queue", "t4", "--gpus", "4", "--cpu", "1", "--memory", "1Gi", "-n", "vision")


@pytest.mark.usefixtures("server")
def test_a_planned_job_has_an_estimate() -> None:
    """Time, spread, position, sources and what the user may not read are those of docs/daily-work.md."""
    (shown,) = output("docs/daily-work.md", "Job model-x7kqz")
    assert _invoke("job", "model-x7kqz", *_JOB, "--when", "--", "true") == (0, " ".join(shown.split()))


@pytest.mark.usefixtures("server")
def test_a_planned_sweep_has_an_estimate() -> None:
    """The sentence is that of a Job."""
    status, text = _invoke("sweep", "new", "--set", "rate=1", *_JOB, "--when", "--", "true")
    assert status == 0, text
    assert text.startswith("Job new would start in about ")
    assert "to 2 h): position 2 in queue t4. Run times are from 2 time limits." in text


@pytest.mark.usefixtures("server")
def test_an_estimate_is_a_document() -> None:
    """The seconds are numbers."""
    status, text = _invoke("job", "new", *_JOB, "--when", "--format", "json")
    assert status == 0, text
    document = json.loads(text)
    assert document["version"] == "ebbtide.dev/start/v1"
    assert (document["queue"], document["position"], document["problem"]) == ("t4", 2, "")
    assert 0 <= document["seconds"]["least"] < document["seconds"]["most"] == pytest.approx(7140, abs=30)


@pytest.mark.usefixtures("server")
def test_waiting_jobs_have_an_estimate() -> None:
    """The list has it in the waiting Job's line, and its document."""
    status, text = _invoke("jobs", "-n", "vision", "--when")
    assert status == 0, text
    assert "it starts in about " in text
    status, text = _invoke("jobs", "-n", "vision", "--when", "--format", "json")
    rows = {row["name"]: row for row in json.loads(text)["workloads"]}
    assert rows["waiting"]["start"]["seconds"]["most"] == pytest.approx(3540, abs=30)
    assert "start" not in rows["running"]
    assert _invoke("jobs", "-n", "vision", "--when", "--watch")[0] == 2


def test_what_cannot_be_known(monkeypatch: pytest.MonkeyPatch, cluster: Profile, tmp_path: Path) -> None:
    """A running Job without a limit and without history is named, for planned and waiting ones."""
    _use(monkeypatch, cluster, tmp_path, None)
    status, text = _invoke("job", "new", *_JOB, "--when")
    assert status == 0, text
    assert text.startswith("It cannot be known: vision/running and vision/waiting have no time limit")
    assert (
        "It cannot be known: vision/running has no time limit" in _invoke("jobs", "-n", "vision", "--when")[1]
    )


@pytest.mark.usefixtures("server")
def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rehearsal's distribution, the sentence says how to install it."""

    def exists(name: str) -> bool:
        return name != "ebbtide_rehearsal"

    monkeypatch.setattr(error_output, "is_installed", exists)
    status, text = _invoke("job", "new", *_JOB, "--when")
    assert status == 2
    assert text.startswith("`ebbtide job` needs ebbtide_rehearsal, which is not installed. Install it with: ")
