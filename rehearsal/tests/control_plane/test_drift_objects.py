"""Edits by hand of objects on a real API server, read by the real Kubernetes provider."""

import copy
import json
import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest

from ebbtide.autoscaler.nodes import Machine
from ebbtide.clients.kubernetes import Api
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide_rehearsal import stay
from ebbtide_rehearsal.cloud.ids import GKE_CLUSTER, NODE_POOL
from ebbtide_rehearsal.cloud.pools import all_machines
from ebbtide_rehearsal.cloud.store import RECLAIM, InjectedFault, Store
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from rehearsal.tests.control_plane.cluster import job, pod, wait
from rehearsal.tests.control_plane.live import api_of, declared, live

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

_KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
_RBAC: Final = "rbac.authorization.k8s.io"
_TEAM: Final = "/api/v1/namespaces/research"


def _edit(api: Api) -> None:
    """Edit objects as `kubectl edit` does, delete a queue, and create a queue and a grant."""
    by_hand = {"fieldManager": "kubectl-edit"}
    labels = {"hand": "x", "pod-security.kubernetes.io/enforce": "privileged"}
    api.patch(_TEAM, {"metadata": {"labels": labels}}, **by_hand)
    api.patch(f"{_TEAM}/configmaps/ebbtide-profile", {"data": {"hand": "x"}}, **by_hand)
    (cohort,) = api.items(f"{_KUEUE}/cohorts")
    groups = cohort["spec"]["resourceGroups"]
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "77"
    api.patch(
        f"{_KUEUE}/cohorts/{cohort['metadata']['name']}", {"spec": {"resourceGroups": groups}}, **by_hand
    )
    api.patch(f"{_KUEUE}/clusterqueues/research.cpu", {"spec": {"stopPolicy": "Hold"}}, **by_hand)
    api.delete(f"{_KUEUE}/namespaces/research/localqueues/cpu")
    _create(
        api, f"{_KUEUE}/namespaces/default/localqueues", "LocalQueue", spec={"clusterQueue": "research.cpu"}
    )
    user = {"apiGroup": _RBAC, "kind": "User", "name": "eve"}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "admin"}
    path = f"/apis/{_RBAC}/v1/namespaces/research/rolebindings"
    _create(api, path, "RoleBinding", roleRef=role, subjects=[user])


def _create(api: Api, path: str, kind: str, **content: Any) -> None:
    version = path.removeprefix("/apis/").partition("/namespaces/")[0]
    api.create(path, {"apiVersion": version, "kind": kind, "metadata": {"name": "extra"}, **content})


_JOBS: Final = "/apis/batch/v1/namespaces/research/jobs"
_DAY: Final = 86400
_SPEED: Final = 20_000
"""Simulated seconds per second: 30 days are two minutes."""


def _a_month(store: Store, api: Api) -> None:
    """Run Jobs for 30 simulated days, with nodes that start, are reclaimed and removed, and an upgrade."""
    end, number = store.clock.now() + 30 * _DAY, 0
    while store.clock.now() < end:
        number += 1
        api.create(_JOBS, _job(f"job-{number}", seconds=5))
        wait(lambda: _running(store), bool)
        if number % 2:
            store.inject(InjectedFault(RECLAIM, "*", 1, {"count": 1}))
            wait(lambda: store.faults(RECLAIM), lambda faults: not faults)
        path = f"{_JOBS}/job-{number}"
        wait(lambda path=path: api.get(path).get("status", {}).get("succeeded"), lambda done: done == 1)
        if number == 2:
            _upgrade(store)
    api.create(_JOBS, _job("last", seconds=3600))
    wait(lambda: _running(store), bool)


def _job(name: str, *, seconds: float) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    template = pod({RUNS_FOR: str(seconds)}, container={"resources": resources})
    return job(name, template, labels={QUEUE_LABEL: "cpu"}, suspend=True, backoffLimit=9)


def _running(store: Store) -> list[Machine]:
    return [it for it in all_machines(store) if it.pool == "cpu" and it.state == "running"]


def _upgrade(store: Store) -> None:
    """Upgrade the cluster and its pools, as a release channel does."""
    for resource in store.resources():
        if resource.type == GKE_CLUSTER:
            version = "1.36.9-gke.1"
            store.put(resource.having(masterVersion=version, nodeVersion=version))
        elif resource.type == NODE_POOL:
            store.put(resource.having(version="1.36.9-gke.1"))


