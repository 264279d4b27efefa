from typing import Any

import pytest

from ebbtide_rehearsal.cloud.kubernetes.difference import differences, pruned
from ebbtide_rehearsal.cloud.kubernetes.objects import MISSING, Object, normalized


def _changed(live: Object, old: Object, new: Object) -> list[tuple[str | int, ...]]:
    return [path for path, _ in differences(pruned(live, old), new)]


OLD: Object = {"spec": {"replicas": 1, "paused": False, "volumes": [{"name": "a", "emptyDir": {}}]}}
LIVE: Object = {
    "spec": {"replicas": 1, "volumes": [{"name": "a", "emptyDir": {}}], "strategy": {"type": "Recreate"}},
    "status": {"replicas": 1},
}


def test_what_the_server_adds_or_leaves_out_is_no_change() -> None:
    """Defaults and status are not asked for, and false is what nothing is."""
    assert _changed(LIVE, OLD, OLD) == []


def test_what_others_changed_is_one() -> None:
    """A refresh found two replicas where one was asked for."""
    assert _changed({"spec": {**LIVE["spec"], "replicas": 2}}, OLD, OLD) == [("spec", "replicas")]


@pytest.mark.parametrize(
    ("new", "path"),
    [
        ({"spec": {**OLD["spec"], "replicas": 0}}, ("spec", "replicas")),
        ({"spec": {**OLD["spec"], "paused": True}}, ("spec", "paused")),
        ({"spec": {**OLD["spec"], "volumes": []}}, ("spec", "volumes")),
        ({"spec": {**OLD["spec"], "minReadySeconds": 0}}, ("spec", "minReadySeconds")),
        ({"spec": {"replicas": 1, "paused": False}}, ("spec", "volumes")),
    ],
)
def test_what_the_program_changes_is_one(new: Object, path: tuple[str, ...]) -> None:
    """Other values, more and less."""
    assert _changed(LIVE, OLD, new) == [path]


def test_a_value_that_goes_is_missing() -> None:
    """Then there is no new one."""
    assert list(differences({"data": {"a": "1"}}, {"data": {}})) == [(("data", "a"), MISSING)]


@pytest.mark.parametrize(
    ("path", "live", "new"),
    [
        (("resources", "requests", "cpu"), "1", "1000m"),
        (("hard", "memory"), "1Gi", "1024Mi"),
        (("resources", "limits", "cpu"), "1", 1),
    ],
)
def test_one_amount_may_be_written_in_two_ways(path: tuple[str, ...], live: Any, new: Any) -> None:
    """In the fields that hold quantities."""
    assert list(differences(live, new, path)) == []


@pytest.mark.parametrize(
    ("path", "live", "new"),
    [
        (("resources", "limits", "cpu"), "1", "1500m"),
        (("labels", "version"), "1", "1.0"),
        (("hard", "cpu"), "much", "more"),
    ],
)
def test_other_amounts_and_other_texts_differ(path: tuple[str, ...], live: Any, new: Any) -> None:
    """`1` and `1.0` are two labels."""
    assert list(differences(live, new, path)) == [(path, new)]


def test_a_secrets_text_is_its_data() -> None:
    """The server keeps no `stringData`."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    written = normalized({**secret, "stringData": {"a": "x"}, "data": {"b": "eQ=="}})
    assert written == {**secret, "data": {"b": "eQ==", "a": "eA=="}}


def test_what_only_the_server_writes_is_left_out() -> None:
    """Manifests of exported objects have it."""
    about = {"name": "a", "creationTimestamp": None, "uid": "1"}
    assert normalized({"apiVersion": "v1", "kind": "Pod", "metadata": about})["metadata"] == {"name": "a"}
