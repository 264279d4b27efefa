from typing import Any

from ebbtide_rehearsal.cloud.kubernetes.managers import forced, taken_over, without_ignored
from ebbtide_rehearsal.cloud.kubernetes.objects import Object


def _entry(manager: str, operation: str, **fields: Any) -> Object:
    return {"manager": manager, "operation": operation, "fieldsV1": fields}


def _live(*entries: Object, **fields: Any) -> Object:
    return {"metadata": {"resourceVersion": "7", "managedFields": list(entries)}, **fields}


def test_what_an_object_was_made_with_goes_over_to_its_manager() -> None:
    """With what the manager had, while others keep theirs, and guarded by the version."""
    made = _entry("pulumi-kubernetes", "Update", **{"f:data": {"f:a": {}}})
    ours = _entry("ours", "Apply", **{"f:data": {"f:b": {}}})
    theirs = _entry("controller", "Update", **{"f:status": {}})
    patch = taken_over(_live(made, ours, theirs), "ours")
    assert patch is not None
    fields, version = patch
    merged: Object = {"manager": "ours", "operation": "Apply", "fieldsV1": {"f:data": {"f:b": {}, "f:a": {}}}}
    assert fields["value"] == [theirs, merged]
    assert version["value"] == "7"


def test_nothing_goes_over_where_there_is_nothing() -> None:
    """Nor does the status that kubectl wrote."""
    status = {**_entry("kubectl", "Update", **{"f:status": {}}), "subresource": "status"}
    assert taken_over(_live(_entry("ours", "Apply"), status), "ours") is None


def test_an_ignored_field_that_others_own_is_left_to_them() -> None:
    """One that is ours, or nobody's, is asked for as it is."""
    theirs = _entry("autoscaler", "Update", **{"f:spec": {"f:replicas": {}}})
    wanted: Object = {"spec": {"replicas": 1, "paused": True}}
    live = _live(theirs, spec={"replicas": 5, "paused": False})
    assert without_ignored(wanted, live, "ours", ["spec.replicas"]) == {"spec": {"paused": True}}
    kept = without_ignored(wanted, live, "ours", ["spec.paused"])
    assert kept == {"spec": {"replicas": 1, "paused": False}}
    shared = _live(theirs, _entry("ours", "Apply", **{"f:spec": {"f:replicas": {}}}), spec={"replicas": 5})
    assert without_ignored(wanted, shared, "ours", ["spec.replicas"])["spec"]["replicas"] == 5
    assert without_ignored(wanted, live, "ours", ["data"]) == wanted


def test_fields_are_taken_from_others_only_where_that_is_said() -> None:
    """By the annotation or the provider, and in a preview where the real run would own them by then."""
    plain: Object = {"metadata": {}}
    annotated: Object = {"metadata": {"annotations": {"pulumi.com/patchForce": "true"}}}
    others = _live(_entry("kubectl", "Apply"))
    assert not forced(plain, others, always=False, preview=False)
    assert forced(annotated, others, always=False, preview=False)
    assert forced(plain, others, always=True, preview=False)
    assert not forced(plain, None, always=False, preview=False)
    assert forced(plain, None, always=False, preview=True)
    made = _live(_entry("pulumi-kubernetes", "Update"))
    assert forced(plain, made, always=False, preview=True)
    assert not forced(plain, made, always=False, preview=False)
