"""Upstream's real objects, where they are beside the project: rendered, unchanged, not ours to ship."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs] - it has none
import pytest
import yaml

from components.addons.objects import Object, Patch, kind_of, name_of, patched, pod_spec
from components.addons.system_placement import SystemPlacement
from tests.repository import ROOT

PLACE = ROOT.parent / "shared" / "data" / "manifests"

PIPELINES_CLUSTER = "kfp-2.17.0-cluster-scoped.yaml"
PIPELINES = "kfp-2.17.0-platform-agnostic.yaml"
KATIB = "katib-0.19.0-standalone.yaml"

HOME = SystemPlacement({"ebbtide.dev/pool": "system"}, [{"key": "CriticalAddonsOnly", "operator": "Equal"}])


@cache
def _read(path: Path) -> tuple[Object, ...]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(document for document in yaml.load_all(path.read_text("utf-8"), loader) if document)


def upstream(name: str) -> list[Object]:
    """The objects of a rendered kustomization; the test is skipped where they are not there."""
    path = PLACE / name
    if not path.exists():
        pytest.skip(
            f"Upstream's rendered objects are not beside the project: ../shared/data/manifests/{name}."
        )
    return list(_read(path))


def after(objects: Iterable[Object], patches: Sequence[Patch]) -> dict[str, Object]:
    """Objects after patches, by `Kind/name`."""
    changed = [patched(item, patches) for item in objects]
    return {f"{kind_of(item)}/{name_of(item)}": item for item in changed}


def assert_valid(manifest: Object, version: str) -> None:
    """Hold an object of a kind that Kubernetes has against that version's schema, unknown fields refused."""
    kubernetes_validate.validate(manifest, version, strict=True)


def requests(manifest: Object) -> tuple[float, float]:
    """Return the requests of an object's pods at once: millicores and MiB, times replicas.

    Containers that only start a pod run before the others, so that the larger of the two counts.
    """
    spec = pod_spec(manifest)
    running = [_requests(item) for item in spec.get("containers", ())]
    starting = [_requests(item) for item in spec.get("initContainers", ())]
    totals = [
        max(sum(item[index] for item in running), max((item[index] for item in starting), default=0))
        for index in (0, 1)
    ]
    replicas = manifest.get("spec", {}).get("replicas", 1)
    return totals[0] * replicas, totals[1] * replicas


def _requests(container: Object) -> tuple[float, float]:
    requested: dict[str, Any] = container.get("resources", {}).get("requests", {})
    return millicores(requested.get("cpu", "0")), mebibytes(requested.get("memory", "0"))


def millicores(text: object) -> float:
    """A quantity of CPU."""
    written = str(text)
    return float(written[:-1]) if written.endswith("m") else float(written) * 1000


def mebibytes(text: object) -> float:
    """A quantity of memory or of a disk."""
    units = {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024}
    written = str(text)
    return float(written[:-2]) * units[written[-2:]] if written[-2:] in units else float(written) / 2**20
