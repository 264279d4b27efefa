"""Jobs submitted to a cluster, and work followed to its end."""

import http
import time
from collections.abc import Callable
from typing import Any, Final

from ebbtide.invocation import command_line
from ebbtide.kubernetes_api import Api, ApiError
from ebbtide.kueue_api import API_PATH
from ebbtide.workloads.cluster import ClusterError, explained
from ebbtide.workloads.following import Look, Progress, progress
from ebbtide.workloads.kinds import JOB, Kind, kind_of, lost
from ebbtide.workloads.objects import Object, waits

JOB_UID: Final = "kueue.x-k8s.io/job-uid"
"""The label by which Kueue's Workload names its Job (kueue, pkg/controller/constants, 0.19)."""
_WORKLOADS: Final = f"{API_PATH}/namespaces/{{}}/workloads"
_PAUSE: Final = 2.0
_SHARE: Final = 10
"""A look at a large sweep takes a while: no more than a tenth of the time goes into looking."""
_PATIENCE: Final = 600.0
"""Seconds that an API server may not answer; a control plane's upgrade takes some minutes."""


def submit(api: Api, manifest: Object, *dependents: Object) -> Object:
    """Create a Job and its dependents, after a dry run of all of them.

    The server validates strictly and runs its webhooks on a dry run first, so that nothing is there when
    something is refused. Dependents are owned by the Job, and deleted with it.

    Args:
        api: the cluster's.
        manifest: the Job; without a namespace, it goes where the kubeconfig's context says.
        *dependents: Services, in the same namespace.

    Returns:
        The Job as the cluster has it.

    Raises:
        ClusterError: it refuses one of them, or cannot be asked.
    """
    namespace = manifest["metadata"].get("namespace") or api.namespace
    for item in (manifest, *dependents):
        _create(api, item, namespace, dryRun="All")
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
            path = f"{_path(manifest, namespace)}/{owner['name']}"
            api.delete(path, propagationPolicy="Background")
            raise
    return created


def _path(manifest: Object, namespace: str) -> str:
    version = manifest["apiVersion"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{group}/namespaces/{namespace}/{manifest['kind'].lower()}s"


def _create(api: Api, manifest: Object, namespace: str, **query: str) -> Object:
    try:
        return api.create(_path(manifest, namespace), manifest, **query)
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
                f"{kind} {name} is already in namespace {namespace}: {follow}delete it with `kubectl delete "
                f"{kind.lower()} {name} -n {namespace}`, or take another name."
            )
        case http.HTTPStatus.FORBIDDEN, _ if " cannot create resource " in error.message:
            return (
                f"You may not create {kind}s in namespace {namespace}: name another with --namespace, or "
                f"have yourself made a member of its team. ({error.message})"
            )
        case http.HTTPStatus.NOT_FOUND, _ if "namespaces " in error.message:
            return f"There is no namespace {namespace} on the cluster: name another with --namespace."
        case http.HTTPStatus.UNAUTHORIZED, _:
            return explained(error)
        case _ if error.unanswered:
            return explained(error)
        case _:
            return f"The cluster refuses {kind} {name}, and nothing was created: {error.message}"


def look(api: Api, name: str, namespace: str, kind: Kind = JOB) -> Look:
    """Take a snapshot of work.

    Raises:
        ApiError: it does not exist, it or its pods are forbidden, or there is no answer.
    """
    item = api.get(f"{kind.path.format(namespace)}/{name}")
    job, uid = kind.as_job(item), item["metadata"]["uid"]
    core = f"/api/v1/namespaces/{namespace}"
    selector = kind.pod_label(item)
    # From the API server's memory (resourceVersion 0): a large sweep's pods need not be read from disk.
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
    label = "" if kind is JOB else selector
    return Look(job=job, pods=pods, workload=workload, events=events, label=label)


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
    say: Callable[[Progress], Any],
    silent: Callable[[str], Any],
) -> tuple[Look, Progress]:
    """Follow a Job, a TrainJob or a pipeline run to its end.

    An API server that does not answer for a while, as during an upgrade, ends nothing.

    Args:
        api: the cluster's.
        name: its name, or the id of a pipeline run.
        namespace: its namespace.
        say: is told how far it is, at each look.
        silent: is told when the API server does not answer.

    Returns:
        The last look at it, and how far it was.

    Raises:
        ClusterError: there is no such work, or no more; one may not see it; the API server stays silent.
    """
    kind, name = kind_of(api, name, namespace)
    current: Progress | None = None
    heard = time.monotonic()
    while True:
        begun = time.monotonic()
        try:
            snapshot = look(api, name, namespace, kind)
        except ApiError as error:
            if not error.unanswered:
                raise ClusterError(lost(error, kind, name, namespace, known=current is not None)) from None
            if current is None or begun - heard > _PATIENCE:
                raise ClusterError(explained(error)) from None
            silent(explained(error))
        else:
            heard = time.monotonic()
            current = progress(snapshot, current.disrupted if current else frozenset())
            say(current)
            if current.over:
                return snapshot, current
        time.sleep(max(_PAUSE, _SHARE * (time.monotonic() - begun)))
