"""The cost recorder in a rehearsal, on the real API server."""

from pathlib import Path

import pytest

from components.addons.add_on import system_placement
from ebbtide.declaration.model.declare import declare
from ebbtide.in_pods.cost_recorder import NAMESPACE
from ebbtide.placement.derive import profile
from ebbtide_rehearsal.control_plane import installed
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.installed import install_policy
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.cluster import wait
from rehearsal.tests.control_plane.commands import Ebbtide, Kubectl
from rehearsal.tests.control_plane.cost_recorder import install_recorder
from rehearsal.tests.control_plane.node_pools import running, work_pool
from tests.declarations import GKE, changed

pytestmark = pytest.mark.rehearsal


def test_the_recorder_runs_as_a_process(
    control_plane: ControlPlane, tools: ControlPlaneTools, tmp_path: Path
) -> None:
    """A pod of the CronJob writes the record with the rights of its account, and `ebbtide cost` reads it."""
    api, kubectl = control_plane.api, Kubectl(tools, control_plane)
    cluster = declare(changed(GKE, teams=[{"name": "vision"}], addons={"costs": {}}))
    for policy, binding in installed.POLICIES:
        install_policy(api, policy, binding)
    install_recorder(cluster, kubectl, control_plane, tmp_path)
    labels = dict(system_placement(cluster).node_selector)
    with running(
        control_plane, tmp_path, work_pool("system", labels=labels, taints=(), minimum=1, initial=1)
    ):
        kubectl("create", "job", "once", "--namespace", NAMESPACE, "--from", "cronjob/recorder")
        ended = wait(
            lambda: api.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/once")["status"],
            lambda status: "succeeded" in status or "failed" in status,
        )
        log = kubectl("logs", "--namespace", NAMESPACE, "job/once")
        assert (ended.get("succeeded"), log) == (1, "0 lines written.\n")
    ebbtide = Ebbtide(control_plane.plan.kubeconfig, profile(cluster))
    assert "Prices are list prices" in ebbtide.output("cost")
