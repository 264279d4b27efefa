"""Kubernetes objects as plain data, and helpers that patches share."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object, as in its manifest."""

Patch = Callable[[Object], Object]
"""Function that returns a patched object; it returns objects that it does not concern unchanged, and never
modifies its argument."""

_WITH_PODS = ("Deployment", "StatefulSet", "Job")


def kind_of(manifest: Mapping[str, Any]) -> str:
    """Return the kind of an object."""
    return str(manifest.get("kind", ""))


def name_of(manifest: Mapping[str, Any]) -> str:
    """Return the name of an object."""
    return str(manifest.get("metadata", {}).get("name", ""))


def is_(manifest: Mapping[str, Any], kind: str, *names: str) -> bool:
    """Check the kind of an object, and its name if names are given."""
    return kind_of(manifest) == kind and (not names or name_of(manifest) in names)


def patched(manifest: Object, patches: Iterable[Patch]) -> Object:
    """Apply all patches to an object, in order."""
    for patch in patches:
        manifest = patch(manifest)
    return manifest


def updated(manifest: Object, path: tuple[str, ...], value: object) -> Object:
    """Return a copy of an object with a new value at a path; missing mappings are created."""
    head, *rest = path
    inner = updated(manifest.get(head) or {}, tuple(rest), value) if rest else value
    return {**manifest, head: inner}


def data_of(manifest: Mapping[str, Any]) -> Object:
    """Return the data of a ConfigMap or Secret; empty if it has none."""
    data: Object = manifest.get("data") or {}
    return data


def has_pods(manifest: Mapping[str, Any]) -> bool:
    """Check that an object creates pods for the system pool; a DaemonSet is for all nodes."""
    return kind_of(manifest) in _WITH_PODS


def pod_spec(manifest: Mapping[str, Any]) -> Object:
    """Return the pod spec of a workload object; empty if it has none."""
    spec: Object = manifest.get("spec", {}).get("template", {}).get("spec", {}) if has_pods(manifest) else {}
    return spec


def with_pod_spec(manifest: Object, spec: Object) -> Object:
    """Return an object with another pod spec."""
    return updated(manifest, ("spec", "template", "spec"), spec)


def containers(manifest: Mapping[str, Any]) -> Iterator[Object]:
    """Yield the containers of an object's pods, including init containers."""
    spec = pod_spec(manifest)
    yield from spec.get("initContainers", ())
    yield from spec.get("containers", ())


def each_container(manifest: Object, change: Callable[[Object], Object]) -> Object:
    """Return an object with a change applied to every container of its pods."""
    spec = pod_spec(manifest)
    lists = {
        field: [change(container) for container in spec[field]]
        for field in ("initContainers", "containers")
        if spec.get(field)
    }
    return with_pod_spec(manifest, {**spec, **lists}) if lists else manifest
