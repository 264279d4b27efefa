"""The real Kubernetes provider and engine on a rehearsal's API server, behind its proxy."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi import automation
from pulumi_kubernetes import Provider

from components.addons.manifest import Manifest, obj
from ebbtide.analysis.recording.record import record
from ebbtide.values.paths import Object
from ebbtide_rehearsal.cloud.store import API_ERROR, SLOW, InjectedFault, Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.discovery import wrong_fields
from ebbtide_rehearsal.tools.find import Tools
from rehearsal.tests.control_plane import programs
from rehearsal.tests.control_plane.programs import Program, Stack

pytestmark = pytest.mark.rehearsal

NAMESPACE = "team"
TEAM = "/api/v1/namespaces/team"


@pytest.fixture
def stack(engine_tools: Tools, kubeconfig: str, tmp_path: Path) -> Iterator[Stack]:
    """A stack that is empty again before its cluster is out of reach."""
    assert kubeconfig
    made = programs.stack(tmp_path / "engine", engine_tools)
    yield made
    made.destroy()


def _program(kubeconfig: str, *objects: Object, patch: bool = False, **options: Any) -> Program:
    """Objects in a namespace of theirs; with `patch`, only their fields."""

    def program() -> None:
        provider = Provider("cluster", kubeconfig=kubeconfig)
        opts = pulumi.ResourceOptions(provider=provider)
        team = Manifest("team", obj("v1", "Namespace", NAMESPACE), opts)
        # Beside the deletion of its kind, the provider waits for a custom resource until it runs out of time.
        times = pulumi.CustomTimeouts(delete="60s")
        inside = pulumi.ResourceOptions(
            provider=provider, depends_on=[team], custom_timeouts=times, **options
        )
        for manifest in objects:
            Manifest(manifest["kind"].lower(), manifest, inside, patch=patch)

    return program


def _deployment(image: str, **more: Any) -> Object:
    pod = {"containers": [{"name": "main", "image": image}], **more}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return obj("apps/v1", "Deployment", "web", NAMESPACE, spec=spec)


def test_an_unknown_field_of_a_built_in_kind_is_named(control_plane: ControlPlane) -> None:
    """The provider drops it, and the strict dry run of the recorded program names it; nothing is created."""
    misspelt = _deployment("busybox", restartpolicy="Always") | {"metadata": {"name": "web"}}

    def program() -> None:
        Manifest("misspelt", misspelt, pulumi.ResourceOptions())
        Manifest("config", obj("v1", "ConfigMap", "config", data={"a": "b"}), pulumi.ResourceOptions())

    (sentence,) = wrong_fields(record(program, project="shop", stack="dev"), control_plane.api)
    assert sentence.startswith("Deployment web: ")
    assert "restartpolicy" in sentence
    assert not control_plane.api.items("/apis/apps/v1/namespaces/default/deployments")


@pytest.mark.long
def test_the_api_fails_and_is_slow_on_request(stack: Stack, kubeconfig: str, store: Store) -> None:
    """The provider's create, update and delete, once; with the message, and in the timeline."""
    kind = "kubernetes:core/v1:ServiceAccount"
    for operation, label in (("create", "a"), ("update", "b")):
        account = obj("v1", "ServiceAccount", "sa", NAMESPACE, metadata={"labels": {"is": label}})
        store.inject(InjectedFault(API_ERROR, f"{operation} {kind}", 1, {"message": f"no {operation} now"}))
        with pytest.raises(automation.CommandError, match=f"no {operation} now"):
            stack.up(_program(kubeconfig, account))
        store.inject(InjectedFault(SLOW, f"{operation} {kind} sa", 1, {"seconds": 0.5}))
        stack.up(_program(kubeconfig, account))
        assert store.faults(SLOW) == {}
    store.inject(InjectedFault(API_ERROR, f"delete {kind}", 1, {"message": "no delete now"}))
    with pytest.raises(automation.CommandError, match="no delete now"):
        stack.up(_program(kubeconfig))
    assert [event.kind for event in store.events()] == ["api-error"] * 3
