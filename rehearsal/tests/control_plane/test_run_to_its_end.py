"""`ebbtide run` to its end: the code goes through the real registry to a process of this machine."""

from dataclasses import replace
from pathlib import Path

import pytest

from ebbtide.autoscaler.nodes import Autoscaling
from ebbtide.placement.derive import profile
from ebbtide.placement.profile import TeamProfile
from ebbtide_rehearsal.cloud.pools import put_settings
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.commands import Ebbtide, dev
from rehearsal.tests.control_plane.node_pools import CLUSTER, declared_pool, running
from rehearsal.tests.control_plane.process_pods import process_namespace
from rehearsal.tests.registry import put_image

pytestmark = pytest.mark.rehearsal


@pytest.mark.parametrize("cloud", ["gke", pytest.param("aks", marks=pytest.mark.long)])
def test_run_and_run_again(
    control_plane: ControlPlane, address: str, cloud: str, folder: Path, tmp_path: Path
) -> None:
    """On a restricted namespace's pool without nodes, the log has the program's output and the exit status is
    0; a rerun has the same code with other arguments, without the folder."""
    declared, name = dev(cloud)
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    place = process_namespace(control_plane.api, f"to-the-end-{cloud}", **labels)
    team = TeamProfile("vision", place, registry=f"{address}/{cloud}/vision")
    user = Ebbtide(control_plane.plan.kubeconfig, replace(profile(declared), teams=(team,)))
    (folder / "data.txt").write_text("data of the folder")
    (folder / "train.py").write_text("import sys; print(open('data.txt').read(), sys.argv[1:])")
    options = ("--pool", name, "-n", place, "--code", str(folder), "--run-as-user", "1000")
    image = ("--image", f"{address}/bases/python:3")
    put_image(image[1], {"etc/base": "base"})
    with running(control_plane, tmp_path, declared_pool(declared, name)) as nodes:
        # With its node, the log of an ended pod would be gone before it is followed.
        put_settings(nodes.store, CLUSTER, Autoscaling(idle_seconds=360_000))
        output = user.output("run", "train", *options, *image, "--", "python", "train.py", "--lr", "0.1")
        assert f"Image: {address}/{cloud}/vision/my-model:" in output
        assert "data of the folder ['--lr', '0.1']" in output
        (folder / "train.py").unlink()
        again = user.output("rerun", "train", "-n", place, "--", "python", "train.py", "--lr", "0.2")
        assert "Job train-2 is created, from train." in again
        assert "data of the folder ['--lr', '0.2']" in user.output("follow", "train-2", "-n", place, "--logs")
