"""A pool is replaced, and a queue removed, while a Job runs: engine, Kueue and control plane are real."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from ebbtide.clients.kubernetes.objects import condition
from ebbtide.placement import PoolProfile, Profile
from ebbtide.values import quantities
from ebbtide.work.jobs import job
from ebbtide_rehearsal.control_plane.stages import RUNS
from ebbtide_rehearsal.scenarios.observer import POOL_LABELS
from rehearsal.tests.control_plane.cluster import Object, wait
from rehearsal.tests.control_plane.live import api_of, declared, live
from rehearsal.tests.engine.sites import Checkout, until
from tests.declarations import Declaration, changed, pool

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

_JOBS: Final = "/apis/batch/v1/namespaces/research/jobs"
_PODS: Final = "/api/v1/namespaces/research/pods"
_COHORTS: Final = "/apis/kueue.x-k8s.io/v1beta2/cohorts"
_CHANGES: Final[dict[str, dict[str, Any]]] = {
    # In place, GKE changes the machine and refuses the capacity.
    "gke": {"machine": "n2-standard-8", "capacity": "on-demand"},
    "aks": {"machine": "Standard_D8as_v5"},
}
"""The change of the pool."""


class _Cluster:
    """The stack's cluster, as its administrator."""

    def __init__(self, site: Checkout) -> None:
        self.api = api_of(site)

    def submit(self, profile: Profile, name: str, cpu: str, script: str, queue: str = "cpu") -> None:
        """Create a Job in the queue whose pod runs a script on this machine."""
        manifest = job(
            profile,
            name=name,
            image="busybox",
            command=["sh", "-c", script],
            queue=queue,
            cpu=cpu,
            memory="1Gi",
            namespace="research",
        )
        manifest["spec"]["template"].setdefault("metadata", {})["annotations"] = {RUNS: "process"}
        self.api.create(_JOBS, manifest)

    def pod(self, name: str) -> Object:
        """Return the only pod of a Job that was submitted."""
        (pod,) = self.api.items(_PODS, labelSelector=f"batch.kubernetes.io/job-name={name}")
        return pod

    def succeeded(self, name: str) -> Object:
        """Return a Job once it is complete."""
        return wait(
            lambda: self.api.get(f"{_JOBS}/{name}"),
            lambda item: bool(condition(item, "Complete")),
            seconds=300,
        )

    def pool_of(self, pod: Object) -> str:
        """Return the cloud's name of the pool that a pod runs on."""
        labels = self.api.get(f"/api/v1/nodes/{pod['spec']['nodeName']}")["metadata"]["labels"]
        return next(labels[label] for label in POOL_LABELS if label in labels)

    def pools(self) -> set[str]:
        """Return the cloud's names of the pools that have nodes."""
        nodes = [node["metadata"]["labels"] for node in self.api.items("/api/v1/nodes")]
        return {labels[label] for labels in nodes for label in POOL_LABELS if label in labels}

    def quota(self) -> float:
        """Return the CPUs of the only flavor, which the cohort owns and the queue borrows."""
        (cohort,) = self.api.items(_COHORTS)
        (group,) = cohort["spec"]["resourceGroups"]
        (flavor,) = group["flavors"]
        (quota,) = [item["nominalQuota"] for item in flavor["resources"] if item["name"] == "cpu"]
        return float(quantities.parse(quota))


def _profile(site: Checkout) -> Profile:
    return Profile.load(
        json.loads(site.terminal.run("pulumi stack output placementProfile --stack dev --json"))
    )


def _cpus(profile: Profile) -> float:
    """Return the CPUs of all nodes that the pool may have."""
    (own,) = [item for item in profile.pools if item.name == "cpu"]
    assert isinstance(own, PoolProfile)
    return own.max_nodes * own.cpu_m / 1000


