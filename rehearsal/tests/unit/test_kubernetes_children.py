import pytest

from ebbtide_rehearsal.cloud.kubernetes.component import children
from ebbtide_rehearsal.cloud.kubernetes.manifests import parsed
from ebbtide_rehearsal.cloud.kubernetes.objects import Object
from ebbtide_rehearsal.cloud.kubernetes.ordering import DEPENDS_ON, ordered
from ebbtide_rehearsal.cloud.provider import RefusedError


def _of(version: str, kind: str, name: str, namespace: str = "") -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}}


DEFINITION: Object = {
    **_of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com"),
    "spec": {"group": "example.com", "names": {"kind": "Thing"}, "scope": "Namespaced"},
}
THING = _of("example.com/v1", "Thing", "one", "n")
NAMESPACE = _of("v1", "Namespace", "n")
CONFIG = _of("v1", "ConfigMap", "c", "n")
HOOK = _of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "v")


def _names(manifests: list[Object]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest, _ in ordered(manifests)]


def test_names_have_the_prefix_and_the_namespace() -> None:
    """As Pulumi's provider names them, so that a program's transforms and aliases fit both."""
    found = children([CONFIG, NAMESPACE], "chart", skip_await=False, chart=True)
    assert [child.name for child in found] == ["chart:n", "chart:n/c"]
    assert [child.name for child in children([CONFIG], "", skip_await=False, chart=True)] == ["n/c"]


def test_kinds_and_namespaces_come_before_what_is_of_them() -> None:
    """Whatever depends on nothing is sorted by kind, validating webhooks last."""
    found = _names([HOOK, THING, CONFIG, DEFINITION, NAMESPACE])
    assert found == ["n", "things.example.com", "v", "c", "one"]


def test_what_is_needed_is_said() -> None:
    """The engine makes a resource after it, and removes it before."""
    found = ordered([THING, DEFINITION, NAMESPACE])
    needs = {manifest["metadata"]["name"]: names for manifest, names in found}
    kind = ("apiextensions.k8s.io", "CustomResourceDefinition", "", "things.example.com")
    assert needs["one"] == [kind, ("", "Namespace", "", "n")]
    assert needs["n"] == []


def test_an_object_may_name_what_it_needs() -> None:
    """By group, namespace, kind and name."""
    annotations = {DEPENDS_ON: "/namespaces/n/ConfigMap/c"}
    job = {**_of("batch/v1", "Job", "j", "n"), "metadata": {"name": "j", "annotations": annotations}}
    assert ordered([job, CONFIG])[1] == (job, [("", "ConfigMap", "n", "c")])
    with pytest.raises(RefusedError, match="external dependency"):
        ordered([job])


def test_objects_that_need_each_other_are_refused() -> None:
    """Neither could come first."""
    one = _of("v1", "ConfigMap", "one", "n")
    other = _of("v1", "ConfigMap", "other", "n")
    one["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/n/ConfigMap/other"}
    other["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/n/ConfigMap/one"}
    with pytest.raises(RefusedError, match="cyclic dependency"):
        ordered([one, other])


def test_a_chart_can_keep_an_object_and_skip_waiting() -> None:
    """Helm's resource policy, and the chart's `skipAwait`."""
    kept: Object = {**CONFIG, "metadata": {"name": "c", "annotations": {"helm.sh/resource-policy": "keep"}}}
    (child,) = children([kept], "x", skip_await=True, chart=True)
    assert child.keep
    assert child.manifest["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true"
    (child,) = children([kept], "x", skip_await=False, chart=False)
    assert not child.keep


def test_lists_are_taken_apart_and_empty_documents_left_out() -> None:
    """A date in a manifest stays the text that it is."""
    text = """
---
# nothing
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {day: 2026-01-01}}
"""
    (found,) = parsed(text)
    assert found["data"] == {"day": "2026-01-01"}


@pytest.mark.parametrize("text", ["a: 1", "- 1", "kind: X\napiVersion: v1", "{"])
def test_what_is_no_object_is_refused(text: str) -> None:
    """In one sentence, with its beginning."""
    with pytest.raises(RefusedError):
        parsed(text)
