"""The patched objects of add-ons that are kustomizations, and the images that they name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from components.addons import katib, pipelines
from components.addons.patches import Object, Patch, containers, data_of, kind_of
from ebbtide.declaration.model.addons import Pipelines
from tests.manifests import HOME, KATIB, PIPELINES, PIPELINES_CLUSTER, after, upstream

_IMAGE_LINE = re.compile(r"^\s*(?:-\s+)?image:\s*['\"]?([^\s'\"]+)", re.MULTILINE)
_VERSIONED = re.compile(r"@sha256:[0-9a-f]{64}$|:v?\d[^:/]*$")


@dataclass(frozen=True, slots=True)
class Kustomized:
    """An add-on that is a kustomization.

    Attributes:
        files: the files of its objects.
        credentials: data of its Secrets.
        patches: returns the patches of its objects with these credentials.
        published: texts of upstream's passwords, which everybody knows.
        claims: its claims by name, with the one pod that mounts each.
        services: names of its Services.
        namespace: namespace of the claims.
    """

    files: tuple[str, ...]
    credentials: Mapping[str, Mapping[str, str]]
    patches: Sequence[Patch]
    published: tuple[str, ...]
    claims: Mapping[str, str]
    services: frozenset[str]
    namespace: str

    def objects(self) -> dict[str, Object]:
        """Its objects, as they are made."""
        return {key: item for name in self.files for key, item in after(upstream(name), self.patches).items()}


_OF_PIPELINES = {
    pipelines.STORE_SECRET: {"accesskey": "b3Vycw==", "secretkey": "b3Vycw=="},
    pipelines.DATABASE_SECRET: {"username": "cm9vdA==", "password": "b3Vycw=="},
}
_OF_KATIB = {katib.DATABASE_SECRET: {"MYSQL_ROOT_PASSWORD": "b3Vycw=="}}
KUSTOMIZED = {
    "pipelines": Kustomized(
        (PIPELINES_CLUSTER, PIPELINES),
        _OF_PIPELINES,
        (*pipelines.cluster_patches({}), *pipelines.patches(Pipelines(), HOME, _OF_PIPELINES)),
        ("minio123", "bWluaW8xMjM="),
        {"mysql-pv-claim": "mysql", "seaweedfs-pvc": "seaweedfs"},
        frozenset(
            {
                *("cache-server", "metadata-envoy-service", "metadata-grpc-service", "ml-pipeline", "mysql"),
                *("ml-pipeline-ui", "ml-pipeline-visualizationserver", "seaweedfs"),
            }
        ),
        "kubeflow",
    ),
    "katib": Kustomized(
        (KATIB,),
        _OF_KATIB,
        katib.patches(HOME, _OF_KATIB),
        ("dGVzdA==", "MYSQL_ALLOW_EMPTY_PASSWORD"),
        {"katib-mysql": "katib-mysql"},
        frozenset({"katib-controller", "katib-db-manager", "katib-mysql", "katib-ui"}),
        "katib",
    ),
}


def _images(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield every image that an object's pods use, or that its settings name as one."""
    for container in containers(manifest):
        yield str(container["image"])
        for variable in container.get("env", ()):
            if str(variable["name"]).endswith("_IMAGE") and variable.get("value"):
                yield str(variable["value"])
        arguments = [str(argument) for argument in container.get("args", ())]
        for flag, value in pairwise(arguments):
            if flag.endswith("-image"):
                yield value
    if kind_of(manifest) == "ConfigMap":
        for key, text in data_of(manifest).items():
            if key.lower().endswith("image"):
                yield str(text)
            yield from _IMAGE_LINE.findall(str(text))


def floating(objects: Mapping[str, Object]) -> dict[str, list[str]]:
    """Return the images without a fixed version by object: `:latest`, a branch, or no tag."""
    found = {
        key: [image for image in _images(item) if not _VERSIONED.search(image)]
        for key, item in objects.items()
    }
    return {key: images for key, images in found.items() if images}