@pytest.mark.parametrize("cloud", _CHANGES)
def test_a_job_ends_on_the_pool_that_is_replaced(
    cloud: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A running Job finishes on the old pool, a new Job runs on the new pool's machine, and a Job that
    exceeds the drain time runs again there; then the old pool is deleted, and the quota is the new pool's."""
    ran, end, late_end = (tmp_path / name for name in ("ran", "end", "late-end"))
    with live(tmp_path, declared(cloud), request) as site:
        status, out = site.up()
        assert status == 0, out
        cluster, profile = _Cluster(site), _profile(site)
        before = cluster.quota()
        assert before == pytest.approx(_cpus(profile))
        cluster.submit(profile, "first", "2", f"echo ran >> {ran}; until [ -e {end} ]; do sleep 0.2; done")
        cluster.submit(profile, "late", "1", f"until [ -e {late_end} ]; do sleep 0.2; done")
        wait(ran.exists, bool, seconds=300)
        late = wait(lambda: cluster.pod("late"), lambda item: bool(item["spec"].get("nodeName")), seconds=300)
        first = cluster.pod("first")
        old = cluster.pool_of(first)
        assert cluster.pool_of(late) == old

        written = site.declared()
        pool(written, "cpu").update(_CHANGES[cloud], drainTimeout="5m")
        site.declare(written)
        with site.start() as process:
            out = until(process, "research/first")
            assert "Pool cpu is replaced by a new one beside it" in out
            replaced = _profile(site)
            cluster.submit(replaced, "second", "6", f"until [ -e {end} ]; do sleep 0.2; done")
            second = wait(
                lambda: cluster.api.items(_PODS, labelSelector="batch.kubernetes.io/job-name=second"),
                lambda pods: [pod["status"].get("phase") for pod in pods] == ["Running"],
                seconds=300,
            )[0]
            new = cluster.pool_of(second)
            assert new != old
            assert cluster.pod("first")["metadata"]["uid"] == first["metadata"]["uid"]
            assert "deletionTimestamp" not in cluster.pod("first")["metadata"]
            end.touch()
            rest, _ = process.communicate(timeout=900)
        assert process.returncode == 0, out + rest
        again = wait(
            lambda: cluster.pod("late"), lambda item: item["status"].get("phase") == "Running", seconds=300
        )
        assert again["metadata"]["uid"] != late["metadata"]["uid"]
        assert cluster.pool_of(again) == new
        late_end.touch()
        for name in ("first", "late", "second"):
            ended = cluster.succeeded(name)["status"]
            assert (ended["succeeded"], ended.get("failed", 0)) == (1, 0)
        assert ran.read_text() == "ran\n"
        assert site.pools() == {"system", new}
        wait(cluster.pools, lambda pools: old not in pools)
        assert cluster.quota() == pytest.approx(_cpus(replaced))
        assert cluster.quota() > before
        assert "Stack dev: no change." in site.up()[1]


def test_a_removed_queue_is_drained(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The engine would wait in vain for a ClusterQueue in use; the queue's local name moves to another
    ClusterQueue, where its Job runs again."""
    uses: list[Declaration] = [{"queue": "cpu"}, {"queue": "other", "as": "spare"}]
    queues = [{"name": "cpu", "pools": ["cpu"]}, {"name": "other", "pools": ["cpu"]}]
    ran, end = tmp_path / "ran", tmp_path / "end"
    with live(
        tmp_path, declared(queues=queues, teams=[{"name": "research", "queues": uses}]), request
    ) as site:
        status, out = site.up()
        assert status == 0, out
        cluster = _Cluster(site)
        script = f"echo ran >> {ran}; until [ -e {end} ]; do sleep 0.2; done"
        cluster.submit(_profile(site), "first", "2", script, queue="other")
        wait(ran.exists, bool, seconds=300)
        first = cluster.pod("first")
        teams = [{"name": "research", "queues": [{"queue": "cpu", "as": "spare"}]}]
        site.declare(changed(site.declared(), queues=[{"name": "cpu", "pools": ["cpu"]}], teams=teams))
        status, out = site.up()
        assert status == 0, out
        assert "Before their deletion, the queues research.other are drained" in out
        again = wait(
            lambda: cluster.api.items(_PODS, labelSelector="batch.kubernetes.io/job-name=first"),
            lambda pods: [pod["status"].get("phase") for pod in pods] == ["Running"],
            seconds=300,
        )[0]
        assert again["metadata"]["uid"] != first["metadata"]["uid"]
        end.touch()
        assert cluster.succeeded("first")["status"]["succeeded"] == 1
        assert "Stack dev: no change." in site.up()[1]
