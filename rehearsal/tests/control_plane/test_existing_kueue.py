"""Queues on a cluster whose owner has installed Kueue: the chart's own values, other queues in the cohort."""

import copy
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ebbtide.clients.kubernetes import Api
from ebbtide.operations.adopting import sources
from ebbtide.placement.kueue_settings import CONFIG_KEY, Installation
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide.values.kueue_api import API_PATH
from ebbtide_rehearsal.cloud.existing import NAMESPACE, RELEASE
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from rehearsal.tests.control_plane.cluster import job, pod, wait
from rehearsal.tests.control_plane.commands import Object, run
from rehearsal.tests.control_plane.live import api_of, kubeconfig_of, live, on_existing
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.sites import Checkout
from tests.unit.adopting.gke_shapes import cluster, pool

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

DECLARED = on_existing(cohort={"name": "ml"}, addons={"kueue": {"existing": True}})
del DECLARED["pools"][0]  # the system pool is of others
NAMES = Installation(NAMESPACE, f"{RELEASE}-kueue")
CONFIG = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAMES.config_map}"
QUEUES = f"{API_PATH}/clusterqueues"
THEIR_WORKLOADS = f"{API_PATH}/namespaces/theirs/workloads"


@dataclass(frozen=True)
class Shared:
    """A stack for an existing cluster, and the cluster as its owner sees it."""

    site: Checkout
    api: Api

    def up(self) -> tuple[int, str]:
        """Exit status of `ebbtide up`, and its output in one line."""
        status, out = self.site.up()
        return status, " ".join(out.split())

    def configure(self, **settings: Any) -> None:
        """Change settings in the ConfigMap of Kueue's controller, which goes on with the earlier ones."""
        written = yaml.safe_load(self.api.get(CONFIG)["data"][CONFIG_KEY])
        self.api.patch(CONFIG, {"data": {CONFIG_KEY: yaml.safe_dump({**written, **settings})}})


@pytest.fixture
def shared(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Shared]:
    """An existing cluster with Kueue, and a stack of a pool, a queue and a team for it."""
    with live(tmp_path, DECLARED, request) as site:
        yield Shared(site, api_of(site))


def _apply(shared: Shared, objects: list[Object]) -> None:
    terminal = shared.site.terminal
    (kubectl,) = (path for path in terminal.root.parent.rglob("bin/kubectl") if path.exists())
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    run(
        kubectl,
        "--kubeconfig",
        kubeconfig_of(shared.site),
        "apply",
        "--server-side",
        "-f",
        "-",
        stdin=manifest,
    )


def _kueue(kind: str, name: str, spec: Any, **metadata: str) -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def _theirs() -> list[Object]:
    """A queue of the cluster's owner in the cohort, with a Job that runs for an hour."""
    quota = [{"name": name, "nominalQuota": amount} for name, amount in (("cpu", "1"), ("memory", "4Gi"))]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "theirs", "resources": quota}]}
    mine = _job("mine", "theirs", {RUNS_FOR: "3600"})
    mine["metadata"]["namespace"] = "theirs"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "theirs"}},
        _kueue("ResourceFlavor", "theirs", {"nodeLabels": {"cloud.google.com/gke-nodepool": "default-pool"}}),
        _kueue(
            "ClusterQueue",
            "theirs",
            {"cohortName": "ml", "namespaceSelector": {}, "resourceGroups": [group]},
        ),
        _kueue("LocalQueue", "theirs", {"clusterQueue": "theirs"}, namespace="theirs"),
        mine,
    ]


