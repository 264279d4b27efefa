"""`ebbtide adopt --context` on a real API server with the definitions of Kueue's objects."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.cluster import Object, device_plugin, namespace, node
from rehearsal.tests.control_plane.commands import run
from rehearsal.tests.control_plane.kueue import define
from tests.repository import ROOT
from tests.unit.adopting.gke_shapes import Document, cluster, pool

pytestmark = pytest.mark.rehearsal

_VERSION = "kueue.x-k8s.io/v1beta2"
_CONTEXT = "rehearsal"
_QUOTAS = [{"name": "cpu", "nominalQuota": "8"}, {"name": "memory", "nominalQuota": "32Gi"}]
_GROUPS = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": "batch", "resources": _QUOTAS}]}]
_LABELS = {"cloud.google.com/gke-nodepool": "batch"}


@pytest.fixture(scope="module")
def kubeconfig(control_plane: ControlPlane) -> Path:
    """The administrator's, of a cluster with a node, a queue and a DaemonSet."""
    api = control_plane.api
    define(api, "clusterqueues", "localqueues", "resourceflavors")
    group = f"/apis/{_VERSION}"
    namespace(api, "research")
    queue: Object = {"namespaceSelector": {}, "resourceGroups": _GROUPS}
    _create(api, f"{group}/resourceflavors", "ResourceFlavor", "batch", {"nodeLabels": _LABELS})
    _create(api, f"{group}/clusterqueues", "ClusterQueue", "batch", queue)
    path = f"{group}/namespaces/research/localqueues"
    _create(api, path, "LocalQueue", "batch", {"clusterQueue": "batch"})
    node(api, "one", labels=_LABELS)
    plugin = device_plugin("plugin", "research", tolerations=[{"operator": "Exists"}])
    api.create("/apis/apps/v1/namespaces/research/daemonsets", plugin)
    return control_plane.plan.kubeconfig


def _create(api: Api, path: str, kind: str, name: str, spec: Object) -> None:
    api.create(path, {"apiVersion": _VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})


@dataclass(frozen=True)
class _Project:
    """A project, and the description of a cluster with some pools."""

    directory: Path

    def describe(self, *pools: Document) -> None:
        document = cluster("lab", "us-central1-a", [pool("admin", "e2-standard-4"), *pools])
        (self.directory / "cluster.json").write_text(json.dumps(document))

    def run(self, kubeconfig: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the described cluster, as the user of a kubeconfig."""
        return subprocess.run(
            [sys.executable, "-m", "ebbtide", *words, "--from", "cluster.json"],
            cwd=self.directory,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
        )

    def refusal(self, kubeconfig: Path) -> str:
        """Return the message of a refused adoption, which has written nothing."""
        done = self.run(kubeconfig, "adopt", "shared", "--context", _CONTEXT)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert not (self.directory / "Pulumi.shared.yaml").exists()
        return done.stderr


@pytest.fixture
def project(tmp_path: Path) -> _Project:
    """A project without stacks, and a cluster with the pools of the API server's nodes and of its queue."""
    (tmp_path / "Pulumi.yaml").write_text("{name: team, runtime: python}\n")
    (tmp_path / "__main__.py").symlink_to(ROOT / "__main__.py")
    made = _Project(tmp_path)
    driver = {"gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}
    gpu = {"acceleratorCount": "1", "acceleratorType": "nvidia-tesla-t4", **driver}
    limits = {"enabled": True, "totalMaxNodeCount": 4}
    made.describe(
        pool("batch", "n2-standard-8", autoscaling=limits),
        pool("t4", "n1-standard-8", autoscaling=limits, config={"accelerators": [gpu]}),
    )
    return made


def test_objects_of_a_context(project: _Project, kubeconfig: Path, tools: ControlPlaneTools) -> None:
    """The declaration and the file of resources are those of a file that kubectl has written, also in a new
    project."""
    kubectl = (tools.path("kubectl"), "--kubeconfig", kubeconfig, "get", "-A", "-o", "json")
    (project.directory / "queues.json").write_text(run(*kubectl, "resourceflavors,clusterqueues,localqueues"))
    (project.directory / "plugins.json").write_text(run(*kubectl, "daemonsets"))
    live = project.run(kubeconfig, "adopt", "live", "--context", _CONTEXT)
    assert live.returncode == 0, live.stderr
    filed = project.run(kubeconfig, "adopt", "filed", "--from", "queues.json", "--from", "plugins.json")
    assert filed.returncode == 0, filed.stderr
    assert live.stdout.replace("live", "filed") == filed.stdout
    assert "DaemonSet plugin in research would run on the nodes of pool t4, beside GKE's" in live.stdout
    (declared, other), (adopted, same) = (
        [(project.directory / name.format(stack)).read_text() for stack in ("live", "filed")]
        for name in ("Pulumi.{}.yaml", "adopt.{}.json")
    )
    assert "name: batch" in declared
    assert "research/batch" in adopted
    assert (declared.replace("live", "filed"), adopted) == (other, same)
    made = project.run(kubeconfig, "init", "made", "--from-cluster", "--context", _CONTEXT)
    assert made.returncode == 0, made.stderr
    assert "research/batch" in (project.directory / "made" / "adopt.dev.json").read_text()


def test_a_context_of_another_cluster(project: _Project, kubeconfig: Path) -> None:
    """A context none of whose nodes is of the cluster's pools is refused."""
    project.describe(pool("gpu", "n2-standard-8"))
    assert project.refusal(kubeconfig) == (
        "Context rehearsal is of another cluster than lab: its nodes are of batch. Name the context of lab.\n"
    )


def test_a_context_without_rights(
    project: _Project, kubeconfig: Path, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The message has what the API server forbids, and the command whose output serves as well."""
    account = "/api/v1/namespaces/default/serviceaccounts/default/token"
    request: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = control_plane.api.create(account, request)
    written = yaml.safe_load(kubeconfig.read_text())
    for user in written["users"]:
        user["user"] = {"token": token["status"]["token"]}
    (tmp_path / "theirs.yaml").write_text(yaml.safe_dump(written))
    message = project.refusal(tmp_path / "theirs.yaml")
    assert 'cannot list resource "' in message
    assert "Or let the cluster's owner run `kubectl get resourceflavors,clusterqueues,localqueues" in message
