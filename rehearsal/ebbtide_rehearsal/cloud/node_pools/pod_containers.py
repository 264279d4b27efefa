"""A pod's container as a process of this machine: command, environment and files.

There is no separate file system, and of an image only the code of `ebbtide run` in a registry of this
machine. The code and the pod's volumes are below a directory, with the same paths as in the container; such
paths in the container's command, arguments or environment are replaced by those on this machine, and declared
ports by free ones of this machine. Paths in the program itself are not: the program can read
`EBBTIDE_REHEARSAL_ROOT`, which is that directory. `python` is the Python that runs the rehearsal, with this
package installed.

Argo's controller wraps the main container's command in `argoexec emissary`, and adds a container `wait` that
writes a WorkflowTaskResult: first an incomplete one, then the output parameters of the template. In the
rehearsal the kubelet does both. Sources: argo-workflows 4.0.5, workflow/controller/workflowpod.go,
workflow/executor and cmd/argoexec/commands/emissary.go.
"""

import base64
import gzip
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import ebbtide
from ebbtide.autoscaler.scheduling import Object
from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import part, parts, text, words
from ebbtide.placement.derive import BUCKET_DRIVERS
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.work.registry import Reference, RegistryError
from ebbtide.work.runs.archives import ArchiveError, extract
from ebbtide_rehearsal.control_plane.plan import PortReservation
from ebbtide_rehearsal.control_plane.pod_status import End
from ebbtide_rehearsal.control_plane.volumes import (
    SERVICE_ACCOUNTS,
    NotMountedError,
    account_token,
    inside,
    mount,
)
from ebbtide_rehearsal.pipelines.launcher import RUNS

MAIN: Final = "main"
SIGNALLED: Final = 137
"""Exit status of the emissary if a signal ends its child process."""

BUCKETS: Final = "volumes/buckets"
"""Directory of the buckets that pods mount, below that of their processes."""
_NODE_ID: Final = "workflows.argoproj.io/node-id"
_WORKFLOW: Final = "workflows.argoproj.io/workflow"
_COMPLETED: Final = "workflows.argoproj.io/report-outputs-completed"
_EMISSARY: Final = "emissary"
_TEMPLATE: Final = "ARGO_TEMPLATE"
_PROGRAMS: Final = {
    "driver": "ebbtide_rehearsal.pipelines.driver",
    "/kfp-launcher/launch": "ebbtide_rehearsal.pipelines.launcher",
}
"""Programs of Kubeflow Pipelines' images, with the modules that replace them."""
_WHITEOUT = ".wh."
_GZIP: Final = b"\x1f\x8b"
ROOT: Final = "EBBTIDE_REHEARSAL_ROOT"
"""Environment variable with the directory that serves as the root of the container's file system."""
_WRITTEN: Final = ("configMap", "secret", "emptyDir")
_FIELD: Final = re.compile(r"(?P<map>labels|annotations)\['(?P<key>[^']+)'\]")
_REFERENCE: Final = re.compile(r"\$\$|\$\((?P<name>[-._a-zA-Z][-._a-zA-Z0-9]*)\)")


def is_step(pod: Object) -> bool:
    """Return whether a pod is a node of a Workflow."""
    return _NODE_ID in part(pod, "metadata", "annotations")


def main_container(pod: Object) -> Object:
    """Return the container of a pod that runs: the main one for a Workflow's pod, else the first."""
    containers = parts(pod, "spec", "containers")
    return next(
        (container for container in containers if is_step(pod) and container["name"] == MAIN), containers[0]
    )


def command_of(pod: Object, command: Sequence[str]) -> list[str]:
    """Return the command that the emissary runs, with Kubeflow Pipelines' own programs replaced."""
    words = list(command)
    if is_step(pod) and _EMISSARY in words[:2]:
        words = words[words.index("--") + 1 :]
        if words and words[0] in _PROGRAMS:
            words[:1] = [sys.executable, "-m", _PROGRAMS[words[0]]]
    return words


def output_directories(pod: Object) -> list[str]:
    """Return the directories in the container for the output parameters of a step."""
    return sorted({str(PurePosixPath(path).parent) for _, path, _ in _outputs(pod)})


