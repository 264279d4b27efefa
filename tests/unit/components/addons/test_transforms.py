"""Patches and deletion of each child of a chart or a directory."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.addons.patches import (
    Object,
    encoded,
    filled_in_the_cluster,
    generated,
    holding,
    is_deleted_with_cluster,
    patch_transform,
)
from ebbtide.analysis.recording.record import record


class Thing(pulumi.CustomResource):
    """Stands for a cluster."""

    def __init__(self, name: str) -> None:
        super().__init__("test:index:Thing", name, {}, None)


def given(kind: str, *, custom: bool = True, **fields: Any) -> pulumi.ResourceTransformArgs:
    """Build a transform's arguments for a child."""
    return pulumi.ResourceTransformArgs(
        custom=custom,
        type_=f"kubernetes:core/v1:{kind}",
        name="some:child",
        props={"kind": kind, "metadata": {"name": "thing"}, **fields},
        opts=pulumi.ResourceOptions(depends_on=[]),
    )


def transformed(
    args: pulumi.ResourceTransformArgs, *, own: bool = True, kept: tuple[str, ...] = ()
) -> tuple[Mapping[str, Any], bool, list[str] | None]:
    """Return a child's properties, whether it is deleted with the cluster, and its ignored changes."""
    results: list[Any] = []

    def program() -> None:
        cluster = Thing("cluster") if own else None
        result = patch_transform((holding("thing", {"a": "Yg=="}),), cluster, kept)(args)
        assert isinstance(result, pulumi.ResourceTransformResult)
        results.append((result.props, result.opts.deleted_with is not None, result.opts.ignore_changes))

    record(program, project="test", stack="test")
    return results[0]


def test_a_child_goes_with_a_cluster_of_ours() -> None:
    """A child is deleted with the stack's cluster, and individually on an existing one."""
    assert transformed(given("ConfigMap"))[1] is True
    assert transformed(given("ConfigMap"), own=False)[1] is False


_CLAIM: Object = {"template": {"spec": {"volumes": [{"persistentVolumeClaim": {}}]}}}
ENDING: list[tuple[str, Object, bool]] = [
    ("Namespace", {}, False),
    ("PersistentVolumeClaim", {}, False),
    ("StatefulSet", {"volumeClaimTemplates": [{}]}, False),
    ("StatefulSet", _CLAIM, False),
    ("StatefulSet", {}, True),
    ("Service", {"type": "LoadBalancer"}, False),
    ("Service", {"type": "ClusterIP"}, True),
    ("Service", {}, True),
    ("Deployment", _CLAIM, False),
    ("Deployment", {"template": {"spec": {"volumes": [{"emptyDir": {}}]}}}, True),
    ("Deployment", {}, True),
    ("Secret", {}, True),
]


@pytest.mark.parametrize(("kind", "spec", "ends"), ENDING)
def test_what_holds_something_is_deleted_for_real(kind: str, spec: Object, *, ends: bool) -> None:
    """Disks and load balancers outlive a cluster, a claim waits for its pods, and a namespace for all in it;
    the rest ends with the cluster."""
    assert is_deleted_with_cluster({"kind": kind, "spec": spec}) is ends


def test_a_generated_secret_stays_as_it_was_made() -> None:
    """Changes of a generated Secret's values are ignored, those of others are not."""
    props, _, ignored = transformed(given("Secret", stringData={"a": "published"}), kept=("thing",))
    assert props["data"] == {"a": "Yg=="}
    assert "stringData" not in props
    assert ignored == ["data"]
    assert transformed(given("Secret"), kept=("another",))[2] is None
    assert transformed(given("Secret"))[2] is None


def test_data_that_is_an_output_is_dropped_by_name() -> None:
    """To a transform, the data of a Secret is an Output: there is nothing in it to look at."""
    dropped: list[Any] = []

    def program() -> None:
        secret = given("Secret", data=pulumi.Output.secret({"tls.crt": ""}), type="Opaque")
        result = patch_transform((filled_in_the_cluster("thing"),), None)(secret)
        assert isinstance(result, pulumi.ResourceTransformResult)
        dropped.append(result.props)

    record(program, project="test", stack="test")
    assert dropped == [{"kind": "Secret", "metadata": {"name": "thing"}, "type": "Opaque"}]


def test_components_and_strangers_are_left_alone() -> None:
    """A transform is asked for the directory itself, too, and has nothing to say to it."""
    transform = patch_transform((), None)
    assert transform(given("ConfigMap", custom=False)) is None
    stranger = given("ConfigMap")
    stranger.type_ = "gcp:storage/bucket:Bucket"
    assert transform(stranger) is None


def test_generated_credentials_are_secret_and_never_the_same() -> None:
    """Each has 48 hexadecimal digits, of which Pulumi knows that they are secret."""

    async def made() -> list[tuple[Any, bool]]:
        outputs = [generated(), generated()]
        return [(await output.future(), await output.is_secret()) for output in outputs]

    with asyncio.Runner() as runner:
        (first, first_secret), (second, second_secret) = runner.run(made())
    assert first_secret
    assert second_secret
    assert first != second
    assert len(first) == len(encoded("0" * 48))
