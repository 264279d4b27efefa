"""A recording of an exported state: what the program declared, and nothing that must stay secret."""

import json
from typing import Any

import pytest

from ebbtide.analysis.reading.state import StateError, recording_of
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import UNKNOWN, Secret

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = {SIGNATURE: "1b47061264138c4ac30d75fd1eb44270"}
STACK = "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev"


def _exported(*resources: dict[str, Any]) -> str:
    stack = {"urn": STACK, "type": "pulumi:pulumi:Stack"}
    return json.dumps({"version": 3, "deployment": {"resources": [stack, *resources]}})


def _state(text: str) -> Recording:
    return recording_of(text, project="shop", stack="dev", file="state.json")


def _item(type_: str, inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    urn = f"urn:pulumi:dev::shop::{type_}::data"
    return {"urn": urn, "type": type_, "custom": True, "parent": STACK, "inputs": inputs, **more}


def test_inputs_are_the_declared_ones() -> None:
    """Without what providers fill in: defaults, random names, regions."""
    bucket = {"__defaults": ["name"], "name": "data-1", "lifecycle": {"__defaults": ["a"], "a": 1, "b": 2.0}}
    group = {"__createBeforeDelete": True, "resourceGroupName": "g1", "location": "eastus"}
    metadata = {"annotations": {"pulumi.com/autonamed": "true"}, "name": "x-1", "namespace": "y"}
    state = _state(
        _exported(
            _item("gcp:storage/bucket:Bucket", bucket),
            _item("azure-native:resources:ResourceGroup", group),
            _item("kubernetes:core/v1:ConfigMap", {"metadata": metadata}),
        )
    )
    assert [dict(item.inputs) for item in state] == [
        {"lifecycle": {"b": 2}},
        {"__createBeforeDelete": True},
        {"metadata": {"namespace": "y"}},
    ]
    assert {item.parent for item in state} == {None}


def test_encrypted_values_stay_unknown() -> None:
    """Plain ones are wrapped, and shown by nothing."""
    encrypted, plain = SECRET | {"ciphertext": "v1:abc"}, SECRET | {"plaintext": '"hunter2"'}
    (item,) = _state(_exported(_item("my:index:Thing", {"a": encrypted, "b": plain})))
    assert item.inputs == {"a": Secret(UNKNOWN), "b": Secret("hunter2")}
    assert "hunter2" not in repr(item)


def test_options_and_resources_that_are_no_ones() -> None:
    """Default providers and pending deletions are omitted; external resources are only read."""
    provider = "urn:pulumi:dev::shop::pulumi:providers:gcp::default_10_2_0"
    state = _state(
        _exported(
            {"urn": provider, "type": "pulumi:providers:gcp", "custom": True},
            _item("my:index:Gone", {}, delete=True),
            _item("my:index:Read", {}, external=True, provider=f"{provider}::id"),
            _item("my:index:Kept", {}, protect=True, deletedWith="urn:x", retainOnDelete=True),
        )
    )
    read, kept = state
    assert (read.read, read.provider) == (True, None)
    assert (kept.protect, kept.deleted_with, kept.retain_on_delete) == (True, "urn:x", True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "state.json is not JSON: Expecting property name"),
        ("[]", "state.json is not an exported state: it has no `deployment`."),
        ('{"deployment": {"resources": [1]}}', "resources[0] has a value of another type than the engine"),
        ('{"deployment": {"resources": [{"urn": "a"}]}}', "resources[0].type is missing."),
        (
            _exported().replace("dev", "prod"),
            "is the state of stack prod of project shop, not of dev of shop.",
        ),
    ],
)
def test_other_files_are_refused(text: str, message: str) -> None:
    """In one sentence."""
    with pytest.raises(StateError) as refused:
        _state(text)
    assert message in str(refused.value)