def _job(name: str, queue: str, annotations: dict[str, str]) -> Object:
    """A Job of one CPU in a queue."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    template = pod(annotations, container={"resources": resources})
    return job(name, template, labels={QUEUE_LABEL: queue}, suspend=True)


def test_queues_are_added_to_an_existing_kueue(shared: Shared) -> None:
    """Differences are said before anything is created; a Job runs through the queue; a destroy ends no work
    of others."""
    _apply(shared, _theirs())
    (workload,) = wait(lambda: shared.api.items(THEIR_WORKLOADS), _is_admitted)
    pools = shared.site.pools()

    shared.configure(integrations={"frameworks": ["pod"]})
    status, out = shared.up()
    assert status == 1
    assert "integrations.frameworks: batch/job is off." in out, out
    assert "Nothing was changed" in out
    assert (shared.site.pools(), shared.api.find(f"{QUEUES}/research.cpu")) == (pools, None)

    shared.configure(integrations={"frameworks": ["batch/job"]})
    installing = copy.deepcopy(DECLARED)
    installing["addons"] = {"kueue": {}}
    shared.site.declare(installing)
    status, out = shared.up()
    assert status == 1
    assert "`addons: {kueue: {existing: true}}` to use the Kueue that is there" in out, out
    shared.site.declare(DECLARED)

    _apply(shared, [_kueue("ClusterQueue", "research.cpu", {"namespaceSelector": {}})])
    status, out = shared.up()
    assert status == 1
    assert "Nothing was changed: ClusterQueue research.cpu exists, and not from this stack." in out, out
    shared.api.delete(f"{QUEUES}/research.cpu")

    status, out = shared.up()
    assert status == 0, out
    assert "fairSharing: Fair sharing is off." in out
    status, out = shared.up()
    assert (status, "created" in out) == (0, False), out
    _runs_a_job(shared)
    status, out = shared.site.run("status", confirmed=False)
    out = " ".join(out.split())
    assert "ClusterQueue theirs in cohort ml is not the stack's: 1 admitted, 0 waiting." in out
    assert "The cluster's Kueue, fairSharing: Fair sharing is off." in out
    status, out = shared.site.run("drift", confirmed=False)
    assert (status, "ClusterQueue theirs" in out) == (0, False), out
    assert shared.api.items(THEIR_WORKLOADS)[0]["metadata"]["uid"] == workload["metadata"]["uid"]

    before = shared.api.get(f"{QUEUES}/theirs")["spec"]
    status, out = shared.site.run("destroy")
    assert status == 0, out
    assert shared.api.get(f"{QUEUES}/theirs")["spec"] == before
    assert [item["metadata"]["name"] for item in shared.api.items(QUEUES)] == ["theirs"]
    assert _is_admitted(shared.api.items(THEIR_WORKLOADS))
    assert shared.api.find(CONFIG)
    assert shared.site.pools() == pools


def _pool(shared: Shared) -> None:
    """Create a pool of the cluster's owner, and write the description of the cluster."""
    limits = {"enabled": True, "totalMaxNodeCount": 1, "locationPolicy": "ANY"}
    identity = {"workloadPool": "rehearsal.svc.id.goog"}
    pools = [pool("batch", "n2-standard-4", autoscaling=limits)]
    described = json.dumps(cluster("shared", "us-central1-a", pools, workloadIdentityConfig=identity))
    file = shared.site.terminal.root / "cluster.json"
    file.write_text(described.replace("acme-ml", "rehearsal"))
    (found,) = sources.read_files([file]).pools
    FakeProvider("gcp", shared.site.store, FakeControlPlanes()).seed(found.type, found.inputs)


def _adopted(shared: Shared) -> tuple[list[Object], Mapping[str, set[str]], list[Object]]:
    """Adopt the owner's queue, with a Job that runs and another that waits; return the owner's objects, their
    work as from `_kept`, and Kueue's objects before."""
    _pool(shared)
    owners = json.loads(json.dumps(_theirs()).replace("default-pool", "batch"))
    _apply(shared, [*owners, _named(owners[-1], "later")])
    before = wait(
        lambda: _kept(shared),
        lambda kept: len(kept["running"]) == 1 and len(kept["workloads"]) == 2,
    )
    objects = [item for kind in _KINDS for item in _objects(shared, kind)]
    queues = {"kind": "List", "items": objects}
    (shared.site.terminal.root / "queues.json").write_text(json.dumps(queues))

    files = ("--from", "cluster.json", "--from", "queues.json", "--overwrite")
    for words in ((*files, "--pools-only"), ("--into-state", "--yes")):
        status, out = shared.site.run("adopt", *words, confirmed=False)
        assert status == 0, out
    return owners, before, objects


