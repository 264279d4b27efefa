"""The cost recorder on a control plane: its objects, and runs of its program as its account."""

import base64
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from components.addons.costs import objects
from components.addons.security import system_namespace
from components.addons.teams import attempts_readers, namespace_manifest
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.in_pods.cost_recorder import NAMESPACE
from ebbtide.placement.member_policy import controllers_class
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.cluster import wait
from rehearsal.tests.control_plane.commands import Kubectl


@dataclass(frozen=True)
class Installed:
    """The recorder's objects on a cluster, and the arguments of its program."""

    cluster: Cluster
    command: tuple[str, ...]

    def run(self) -> str:
        """Run the program as its CronJob's pods do, and return its output."""
        done = subprocess.run(self.command, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout


def install_recorder(
    cluster: Cluster, kubectl: Kubectl, control_plane: ControlPlane, directory: Path
) -> Installed:
    """Create the add-on's objects for a cluster of one team, as the API server admits them."""
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")
    (team,) = cluster.teams
    wait(lambda: control_plane.api.find(f"/api/v1/namespaces/{NAMESPACE}"), lambda found: found is None)
    kubectl.apply(
        [
            system_namespace(NAMESPACE, "restricted"),
            namespace_manifest(cluster, team),
            controllers_class(cluster),
        ]
    )
    made = [*objects(cluster), *attempts_readers(cluster, team)]
    kubectl.apply(made)
    cron_job = next(item for item in made if item["kind"] == "CronJob")
    pod = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    kubectl(
        "create", "job", "once", "--namespace", NAMESPACE, "--from", "cronjob/recorder", "--dry-run=server"
    )
    source = next(item for item in made if item["kind"] == "ConfigMap")
    (volume,) = pod["volumes"]
    for item in volume["configMap"]["items"]:
        file = directory / item["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source["data"][item["key"]])
    token = directory / "token"
    token.write_text(kubectl("create", "token", pod["serviceAccountName"], "--namespace", NAMESPACE))
    entry = yaml.safe_load(control_plane.plan.kubeconfig.read_text())["clusters"][0]["cluster"]
    program = [sys.executable, "-S", str(directory / "recorder.py"), str(directory / "settings.json")]
    authority = directory / "ca.crt"
    authority.write_bytes(base64.b64decode(entry["certificate-authority-data"]))
    server = ["--server", entry["server"], "--authority", str(authority)]
    return Installed(cluster, (*program, *server, "--token", str(token)))
