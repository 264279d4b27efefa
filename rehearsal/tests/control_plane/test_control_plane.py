"""The real API server and its controllers, with kwok's nodes and a fake storage driver."""

from http import HTTPStatus

import pulumi
import pytest
import requests

from components.addons.drivers import gpu_direct
from components.addons.manifest import Manifest, obj
from components.addons.monitors import monitors
from ebbtide.analysis.recording.record import record
from ebbtide.clients.kubernetes import ApiError
from ebbtide.clients.kubernetes.objects import condition
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from ebbtide.work import jobs
from ebbtide.work.runs.code import DIRECTORY
from ebbtide.work.runs.run import MANAGED_BY
from ebbtide_rehearsal.cloud.control_planes import PROVIDER, ApiServerProxy
from ebbtide_rehearsal.cloud.store import API_ERROR, SLOW, InjectedFault, Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.discovery import wrong_fields
from ebbtide_rehearsal.control_plane.installed import definitions
from ebbtide_rehearsal.control_plane.stages import EXIT_CODE, RUNS, RUNS_FOR
from rehearsal.tests.control_plane.cluster import Object, job, namespace, node, pod, wait
from rehearsal.tests.control_plane.process_pods import annotations_of, process_namespace
from tests.declarations import AKS, GKE, Declaration, changed

pytestmark = pytest.mark.rehearsal


def _run(control_plane: ControlPlane, place: str, item: Object) -> tuple[Object, list[Object]]:
    """A Job at its end, and its pods."""
    api, name = control_plane.api, item["metadata"]["name"]
    path = f"/apis/batch/v1/namespaces/{place}/jobs"
    api.create(path, item)
    ended = wait(
        lambda: api.get(f"{path}/{name}"),
        lambda current: bool(condition(current, "Complete") or condition(current, "Failed")),
    )
    return ended, api.items(f"/api/v1/namespaces/{place}/pods", labelSelector=f"job-name={name}")


@pytest.mark.parametrize("base", [GKE, AKS], ids=["gke", "aks"])
def test_the_objects_of_metrics_are_accepted(control_plane: ControlPlane, base: Declaration) -> None:
    """The API server has every field of the monitors, the exporter and the token, with both clouds' kinds."""
    api = control_plane.api
    for definition in definitions("aks"):
        kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        api.apply(f"{kinds}/{definition['metadata']['name']}", definition)
    if api.find("/api/v1/namespaces/kueue-system") is None:
        namespace(api, "kueue-system")
    written = changed(base, queues=[{"name": "gpus", "pools": ["t4"]}], addons={"metrics": {}})
    objects = monitors(declare(written))
    assert objects
    for item in objects:
        wait(lambda item=item: _dry_run(control_plane, item), lambda created: created is not None)


def test_the_objects_of_gpu_networks_are_accepted(control_plane: ControlPlane) -> None:
    """The API server has every field of the networks and DaemonSets of pools with GPUDirect, and of Jobs with
    their sidecar."""
    machines = {"tcpxo": "a3-megagpu-8g", "rdma": "a3-ultragpu-8g"}
    pools = [
        {"name": strategy, "machine": machine, "gpuDirect": strategy, "capacity": "spot", "nodes": {"max": 2}}
        for strategy, machine in machines.items()
    ]
    cluster = declare(changed(GKE, pools=[*GKE["pools"][:1], *pools]))
    networks = list(gpu_direct(cluster))
    assert len(networks) == 2 * 17 + 3
    work = [
        jobs.job(profile(cluster), name=pool, image="train", pool=pool, gpus=8, namespace="default")
        for pool in machines
    ]
    for item in (*networks, *work):
        wait(lambda item=item: _dry_run(control_plane, item), lambda created: created is not None)


