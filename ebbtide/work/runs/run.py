"""A run of a folder of code: its objects with their labels and annotations, and their creation."""

import getpass
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, cast

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import Object, text
from ebbtide.placement import PoolProfile, Profile, ProfileError
from ebbtide.placement.profile import OWNER_LABEL
from ebbtide.text import did_you_mean
from ebbtide.values import quantities
from ebbtide.values.given_command import given_command
from ebbtide.values.user_files import parse_json
from ebbtide.work.arguments import LABEL_LENGTH
from ebbtide.work.errors import ClusterError, Problems, WorkloadError
from ebbtide.work.evidence import USER
from ebbtide.work.jobs import job
from ebbtide.work.kinds import find_job
from ebbtide.work.placement import queue_of, sidecars_of
from ebbtide.work.runs.code import (
    ARCHIVE,
    DIRECTORY,
    Storage,
    in_config_map,
    in_shell,
    storage_of,
    with_directory,
)
from ebbtide.work.runs.folder import Folder, application, name_of
from ebbtide.work.secrets import check_text
from ebbtide.work.submission import dry_run
from ebbtide.work.tasks import CodeIn, Sidecar, Task

NAME: Final = "app.kubernetes.io/name"
INSTANCE: Final = "app.kubernetes.io/instance"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
"""Recommended labels (Kubernetes docs, recommended labels, 2026)."""
COMMAND: Final = "ebbtide.dev/command"
PARAMETERS: Final = "ebbtide.dev/parameters"
"""Annotations: the command as a shell would read it, and the options, as JSON."""

_REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_SCRIPTS: Final = (".py", ".sh")


def user_of(api: Api) -> str:
    """Return the user's name in the cluster; the local user's if the API server does not tell it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        return str(api.create(_REVIEWS, review)["status"]["userInfo"]["username"])
    except ApiError as error:
        if error.unanswered:
            raise
        return getpass.getuser()


def described(
    manifest: Object, application_name: str, user: str, command: Sequence[str], parameters: Mapping[str, Any]
) -> Object:
    """Return a Job with the labels and annotations of a run; its pods get the labels."""
    metadata: Object = manifest["metadata"]
    labels = {
        NAME: application_name,
        INSTANCE: metadata["name"],
        MANAGED_BY: "ebbtide",
        OWNER_LABEL: label_value(user),
    }
    annotations = {
        USER: user,
        COMMAND: shlex.join(command),
        PARAMETERS: json.dumps(parameters, ensure_ascii=False, sort_keys=True),
    }
    template: Object = manifest["spec"]["template"]
    pod: Object = template.get("metadata", {})
    return {
        **manifest,
        "metadata": {
            **metadata,
            "labels": {**metadata.get("labels", {}), **labels},
            "annotations": {**metadata.get("annotations", {}), **annotations},
        },
        "spec": {
            **manifest["spec"],
            "template": {**template, "metadata": {**pod, "labels": {**pod.get("labels", {}), **labels}}},
        },
    }


def parameters_of(job: Object) -> Mapping[str, Any]:
    """Return the recorded options of a Job; empty if they are no JSON, as after a change by another user."""
    try:
        recorded = parse_json(text(job, "metadata", "annotations", PARAMETERS))
    except ValueError:
        return {}
    return cast("dict[str, Any]", recorded) if isinstance(recorded, dict) else {}


def label_value(value: str) -> str:
    """Return a text as a label's value: up to 63 letters, digits, `-`, `_` and `.`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", value)[:LABEL_LENGTH].strip("-._") or "unknown"


@dataclass(frozen=True, slots=True)
class Plan:
    """A run that can be created.

    Attributes:
        job: its Job, whose image does not have the code yet.
        dependents: its ConfigMap and Services.
        storage: storage of its code.
    """

    job: Object
    dependents: Sequence[Object]
    storage: Storage


def plan(
    profile: Profile,
    folder: Folder,
    user: str,
    parameters: Mapping[str, Any],
    *,
    build: Callable[..., Sequence[Object]] | None = None,
    setup: str = "",
    code_in: CodeIn | None = None,
    **fields: Any,
) -> Plan:
    """Return a run that can be created.

    Args:
        parameters: the options, for the Job's annotation.
        build: function that returns the Job for a profile and a task's fields, and its Services; default: an
            ordinary Job.
        setup: commands of the shell before the command.
        code_in: storage of the code; see `storage_of`.
        **fields: fields of the Job; see `Task`. Default for CPU and memory: the part of a node that
            belongs to the requested accelerators.

    Raises:
        WorkloadError: the Job cannot run as described; the message lists all problems.
    """
    task = {**fields, "name": fields.get("name") or name_of(folder.root.name)}
    command = task.get("command", ())
    problems = Problems()
    with problems.collecting():
        _check_command(folder, command)
    check_text("setup (--setup)", setup, problems)
    task = with_share(profile, task)
    for name, path in Task(**task).mount_paths:
        problems.check(
            path != DIRECTORY,
            f"{name} has {path}, where the code of the folder is: use another path.",
        )
    build = build or _plain
    made: Sequence[Object] = ()
    with problems.collecting():
        made = build(profile, **task)
    problems.end()
    namespace = made[0]["metadata"].get("namespace", "")
    storage = storage_of(profile, namespace, folder, code_in)
    if storage.kind is CodeIn.BUCKET:
        made = build(profile, **{**task, "mounts": {**task.get("mounts", {}), storage.address: ARCHIVE}})
    manifest, *dependents = made
    manifest = described(manifest, application(folder.root.name), user, command, parameters)
    if storage.kind is CodeIn.BUCKET:
        manifest = with_directory(manifest)
    elif storage.kind is CodeIn.CONFIG_MAP:
        manifest, config_map = in_config_map(manifest, folder)
        dependents = [config_map, *dependents]
    return Plan(in_shell(manifest, setup, unpacks=storage.kind is not CodeIn.IMAGE), dependents, storage)


