"""Refusals of the real API server to members of a team: privileged pods, and pools without a queue."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from components.addons import teams
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.labels_and_taints import labels_and_taints
from ebbtide.placement import member_policy, queue_policy
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide.placement.profile_sources import CONFIG_MAP
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.cluster import Object, gone, wait
from rehearsal.tests.control_plane.commands import Kubectl
from tests.declarations import GKE, changed, pool

pytestmark = pytest.mark.rehearsal

MEMBER = "ada@acme.example"
SYSTEM_TAINT = "components.gke.io/gke-managed-components"
DECLARATION = changed(
    GKE,
    queues=[{"name": "gpus", "pools": ["t4"]}],
    teams=[
        {"name": "vision", "members": [MEMBER], "interactive": True},
        {
            "name": "speech",
            "members": [MEMBER],
            "requireQueue": False,
            "namespace": {"name": "speech"},
            "loadBalancers": True,
        },
        {"name": "leaving", "members": [MEMBER]},
    ],
)
DECLARATION["pools"] = [dict(item) for item in DECLARATION["pools"]]
pool(DECLARATION, "system")["taints"] = [{"key": SYSTEM_TAINT, "value": "true"}]
QUEUED = {QUEUE_LABEL: "gpus"}
Create = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """A cluster with a queue for one of its two spot pools, and two teams."""
    return declare(DECLARATION)


@pytest.fixture(scope="module")
def create(tools: ControlPlaneTools, control_plane: ControlPlane, cluster: Cluster) -> Create:
    """Create an object as a member of a team, by a server-side dry run."""
    kubectl = Kubectl(tools, control_plane)
    for team in cluster.teams:
        kubectl.apply([teams.namespace_manifest(cluster, team)])
        kubectl.apply(teams.members(cluster, team))
        # Jobs are for members, Deployments for users who may create them: the policy covers all.
        kubectl("create", "rolebinding", "apps", "--clusterrole=admin", f"--user={MEMBER}", "-n", team.name)
    for layer in (*queue_policy.layers(cluster), *member_policy.objects(cluster).values()):
        kubectl.apply(layer)

    def create(
        manifest: Object, namespace: str = "vision", user: str = MEMBER
    ) -> "subprocess.CompletedProcess[str]":
        return kubectl.tried(manifest, namespace, "--as", user)

    # The API server reads policies a moment after they are written.
    wait(lambda: create(work("Pod", _reaching(cluster, "t4"))).returncode, bool)
    return create


def _reaching(cluster: Cluster, pool: str) -> Object:
    """A pod spec that tolerates what a pool's nodes carry."""
    (pool_marks,) = (
        labels_and_taints(item, cluster.site.cloud) for item in cluster.pools if item.name == pool
    )
    tolerations = [
        {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect.value}
        for taint in pool_marks.all_taints
    ]
    return {"tolerations": tolerations}


def work(kind: str, spec: Object, labels: Object | None = None, **metadata: Any) -> Object:
    """Work of a kind, whose one container satisfies the standard `restricted`."""
    secure = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "main", "image": "busybox", "securityContext": secure}
    pod = {"containers": [container], **spec}
    meta = {"name": "work", "labels": labels or {}, **metadata}
    match kind:
        case "Pod":
            return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": pod}
        case "Job":
            template = {"spec": {"restartPolicy": "Never", **pod}}
            return {"apiVersion": "batch/v1", "kind": kind, "metadata": meta, "spec": {"template": template}}
        case _:
            selected = {"app": "work", **(labels or {})}
            template = {"metadata": {"labels": selected}, "spec": pod}
            body = {"selector": {"matchLabels": {"app": "work"}}, "template": template}
            return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "work"}, "spec": body}


@pytest.mark.parametrize("kind", ["Pod", "Job", "Deployment", "StatefulSet"])
def test_a_pool_with_a_queue_is_taken_through_it(create: Create, cluster: Cluster, kind: str) -> None:
    """Work that tolerates the pool's taints is refused without a queue, and goes on with one."""
    answer = create(work(kind, _reaching(cluster, "t4")))
    assert "names no queue, but could run on nodes of t4" in answer.stderr
    assert "kubectl get localqueues --namespace vision" in answer.stderr
    assert create(work(kind, _reaching(cluster, "t4"), QUEUED)).returncode == 0


def test_other_pools_need_no_queue(create: Create, cluster: Cluster) -> None:
    """An interactive pod runs on a pool that no queue leads to, and on untainted nodes."""
    assert create(work("Pod", _reaching(cluster, "cpu"))).returncode == 0
    assert create(work("Pod", {})).returncode == 0