def _dry_run(control_plane: ControlPlane, item: Object) -> Object | None:
    """Create an object without storing it; None while its kind is not served yet."""
    version, place = item["apiVersion"], item["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = {"NetworkPolicy": "networkpolicies"}.get(item["kind"], f"{item['kind'].lower()}s")
    path = f"{root}/namespaces/{place}/{plural}" if place else f"{root}/{plural}"
    try:
        return control_plane.api.create(path, item, dryRun="All")
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return None


def test_a_pod_tolerates_the_compute_class_that_it_selects(control_plane: ControlPlane) -> None:
    """The toleration is added at admission, as on GKE, and only where it is missing."""
    api, label = control_plane.api, "cloud.google.com/compute-class"
    pods = f"/api/v1/namespaces/{namespace(api, 'classes')}/pods"
    own = {"key": label, "operator": "Exists", "effect": "NoSchedule"}
    specs: dict[str, Object] = {
        "selects": {"nodeSelector": {label: "tried"}},
        "tolerates": {"nodeSelector": {label: "tried"}, "tolerations": [own]},
        "neither": {},
    }

    def tolerations() -> dict[str, list[Object]]:
        created = {
            name: api.create(pods, {**pod({}, **spec), "metadata": {"name": name}}, dryRun="All")
            for name, spec in specs.items()
        }
        return {
            name: [entry for entry in item["spec"]["tolerations"] if entry["key"] == label]
            for name, item in created.items()
        }

    added = {"key": label, "operator": "Equal", "value": "tried", "effect": "NoSchedule"}
    # A policy takes effect some time after it was stored.
    wait(tolerations, lambda current: current == {"selects": [added], "tolerates": [own], "neither": []})


def test_pods_that_run_as_processes(control_plane: ControlPlane) -> None:
    """Only those with code of `ebbtide run`, and only in namespaces of users."""
    place = process_namespace(control_plane.api, "users")
    label, directory = {MANAGED_BY: "ebbtide"}, {"workingDir": DIRECTORY}
    cases: list[tuple[str, dict[str, str], dict[str, str]]] = [
        (place, {}, directory),
        (place, label, {}),
        ("kube-system", label, directory),
    ]
    for namespace_name, labels, container in cases:
        made = pod({}, container=container)
        made["metadata"] = {"name": "code", "labels": labels}
        assert RUNS not in annotations_of(control_plane.api, namespace_name, made)


def test_work_that_restarts_in_place_runs_out_of_tries(control_plane: ControlPlane) -> None:
    """With `OnFailure` the container is restarted and the Job counts that."""
    api = control_plane.api
    node(api, "restarted")
    place = namespace(api, "restarted")
    item = job("again", pod({RUNS_FOR: "1", EXIT_CODE: "1"}, restartPolicy="OnFailure"), backoffLimit=1)
    ended, _ = _run(control_plane, place, item)
    assert condition(ended, "Failed")["reason"] == "BackoffLimitExceeded"


def test_an_unknown_field_of_a_built_in_kind_is_named(control_plane: ControlPlane) -> None:
    """The provider drops it, and the strict dry run of the recorded program names it; nothing is created."""
    pod_spec = {"containers": [{"name": "main", "image": "busybox"}], "restartpolicy": "Always"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}

    def program() -> None:
        Manifest("misspelt", obj("apps/v1", "Deployment", "web", spec=spec), pulumi.ResourceOptions())
        Manifest("config", obj("v1", "ConfigMap", "config", data={"a": "b"}), pulumi.ResourceOptions())

    (sentence,) = wrong_fields(record(program, project="shop", stack="dev"), control_plane.api)
    assert sentence.startswith("Deployment web: ")
    assert "restartpolicy" in sentence
    assert not control_plane.api.items("/apis/apps/v1/namespaces/default/deployments")


def test_the_api_fails_and_is_slow_on_request(control_plane: ControlPlane, store: Store) -> None:
    """The provider's create, update and delete fail once, with the message and in the timeline, and a
    preview does not."""
    plan, proxy = control_plane.plan, ApiServerProxy(control_plane, store, "tried")
    kind = "kubernetes:core/v1:ServiceAccount"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}}
    with requests.Session() as session:
        session.trust_env, session.verify = False, str(plan.certificates.authority)
        session.headers["User-Agent"] = f"{PROVIDER}4"
        session.headers["Authorization"] = f"Bearer {plan.identities.admin.token}"
        session.headers["Content-Type"] = "application/apply-patch+yaml"

        def send(method: str, **query: str) -> requests.Response:
            path = f"https://{proxy.host}/api/v1/namespaces/default/serviceaccounts/sa"
            body = account if method == "PATCH" else None
            return session.request(method, path, {"fieldManager": "tried", **query}, json=body, timeout=60)

        for operation, method in (("create", "PATCH"), ("update", "PATCH"), ("delete", "DELETE")):
            message = f"no {operation} now"
            store.inject(InjectedFault(API_ERROR, f"{operation} {kind}", 1, {"message": message}))
            store.inject(InjectedFault(SLOW, f"{operation} {kind} sa", 1, {"seconds": 0.5}))
            assert method == "DELETE" or send(method, dryRun="All").ok
            refused = send(method)
            assert (refused.status_code, refused.json()["message"]) == (500, message)
            assert (refused.elapsed.total_seconds() >= 0.5, store.faults(SLOW)) == (True, {})
            assert send(method).ok
    proxy.stop()
    assert [event.kind for event in store.events()] == ["api-error"] * 3
