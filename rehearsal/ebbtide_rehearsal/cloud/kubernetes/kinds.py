"""Type tokens of the Kubernetes provider, and the kinds that they stand for.

Source: pulumi-kubernetes 4.32, provider/pkg/provider/provider.go (`gvkFromTypeToken`) and
provider/pkg/kinds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_CORE_LISTS = frozenset(
    {
        "ComponentStatus",
        "ConfigMap",
        "Endpoints",
        "Event",
        "LimitRange",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "ReplicationController",
        "ResourceQuota",
        "Secret",
        "Service",
        "ServiceAccount",
    }
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object.

    Attributes:
        group: empty for the core group.
        version: such as `v1`.
        kind: such as `Namespace`.
    """

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """As manifests have it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def token(self) -> str:
        """Type of the resource that makes such an object."""
        return f"kubernetes:{self.group or 'core'}/{self.version}:{self.kind}"

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


def kind_of(manifest: Mapping[str, Any]) -> Kind:
    """The kind that a manifest names; parts that it does not name are empty."""
    group, _, version = str(manifest.get("apiVersion") or "").rpartition("/")
    return Kind("" if group == "core" else group, version, str(manifest.get("kind") or ""))


def kind_of_token(token: str) -> Kind:
    """The kind that a type stands for, which for a type of patches is the kind that it patches."""
    _, module, name = token.split(":")
    group, _, version = module.rpartition("/")
    return Kind("" if group == "core" else group, version, name.removesuffix("Patch"))


def is_patch(token: str, manifest: Mapping[str, Any]) -> bool:
    """Whether a resource owns only some fields of an object that is there already: its type says so, and the
    object's kind is the type's without it."""
    return token.rpartition(":")[2] == f"{kind_of(manifest).kind}Patch"


def is_list(token: str) -> bool:
    """Whether a type is a list of objects, which nobody can make."""
    kind = kind_of_token(token)
    return kind.kind.endswith("List") and _is_built_in(kind)


def _is_built_in(kind: Kind) -> bool:
    """Whether Kubernetes brings the kind, and no custom resource happens to be named so."""
    if not kind.group:
        return kind.kind.removesuffix("List") in _CORE_LISTS
    return "." not in kind.group or kind.group.endswith(".k8s.io")