def ends(pod: Object, code: int) -> dict[str, End]:
    """Return how the containers of a Workflow's pod end once the main one has ended; empty for other pods."""
    if not is_step(pod):
        return {}
    main = End(SIGNALLED if code < 0 else code)
    return {
        container["name"]: main if container["name"] == MAIN else End(0)
        for container in parts(pod, "spec", "containers")
    }


def announce(api: Api, pod: Object) -> None:
    """Create a step's WorkflowTaskResult, as incomplete."""
    metadata = part(pod, "metadata")
    labels = {_WORKFLOW: text(metadata, "labels", _WORKFLOW), _COMPLETED: "false"}
    result: dict[str, Any] = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTaskResult",
        "metadata": {"name": text(metadata, "annotations", _NODE_ID), "labels": labels},
    }
    api.apply(_result(pod), result)


def report(api: Api, pod: Object, root: Path) -> None:
    """Write the output parameters of a step.

    Args:
        api: API server of the cluster.
        pod: the step's pod, whose main container has ended.
        root: directory that serves as the root of its file system.
    """
    parameters: list[dict[str, str]] = []
    for name, path, default in _outputs(pod):
        file = inside(root, path)
        value = file.read_text(encoding="utf-8") if file.exists() else default
        if value is not None:
            parameters.append({"name": name, "value": value})
    outputs = {"outputs": {"parameters": parameters}} if parameters else {}
    api.patch(_result(pod), {"metadata": {"labels": {_COMPLETED: "true"}}, **outputs})


def _result(pod: Object) -> str:
    metadata = part(pod, "metadata")
    name = text(metadata, "annotations", _NODE_ID)
    return f"/apis/argoproj.io/v1alpha1/namespaces/{text(metadata, 'namespace')}/workflowtaskresults/{name}"


def _outputs(pod: Object) -> list[tuple[str, str, str | None]]:
    """Return name, path and default of each output parameter of a step's template."""
    if not is_step(pod):
        return []
    (first, *_) = parts(pod, "spec", "initContainers")
    (content,) = [
        text(variable, "value") for variable in parts(first, "env") if variable["name"] == _TEMPLATE
    ]
    template: Mapping[str, Any] = json.loads(content)
    return [
        (parameter["name"], text(parameter, "valueFrom", "path"), part(parameter, "valueFrom").get("default"))
        for parameter in parts(template, "outputs", "parameters")
        if text(parameter, "valueFrom", "path")
    ]


def unpack(image: str, root: Path) -> list[str]:
    """Write the last layer of an image below a directory; return its top directories in the container.

    That layer is the code of `ebbtide run`; those below it have programs, which are this machine's. Nothing
    is written for an image of a registry elsewhere.

    Raises:
        RegistryError: the image does not exist, or the registry does not answer.
        ArchiveError: the layer is not an archive.
    """
    if not image.startswith(("localhost:", "localhost/")):
        return []
    from ebbtide.work.registry import Repository  # noqa: PLC0415 - the extra registry, for such images

    reference = Reference.parse(image)
    with Repository(reference, lambda _: None) as repository:
        manifest = json.loads(repository.manifest(reference.version).content)
        layer = repository.blob(manifest["layers"][-1]["digest"])
    content = io.BytesIO(layer)
    directories: set[str] = set()

    def ignored(name: str) -> bool:
        path = PurePosixPath(name)
        directories.update(f"/{part}" for part in path.parts[:1])
        return path.name.startswith(_WHITEOUT)

    with gzip.open(content) if layer.startswith(_GZIP) else content as archive:
        extract(archive, root, links=True, ignored=ignored)
    return sorted(directories)


class ContainerError(Exception):
    """A container cannot be started. The message is the kubelet's."""


