"""Edits by hand of objects on a real API server, read by the real Kubernetes provider."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.cloud.provider import CLUSTER
from rehearsal.tests.control_plane.live import live
from tests.declarations import Declaration

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

_KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
_RBAC: Final = "rbac.authorization.k8s.io"
_TEAM: Final = "/api/v1/namespaces/research"
_DECLARED: Declaration = {
    "name": "edited",
    "owner": "rehearsal",
    "lifetime": {"hours": 8},
    "cloud": {"kind": "gke", "project": "rehearsal", "location": "us-central1-a"},
    "pools": [
        {"name": "system", "role": "system", "machine": "e2-standard-4", "nodes": {"min": 1, "max": 2}},
        {"name": "cpu", "machine": "n2-standard-4", "capacity": "spot", "nodes": {"max": 2}},
    ],
    "queues": [{"name": "cpu", "pools": ["cpu"]}],
    "teams": [{"name": "research", "queues": [{"queue": "cpu"}]}],
}


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


def test_edits_of_objects_are_a_persons(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A new stack has no drift; each edit by hand is found, and what is in no state."""
    with live(tmp_path, _DECLARED, request) as site:
        status, out = site.up()
        assert status == 0, out
        status, out = site.run("drift", confirmed=False)
        assert status == 0, out
        (cluster,) = [item for item in site.store.resources() if item.type == CLUSTER]
        _edit(Api.of_kubeconfig(json.loads(Path(cluster.state["kubeconfig"]).read_text())))
        file = tmp_path / "drift.json"
        status, out = site.run("drift", "--format", "json", "--out", str(file), confirmed=False)
        assert status == 1, out
        document = json.loads(file.read_text())
        fields = {
            (item["name"].removeprefix("edited-addons-"), field["path"])
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
                "queues-cohort-edited",
                "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",
            ),
            ("queues-clusterqueue-research.cpu", "spec.stopPolicy"),
        }
        deleted = [item["name"] for item in document["resources"] if item["deleted"]]
        assert deleted == ["edited-addons-queues-localqueue-research/cpu"]
        unowned = [(item["kind"], item["name"]) for item in document["unowned"]]
        assert unowned == [("LocalQueue", "default/extra"), ("RoleBinding", "research/extra")]
