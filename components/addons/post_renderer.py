"""Post-renderer of a Helm chart: Helm pipes the chart's manifests through this program.

Controllers depend on what they need when they start. Pulumi creates a chart's objects in parallel; a
controller that starts before its CustomResourceDefinitions, its configuration or its permissions exits, and
restarts with exponential backoff. pulumi-kubernetes follows the annotation
`config.kubernetes.io/depends-on` (4.25, provider/pkg/provider/yaml/v2; sigs.k8s.io/cli-utils 0.37,
pkg/object/dependson). The order of deletion is the opposite: controllers first. Services are not among the
dependencies, since Pulumi waits for their pods; nor are webhook configurations, which would reject objects
until a controller responds.

Definitions of kinds lose their descriptions. Four fifths of Kueue's are descriptions of pod templates;
Pulumi's engine copies and encrypts the inputs of each resource several times in each preview
(pulumi#23731), which took half of its time.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

if TYPE_CHECKING:
    from pulumi_kubernetes.helm.v4 import PostRendererArgsDict

DEPENDS_ON = "config.kubernetes.io/depends-on"

_DEFINITION: Final = "CustomResourceDefinition"
_CLUSTER_SCOPED = ("ClusterRole", "ClusterRoleBinding", _DEFINITION)
_BINDINGS = ("ClusterRoleBinding", "RoleBinding")
_BEFORE = (*_BINDINGS, "ConfigMap", _DEFINITION, "Secret", "ServiceAccount")
_CONTROLLERS = ("Deployment", "StatefulSet")
_SEPARATOR = re.compile(r"(?:^|\s*\n)---\s*")
"""Start of a document (helm 3.20, pkg/releaseutil/manifest.go)."""
_VALUES: Final = frozenset({"default", "enum", "example"})
"""Keys of a schema whose contents are data."""


def post_renderer(target_ports: Mapping[str, int] | None = None) -> "PostRendererArgsDict":
    """Return this program as the `post_renderer` of a chart.

    Args:
        target_ports: target ports of Services, by name, for which the chart has no value.
    """
    ports = [f"{service}={port}" for service, port in (target_ports or {}).items()]
    return {"command": sys.executable, "args": ["-P", __file__, *ports]}


def rendered(manifests: str, target_ports: Mapping[str, int]) -> str:
    """Return a chart's manifests as they are to be created; documents that need no change stay as written."""
    texts = [text for text in _SEPARATOR.split(manifests) if text.strip()]
    objects = [_parsed(text) for text in texts]
    dependencies = ",".join(sorted(_dependencies([item for item in objects if item])))
    for index, item in enumerate(objects):
        changed = _changed(item, dependencies, target_ports)
        if changed != item:
            # Dates, which JSON does not have, are text in a manifest.
            texts[index] = json.dumps(changed, default=str)
    return "".join(f"---\n{text}\n" for text in texts)


def without_descriptions(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a CustomResourceDefinition without the descriptions in it; another object is unchanged."""
    return _undescribed(definition) if definition.get("kind") == _DEFINITION else definition


def _undescribed(part: Any) -> Any:
    if isinstance(part, list):
        return [_undescribed(item) for item in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    return {
        key: value if key in _VALUES else _undescribed(value)
        for key, value in cast("dict[str, Any]", part).items()
        if key != "description" or not isinstance(value, str)
    }


def _changed(item: dict[str, Any], dependencies: str, target_ports: Mapping[str, int]) -> dict[str, Any]:
    kind, name = item.get("kind"), item.get("metadata", {}).get("name")
    if kind in _CONTROLLERS and dependencies:
        metadata = item["metadata"]
        annotations: dict[str, Any] = {**(metadata.get("annotations") or {}), DEPENDS_ON: dependencies}
        return {**item, "metadata": {**metadata, "annotations": annotations}}
    if kind == "Service" and name in target_ports:
        ports = [{**port, "targetPort": target_ports[name]} for port in item["spec"]["ports"]]
        return {**item, "spec": {**item["spec"], "ports": ports}}
    return without_descriptions(item)


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
    given = (argument.partition("=") for argument in sys.argv[1:])
    sys.stdout.write(rendered(sys.stdin.read(), {service: int(port) for service, _, port in given}))