def test_queues_with_work_are_adopted(shared: Shared) -> None:
    """The owner's queue and flavor become the stack's under their names, and are the owner's again after an
    undo, while a Job runs and another waits: their Workloads stay, the pod runs on, and after a destroy the
    owner's quota admits work."""
    owners, before, objects = _adopted(shared)
    for _ in range(2):
        status, out = shared.site.up()
        assert status == 0, out
        status, out = shared.up()
        assert (status, "Stack dev: no change." in out) == (0, True), out
        assert _stays(shared, before)
        assert _specs(shared) != [item["spec"] for item in objects]

        status, out = shared.site.run("adopt", "--undo", "--yes", confirmed=False)
        restored = "restore ClusterQueue theirs as it was adopted: " in " ".join(out.split())
        assert (status, restored) == (0, True), out
        assert _specs(shared) == [item["spec"] for item in objects]

    status, out = shared.site.run("destroy")
    assert status == 0, out
    assert _stays(shared, before)
    assert shared.api.items(f"{API_PATH}/cohorts") == []
    for name in ("mine", "later"):
        shared.api.delete(f"{_JOBS}/{name}", propagationPolicy="Background")
    _apply(shared, [_named(owners[-1], name) for name in ("next", "last")])
    after = wait(lambda: _kept(shared)["admitted"] - before["workloads"], bool)
    assert len(after) == 1


_KINDS = ("resourceflavors", "clusterqueues", "localqueues")


_JOBS = "/apis/batch/v1/namespaces/theirs/jobs"


def _named(job: Object, name: str) -> Object:
    """A Job like another one; quota of the queue is for one at a time."""
    return {**job, "metadata": {**job["metadata"], "name": name}}


def _specs(shared: Shared) -> list[Object]:
    return [item["spec"] for kind in _KINDS for item in _objects(shared, kind)]


def _stays(shared: Shared, before: Mapping[str, set[str]]) -> bool:
    """Return whether the owner's objects have their names, all work exists, and that which started runs."""
    after = _kept(shared)
    names = {kind: [item["metadata"]["name"] for item in _objects(shared, kind)] for kind in _KINDS}
    (queue,) = _objects(shared, "clusterqueues")
    (flavor,) = queue["spec"]["resourceGroups"][0]["flavors"]
    return (
        names == {kind: ["theirs"] for kind in _KINDS}
        and flavor["name"] == "theirs"
        and after["workloads"] == before["workloads"]
        and after["admitted"] >= before["admitted"]
        and after["running"] >= before["running"]
    )


def _objects(shared: Shared, kind: str) -> list[Object]:
    return shared.api.items(f"{API_PATH}/{kind}")


def _kept(shared: Shared) -> dict[str, set[str]]:
    """The uids of Workloads and of running pods."""
    workloads = shared.api.items(THEIR_WORKLOADS)
    pods = shared.api.items("/api/v1/namespaces/theirs/pods")
    running = [pod for pod in pods if pod.get("status", {}).get("phase") == "Running"]
    return {
        "workloads": {item["metadata"]["uid"] for item in workloads},
        "admitted": {item["metadata"]["uid"] for item in workloads if _is_admitted([item])},
        "running": {pod["metadata"]["uid"] for pod in running},
    }


def _is_admitted(workloads: list[Object]) -> bool:
    conditions = [item for workload in workloads for item in workload.get("status", {}).get("conditions", ())]
    return any(item["type"] == "Admitted" and item["status"] == "True" for item in conditions)


def _runs_a_job(shared: Shared) -> None:
    """Submit a Job to the stack's queue, and wait until it has ended."""
    path = "/apis/batch/v1/namespaces/research/jobs"
    shared.api.create(path, _job("ours", "cpu", {}))
    wait(lambda: shared.api.get(f"{path}/ours").get("status", {}).get("succeeded"), lambda n: n == 1)