@dataclass(frozen=True, slots=True)
class Container:
    """A process to start.

    Attributes:
        command: program and arguments.
        environment: complete environment.
        ports: port on this machine of each declared port.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    name: str
    ports: Mapping[int, int]


def prepare(api: Api, pod: Object, root: Path, shared: Path) -> Container:
    """Prepare a pod's container: mount its volumes and resolve its environment.

    Args:
        api: API server of the cluster, for the pod's ConfigMaps, Secrets and claims.
        root: directory that serves as the root of its file system.
        shared: directory of volumes that outlive a pod.

    Raises:
        NotMountedError: a volume does not exist yet.
        ContainerError: it has no command, and the image's entrypoint is unknown, or the image of a registry
            on this machine cannot be pulled.
    """
    container = main_container(pod)
    command = command_of(pod, words(container, "command"))
    if not command:
        raise ContainerError("no command specified: a rehearsal has no image that would say what to run")
    code = _unpack(text(container, "image"), root)
    environment = dict(_environment(api, pod, container))
    expanded = {name: _expand(value, environment) for name, value in environment.items()}
    paths = [*code, *_mount(api, pod, container, root, shared, expanded), *output_directories(pod)]
    given = [_expand(word, expanded) for word in (*command, *words(container, "args"))]
    directory = inside(root, text(container, "workingDir") or "/")
    directory.mkdir(parents=True, exist_ok=True)
    (root / "tmp").mkdir(exist_ok=True)
    base = {
        "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
        "HOME": str(root),
        "TMPDIR": str(root / "tmp"),
        "PYTHONPATH": str(Path(ebbtide.__file__).parent.parent),
        "PYTHONUNBUFFERED": "1",
        "HOSTNAME": text(pod, "metadata", "name"),
        ROOT: str(root),
    }
    if any(map(_of_account, parts(container, "volumeMounts"))):
        base |= _account(api, pod, root)
        paths.append(SERVICE_ACCOUNTS)
    if is_step(pod):
        base[RUNS] = str(shared / "runs")
    declared = [int(port["containerPort"]) for port in parts(container, "ports")]
    with PortReservation(len(declared)) as reserved:
        ports = dict(zip(declared, reserved.ports, strict=True))

    def local(value: str) -> str:
        return _with_ports(_on_this_machine(value, paths, root), ports)

    return Container(
        tuple(map(local, given)),
        {**base, **{name: local(value) for name, value in expanded.items()}},
        directory,
        container["name"],
        ports,
    )


def _unpack(image: str, root: Path) -> list[str]:
    """Write an image's code; return its directories in the container."""
    try:
        return unpack(image, root)
    except (RegistryError, ArchiveError) as error:
        raise ContainerError(f"failed to pull image {image!r}: {error}") from None


def _mount(
    api: Api, pod: Object, container: Object, root: Path, shared: Path, environment: Mapping[str, str]
) -> list[str]:
    """Mount the pod's volumes; return their paths in the container."""
    root.mkdir(parents=True, exist_ok=True)
    volumes = {volume["name"]: volume for volume in parts(pod, "spec", "volumes")}
    volume_mounts = [
        volume_mount for volume_mount in parts(container, "volumeMounts") if not _of_account(volume_mount)
    ]
    written = [
        volume_mount
        for volume_mount in volume_mounts
        if any(kind in volumes[volume_mount["name"]] for kind in _WRITTEN)
    ]
    alone = {**container, "volumeMounts": written}
    mount(api, {**pod, "spec": {**pod["spec"], "containers": [alone]}}, root)
    for volume_mount in volume_mounts:
        if volume_mount in written:
            continue
        folder = text(volume_mount, "subPath") or _expand(text(volume_mount, "subPathExpr"), environment)
        source = shared / _persistent_path(api, pod, volumes[volume_mount["name"]]) / folder
        source.mkdir(parents=True, exist_ok=True)
        target = inside(root, volume_mount["mountPath"])
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(source, target_is_directory=True)
    return [str(volume_mount["mountPath"]) for volume_mount in volume_mounts]


def _of_account(volume_mount: Object) -> bool:
    return str(volume_mount["mountPath"]).startswith(SERVICE_ACCOUNTS)


def _account(api: Api, pod: Object, root: Path) -> dict[str, str]:
    """Write the files of the pod's service account; return the variables with the API server's address."""
    directory = inside(root, SERVICE_ACCOUNTS)
    account_token(api, dict(pod), directory / "token")
    (directory / "namespace").write_text(text(pod, "metadata", "namespace"))
    authority = _data(api, pod, "configmaps", {"name": "kube-root-ca.crt"})
    (directory / "ca.crt").write_text(authority["ca.crt"])
    address = api.get("/api")["serverAddressByClientCIDRs"][0]["serverAddress"]
    host, _, port = str(address).rpartition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


