"""Submission of Jobs, and following workloads to their end."""

import http
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from ebbtide.clients.kubernetes import METADATA, Api, ApiError
from ebbtide.clients.kubernetes.objects import Object, items_of, text, waits
from ebbtide.placement.profile import CREATED_FOR, OWNER_LABEL
from ebbtide.text import and_list
from ebbtide.values import clock
from ebbtide.values.given_command import given_command
from ebbtide.work.errors import ClusterError, answered, explained
from ebbtide.work.evidence import JOB_UID, WORKLOAD, Evidence, owner_of
from ebbtide.work.kinds import JOB, Kind, kind_of, lost
from ebbtide.work.progress import Phase, Progress, progress

REQUEST: Final = "ebbtide.dev/request"
"""Annotation with the id of the request that created a Job and its dependents: an object of its name without
it is another's."""
_CREATION: Final = timedelta(minutes=15)
"""Maximum time between a dependent and its Job, with repeated requests."""
_PATIENCE: Final = 120.0
"""Time limit in seconds for the deletion of a Job with its pods, and for the creation of its successor."""
_SHORT_PAUSE: Final = 0.3
_PAUSE: Final = 2.0
_SHARE: Final = 10
"""Snapshots of a large sweep take a while: they may take at most a tenth of the time."""
_LONGEST_PAUSE: Final = 15.0
"""Maximum time in seconds between snapshots: a single slow answer must not hide what happens meanwhile."""
_TIMEOUT: Final = 600.0
"""Time limit in seconds for an unresponsive API server; an upgrade of the control plane takes some
minutes."""


def submit(api: Api, manifest: Object, *dependents: Object, earlier: Object | None = None) -> Object:
    """Create a Job and its dependents, after a dry run of all of them.

    The dry run includes strict validation and webhooks, so that nothing is created if an object is rejected.
    The Job comes last, since a pod without its dependents would wait on its node; then the Job becomes their
    owner, and they are deleted with it. Dependents that an interrupted creation left without an owner are
    removed by a later one.

    Args:
        manifest: the Job. Default namespace: that of the kubeconfig's context.
        *dependents: ConfigMaps and Services, in the same namespace.
        earlier: the Job with its name, which it replaces. Services may have the names of the earlier ones,
            ConfigMaps not.

    Returns:
        The created Job.

    Raises:
        ClusterError: the cluster rejects an object, or is unreachable; the message has what remains.
        KeyboardInterrupt: it was interrupted; the message is only what remains.
        SystemExit: a handler of a signal raised it; what was created is deleted.
    """
    namespace = manifest["metadata"].get("namespace") or api.namespace
    if earlier is None:
        dry_run(api, namespace, manifest, *dependents)
    name, request = manifest["metadata"]["name"], secrets.token_hex(8)
    maps = [_marked(item, request, manifest) for item in dependents if item["kind"] == "ConfigMap"]
    others = [_marked(item, request, manifest) for item in dependents if item["kind"] != "ConfigMap"]
    job = _marked(manifest, request)
    attempted: list[Object] = []

    def create(item: Object, patience: float = 0) -> Object:
        attempted.append(item)
        return _create(api, item, namespace, patience)

    replaced = False
    try:
        made = [create(item) for item in maps]
        if earlier is not None:
            replaced = True
            delete(api, earlier, namespace, others)
        # The earlier Job does not exist any more: its successor is worth more patience.
        patience = _PATIENCE if replaced else 0
        made += [create(item, patience) for item in others]
        if made:
            remove_unowned(api, namespace, before=made[0])
        created = create(job, patience)
        for item in made:
            _own(api, item, created, namespace)
    except SystemExit:
        _remains(api, attempted, namespace)
        raise
    except (ClusterError, KeyboardInterrupt) as error:
        notes = _remains(api, attempted, namespace)
        if replaced:
            notes.insert(0, f"The earlier Job {name} is deleted, or is being deleted.")
        if isinstance(error, KeyboardInterrupt):
            notes = notes or ["Nothing remains of it."]
        raise type(error)(" ".join(filter(None, (str(error), *notes)))) from None
    return created


def delete(api: Api, job_object: Object, namespace: str, also: Sequence[Object] = ()) -> None:
    """Delete a Job with its pods, and wait until neither it exists nor dependents of some names.

    Args:
        job_object: the Job. Another one that has its name by now stays.
        also: objects with the names of the dependents.

    Raises:
        ClusterError: it is not deleted within a time limit, or the cluster is unreachable.
    """
    uid = job_object["metadata"]["uid"]
    paths = [_path_of_object(item, namespace) for item in (job_object, *also)]
    deadline = time.monotonic() + _PATIENCE
    with answered():
        api.delete(paths[0], uid=uid, propagationPolicy="Foreground")
        for path in paths:
            while (item := api.find(path)) is not None and _belongs(item, uid):
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"The deletion of Job {job_object['metadata']['name']} in namespace {namespace} is "
                        f"not done after {_PATIENCE:.0f} s: its pods are still terminating. Try again later."
                    )
                time.sleep(_SHORT_PAUSE)


