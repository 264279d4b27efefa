"""Work and add-ons under the Pod Security Standards that their namespaces enforce, on the real API server."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from components.addons.katib import patches as katib_patches
from components.addons.kueue import values
from components.addons.patches import Object, has_pods
from components.addons.pipelines import patches as pipelines_patches
from components.addons.security import pod_security
from ebbtide.declaration.model.addons import Pipelines
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from ebbtide.work.experiments import Double, experiment
from ebbtide.work.jobs import job, job_over_nodes
from ebbtide.work.sweeps import sweep
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.commands import Kubectl, rendered
from tests.declarations import AKS, GKE, changed
from tests.manifests import HOME, KATIB, PIPELINES, after, upstream

pytestmark = pytest.mark.rehearsal

Try = Callable[[str, Object], str]
"""Create a pod in a namespace that enforces a standard, by a dry run: what is said against it."""

_TASK: dict[str, Any] = {"name": "train", "image": "busybox", "command": ["train"], "pool": "t4", "gpus": 1}
_SIDECAR: Object = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
    "runAsNonRoot": True,
    "runAsUser": 65534,
}
"""Security context of the sidecar for bucket mounts (GoogleCloudPlatform/gcs-fuse-csi-driver, pkg/webhook,
sidecar_spec.go, 2026-08)."""


@pytest.fixture(scope="module")
def attempt(tools: ControlPlaneTools, control_plane: ControlPlane) -> Try:
    """Namespaces with each standard, and accounts in each that pods of users may name."""
    kubectl = Kubectl(tools, control_plane)
    for standard in ("baseline", "restricted"):
        labels = pod_security(standard)
        metadata = {"name": standard, "labels": labels}
        kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])
        _create_accounts(kubectl, standard, "default", "worker")

    def attempt(standard: str, pod: Object) -> str:
        metadata = {"generateName": "pod-", **pod.get("metadata", {})}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]}
        return kubectl.tried(manifest, standard).stderr

    return attempt


def _create_accounts(kubectl: Kubectl, namespace: str, *names: str) -> None:
    for name in names:
        meta = {"name": name, "namespace": namespace}
        kubectl.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}])


def _work(cloud: str, **fields: Any) -> dict[str, Object]:
    """Pod templates of everything that Ebbtide submits."""
    declaration = changed(
        {"gke": GKE, "aks": AKS}[cloud], teams=[{"name": "vision", "requireQueue": False, "volume": {}}]
    )
    made = profile(declare(declaration))
    task: Any = {**_TASK, **fields}
    trials: Any = {
        **task,
        "command": ["train", "${trialParameters.lr}"],
        "objective_metric_name": "loss",
        "objective_type": "minimize",
        "max_trial_count": 3,
    }
    trial: Object = experiment(made, {"lr": Double(0.1, 1)}, **trials)
    bucket = "gs://acme-data" if cloud == "gke" else made.teams[0].bucket
    kept: Any = {**task, "namespace": "vision", "outputs": "/outputs", "mounts": {bucket: "/data"}}
    jobs: dict[str, Object] = {
        "Job": job(made, **task),
        "sweep": sweep(made, {"lr": [1, 2]}, **task),
        "outputs": job(made, **kept),
        "outputs of a sweep": sweep(made, {"lr": [1, 2]}, **kept),
        "nodes": job_over_nodes(made, 2, **task)[0],
        "Experiment": trial["spec"]["trialTemplate"]["trialSpec"],
    }
    return {name: manifest["spec"]["template"] for name, manifest in jobs.items()}


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_all_work_runs_under_baseline(attempt: Try, cloud: str) -> None:
    """With GPUs, a mounted bucket, and the containers that webhooks add for it and for Katib."""
    fields: dict[str, Any] = {"volume": "shared", "service_account": "worker"}
    for template in _work(cloud, **fields).values():
        spec = template["spec"]
        assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
        assert "forbidden" not in attempt("baseline", template)
        sidecar: Object = {"name": "gke-gcsfuse-sidecar", "image": "sidecar", "securityContext": _SIDECAR}
        # Katib gives its collector the context of the trial's own container.
        own = spec["containers"][0]["securityContext"]
        collector: Object = {
            "name": "metrics-logger-and-collector",
            "image": "collector",
            "securityContext": own,
        }
        added: Object = {
            **spec,
            "shareProcessNamespace": True,
            "containers": [*spec["containers"], collector],
            "initContainers": [{**sidecar, "restartPolicy": "Always"}],
            "volumes": [*spec["volumes"], {"name": "gke-gcsfuse-tmp", "emptyDir": {}}],
        }
        assert "forbidden" not in attempt("baseline", {**template, "spec": added})


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_work_of_a_user_runs_under_restricted(attempt: Try, cloud: str) -> None:
    """Nothing of it is refused, or warned of; by default, what may be root is refused by name."""
    for template in _work(cloud, run_as_user=1000).values():
        assert attempt("restricted", template) == ""
    for template in _work(cloud).values():
        message = attempt("restricted", template)
        assert "runAsNonRoot" in message
        assert "seccompProfile" not in message
        assert "allowPrivilegeEscalation" not in message


def _add_on_pods() -> list[Object]:
    """Pod specs of Katib and of Kubeflow Pipelines, as they are installed."""
    installed: Iterable[Object] = (
        *after(upstream(KATIB), katib_patches(HOME, {})).values(),
        *after(upstream(PIPELINES), pipelines_patches(Pipelines(), HOME, {})).values(),
    )
    specs: list[Object] = [item["spec"]["template"]["spec"] for item in installed if has_pods(item)]
    # Priority classes are objects of the whole cluster.
    return [{key: value for key, value in spec.items() if key != "priorityClassName"} for spec in specs]


@pytest.mark.released(KATIB, PIPELINES)
def test_add_ons_run_under_restricted(
    attempt: Try, tools: ControlPlaneTools, control_plane: ControlPlane
) -> None:
    """Controllers, databases and stores alike."""
    pods = _add_on_pods()
    assert len(pods) > 10
    accounts = {str(spec["serviceAccountName"]) for spec in pods if spec.get("serviceAccountName")}
    _create_accounts(Kubectl(tools, control_plane), "restricted", *sorted(accounts))
    for spec in pods:
        assert attempt("restricted", {"spec": spec}) == ""


@pytest.mark.long
def test_kueue_runs_under_restricted(attempt: Try, chart_tools: ControlPlaneTools, tmp_path: Path) -> None:
    """Kueue's replicas are spread, and a sysctl lets them serve a low port without root."""
    declaration = declare(changed(GKE, addons={"kueue": {"replicas": 2}}))
    objects = rendered(chart_tools, values(declaration), "kueue-system", tmp_path)
    (manager,) = [item for item in objects if item["kind"] == "Deployment"]
    template = manager["spec"]["template"]
    (constraint,) = template["spec"]["topologySpreadConstraints"]
    selected = constraint["labelSelector"]["matchLabels"]
    assert selected.items() <= template["metadata"]["labels"].items()
    assert [item["kind"] for item in objects].count("PodDisruptionBudget") == 1
    spec = {**template["spec"], "serviceAccountName": "default", "priorityClassName": ""}
    assert attempt("restricted", {"spec": spec}) == ""