def test_edits_of_objects_are_a_persons(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A month of work on the autoscaler's nodes is no drift; each edit by hand is found, and what is in no
    state."""
    monkeypatch.setattr(stay, "SPEED", _SPEED)
    with live(tmp_path, declared(), request) as site:
        status, out = site.up()
        assert status == 0, out
        status, out = site.run("drift", confirmed=False)
        assert status == 0, out
        api = api_of(site)
        _a_month(site.store, api)
        file = tmp_path / "drift.json"
        status, out = site.run("drift", "--format", "json", "--out", str(file), confirmed=False)
        assert status == 0, out
        makers = {
            field["maker"] for item in json.loads(file.read_text())["resources"] for field in item["fields"]
        }
        assert makers == {"autoscaler", "cloud", "controller"}

        _edit(api)
        status, out = site.run("drift", "--format", "json", "--out", str(file), confirmed=False)
        assert status == 1, out
        document = json.loads(file.read_text())
        fields = {
            (item["name"].removeprefix("rehearsed-addons-"), field["path"])
            for item in document["resources"]
            for field in item["fields"]
            if field["maker"] == "person"
        }
        assert fields == {
            ("team-research-namespace-research", "metadata.labels.hand"),
            (
                "team-research-namespace-research",
                'metadata.labels["pod-security.kubernetes.io/enforce"]',
            ),
            ("team-research-configmap-ebbtide-profile", "data.hand"),
            (
                "queues-cohort-rehearsed",
                "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",
            ),
            ("queues-clusterqueue-research.cpu", "spec.stopPolicy"),
        }
        deleted = [item["name"] for item in document["resources"] if item["deleted"]]
        assert deleted == ["rehearsed-addons-queues-localqueue-research/cpu"]
        unowned = [(item["kind"], item["name"]) for item in document["unowned"]]
        assert unowned == [("LocalQueue", "default/extra"), ("RoleBinding", "research/extra")]


_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/kueue-system/deployments"
_POLICIES: Final = "/apis/networking.k8s.io/v1/namespaces/kueue-system/networkpolicies"
_UNDO: Final = re.compile(r"spec\.replicas: (kubectl patch .*)$", re.MULTILINE)


def test_a_scaled_deployment_of_a_chart(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Drift and a failed update name the command that repairs it; what failed is not called done, and after
    the command everything else that was edited is set back."""
    with live(tmp_path, declared(), request) as site:
        status, out = site.up()
        assert status == 0, out
        api = api_of(site)
        (deployment,) = [item["metadata"]["name"] for item in api.items(_DEPLOYMENTS)]
        path = f"{_DEPLOYMENTS}/{deployment}"
        cohort = f"{_KUEUE}/cohorts/rehearsed"
        before = api.get(cohort)["spec"]["resourceGroups"]
        groups = copy.deepcopy(before)
        groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "77"
        api.patch(cohort, {"spec": {"resourceGroups": groups}}, fieldManager="kubectl-edit")
        for policy in api.items(_POLICIES):
            api.delete(f"{_POLICIES}/{policy['metadata']['name']}")
        api.patch(f"{path}/scale", {"spec": {"replicas": 2}}, fieldManager="kubectl")

        status, out = site.run("drift", confirmed=False)
        assert status == 1, out
        text = " ".join(out.split())
        assert f"{deployment} kubernetes.Deployment: an update fails" in text
        assert f"{deployment} spec.replicas: kubectl patch deployment {deployment} " in text
        assert (
            "rehearsed-addons-queues-cohort-rehearsed kubernetes.Cohort: an update sets it back in place"
            in text
        )
        site.terminal.run("pulumi refresh --stack dev --yes")
        for again in (False, True):
            status, out = site.up()
            assert status == 1, out
            (command,) = _UNDO.findall(out)
            assert f"{deployment}, done" not in out
            assert ("Failed in the last update, and updated again: " in out) is again
        _, out = site.run("drift", confirmed=False)
        assert f"{deployment} is not as declared" in " ".join(out.split())
        words = shlex.split(command)
        assert words[:6] == ["kubectl", "patch", "deployment", deployment, "--namespace", "kueue-system"]
        api.patch(path, json.loads(words[-1]), fieldManager="kubectl-patch")

        status, out = site.up()
        assert status == 0, out
        assert api.get(path)["spec"]["replicas"] == 1
        assert api.items(_POLICIES)
        assert api.get(cohort)["spec"]["resourceGroups"] == before
        status, out = site.run("drift", confirmed=False)
        assert status == 0, out
