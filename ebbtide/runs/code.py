"""The code in a run's pods: in the image, or in a ConfigMap that a shell unpacks before the command."""

import base64
import gzip
from collections.abc import Sequence
from typing import Final

from ebbtide.placement import Profile
from ebbtide.runs.code_in import CodeIn
from ebbtide.runs.folder import Folder, size_text
from ebbtide.runs.metadata import application
from ebbtide.workloads.errors import WorkloadError
from ebbtide.workloads.objects import Object

DIRECTORY: Final = "/code"
"""Directory of the code in the container, and the command's working directory."""
_LARGEST: Final = 700_000
"""Maximum size in bytes of an archive in a ConfigMap: an object has 1 MiB, and Base64 adds a third
(Kubernetes docs, ConfigMaps, 2026)."""
_MOUNT: Final = "/ebbtide"
_KEY: Final = "code.tar.gz"
_ARCHIVE, _CODE = "ebbtide-archive", "ebbtide-code"
# An image without tar may still have Python.
_UNPACK: Final = (
    "if command -v tar >/dev/null; then tar -xzf {0} -C {1}; else python3 -m tarfile -e {0} {1}; fi\n"
).format(f"{_MOUNT}/{_KEY}", DIRECTORY)


def image_repository(profile: Profile, namespace: str, folder: Folder, code_in: CodeIn | None) -> str:
    """Return the repository of a run's image; empty if its code is in a ConfigMap.

    Args:
        profile: the cluster.
        namespace: the Job's namespace.
        folder: the code.
        code_in: storage of the code; by default an image if the namespace's team has a registry.

    Raises:
        WorkloadError: the code goes into an image, and there is no registry.
    """
    team = profile.team_of(namespace)
    if code_in is CodeIn.CONFIG_MAP:
        return ""
    if team and team.registry:
        return f"{team.registry}/{application(folder.root.name)}"
    if code_in is CodeIn.IMAGE:
        raise WorkloadError(
            f"Namespace {namespace} has no registry for an image of the code: declare `registry` for its "
            "team, or use --code-in config-map."
        )
    return ""


def with_image(job: Object, image: str) -> Object:
    """Return a Job whose container has an image."""
    return _with_pod(job, containers=[{**_container(job), "image": image}])


def in_config_map(job: Object, folder: Folder) -> tuple[Object, Object]:
    """Return a Job whose pods unpack the folder to `/code`, and the ConfigMap with it.

    The ConfigMap should have the Job as its owner.

    Raises:
        WorkloadError: the code is too large for a ConfigMap.
    """
    archive = gzip.compress(folder.archive(), mtime=0)
    if len(archive) > _LARGEST:
        raise WorkloadError(
            f"The code in {folder.root} has {size_text(len(archive))} compressed, and a ConfigMap can hold "
            f"{size_text(_LARGEST)}. The largest files: {folder.largest()}. List files that the command does "
            "not read in .dockerignore."
        )
    metadata: Object = {"name": f"{job['metadata']['name']}-code"}
    if "namespace" in job["metadata"]:
        metadata["namespace"] = job["metadata"]["namespace"]
    labels = job["metadata"].get("labels")
    config_map: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, **({"labels": labels} if labels else {})},
        "immutable": True,
        "binaryData": {_KEY: base64.b64encode(archive).decode()},
    }
    volumes: list[Object] = [
        {"name": _ARCHIVE, "configMap": {"name": metadata["name"]}},
        {"name": _CODE, "emptyDir": {}},
    ]
    mounts = [
        {"name": _ARCHIVE, "mountPath": _MOUNT, "readOnly": True},
        {"name": _CODE, "mountPath": DIRECTORY},
    ]
    return _with_volumes(job, volumes, mounts), config_map


def in_shell(job: Object, setup: str, *, unpacks: bool) -> Object:
    """Return a Job whose container runs a shell in the code's directory, and the command in its place.

    Args:
        job: the Job, with a command.
        setup: commands of the shell before the command; the pod fails if one fails.
        unpacks: whether the shell unpacks the archive first.
    """
    # Kubernetes reads $(NAME) as a reference to a variable, and $$ as $.
    prepared = setup.replace("$", "$$") + "\n" if setup else ""
    script = (_UNPACK if unpacks else "") + prepared + 'exec "$@"'
    container = _container(job)
    words = [*container["command"], *container.get("args", ())]
    if unpacks or setup:
        container = {**container, "command": ["sh", "-ec", script, "sh"], "args": words}
    return _with_pod(job, containers=[{**container, "workingDir": DIRECTORY}])


def _with_volumes(job: Object, volumes: Sequence[Object], mounts: Sequence[Object]) -> Object:
    pod, container = job["spec"]["template"]["spec"], _container(job)
    mounted = {**container, "volumeMounts": [*container.get("volumeMounts", ()), *mounts]}
    return _with_pod(job, containers=[mounted], volumes=[*pod.get("volumes", ()), *volumes])


def _container(job: Object) -> Object:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return container


def _with_pod(job: Object, **fields: object) -> Object:
    template: Object = job["spec"]["template"]
    pod = {**template["spec"], **fields}
    return {**job, "spec": {**job["spec"], "template": {**template, "spec": pod}}}
