"""Rendered YAML as objects that resources can be made of.

Source: pulumi-kubernetes 4.32, provider/pkg/provider/yaml/v2/yaml.go, `Parse` and `Normalize`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import yaml

from ebbtide_rehearsal.cloud.kubernetes.cluster import Cluster
from ebbtide_rehearsal.cloud.kubernetes.kinds import Kind, kind_of
from ebbtide_rehearsal.cloud.kubernetes.objects import (
    Object,
    at,
    name_of,
    namespace_of,
    objects_at,
    with_metadata,
)
from ebbtide_rehearsal.cloud.provider import RefusedError


def _loader() -> Any:
    """YAML as Kubernetes reads it: what looks like a date is text."""
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    resolvers = {
        letter: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for letter, found in base.yaml_implicit_resolvers.items()
    }
    return type("Loader", (base,), {"yaml_implicit_resolvers": resolvers})


def parsed(text: str) -> list[Object]:
    """The objects of a text, lists of objects taken apart.

    Raises:
        RefusedError: it is no YAML, or something in it is no object.
    """
    try:
        documents: list[Any] = list(yaml.load_all(text, _loader()))
    except yaml.YAMLError as error:
        raise RefusedError(f"decoding YAML: {error}") from None
    return [_complete(item) for item in _expanded(document for document in documents if document)]


def _expanded(documents: Iterable[Any]) -> Iterator[Any]:
    for document in documents:
        if isinstance(document, dict) and isinstance(at(document, "items"), list):
            yield from _expanded(objects_at(document, "items"))
        else:
            yield document


def _complete(document: Any) -> Object:
    found: Object = cast("Object", document) if isinstance(document, dict) else {"": document}
    kind = kind_of(found)
    if not kind.kind or not kind.version:
        raise RefusedError(f"Kubernetes resources require a kind and apiVersion: `{str(found)[:100]}`")
    if not name_of(found):
        raise RefusedError(f"Kubernetes resources require a .metadata.name: `{str(found)[:100]}`")
    return {**found, "apiVersion": kind.api_version}


def placed(manifests: list[Object], namespace: str, cluster: Cluster) -> list[Object]:
    """Objects with a namespace, where their kind has namespaces and they name none. A kind that the cluster
    does not know yet may be defined by one of them.

    Args:
        manifests: the objects.
        namespace: of those that name none; empty for the cluster's default.
        cluster: where they are to be.
    """
    defined = dict(filter(None, map(_defined, manifests)))

    def inside(manifest: Object) -> bool:
        kind = kind_of(manifest)
        endpoint = None if (kind.group, kind.kind) in defined else cluster.knows(kind)
        return endpoint.namespaced if endpoint else defined.get((kind.group, kind.kind), False)

    where = namespace or cluster.namespace
    return [
        with_metadata(manifest, namespace=where)
        if not namespace_of(manifest) and inside(manifest)
        else manifest
        for manifest in manifests
    ]


def _defined(manifest: Object) -> tuple[tuple[str, str], bool] | None:
    """Group and kind that a definition defines, and whether objects of it are in namespaces."""
    if kind_of(manifest) != Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"):
        return None
    group, kind, scope = (at(manifest, "spec", *path) for path in (("group",), ("names", "kind"), ("scope",)))
    return (str(group), str(kind)), scope == "Namespaced"
