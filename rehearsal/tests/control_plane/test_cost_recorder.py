"""The cost recorder with its own service account, on the real API server."""

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import phase_of
from ebbtide.declaration.model.declare import declare
from ebbtide.in_pods.cost_recorder import NAMESPACE
from ebbtide.placement.derive import profile
from ebbtide.work.jobs import job
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from rehearsal.tests.control_plane.cluster import declared_node, wait
from rehearsal.tests.control_plane.commands import Ebbtide, Kubectl
from rehearsal.tests.control_plane.cost_recorder import Installed, install_recorder
from tests.declarations import BASES, changed

pytestmark = [pytest.mark.rehearsal, pytest.mark.usefixtures("clean")]

_MEMBER = "ada@acme.example"


@pytest.fixture(params=BASES)
def installed(
    request: pytest.FixtureRequest, tools: ControlPlaneTools, control_plane: ControlPlane, tmp_path: Path
) -> Installed:
    """All objects of the add-on for a team, as the API server has admitted them."""
    teams = [{"name": "vision", "members": [_MEMBER], "requireQueue": False}]
    cluster = declare(changed(BASES[request.param], teams=teams, addons={"costs": {}}))
    return install_recorder(cluster, Kubectl(tools, control_plane), control_plane, tmp_path)


def _lines(api: Api) -> dict[str, dict[str, Any]]:
    maps = api.items(f"/api/v1/namespaces/{NAMESPACE}/configmaps", labelSelector="ebbtide.dev/cost-month")
    return {key: json.loads(text) for item in maps for key, text in item["data"].items()}


def _worker(installed: Installed, api: Api) -> None:
    """A node of the pool `cpu`."""
    declared_node(api, "worker", installed.cluster, "cpu")


def test_the_record(installed: Installed, control_plane: ControlPlane) -> None:
    """A finished Job and a node that left have one line each, also after another run, and a member sees what
    they have cost."""
    api = control_plane.api
    _worker(installed, api)
    cluster = profile(installed.cluster)
    manifest = job(
        cluster, name="train", namespace="vision", image="busybox", pool="cpu", cpu="1", memory="1Gi"
    )
    manifest["spec"]["template"]["metadata"] = {"annotations": {RUNS_FOR: "2s"}}
    assert installed.run() == "0 lines written.\n"
    api.create("/apis/batch/v1/namespaces/vision/jobs", manifest)
    wait(
        lambda: api.get("/apis/batch/v1/namespaces/vision/jobs/train")["status"],
        lambda status: status.get("succeeded") == 1,
    )
    assert installed.run() == "1 lines written.\n"
    assert installed.run() == "0 lines written.\n"
    (attempt,) = _lines(api).values()
    assert (attempt["team"], attempt["job"], attempt["pool"], attempt["option"]) == (
        "vision",
        "train",
        "cpu",
        "spot",
    )
    assert attempt["price"] == cluster.pool("cpu").price.per_hour
    assert attempt["seconds"] > 0
    api.delete("/api/v1/nodes/worker")
    assert installed.run() == "1 lines written.\n"
    assert sorted(line["kind"] for line in _lines(api).values()) == ["attempt", "node"]
    assert "vision/train" in Ebbtide(control_plane.plan.kubeconfig, cluster).output("cost", "--by", "job")
    member = api.as_user(_MEMBER)
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    assert member.items(path)
    with pytest.raises(ApiError, match="cannot patch"):
        member.patch(f"{path}/state", {"data": {"state": "{}"}})
    with pytest.raises(ApiError, match="cannot create"):
        member.create(path, {"metadata": {"name": "costs-2026-11-2"}, "data": {}})


def test_a_team_that_is_removed_while_its_work_runs(
    installed: Installed, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The attempts end at the team's removal, with their share as the scheduler counts it, and the recorder
    goes on though it may read nothing of the team any longer."""
    api = control_plane.api
    _worker(installed, api)
    manifest = job(
        profile(installed.cluster),
        name="train",
        namespace="vision",
        image="busybox",
        pool="cpu",
        cpu="10m",
        memory="64Mi",
    )
    template = manifest["spec"]["template"]
    template["metadata"] = {"annotations": {RUNS_FOR: "600s", "note": "x" * 250_000}}
    template["spec"]["resources"] = {"requests": {"cpu": "7", "memory": "1Gi"}}
    api.create("/apis/batch/v1/namespaces/vision/jobs", manifest)
    pods = "/api/v1/namespaces/vision/pods"
    wait(lambda: api.items(pods), lambda items: [phase_of(item) for item in items] == ["Running"])
    assert installed.run() == "0 lines written.\n"
    api.delete("/apis/rbac.authorization.k8s.io/v1/namespaces/vision/roles/cost-recorder")
    refused = installed.run()
    assert "The pods and Jobs of namespace vision cannot be listed: HTTP Error 403" in refused
    assert refused.endswith("\n0 lines written.\n")
    settings = json.loads((tmp_path / "settings.json").read_text())
    (tmp_path / "settings.json").write_text(json.dumps(settings | {"teams": {}}))
    refused = installed.run()
    assert refused.startswith("The events of namespace vision cannot be listed: HTTP Error 403")
    assert refused.endswith("\n1 lines written.\n")
    assert installed.run() == "0 lines written.\n"
    (attempt,) = _lines(api).values()
    assert (attempt["cpu"], attempt["memory"]) == (7, 1 << 30)
    assert attempt["share"] == pytest.approx((7 / 8 + 1 / 32) / 2, abs=1e-6)
    assert attempt["uncertain"] > 0
