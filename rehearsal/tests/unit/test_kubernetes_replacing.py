from typing import Any

import pytest

from ebbtide.recording.values import UNKNOWN
from ebbtide_rehearsal.cloud.kubernetes.objects import Object, Path
from ebbtide_rehearsal.cloud.kubernetes.replacing import fixed_fields, needs_another
from ebbtide_rehearsal.cloud.kubernetes.resource import change


def _fixed(manifest: Object, **options: bool) -> tuple[str, ...]:
    usual = {"patch": False, "mutable_config_maps": False, "mutable_secrets": False}
    return fixed_fields(manifest, **{**usual, **options})


def _of(version: str, kind: str, **fields: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "n"}, **fields}


ANOTHER: list[tuple[str, str, Path]] = [
    ("v1", "Namespace", ("metadata", "name")),
    ("apps/v1", "Deployment", ("spec", "selector", "matchLabels", "a")),
    ("apps/v1", "StatefulSet", ("spec", "volumeClaimTemplates", 0, "spec", "resources")),
    ("batch/v1", "Job", ("spec", "template", "spec", "containers", 0, "image")),
    ("v1", "PersistentVolumeClaim", ("spec", "storageClassName")),
    ("v1", "Pod", ("spec", "containers", 1, "image")),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", ("roleRef", "name")),
    ("storage.k8s.io/v1", "StorageClass", ("parameters", "type")),
]
THE_SAME: list[tuple[str, str, Path]] = [
    ("v1", "Namespace", ("metadata", "labels", "a")),
    ("apps/v1", "Deployment", ("spec", "template", "spec", "containers", 0, "image")),
    ("batch/v1", "Job", ("spec", "suspend")),
    ("v1", "PersistentVolumeClaim", ("spec", "resources", "requests", "storage")),
    ("v1", "Pod", ("spec", "activeDeadlineSeconds")),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", ("subjects", 0, "name")),
    ("kueue.x-k8s.io/v1beta2", "ClusterQueue", ("spec", "cohortName")),
]


@pytest.mark.parametrize(("version", "kind", "path"), ANOTHER)
def test_a_change_of_a_fixed_field_needs_another_object(version: str, kind: str, path: Path) -> None:
    """As the table of Pulumi's provider has it, kind by kind."""
    assert needs_another(path, "new", _fixed(_of(version, kind)))


@pytest.mark.parametrize(("version", "kind", "path"), THE_SAME)
def test_any_other_change_does_not(version: str, kind: str, path: Path) -> None:
    """Whether it can be made is up to the API server."""
    assert not needs_another(path, "new", _fixed(_of(version, kind)))


def test_a_whole_part_that_is_new_counts_by_what_is_in_it() -> None:
    """A spec that comes at once has a selector in it, or none."""
    fixed = _fixed(_of("apps/v1", "Deployment"))
    assert needs_another(("spec",), {"selector": {}}, fixed)
    assert not needs_another(("spec",), {"replicas": 1}, fixed)


def test_other_data_make_another_config_map_unless_the_provider_says_so() -> None:
    """`enableConfigMapMutable` and `enableSecretMutable`; an immutable one is replaced all the same."""
    path: Path = ("data", "a")
    config, secret = _of("v1", "ConfigMap"), _of("v1", "Secret")
    assert needs_another(path, "b", _fixed(config))
    assert not needs_another(path, "b", _fixed(config, mutable_config_maps=True))
    assert needs_another(path, "b", _fixed({**config, "immutable": True}, mutable_config_maps=True))
    assert needs_another(path, "b", _fixed(secret))
    assert not needs_another(path, "b", _fixed(secret, mutable_secrets=True))
    assert needs_another(("type",), "b", _fixed(secret, mutable_secrets=True))


def test_a_patch_is_another_only_of_another_object() -> None:
    """It owns fields, and whatever they are it can let go of them."""
    job = _of("batch/v1", "Job")
    assert not needs_another(("spec", "template"), {}, _fixed(job, patch=True))
    assert needs_another(("metadata", "name"), "b", _fixed(job, patch=True))


def test_an_object_with_a_name_of_its_own_goes_before_the_new_one_comes() -> None:
    """Two cannot have one name; one that was given its name gets another."""
    old = _of("v1", "ConfigMap", data={"a": "1"})
    fixed = _fixed(old)
    other = {**old, "data": {"a": "2"}}
    assert change(old, old, other, fixed).delete_first
    automatic = {"name": "a", "namespace": "n", "annotations": {"pulumi.com/autonamed": "true"}}
    given = {**old, "metadata": automatic}
    assert not change(given, given, {**given, "data": {"a": "2"}}, fixed).delete_first
    renamed = change(old, old, {**other, "metadata": {"name": "b", "namespace": "n"}}, fixed)
    assert renamed.replaces == ["data", "metadata"]
    assert not renamed.delete_first


def test_what_is_not_known_yet_is_a_change() -> None:
    """A preview cannot promise that it stays."""
    old = _of("v1", "ConfigMap", data={"a": "1"})
    found = change(old, old, {**old, "data": {"a": UNKNOWN}}, _fixed(old))
    assert (found.changed, found.replaces) == (["data"], ["data"])