def test_pods_of_a_job_with_a_queue_start(
    create: Create, cluster: Cluster, control_plane: ControlPlane
) -> None:
    """The Job controller creates them; the team's own accounts may not, whatever owner they name."""
    api = control_plane.api
    api.create("/apis/batch/v1/namespaces/vision/jobs", work("Job", _reaching(cluster, "t4"), QUEUED))
    pods = "/api/v1/namespaces/vision/pods"
    wait(lambda: api.items(pods, labelSelector="job-name=work"), bool)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "done", "uid": "1", "controller": True}
    admitted = work("Pod", _reaching(cluster, "t4"), ownerReferences=[owner])
    assert create(admitted, user="system:serviceaccount:vision:worker").returncode != 0


@pytest.mark.parametrize("controls", [True, False])
def test_only_a_controller_is_an_owner(create: Create, cluster: Cluster, controls: bool) -> None:  # noqa: FBT001
    """A pod that its Job controls was checked with it; another owner reference says nothing."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "done", "uid": "1", "controller": controls}
    user = "system:serviceaccount:kube-system:job-controller"
    queueless = create(work("Pod", _reaching(cluster, "t4"), ownerReferences=[owner]), user=user)
    volumes = [{"name": "theirs", "nfs": {"server": "10.0.0.2", "path": "/shared"}}]
    foreign = create(work("Pod", {"volumes": volumes}, ownerReferences=[owner]), user=user)
    assert ("names no queue" in queueless.stderr) is not controls
    assert ("by its name or address" in foreign.stderr) is not controls


def test_a_trial_names_its_queue_too(create: Create, cluster: Cluster) -> None:
    """Kueue admits a Job of Katib's as it is: its owner is not a kind that was checked."""
    owner = {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Trial",
        "name": "a",
        "uid": "1",
        "controller": True,
    }
    trial = work("Job", _reaching(cluster, "t4"), ownerReferences=[owner])
    user = "system:serviceaccount:kube-system:cronjob-controller"
    assert "names no queue" in create(trial, user=user).stderr


def test_a_team_may_be_exempted(create: Create, cluster: Cluster) -> None:
    """Work without a queue is accepted from a team that needs none."""
    assert create(work("Job", _reaching(cluster, "t4")), namespace="speech").returncode == 0


def test_no_member_takes_the_system_pool(create: Create, control_plane: ControlPlane) -> None:
    """Work that tolerates the system pool's taint is refused with a queue as well, unless an administrator
    creates it."""
    for toleration in ({"key": SYSTEM_TAINT, "operator": "Exists"}, {"operator": "Exists"}):
        item = work("DaemonSet", {"tolerations": [toleration]}, QUEUED)
        assert "tolerates the taints of the system pool" in create(item).stderr
        control_plane.api.create("/apis/apps/v1/namespaces/vision/daemonsets", item, dryRun="All")


def test_pods_of_an_administrators_workload_start(create: Create, control_plane: ControlPlane) -> None:
    """A controller's pods are admitted as their workload was, with the volumes of an administrator."""
    api = control_plane.api
    volumes = [{"name": "data", "nfs": {"server": "10.0.0.2", "path": "/shared"}}]
    assert "by its name or address: data." in create(work("Job", {"volumes": volumes})).stderr
    job = work("Job", {"volumes": volumes}) | {"metadata": {"name": "administrators"}}
    api.create("/apis/batch/v1/namespaces/vision/jobs", job)
    wait(lambda: api.items("/api/v1/namespaces/vision/pods", labelSelector="job-name=administrators"), bool)


@pytest.mark.parametrize("where", ["annotations", "env"])
def test_pods_are_as_small_as_their_number_is_large(create: Create, where: str) -> None:
    """All pods that the namespace admits, 5,000 of them, have at most 1 GiB; each character counts by its
    bytes."""
    item = work("Job", {})
    for value, refused in (("x" * 210_000, False), ("x" * 215_000, True), ("\N{SNOWMAN}" * 72_000, True)):
        if where == "env":
            item["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "NOTE", "value": value}]
        else:
            item["spec"]["template"]["metadata"] = {"annotations": {"note": value}}
        assert ("bytes in each pod, and its namespace admits 214748" in create(item).stderr) is refused


def test_a_namespace_is_deleted_with_its_profile(create: Create, control_plane: ControlPlane) -> None:
    """Kubernetes' controllers delete the profile that members may not."""
    profile = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP}}
    assert "commands of all members follow" in create(profile, namespace="leaving").stderr
    control_plane.api.create("/api/v1/namespaces/leaving/configmaps", profile)
    control_plane.api.delete("/api/v1/namespaces/leaving")
    gone(control_plane.api, "/api/v1/namespaces/leaving")


def test_declared_load_balancers_are_admitted(create: Create) -> None:
    """A team with declared load balancers creates them, and no other team does."""
    service: Object = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "open"}}
    service["spec"] = {"type": "LoadBalancer", "ports": [{"port": 443}]}
    assert "is of type LoadBalancer" in create(service).stderr
    assert create(service, namespace="speech").returncode == 0
    service["spec"] = {"externalIPs": ["203.0.113.1"], "ports": [{"port": 443}]}
    assert "CVE-2020-8554" in create(service, namespace="speech").stderr
