"""The released manifests of Kubeflow Pipelines, Katib and Kueue, rendered, and helpers for objects.

`python -m tests.manifests` renders them into the cache (`EBBTIDE_CACHE`) from Go modules with pinned hashes;
with `--accept`, as after the move of a pin, it takes over their digests.
`EBBTIDE_MANIFESTS` names a directory that already has some of them. Tests that read one have the marker
`released` with its name, and are deselected where it is missing (conftest.py).
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import yaml
from kubernetes_validate import utils  # pyright: ignore[reportMissingTypeStubs] - it has none
from rich.console import Console

from components.addons.add_on import SystemPlacement
from components.addons.patches import Object, Patch, kind_of, name_of, patched, pod_spec
from components.addons.pipelines import kustomization
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.errors import EbbtideError
from ebbtide.values.pod_requests import pod_requests
from ebbtide_rehearsal.stage import mirror
from ebbtide_rehearsal.tools import download as tools_cache
from ebbtide_rehearsal.tools.find import ensure
from ebbtide_rehearsal.tools.items import ToolError
from ebbtide_rehearsal.tools.progress import narration
from tests.repository import ROOT


@dataclass(frozen=True, slots=True)
class Kustomization:
    """A released kustomization.

    Attributes:
        address: its address, without the scheme.
        data: the rehearsal's data that it consists of.
        sha256: of its rendered file; kustomize 5.8.1 and `kubectl kustomize` write the same (2026-11).
    """

    address: str
    data: tuple[str, ...]
    sha256: str


_PIPELINES, _KATIB, _KUEUE = (PINS[name].version for name in ("pipelines", "katib", "kueue"))

PIPELINES_CLUSTER: Final = f"kfp-{_PIPELINES}-cluster-scoped.yaml"
PIPELINES: Final = f"kfp-{_PIPELINES}-platform-agnostic.yaml"
KATIB: Final = f"katib-{_KATIB}-standalone.yaml"
KUEUE: Final = f"kueue-{_KUEUE}-crds.yaml"

RELEASED: Final = {
    PIPELINES_CLUSTER: Kustomization(
        kustomization("cluster-scoped-resources", PINS["pipelines"]),
        ("pipelines-manifests", "argo-manifests"),
        "bf04ab670974005d2c87262bf7c33eb720fca37b1fa0bce3e98a1913d8d1cf34",
    ),
    PIPELINES: Kustomization(
        kustomization("env/platform-agnostic", PINS["pipelines"]),
        ("pipelines-manifests", "argo-manifests"),
        "ea2aceec68712cee09a35b7797f06cfef1b6a56edbe41ee9017efa273fba6f6f",
    ),
    KATIB: Kustomization(
        f"github.com/kubeflow/katib/manifests/v1beta1/installs/katib-standalone?ref={PINS['katib'].commit}",
        ("katib-manifests",),
        "2c3ba653de16d080b1acc75c7248df5f444111e2c9c411df4bfdcbe9a7faeb04",
    ),
    KUEUE: Kustomization(
        f"github.com/kubernetes-sigs/kueue/config/components/crd?ref=v{_KUEUE}",
        ("kueue-crds",),
        "30b6e8949d8f1434556b4604f584a7922fea6f2fff476887148fae1d368fae88",
    ),
}
"""By the names of the rendered files."""

KUBEFLOW: Final = (PIPELINES_CLUSTER, PIPELINES, KATIB)

_MINIMAL: Final = {
    PIPELINES_CLUSTER: "kfp-cluster-scoped.yaml",
    PIPELINES: "kfp-platform-agnostic.yaml",
    KATIB: "katib-standalone.yaml",
}
_minimal = ContextVar("minimal", default=False)

_DIRECTORY: Final = "EBBTIDE_MANIFESTS"

# It would read all definitions of a version for each object.
utils.schema_contents = cache(utils.schema_contents)

HOME = SystemPlacement(
    {"ebbtide.dev/pool": "system"}, [{"key": "CriticalAddonsOnly", "operator": "Equal"}], "controllers"
)


def rendered() -> Path:
    """Return the cache of rendered files."""
    return tools_cache.directory().parent / "manifests"


def path_of(name: str) -> Path | None:
    """Return the rendered file: in `$EBBTIDE_MANIFESTS`, else in the cache, else None."""
    directories = [Path(os.environ[_DIRECTORY]).absolute()] if os.environ.get(_DIRECTORY) else []
    paths = (directory / name for directory in (*directories, rendered()))
    return next((path for path in paths if path.is_file()), None)


@cache
def _read(path: Path) -> tuple[Object, ...]:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != RELEASED[path.name].sha256:
        raise ToolError(f"{path} is not the released {path.name}: its SHA-256 is {digest}.")
    return _objects(content)


@cache
def _read_minimal(name: str) -> tuple[Object, ...]:
    return _objects((ROOT / "tests" / "minimal_manifests" / _MINIMAL[name]).read_bytes())


def _objects(content: bytes) -> tuple[Object, ...]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(document for document in yaml.load_all(content, loader) if document)


def upstream(name: str) -> list[Object]:
    """Return the objects of a rendered kustomization, or minimal ones (`reading_minimal`).

    Raises:
        FileNotFoundError: it is not on this machine.
        ToolError: the file is not the released one.
    """
    if _minimal.get():
        return deepcopy(list(_read_minimal(name)))
    path = path_of(name)
    if path is None:
        raise FileNotFoundError(f"{name} is not on this machine: `make manifests` renders it.")
    return list(_read(path))


@contextmanager
def reading_minimal() -> Generator[None]:
    """Let `upstream` return minimal objects, as the fixture `minimal_and_released` does for a test."""
    token = _minimal.set(True)
    yield
    _minimal.reset(token)


def render(name: str) -> None:
    """Render a kustomization into the cache as the Kubernetes provider does, from local git repositories."""
    released = RELEASED[name]
    with narration(Console(stderr=True)) as on_step:
        tools = ensure(("kustomize", *released.data), on_step=on_step)
    rendered().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=rendered()) as work:
        redirected = mirror(Path(work) / "repositories", tools, [], Path(work))
        path = os.pathsep.join((work, os.environ["PATH"]))
        environment = {**os.environ, **redirected, "PATH": path}
        file = Path(work) / name
        command = [tools.path("kustomize"), "build", f"https://{released.address}", "--output", file]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(f"{released.address} could not be rendered: {done.stderr.strip()}")
        file.rename(rendered() / name)


def _accept(path: Path) -> None:
    """Take over the digest of a rendered file into this one."""
    digest, source = hashlib.sha256(path.read_bytes()).hexdigest(), Path(__file__)
    source.write_text(source.read_text().replace(RELEASED[path.name].sha256, digest))


def after(objects: Iterable[Object], patches: Sequence[Patch]) -> dict[str, Object]:
    """Objects after patches, by `Kind/name`."""
    changed = [patched(item, patches) for item in objects]
    return {f"{kind_of(item)}/{name_of(item)}": item for item in changed}


def assert_valid(manifest: Object, version: str) -> None:
    """Hold an object of a kind that Kubernetes has against that version's schema, unknown fields refused."""
    utils.validate(manifest, version, strict=True)


def requests(manifest: Object) -> tuple[float, float]:
    """Return the requests of an object's pods at once: millicores and MiB, times replicas."""
    needs = pod_requests(pod_spec(manifest))
    replicas = manifest.get("spec", {}).get("replicas", 1)
    return float(needs.get("cpu", 0)) * 1000 * replicas, float(needs.get("memory", 0)) / 2**20 * replicas


def millicores(text: object) -> float:
    """A quantity of CPU."""
    written = str(text)
    return float(written[:-1]) if written.endswith("m") else float(written) * 1000


def mebibytes(text: object) -> float:
    """A quantity of memory or of a disk."""
    units = {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024}
    written = str(text)
    return float(written[:-2]) * units[written[-2:]] if written[-2:] in units else float(written) / 2**20


if __name__ == "__main__":
    faults: list[str] = []
    for name in RELEASED:
        try:
            if path_of(name) is None:
                render(name)
            if path := path_of(name):
                (_accept if "--accept" in sys.argv else _read)(path)
                sys.stdout.write(f"{path}\n")
        except EbbtideError as error:
            faults.append(str(error))
    sys.exit("\n".join(dict.fromkeys(faults)) or None)