def _persistent_path(api: Api, pod: Object, volume: Object) -> str:
    """Return the path of a persistent volume on this machine, below the directory of such volumes."""
    namespace = text(pod, "metadata", "namespace")
    if name := text(volume, "persistentVolumeClaim", "claimName"):
        claim = api.find(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
        if claim is None or not text(claim, "spec", "volumeName"):
            raise NotMountedError(f"persistentvolumeclaim {name!r} is not bound")
        return _disk_path(api, text(claim, "spec", "volumeName"))
    if path := text(volume, "hostPath", "path"):
        return f"nodes/{text(pod, 'spec', 'nodeName')}/{path.strip('/')}"
    if bucket := text(volume, "csi", "volumeAttributes", "bucketName"):
        return f"buckets/{bucket}"
    raise NotMountedError(f"volume {volume['name']}: a rehearsal cannot mount its kind")


def _disk_path(api: Api, name: str) -> str:
    """Return the path of a PersistentVolume: a bucket's is that of its mounts without a claim."""
    csi = part(api.find(f"/api/v1/persistentvolumes/{name}") or {}, "spec", "csi")
    if text(csi, "driver") == BUCKET_DRIVERS[CloudKind.GKE]:
        return f"buckets/{text(csi, 'volumeHandle')}"
    return f"disks/{name}"


def _environment(api: Api, pod: Object, container: Object) -> Iterator[tuple[str, str]]:
    """Yield the environment variables of a container."""
    for env_from in parts(container, "envFrom"):
        for kind, field in (("configmaps", "configMapRef"), ("secrets", "secretRef")):
            if reference := part(env_from, field):
                data = _data(api, pod, kind, reference)
                yield from ((text(env_from, "prefix") + key, value) for key, value in data.items())
    for variable in parts(container, "env"):
        value_source = part(variable, "valueFrom")
        if path := text(value_source, "fieldRef", "fieldPath"):
            yield variable["name"], _field(pod, path)
        elif reference := part(value_source, "configMapKeyRef"):
            yield from _entry(variable["name"], reference, _data(api, pod, "configmaps", reference))
        elif reference := part(value_source, "secretKeyRef"):
            yield from _entry(variable["name"], reference, _data(api, pod, "secrets", reference))
        else:
            yield variable["name"], text(variable, "value")


def _entry(name: str, reference: Object, data: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    key = reference["key"]
    if key in data:
        yield name, data[key]
    elif not reference.get("optional"):
        raise ContainerError(f"couldn't find key {key} in {reference['name']}")


def _data(api: Api, pod: Object, kind: str, reference: Object) -> dict[str, str]:
    namespace, name = text(pod, "metadata", "namespace"), reference["name"]
    existing: Any = api.find(f"/api/v1/namespaces/{namespace}/{kind}/{name}")
    if existing is None:
        if reference.get("optional"):
            return {}
        raise ContainerError(f"{kind.removesuffix('s')} {name!r} not found")
    data = part(existing, "data")
    if kind == "secrets":
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
    return dict(data)


def _field(pod: Object, path: str) -> str:
    """Return a field of the pod (Kubernetes docs, Downward API)."""
    if match := _FIELD.search(path):
        return text(pod, "metadata", match["map"], match["key"])
    return text(pod, *path.split("."))


def _expand(value: str, environment: Mapping[str, str]) -> str:
    """Expand `$(NAME)` as Kubernetes does: an unknown name is unchanged, and `$$` is a dollar sign."""
    return _REFERENCE.sub(
        lambda match: environment.get(match["name"], match[0]) if match["name"] else "$", value
    )


def _on_this_machine(value: str, paths: list[str], root: Path) -> str:
    """Replace the paths of mounts with those on this machine."""
    for path in sorted(paths, key=len, reverse=True):
        edge = rf"(?<![\w./-]){re.escape(path.rstrip('/'))}(?=/|$|[\s'\":;,)])"
        value = re.sub(edge, lambda match: f"{root}{match[0]}", value)
    return value


def _with_ports(value: str, ports: Mapping[int, int]) -> str:
    """Replace declared ports with those of this machine."""
    return re.sub(r"(?<![\w.])\d+(?![\w.])", lambda match: str(ports.get(int(match[0]), match[0])), value)
