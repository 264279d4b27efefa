"""In which order the objects of a chart or a kustomization are made.

A custom resource depends on the definition of its kind, whatever is in a namespace on the namespace, where
they are among them, and what names another object in the annotation `config.kubernetes.io/depends-on` on
that. Those that depend on nothing come first, sorted by kind. Source: sigs.k8s.io/cli-utils 0.37,
pkg/object/graph and pkg/ordering, which pulumi-kubernetes 4.32 goes by.
"""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeAlias

from ebbtide_rehearsal.cloud.kubernetes.kinds import kind_of
from ebbtide_rehearsal.cloud.kubernetes.objects import Object, annotation, at, name_of, namespace_of
from ebbtide_rehearsal.cloud.provider import RefusedError

DEPENDS_ON: Final = "config.kubernetes.io/depends-on"

Key: TypeAlias = tuple[str, str, str, str]
"""Group, kind, namespace and name."""

_RBAC: Final = "rbac.authorization.k8s.io"
_FIRST: Final = (
    ("", "Namespace"),
    ("", "ResourceQuota"),
    ("storage.k8s.io", "StorageClass"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("", "ServiceAccount"),
    (_RBAC, "Role"),
    (_RBAC, "ClusterRole"),
    (_RBAC, "RoleBinding"),
    (_RBAC, "ClusterRoleBinding"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "Service"),
    ("", "LimitRange"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("policy", "PodDisruptionBudget"),
)
_LAST: Final = ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")
_RANKS: Final = {kind: rank - len(_FIRST) for rank, kind in enumerate(_FIRST)} | {_LAST: 1}


def key(manifest: Object) -> Key:
    """What tells an object from others."""
    kind = kind_of(manifest)
    return kind.group, kind.kind, namespace_of(manifest), name_of(manifest)


def ordered(manifests: Sequence[Object]) -> list[tuple[Object, list[Key]]]:
    """Objects in the order in which they are made, each with those among them that it depends on.

    Raises:
        RefusedError: they depend on each other, or on one that is not among them.
    """
    by_key = {key(manifest): manifest for manifest in manifests}
    needs = {name: _needs(manifest, by_key) for name, manifest in by_key.items()}
    sorter = TopologicalSorter(needs)
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " -> ".join(_shown(name) for name in error.args[1])
        raise RefusedError(f"cyclic dependency: {circle}") from None
    found: list[tuple[Object, list[Key]]] = []
    while sorter.is_active():
        group = sorter.get_ready()
        found += [(by_key[name], needs[name]) for name in sorted(group, key=_rank)]
        sorter.done(*group)
    return found


def _rank(name: Key) -> tuple[int, Key]:
    return _RANKS.get(name[:2], 0), name


def _needs(manifest: Object, among: dict[Key, Object]) -> list[Key]:
    kind = kind_of(manifest)
    needs = [name for name, other in among.items() if _defines(other, kind.group, kind.kind)]
    namespace: Key = ("", "Namespace", "", namespace_of(manifest))
    if namespace[-1] and namespace in among:
        needs.append(namespace)
    for text in filter(None, annotation(manifest, DEPENDS_ON).split(",")):
        named = _named(text.strip())
        if named not in among:
            raise RefusedError(f"external dependency: {_shown(key(manifest))} -> {text.strip()}")
        needs.append(named)
    return needs


def _defines(manifest: Object, group: str, kind: str) -> bool:
    defines = kind_of(manifest).kind == "CustomResourceDefinition"
    names = (at(manifest, "spec", "group"), at(manifest, "spec", "names", "kind"))
    return defines and names == (group, kind)


def _named(text: str) -> Key:
    """`group/namespaces/namespace/kind/name`, or `group/kind/name`."""
    match text.split("/"):
        case [group, "namespaces", namespace, kind, name]:
            return group, kind, namespace, name
        case [group, kind, name]:
            return group, kind, "", name
        case _:
            raise RefusedError(f'invalid "{DEPENDS_ON}" annotation: {text}')


def _shown(name: Key) -> str:
    return "/".join(filter(None, name))
