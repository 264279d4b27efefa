"""The post-renderer of a chart's objects, run as Helm runs it."""

from pathlib import Path
from typing import Any

import yaml

from components.addons.post_renderer import DEPENDS_ON, post_renderer
from tests.repository import ran

CHART = (Path(__file__).parent / "rendered_chart.yaml").read_text(encoding="utf-8")


def rendered(manifests: str) -> str:
    """Pipe manifests through the program that a chart names."""
    program: Any = post_renderer({"kueue-visibility-server": 443})
    return ran(program["command"], *program["args"], given=manifests).stdout


def by_kind(manifests: str) -> dict[str, Any]:
    """The last object of each kind."""
    return {item["kind"]: item for item in yaml.safe_load_all(manifests) if item}


def test_a_controller_depends_on_what_it_needs_when_it_starts() -> None:
    """Kinds, configuration and bound roles, as pulumi-kubernetes parses references; its own annotations
    stay."""
    annotations = by_kind(rendered(CHART))["Deployment"]["metadata"]["annotations"]
    assert annotations["theirs"] == "kept"
    assert annotations[DEPENDS_ON].split(",") == [
        "/namespaces/kueue-system/ConfigMap/kueue-manager-config",
        "/namespaces/kueue-system/Secret/kueue-webhook-server-cert",
        "apiextensions.k8s.io/CustomResourceDefinition/workloads.kueue.x-k8s.io",
        "rbac.authorization.k8s.io/ClusterRole/kueue-manager-role",
        "rbac.authorization.k8s.io/ClusterRoleBinding/kueue-manager-rolebinding",
    ]


def test_kinds_have_no_descriptions() -> None:
    """A field of that name stays, and so does a default; text stays text."""
    (version,) = by_kind(rendered(CHART))["CustomResourceDefinition"]["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"] == {
        "properties": {
            "description": {"type": "string"},
            "since": {"type": "string", "enum": ["on", "2026-01-01"], "default": {"description": "kept"}},
            "items": {"items": {"type": "integer"}},
        }
    }


def test_a_service_leads_to_its_port() -> None:
    """The chart has no value for the port of the visibility server's Service."""
    services = [item for item in yaml.safe_load_all(rendered(CHART)) if item and item["kind"] == "Service"]
    assert [item["spec"]["ports"] for item in services] == [
        [{"port": 443, "targetPort": 9443}],
        [{"name": "https", "port": 443, "targetPort": 443}],
    ]


def test_other_documents_are_unchanged() -> None:
    """To the letter, so that YAML which Helm and PyYAML read differently stays as it is."""
    output = rendered(CHART)
    assert "  enabled: on\n" in output
    before, after = by_kind(CHART), by_kind(output)
    assert before.keys() == after.keys()
    for kind in before.keys() - {"Deployment", "Service", "CustomResourceDefinition"}:
        assert DEPENDS_ON not in str(after[kind])
        assert before[kind] == after[kind]


def test_a_chart_without_dependencies_is_unchanged() -> None:
    """No annotation is empty: pulumi-kubernetes refuses that."""
    manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: alone}\n"
    assert by_kind(rendered(manifest)) == by_kind(manifest)
    assert rendered("") == ""
