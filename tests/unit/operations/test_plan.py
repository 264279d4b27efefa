"""Changes made by an interrupted update, from the times in the state."""

from datetime import UTC, datetime
from typing import Any

from ebbtide.operations.plan import Done, done_since

_COMPLETED = datetime(2026, 11, 20, 10, tzinfo=UTC)


def _resource(name: str, created: str, modified: str, **more: Any) -> dict[str, Any]:
    times = {"created": f"2026-11-20T{created}Z", "modified": f"2026-11-20T{modified}Z"}
    type_ = more.pop("type", "gcp:container/nodePool:NodePool")
    urn = f"urn:pulumi:dev::ebbtide::{type_}::{name}"
    return {"urn": urn, "type": type_, "custom": True, **times, **more}


_STATE = {
    "resources": [
        _resource("old", "09:00:00", "09:00:00"),
        _resource("last", "10:00:00.9", "10:00:00.9"),  # history has whole seconds
        _resource("new", "10:05:00", "10:05:00"),
        _resource("changed", "09:00:00", "10:06:00"),
        _resource("read", "10:05:00", "10:05:00", external=True),
        _resource("leaving", "10:05:00", "10:05:00", delete=True),
        _resource("login", "10:05:00", "10:05:00", type="pulumi:providers:gcp"),
        _resource("component", "10:05:00", "10:05:00", custom=False),
    ]
}


def test_done_is_what_is_newer_than_the_last_completed_update() -> None:
    """Resources of the cloud count as created or updated, each once."""
    assert done_since(_STATE, _COMPLETED) == Done(created=("new",), updated=("changed",))


def test_everything_was_done_if_no_update_completed() -> None:
    """The first update of a stack was interrupted: all of its resources are its own."""
    assert done_since(_STATE, None) == Done(created=("old", "last", "new", "changed"))
    assert done_since({}, None) == Done()
