"""Submission of Jobs, and following workloads to their end."""

import http
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from ebbtide.invocation import command_line
from ebbtide.kubernetes_api import Api, ApiError
from ebbtide.kueue_api import API_PATH
from ebbtide.workloads.cluster import ClusterError, explained
from ebbtide.workloads.job_progress import JobSnapshot, Phase, Progress, progress
from ebbtide.workloads.kinds import JOB, Kind, kind_of, lost
from ebbtide.workloads.objects import Object, waits

JOB_UID: Final = "kueue.x-k8s.io/job-uid"
"""The label by which Kueue's Workload names its Job (kueue, pkg/controller/constants, 0.19)."""
_WORKLOADS: Final = f"{API_PATH}/namespaces/{{}}/workloads"
_PAUSE: Final = 2.0
_SHARE: Final = 10
"""Snapshots of a large sweep take a while: they may take at most a tenth of the time."""
_TIMEOUT: Final = 600.0
"""Time limit in seconds for an unresponsive API server; an upgrade of the control plane takes some
minutes."""


def submit(api: Api, manifest: Object, *dependents: Object) -> Object:
    """Create a Job and its dependents, after a dry run of all of them.

    The dry run includes strict validation and webhooks, so that nothing is created if an object is rejected.
    Dependents are owned by the Job, and deleted with it.

    Args:
        api: the cluster's API.
        manifest: the Job. Default namespace: that of the kubeconfig's context.
        *dependents: Services, in the same namespace.

    Returns:
        The created Job.

    Raises:
        ClusterError: the cluster rejects an object, or is unreachable.
    """
    namespace = manifest["metadata"].get("namespace") or api.namespace
    dry_run(api, namespace, manifest, *dependents)
    created = _create(api, manifest, namespace)
    owner = {
        "apiVersion": created["apiVersion"],
        "kind": created["kind"],
        "name": created["metadata"]["name"],
        "uid": created["metadata"]["uid"],
    }
    for item in dependents:
        owned = {**item, "metadata": {**item["metadata"], "ownerReferences": [owner]}}
        try:
            _create(api, owned, namespace)
        except ClusterError:
            path = f"{path_of(manifest, namespace)}/{owner['name']}"
            api.delete(path, propagationPolicy="Background")
            raise
    return created


def dry_run(api: Api, namespace: str, *manifests: Object) -> None:
    """Check that the cluster would create objects.

    Raises:
        ClusterError: it rejects one, or is unreachable.
    """
    for item in manifests:
        _create(api, item, namespace, dryRun="All")


def path_of(manifest: Object, namespace: str) -> str:
    """Return the path of an object's kind in a namespace."""
    version = manifest["apiVersion"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{group}/namespaces/{namespace}/{manifest['kind'].lower()}s"


def _create(api: Api, manifest: Object, namespace: str, **query: str) -> Object:
    try:
        return api.create(path_of(manifest, namespace), manifest, **query)
    except ApiError as error:
        raise ClusterError(
            _refusal(error, manifest["kind"], manifest["metadata"]["name"], namespace)
        ) from None


def _refusal(error: ApiError, kind: str, name: str, namespace: str) -> str:
    match error.status, error.reason:
        case _, "AlreadyExists":
            command = command_line("follow", name, "-n", namespace)
            follow = f"follow it with `{command}`, " if kind == "Job" else ""
            return (
                f"{kind} {name} already exists in namespace {namespace}: {follow}delete it with `kubectl "
                f"delete {kind.lower()} {name} -n {namespace}`, or write another name."
            )
        case http.HTTPStatus.FORBIDDEN, _ if " cannot create resource " in error.message:
            return (
                f"You may not create {kind}s in namespace {namespace}: name another with --namespace, or ask "
                f"its team for membership. ({error.message})"
            )
        case http.HTTPStatus.NOT_FOUND, _ if "namespaces " in error.message:
            return f"There is no namespace {namespace} on the cluster: name another with --namespace."
        case http.HTTPStatus.UNAUTHORIZED, _:
            return explained(error)
        case _ if error.unanswered:
            return explained(error)
        case _:
            return f"The cluster refuses {kind} {name}, and nothing was created: {error.message}"


def take_snapshot(api: Api, name: str, namespace: str, kind: Kind = JOB) -> JobSnapshot:
    """Take a snapshot of a workload.

    Raises:
        ApiError: it does not exist, reading it or its pods is forbidden, or the API server does not respond.
    """
    item = api.get(f"{kind.path.format(namespace)}/{name}")
    job, uid = kind.as_job(item), item["metadata"]["uid"]
    core = f"/api/v1/namespaces/{namespace}"
    selector = kind.pod_selector(item)
    # From the API server's cache (resourceVersion 0), since a large sweep has many pods.
    pods: list[Object] = api.get(f"{core}/pods", labelSelector=selector, resourceVersion="0")["items"]
    workload: Object | None = None
    if job["spec"].get("suspend"):
        response = _find(api, _WORKLOADS.format(namespace), labelSelector=f"{JOB_UID}={uid}")
        workload = next(iter((response or {}).get("items", ())), None)
    waiting = next((pod for pod in pods if waits(pod)), None)
    events: list[Object] = []
    if waiting is not None:
        of = f"involvedObject.uid={waiting['metadata']['uid']}"
        events = (_find(api, f"{core}/events", fieldSelector=of) or {}).get("items", [])
    label = "" if kind is JOB else selector.partition(",")[0]
    return JobSnapshot(job=job, pods=pods, workload=workload, events=events, label=label)


def _find(api: Api, path: str, **query: str) -> Object | None:
    """Return an object; None if its kind is not installed, or reading it is forbidden."""
    try:
        return api.find(path, **query)
    except ApiError as error:
        if error.forbidden:
            return None
        raise


def follow(
    api: Api,
    name: str,
    namespace: str,
    on_progress: Callable[[Progress], Any],
    on_timeout: Callable[[str], Any],
    on_pods: Callable[[Sequence[Object]], Any] | None = None,
    *,
    until_running: bool = False,
) -> tuple[JobSnapshot, Progress]:
    """Follow a workload to its end, or until a pod runs.

    An unresponsive API server, such as during an upgrade, is tolerated for a while.

    Args:
        api: the cluster's API.
        name: name of the workload, or the id of a pipeline run.
        namespace: its namespace.
        on_progress: called with the progress at each snapshot.
        on_timeout: called when the API server does not respond.
        on_pods: called with the pods at each snapshot.
        until_running: whether to return once a pod runs.

    Returns:
        The last snapshot and its progress.

    Raises:
        ClusterError: the workload does not exist or was deleted, reading it is forbidden, or the API server
            stays unresponsive.
    """
    kind, name = kind_of(api, name, namespace)
    current: Progress | None = None
    heard = time.monotonic()
    while True:
        begun = time.monotonic()
        try:
            snapshot = take_snapshot(api, name, namespace, kind)
        except ApiError as error:
            if not error.unanswered:
                raise ClusterError(lost(error, kind, name, namespace, known=current is not None)) from None
            if current is None or begun - heard > _TIMEOUT:
                raise ClusterError(explained(error)) from None
            on_timeout(explained(error))
        else:
            heard = time.monotonic()
            current = progress(snapshot, current.disrupted if current else frozenset())
            on_progress(current)
            if on_pods is not None:
                on_pods(snapshot.pods)
            if current.over or (until_running and current.phase is Phase.RUNNING):
                return snapshot, current
        time.sleep(max(_PAUSE, _SHARE * (time.monotonic() - begun)))
