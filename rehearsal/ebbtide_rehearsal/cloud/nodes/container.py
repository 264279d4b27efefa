"""A pod's container as a process of this machine: what it is told, and which files it has.

There is no image and no file system of its own. What the pod mounts stands below a directory, under the
paths that it has in the container; where the container's command, arguments or environment name such a path,
they are given the one on this machine. A path that is written in the program itself is not: it may look at
`EBBTIDE_REHEARSAL_ROOT`, which is that directory. `python` is the Python that runs the rehearsal, with this
package at hand, as in an image that has it installed.
"""

import base64
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ebbtide
from ebbtide.kubernetes_api import Api
from ebbtide.kubernetes_api.parts import part, parts, text, words
from ebbtide_rehearsal.cloud.nodes.argo import command_of, is_step, main_container, output_directories
from ebbtide_rehearsal.cloud.nodes.objects import Object
from ebbtide_rehearsal.control_plane.mounts import NotMountedError, inside, mount
from ebbtide_rehearsal.pipelines.runs import RUNS

ROOT: Final = "EBBTIDE_REHEARSAL_ROOT"
"""Environment variable with the directory that stands for the root of the container's file system."""

_WRITTEN: Final = ("configMap", "secret", "emptyDir")
_FIELD: Final = re.compile(r"(?P<map>labels|annotations)\['(?P<key>[^']+)'\]")
_REFERENCE: Final = re.compile(r"\$\$|\$\((?P<name>[-._a-zA-Z][-._a-zA-Z0-9]*)\)")


class ContainerError(Exception):
    """A container cannot be started. The message is a kubelet's."""


@dataclass(frozen=True, slots=True)
class Container:
    """What is started.

    Attributes:
        command: the program and its arguments.
        environment: all of its environment.
        directory: where it runs.
        name: the container's.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    name: str


def prepare(api: Api, pod: Object, root: Path, shared: Path) -> Container:
    """A pod's container that is run, with its files in place.

    Args:
        api: where the pod's ConfigMaps, Secrets and claims are.
        pod: the pod.
        root: what stands for the root of its file system.
        shared: where volumes are that outlive a pod.

    Raises:
        NotMountedError: something that it mounts is not there yet.
        ContainerError: it names no command: what its image would run is not known here.
    """
    container = main_container(pod)
    command = command_of(pod, words(container, "command"))
    if not command:
        raise ContainerError("no command specified: a rehearsal has no image that would say what to run")
    paths = [*_mount(api, pod, container, root, shared), *output_directories(pod)]
    told = dict(_told(api, pod, container))
    expanded = {name: _expand(value, told) for name, value in told.items()}
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
    if is_step(pod):
        base[RUNS] = str(shared / "runs")
    return Container(
        tuple(_here(word, paths, root) for word in given),
        {**base, **{name: _here(value, paths, root) for name, value in expanded.items()}},
        directory,
        container["name"],
    )


def _mount(api: Api, pod: Object, container: Object, root: Path, shared: Path) -> list[str]:
    """Put the pod's volumes in place; the paths of the container that they are at."""
    root.mkdir(parents=True, exist_ok=True)
    volumes = {volume["name"]: volume for volume in parts(pod, "spec", "volumes")}
    places = [place for place in parts(container, "volumeMounts") if not _of_account(place)]
    written = [place for place in places if any(kind in volumes[place["name"]] for kind in _WRITTEN)]
    alone = {**container, "volumeMounts": written}
    mount(api, {**pod, "spec": {**pod["spec"], "containers": [alone]}}, root)
    for place in places:
        if place in written:
            continue
        source = shared / _kept(api, pod, volumes[place["name"]]) / text(place, "subPath")
        source.mkdir(parents=True, exist_ok=True)
        target = inside(root, place["mountPath"])
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(source, target_is_directory=True)
    return [str(place["mountPath"]) for place in places]


def _of_account(place: Object) -> bool:
    return str(place["mountPath"]).startswith("/var/run/secrets/kubernetes.io/serviceaccount")


def _kept(api: Api, pod: Object, volume: Object) -> str:
    """Where a volume is that outlives the pod, below the directory for such."""
    namespace = text(pod, "metadata", "namespace")
    if name := text(volume, "persistentVolumeClaim", "claimName"):
        claim = api.find(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
        if claim is None or not text(claim, "spec", "volumeName"):
            raise NotMountedError(f"persistentvolumeclaim {name!r} is not bound")
        return f"disks/{text(claim, 'spec', 'volumeName')}"
    if path := text(volume, "hostPath", "path"):
        return f"nodes/{text(pod, 'spec', 'nodeName')}/{path.strip('/')}"
    if bucket := text(volume, "csi", "volumeAttributes", "bucketName"):
        return f"buckets/{bucket}"
    raise NotMountedError(f"volume {volume['name']}: a rehearsal cannot mount its kind")


def _told(api: Api, pod: Object, container: Object) -> Iterator[tuple[str, str]]:
    """The environment that a container declares."""
    for each in parts(container, "envFrom"):
        for kind, field in (("configmaps", "configMapRef"), ("secrets", "secretRef")):
            if reference := part(each, field):
                data = _data(api, pod, kind, reference)
                yield from ((text(each, "prefix") + key, value) for key, value in data.items())
    for each in parts(container, "env"):
        source = part(each, "valueFrom")
        if path := text(source, "fieldRef", "fieldPath"):
            yield each["name"], _field(pod, path)
        elif reference := part(source, "configMapKeyRef"):
            yield from _one(each["name"], reference, _data(api, pod, "configmaps", reference))
        elif reference := part(source, "secretKeyRef"):
            yield from _one(each["name"], reference, _data(api, pod, "secrets", reference))
        else:
            yield each["name"], text(each, "value")


def _one(name: str, reference: Object, data: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    key = reference["key"]
    if key in data:
        yield name, data[key]
    elif not reference.get("optional"):
        raise ContainerError(f"couldn't find key {key} in {reference['name']}")


def _data(api: Api, pod: Object, kind: str, reference: Object) -> dict[str, str]:
    namespace, name = text(pod, "metadata", "namespace"), reference["name"]
    found: Any = api.find(f"/api/v1/namespaces/{namespace}/{kind}/{name}")
    if found is None:
        if reference.get("optional"):
            return {}
        raise ContainerError(f"{kind.removesuffix('s')} {name!r} not found")
    data = part(found, "data")
    if kind == "secrets":
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
    return dict(data)


def _field(pod: Object, path: str) -> str:
    """A field of the pod (Kubernetes docs, Downward API)."""
    if match := _FIELD.search(path):
        return text(pod, "metadata", match["map"], match["key"])
    return text(pod, *path.split("."))


def _expand(value: str, told: Mapping[str, str]) -> str:
    """`$(NAME)` as Kubernetes puts it in; an unknown name stays as it is, and `$$` is a dollar."""
    return _REFERENCE.sub(lambda found: told.get(found["name"], found[0]) if found["name"] else "$", value)


def _here(value: str, paths: list[str], root: Path) -> str:
    """A text with the paths of mounts as they are on this machine."""
    for path in sorted(paths, key=len, reverse=True):
        edge = rf"(?<![\w./-]){re.escape(path.rstrip('/'))}(?=/|$|[\s'\":;,)])"
        value = re.sub(edge, lambda found: f"{root}{found[0]}", value)
    return value
