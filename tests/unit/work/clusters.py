"""Profiles for tests: of every stack's file, and of generated declarations."""

from collections.abc import Callable
from typing import Any

import pytest

from ebbtide.declaration.model.declare import declare
from ebbtide.placement import PoolProfile, Profile
from ebbtide.placement.derive import profile
from ebbtide.work.errors import WorkloadError
from tests.repository import ROOT, STACK_FILES, declaration, relative

PROFILES = {relative(path): profile(declare(declaration(path), default_name="dev")) for path in STACK_FILES}
DEV = PROFILES[relative(ROOT / "Pulumi.dev.yaml")]
DEV_AKS = PROFILES[relative(ROOT / "Pulumi.dev-aks.yaml")]


def derived(written: dict[str, Any]) -> Profile:
    """The profile of a declaration."""
    return profile(declare(written))


def ways(profile: Profile, pool: PoolProfile) -> list[dict[str, Any]]:
    """Every way to a pool for work that fits it: by itself, unless nodes come for queues alone, and through
    each queue in each namespace."""
    fields: dict[str, Any] = {"name": "train", "image": "acme.example/train:1", "cpu": "1", "memory": "512Mi"}
    if pool.accelerator is not None:
        fields["gpus"] = pool.accelerator.count
    alone: list[dict[str, Any]] = [] if pool.capacity == "queued" else [{**fields, "pool": pool.name}]
    return alone + [
        {**fields, "queue": queue.name, "namespace": local.namespace}
        for queue in profile.queues
        if pool.name in queue.pools
        for local in queue.local_queues
    ]


def problems_of(call: Callable[[], object]) -> tuple[str, ...]:
    """Return the problems of a refused call."""
    with pytest.raises(WorkloadError) as raised:
        call()
    return raised.value.problems


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a Job's pods."""
    return manifest["spec"]["template"]["spec"]


def container_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the only container of a Job's pods."""
    (container,) = pod_of(manifest)["containers"]
    return container
