"""Post-renderer of a Helm chart: controllers depend on what they need when they start.

Pulumi creates a chart's objects in parallel. A controller that starts before its CustomResourceDefinitions,
its configuration or its permissions exits, and restarts with exponential backoff. Helm pipes the manifests
through this program; pulumi-kubernetes follows the annotation `config.kubernetes.io/depends-on` (4.25,
provider/pkg/provider/yaml/v2; sigs.k8s.io/cli-utils 0.37, pkg/object/dependson). The order of deletion is the
opposite: controllers first.

Services are not among the dependencies, since Pulumi waits for their pods; nor are webhook configurations,
which would reject objects until a controller responds.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pulumi_kubernetes.helm.v4 import PostRendererArgsDict

DEPENDS_ON = "config.kubernetes.io/depends-on"

_CLUSTER_SCOPED = ("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition")
_BINDINGS = ("ClusterRoleBinding", "RoleBinding")
_BEFORE = (*_BINDINGS, "ConfigMap", "CustomResourceDefinition", "Secret", "ServiceAccount")
_CONTROLLERS = ("Deployment", "StatefulSet")
_SEPARATOR = re.compile(r"(?:^|\s*\n)---\s*")
"""Start of a document (helm 3.20, pkg/releaseutil/manifest.go)."""


def post_renderer() -> "PostRendererArgsDict":
    """Return this program as the `post_renderer` of a chart."""
    return {"command": sys.executable, "args": ["-P", __file__]}


def ordered(manifests: str) -> str:
    """Return a chart's manifests with dependencies added to its controllers; other documents are
    unchanged."""
    texts = [text for text in _SEPARATOR.split(manifests) if text.strip()]
    objects = [_parsed(text) for text in texts]
    dependencies = ",".join(sorted(_dependencies([item for item in objects if item])))
    for index, item in enumerate(objects):
        if dependencies and item.get("kind") in _CONTROLLERS:
            item["metadata"].setdefault("annotations", {})[DEPENDS_ON] = dependencies
            texts[index] = yaml.safe_dump(item, sort_keys=False)
    return "".join(f"---\n{text}\n" for text in texts)


def _parsed(text: str) -> dict[str, Any]:
    """Parse a document; empty if it has only comments."""
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}  # noqa: S506 - safe loaders


def _dependencies(objects: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield references to what controllers need: kinds, configuration, and bound roles.

    An object without a namespace gets the release's later, and cannot be referenced here: a reference to an
    object that is not in the chart is an error.
    """
    roles = {
        (item["roleRef"]["kind"], item["roleRef"]["name"]) for item in objects if item["kind"] in _BINDINGS
    }
    for item in objects:
        needed = item["kind"] in _BEFORE or (item["kind"], item["metadata"]["name"]) in roles
        if needed and (item["kind"] in _CLUSTER_SCOPED or item["metadata"].get("namespace")):
            yield _reference(item)


def _reference(item: dict[str, Any]) -> str:
    group, _, _ = item["apiVersion"].rpartition("/")
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    scope = f"namespaces/{namespace}/" if namespace else ""
    return f"{group}/{scope}{item['kind']}/{metadata['name']}"


if __name__ == "__main__":
    sys.stdout.write(ordered(sys.stdin.read()))