def _belongs(item: Object, uid: str) -> bool:
    """Return whether an object is the Job, or owned by it."""
    owners = item["metadata"].get("ownerReferences") or ()
    return uid in (item["metadata"]["uid"], *(owner["uid"] for owner in owners))


def remove_unowned(api: Api, namespace: str, *, before: Object | None = None, name: str = "") -> list[str]:
    """Give dependents that an interrupted creation left to their Job, and delete those without one.

    Args:
        before: only dependents so much older than this object that no creation still works on them. Errors
            are ignored then.
        name: only dependents of Jobs of this name.

    Returns:
        What was deleted, such as `ConfigMap train-code-x7k2p`.

    Raises:
        ClusterError: the cluster is unreachable, or refuses it.
    """
    try:
        return list(_removed_unowned(api, namespace, before, name))
    except ApiError as error:
        if before is not None:
            return []
        raise ClusterError(explained(error)) from None


def _removed_unowned(api: Api, namespace: str, before: Object | None, name: str) -> Iterator[str]:
    for kind in ("ConfigMap", "Service"):
        path = f"/api/v1/namespaces/{namespace}/{kind.lower()}s"
        selector = f"{CREATED_FOR}={name}" if name else CREATED_FOR
        # Without the data, which may be a megabyte each.
        for item in items_of(api.get(path, accept=METADATA, labelSelector=selector)):
            metadata = item["metadata"]
            if before is not None and _time(before) - _time(item) < _CREATION:
                continue
            job = api.find(f"{JOB.path.format(namespace)}/{metadata['labels'][CREATED_FOR]}")
            if job is not None and _request_of(job) == _request_of(item):
                try:
                    api.patch(f"{path}/{metadata['name']}", _owned(item, job))
                except ApiError as error:
                    # Another user's, which a policy keeps others off: a later creation of its user does it.
                    if not error.forbidden:
                        raise
                continue
            api.delete(f"{path}/{metadata['name']}", uid=metadata["uid"])
            yield f"{kind} {metadata['name']}"


def _time(item: Object) -> datetime:
    return datetime.fromisoformat(item["metadata"]["creationTimestamp"])


def dry_run(api: Api, namespace: str, *manifests: Object) -> None:
    """Check that the cluster would create objects.

    Raises:
        ClusterError: it rejects one, or is unreachable.
    """
    for item in manifests:
        try:
            api.create(path_of(item, namespace), item, dryRun="All")
        except ApiError as error:
            raise ClusterError(_refusal(error, item, namespace)) from None


def path_of(manifest: Object, namespace: str) -> str:
    """Return the path of an object's kind in a namespace."""
    version = manifest["apiVersion"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{group}/namespaces/{namespace}/{manifest['kind'].lower()}s"


def _path_of_object(manifest: Object, namespace: str) -> str:
    return f"{path_of(manifest, namespace)}/{manifest['metadata']['name']}"


def _marked(manifest: Object, request: str, job: Object | None = None) -> Object:
    """Return an object with the id of its request, and a dependent with the name and the user of its Job."""
    metadata: Object = manifest["metadata"]
    marked: Object = {**metadata, "annotations": {**(metadata.get("annotations") or {}), REQUEST: request}}
    if job is not None:
        user = text(job, "metadata", "labels", OWNER_LABEL)
        labels = {CREATED_FOR: job["metadata"]["name"], **({OWNER_LABEL: user} if user else {})}
        marked["labels"] = {**(metadata.get("labels") or {}), **labels}
    return {**manifest, "metadata": marked}


def _request_of(item: Object) -> str:
    return text(item, "metadata", "annotations", REQUEST)


def _create(api: Api, manifest: Object, namespace: str, patience: float) -> Object:
    """Create an object, or return it if an earlier try whose answer was lost has created it.

    Args:
        manifest: the object, with the id of its request.
        patience: seconds during which an API server that does not answer is asked again.
    """
    end = time.monotonic() + patience
    while True:
        try:
            return api.create(path_of(manifest, namespace), manifest)
        except ApiError as error:
            if error.already_exists or error.unanswered:
                with suppress(ApiError):
                    existing = api.find(_path_of_object(manifest, namespace))
                    if existing is not None and _request_of(existing) == _request_of(manifest):
                        return existing
            if not error.unanswered or time.monotonic() > end:
                raise ClusterError(_refusal(error, manifest, namespace)) from None
        time.sleep(_PAUSE)


def _own(api: Api, item: Object, job: Object, namespace: str) -> None:
    """Make a Job the owner of a dependent, which then is deleted with it.

    An API server that does not answer now is not an error: a later creation does it.

    Raises:
        ClusterError: the dependent does not exist any more.
    """
    try:
        api.patch(_path_of_object(item, namespace), _owned(item, job))
    except ApiError as error:
        if error.not_found or error.conflict:
            raise ClusterError(
                f"{item['kind']} {item['metadata']['name']} in namespace {namespace} was deleted during the "
                "creation of its Job: run the command again."
            ) from None


def _owned(item: Object, job: Object) -> Object:
    """Return the patch that makes a Job the owner of this very dependent."""
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
    }
    uid = item["metadata"]["uid"]
    return {"metadata": {"uid": uid, "labels": {CREATED_FOR: None}, "ownerReferences": [owner]}}


