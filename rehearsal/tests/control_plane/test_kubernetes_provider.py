"""The real Kubernetes provider and engine on a rehearsal's API server, behind its proxy."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from pulumi import automation
from pulumi_kubernetes import Provider

from components.addons.manifest import Manifest, obj
from ebbtide.analysis.recording.record import record
from ebbtide_rehearsal.cloud.store import API_ERROR, SLOW, InjectedFault, Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.discovery import wrong_fields
from ebbtide_rehearsal.tools.find import Tools
from rehearsal.tests.control_plane import programs
from rehearsal.tests.control_plane.programs import Program, Stack

pytestmark = pytest.mark.rehearsal

NAMESPACE = "team"
TEAM = "/api/v1/namespaces/team"
_INTEGER = {"type": "integer"}
SOON = {"pulumi.com/timeoutSeconds": "3"}

Object = dict[str, Any]


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


def _config(**data: str) -> Object:
    return obj("v1", "ConfigMap", "config", NAMESPACE, data=data)


def _definition(kind: str, schema: Object) -> Object:
    plural = f"{kind.lower()}s"
    return obj(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{plural}.example.com",
        spec={
            "group": "example.com",
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    )


def _deployment(image: str, **more: Any) -> Object:
    pod = {"containers": [{"name": "main", "image": image}], **more}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return obj("apps/v1", "Deployment", "web", NAMESPACE, spec=spec)


def test_objects_are_made_changed_replaced_and_removed(
    stack: Stack, kubeconfig: str, control_plane: ControlPlane
) -> None:
    """A second run and a refresh change nothing; objects that leave the program are deleted."""
    secret = obj("v1", "Secret", "secret", NAMESPACE, stringData={"word": "hidden"})
    quota = obj("v1", "ResourceQuota", "quota", NAMESPACE, spec={"hard": {"cpu": "1000m", "pods": "9"}})
    account = obj("v1", "ServiceAccount", "sa", NAMESPACE, metadata={"labels": {"a": "b", "c": "d"}})
    program = _program(kubeconfig, secret, quota, account, _config(a="1"))
    assert stack.preview(program) == {"create": 7}
    assert stack.up(program) == {"create": 7}
    assert (stack.up(program), stack.refresh(), stack.up(program)) == ({}, {}, {})
    assert stack.state()["kubernetes:core/v1:Secret secret"]["id"] == "team/secret"
    assert stack.is_secret("kubernetes:core/v1:Secret secret", "data")

    other = {**account, "metadata": {**account["metadata"], "labels": {"a": "x"}}}
    assert stack.up(_program(kubeconfig, secret, quota, other, _config(a="2"))) == {"update": 1, "replace": 1}
    labels = control_plane.api.get(f"{TEAM}/serviceaccounts/sa")["metadata"]["labels"]
    assert labels == {"a": "x"}
    assert control_plane.api.get(f"{TEAM}/configmaps/config")["data"] == {"a": "2"}
    assert stack.up(_program(kubeconfig)) == {"delete": 4}
    stack.destroy()
    assert control_plane.api.find(TEAM) is None


def test_an_unknown_field_of_a_custom_resource_is_refused(stack: Stack, kubeconfig: str) -> None:
    """By the API server; the provider asks it for a warning alone."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": _INTEGER}}}}
    definition = _definition("Gadget", schema)
    good = obj("example.com/v1", "Gadget", "one", NAMESPACE, spec={"a": 1})
    stack.up(_program(kubeconfig, definition, good))
    bad = {**good, "spec": {"a": 1, "b": 2}}
    with pytest.raises(automation.CommandError, match=r"\.spec\.b: field not declared in schema"):
        stack.up(_program(kubeconfig, definition, bad))
    assert stack.up(_program(kubeconfig, definition)) == {"delete": 1}


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


@pytest.mark.long
def test_a_patch_owns_fields_and_gives_them_back(
    stack: Stack, kubeconfig: str, control_plane: ControlPlane
) -> None:
    """The namespace stays, with its other labels."""
    label = obj("v1", "Namespace", "default", metadata={"labels": {"ours": "yes"}})
    assert stack.up(_program(kubeconfig, label, patch=True))["create"] == 4
    path = "/api/v1/namespaces/default"
    assert control_plane.api.get(path)["metadata"]["labels"]["ours"] == "yes"
    more = {**label, "metadata": {"name": "default", "labels": {"ours": "still"}}}
    assert stack.up(_program(kubeconfig, more, patch=True)) == {"update": 1}
    stack.destroy()
    assert control_plane.api.get(path)["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default"}


@pytest.mark.long
def test_fields_of_others_are_not_taken_unasked(
    stack: Stack, kubeconfig: str, control_plane: ControlPlane
) -> None:
    """A conflict names the field and its owner; the annotation takes it all the same."""
    label: Object = {"metadata": {"name": "kube-public", "labels": {"whose": "theirs"}}}
    path = "/api/v1/namespaces/kube-public"
    control_plane.api.apply(path, {"apiVersion": "v1", "kind": "Namespace", **label})
    ours = obj("v1", "Namespace", "kube-public", metadata={"labels": {"whose": "ours"}})
    with pytest.raises(
        automation.CommandError, match=r"conflict[\s\S]*ebbtide-rehearsal[\s\S]*labels\.whose"
    ):
        stack.up(_program(kubeconfig, ours, patch=True))
    ours["metadata"]["annotations"] = {"pulumi.com/patchForce": "true"}
    stack.up(_program(kubeconfig, ours, patch=True))
    assert control_plane.api.get(path)["metadata"]["labels"]["whose"] == "ours"


@pytest.mark.long
def test_an_object_that_does_not_become_ready_is_not_forgotten(stack: Stack, kubeconfig: str) -> None:
    """The engine has it in its state, and the next run goes on with it."""
    stuck = _deployment("web:1", nodeSelector={"no": "such-node"})
    stuck["metadata"]["annotations"] = SOON
    with pytest.raises(automation.CommandError, match="'web' timed out waiting to be Ready"):
        stack.up(_program(kubeconfig, stuck))
    assert stack.state()["kubernetes:apps/v1:Deployment deployment"]["initErrors"]
    skipped = {**stuck, "metadata": {**stuck["metadata"], "annotations": {"pulumi.com/skipAwait": "true"}}}
    assert stack.up(_program(kubeconfig, skipped)) == {"update": 1}


@pytest.mark.long
def test_a_custom_resource_may_come_before_its_kind(
    stack: Stack, kubeconfig: str, control_plane: ControlPlane
) -> None:
    """Creating a custom resource is retried until its definition exists, and fails without one."""
    thing = obj("example.com/v1", "Thing", "one", NAMESPACE, spec={"a": 1})
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    with pytest.raises(
        automation.CommandError, match=r'no matches for kind "Thing" in version "example\.com/v1"'
    ):
        stack.up(_program(kubeconfig, thing))
    stack.up(_program(kubeconfig, thing, _definition("Thing", schema)))
    path = f"/apis/example.com/v1/namespaces/{NAMESPACE}/things/one"
    assert control_plane.api.get(path)["spec"] == {"a": 1}
    assert stack.up(_program(kubeconfig, _definition("Thing", schema))) == {"delete": 1}


def test_a_cluster_out_of_reach_is_said_to_be(stack: Stack, kubeconfig: str) -> None:
    """A preview goes on without it."""
    config = yaml.safe_load(kubeconfig)
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    program = _program(yaml.safe_dump(config), _config())
    assert stack.preview(program) == {"create": 4}
    with pytest.raises(automation.CommandError, match="configured Kubernetes cluster is unreachable"):
        stack.up(program)