def _plain(profile: Profile, **task: Any) -> tuple[Object]:
    return (job(profile, **task),)


def with_share(profile: Profile, task: dict[str, Any]) -> dict[str, Any]:
    """Return a task's fields with CPU and memory: by default the part of a node that belongs to its
    accelerators, and without accelerators one CPU with its part of the memory. In a queue, the smallest of
    its pools' parts."""
    fields = Task(**task)
    if fields.cpu and fields.memory:
        return task
    try:
        names = queue_of(profile, fields)[0].pools if fields.queue else (fields.pool,)
        pools = [profile.pool(name) for name in names]
    except (ProfileError, WorkloadError):
        return task  # reported with the other problems of the task
    parts = [
        part for pool in pools if (part := _part(pool, fields.gpu_count, sidecars_of(profile.cloud, fields)))
    ]
    if not parts:
        return task
    cpu, memory = (min(amounts) for amounts in zip(*parts, strict=True))
    return {
        **task,
        "cpu": fields.cpu or quantities.cpu(cpu),
        "memory": fields.memory or quantities.memory(memory),
    }


def _part(pool: PoolProfile, gpus: int, sidecars: Sequence[Sidecar]) -> tuple[int, int] | None:
    """Return millicores and MiB of a node for a pod; None if the machine is unknown, or the pod does not
    fit."""
    count = pool.accelerator.count if pool.accelerator else 0
    if not pool.cpu_m or not pool.memory_mib or gpus > count:
        return None
    of, whole = (gpus, count) if gpus else (min(1000, pool.cpu_m), pool.cpu_m)
    cpu = pool.cpu_m * of // whole - sum(item.cpu_m for item in sidecars)
    memory = pool.memory_mib * of // whole - sum(item.memory_mib for item in sidecars)
    return (cpu, memory) if cpu > 0 and memory > 0 else None


def _check_command(folder: Folder, command: Sequence[str]) -> None:
    """Check that there is a command, and that its script is in the folder."""
    if not command:
        raise WorkloadError("There is no command: write it last, as in `-- python train.py`.")
    files = [file.path for file in folder.files]
    for word in command:
        path = PurePosixPath(word)
        if word.startswith("-") or path.is_absolute() or path.suffix not in _SCRIPTS or ".." in path.parts:
            continue
        if str(path) in files:
            return
        if (folder.root / path).exists():
            raise WorkloadError(
                f"{word} is in {folder.root}, but .dockerignore or .gitignore excludes it, and the Job would "
                "not have it: change the pattern."
            )
        raise WorkloadError(
            f"{word} is not in the code of {folder.root}{did_you_mean(word, files)} Write the path in "
            "that folder, or name another folder (--code DIR)."
        )


def check(api: Api, made: Plan, namespace: str, *, replace: bool) -> Object | None:
    """Check that the cluster would create a run; return the Job that has its name, which has to be deleted.

    Raises:
        ClusterError: there is such a Job and it is not to be replaced, the cluster would reject the new one,
            or the cluster is unreachable.
    """
    name = made.job["metadata"]["name"]
    existing = find_job(api, name, namespace)
    if existing is not None and not replace:
        raise ClusterError(
            f"Job {name} already exists in namespace {namespace}: replace it with --replace, follow it "
            f"with `{given_command().on_job('follow', name, namespace)}`, or write another name."
        )
    if existing is None:
        dry_run(api, namespace, made.job, *made.dependents)
    else:
        _check_replacement(api, (made.job, *made.dependents), namespace)
    check_pods(api, made.job, namespace)
    return existing


def check_pods(api: Api, job_object: Object, namespace: str) -> None:
    """Check that the namespace's Pod Security Standard admits the pods of a Job.

    It is not enforced for the Job itself. For a user who may not create pods, nothing is checked.

    Raises:
        ClusterError: it does not.
    """
    template = job_object["spec"]["template"]
    metadata = {**template.get("metadata", {}), "name": job_object["metadata"]["name"]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    try:
        api.create(f"/api/v1/namespaces/{namespace}/pods", body, dryRun="All")
    except ApiError as error:
        if "violates PodSecurity" in error.message:
            raise ClusterError(
                f"Namespace {namespace} would refuse the run's pods, and nothing was created: run them as a "
                f"user that is not root, with --run-as-user 1000. ({error.message})"
            ) from None


def _check_replacement(api: Api, manifests: Sequence[Object], namespace: str) -> None:
    """Check, under another name, that the cluster would create a run whose name is taken."""
    name = name_of(manifests[0]["metadata"]["name"])
    probes = ({**item, "metadata": {**item["metadata"], "name": name}} for item in manifests)
    try:
        dry_run(api, namespace, *probes)
    except ClusterError as error:
        if "exceeded quota" not in str(error):  # which the earlier Job uses
            raise