def _remains(api: Api, attempted: Sequence[Object], namespace: str) -> list[str]:
    """Delete what a failed creation has made, the Job first; return a sentence about what may remain."""
    left = list(reversed(attempted))
    with suppress(ApiError):
        while left:
            path = _path_of_object(left[0], namespace)
            existing = api.find(path)
            if existing is not None and _request_of(existing) == _request_of(left[0]):
                api.delete(path, uid=existing["metadata"]["uid"], propagationPolicy="Background")
            left.pop(0)
    if not left:
        return []
    names = and_list(f"{item['kind']} {item['metadata']['name']}" for item in left)
    job = text(left[0], "metadata", "labels", CREATED_FOR) or left[0]["metadata"]["name"]
    command = given_command().on_job("cancel", job, namespace)
    return [f"{names} may exist in namespace {namespace}: delete what exists with `{command}`."]


def _refusal(error: ApiError, manifest: Object, namespace: str) -> str:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    match error.status, error.reason:
        case _, "AlreadyExists":
            command = given_command().on_job("follow", name, namespace)
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


def take_snapshot(api: Api, name: str, namespace: str, kind: Kind = JOB) -> Evidence:
    """Take a snapshot of a workload: its pods, and of what it waits for what is read fast.

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
        response = _find(api, WORKLOAD.path.format(namespace), labelSelector=f"{JOB_UID}={uid}")
        workload = next(iter(items_of(response)), None)
    waiting = next((pod for pod in pods if waits(pod)), None)
    events: list[Object] = []
    if waiting is not None:
        of = f"involvedObject.uid={waiting['metadata']['uid']}"
        events = items_of(_find(api, f"{core}/events", fieldSelector=of))
    label = "" if kind is JOB else selector.partition(",")[0]
    return Evidence(
        kind=kind.name,
        namespace=namespace,
        name=name,
        now=clock.now(),
        job=job,
        pods=pods,
        workload=workload,
        events=events,
        label=label,
    )


def _find(api: Api, path: str, **query: str) -> Object | None:
    """Return an object; None if its kind is not installed, or reading it is forbidden."""
    try:
        return api.find(path, **query)
    except ApiError as error:
        if error.forbidden:
            return None
        raise


def check_same(snapshot: Evidence, uid: str) -> None:
    """Check the UID of a workload; any is right if it is empty.

    Raises:
        ClusterError: another one has the name by now.
    """
    if uid and snapshot.job["metadata"]["uid"] != uid:
        again = given_command().on_job("follow", snapshot.name, snapshot.namespace)
        raise ClusterError(
            f"{snapshot.kind} {snapshot.name} was replaced by {owner_of(snapshot.job)}, and the earlier one "
            f"is deleted. Follow the new one with: {again}"
        )


def follow(
    api: Api,
    name: str,
    namespace: str,
    on_progress: Callable[[Progress], Any],
    on_timeout: Callable[[str], Any],
    on_pods: Callable[[Sequence[Object]], Any] | None = None,
    *,
    until_running: bool = False,
    uid: str = "",
) -> tuple[Evidence, Progress]:
    """Follow a workload to its end, or until a pod runs.

    An unresponsive API server, such as during an upgrade, is tolerated for a while.

    Args:
        name: name of the workload, or the id of a pipeline run.
        on_progress: called with the progress at each snapshot.
        on_timeout: called when the API server does not respond.
        on_pods: called with the pods at each snapshot.
        until_running: whether to return once a pod runs.
        uid: UID of the workload; by default that of the first snapshot.

    Returns:
        The last snapshot and its progress.

    Raises:
        ClusterError: the workload does not exist, was deleted or replaced, reading it is forbidden, or the
            API server stays unresponsive.
    """
    kind, name = kind_of(api, name, namespace)
    current: Progress | None = None
    heard = time.monotonic()
    while True:
        begun = time.monotonic()
        pause = _PAUSE
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
            check_same(snapshot, uid)
            uid = snapshot.job["metadata"]["uid"]
            pause = min(max(_PAUSE, _SHARE * (heard - begun)), _LONGEST_PAUSE)
            current = progress(snapshot, current.disrupted if current else frozenset())
            if on_pods is not None:
                on_pods(snapshot.pods)
            on_progress(current)
            if current.over or (until_running and current.phase is Phase.RUNNING):
                return snapshot, current
        time.sleep(pause)
