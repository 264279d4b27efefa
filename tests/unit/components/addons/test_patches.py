"""Patches over objects that are made up here, so that they are tested wherever the project is."""

import copy
from typing import Any

import pytest

from components.addons import patches
from components.addons.katib import with_namespace
from components.addons.patches import Object, Patch, pod_spec
from tests.manifests import HOME


def deployment(name: str = "controller", **container: Any) -> Object:
    """A Deployment with one container."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "kubeflow"},
        "spec": {
            "replicas": 1,
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example/main:1.2", **container}]},
            },
        },
    }


def other(kind: str, name: str = "thing", **fields: Any) -> Object:
    """An object that makes no pods."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


PATCHES: dict[str, Patch] = {
    "at_home": patches.on_system_pool(HOME),
    "with_requests": patches.with_requests({"cpu": "1m", "memory": "1Mi"}, {}),
    "movable": patches.movable,
    "left_out": patches.left_out("controller"),
    "unawaited_claims": patches.unawaited_claims,
    "annotated": patches.annotated("ServiceAccount", ("thing",), {"a": "b"}),
    "labelled_namespaces": patches.labelled_namespaces({"a": "b"}),
    "holding": patches.holding("thing", {"password": "c2VjcmV0"}),
    "with_config": patches.with_config("thing", {"a": "b"}),
    "without_config": patches.without_config("thing", "c"),
    "narrowed": patches.narrowed({"jobs": ("get",)}, {"secrets": ("thing",)}),
    "without_rights": patches.without_rights("thing"),
    "webhook_ports": patches.webhook_ports(),
    "moved": with_namespace("kubeflow", "katib"),
}
ROLE = other(
    "ClusterRole",
    rules=[
        {"apiGroups": ["", "batch"], "resources": ["pods", "jobs", "secrets"], "verbs": ["get", "update"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["update"], "resourceNames": ["other"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ],
)
OBJECTS = [
    ROLE,
    other("RoleBinding", subjects=[{"kind": "ServiceAccount", "name": "thing"}]),
    deployment(ports=[{"name": "webhook", "containerPort": 8443}]),
    {**deployment(), "kind": "DaemonSet"},
    *(
        other(kind, data={"c": "d"}, spec={})
        for kind in ("ConfigMap", "Secret", "Service", "Namespace", "ServiceAccount", "PersistentVolumeClaim")
    ),
]


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_a_patch_changes_nothing_that_it_is_given(patch: Patch) -> None:
    """A patch does not change its argument, and is idempotent."""
    for item in OBJECTS:
        before = copy.deepcopy(item)
        once = patch(item)
        assert item == before
        assert patch(once) == once


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_a_patch_keeps_to_its_business(patch: Patch) -> None:
    """An object of a kind that no patch knows comes back as it was."""
    stranger = {"apiVersion": "example.com/v1", "kind": "Stranger", "metadata": {"name": "thing"}}
    assert patch(stranger) == stranger


def test_a_controller_is_placed_on_the_system_pool() -> None:
    """A controller selects the system pool and tolerates its taints, besides its own selectors and
    tolerations."""
    item = deployment()
    item["spec"]["template"]["spec"] |= {"nodeSelector": {"kubernetes.io/os": "linux"}}
    spec = pod_spec(PATCHES["at_home"](item))
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", "ebbtide.dev/pool": "system"}
    assert spec["tolerations"] == HOME.tolerations
    assert spec["priorityClassName"] == HOME.priority_class


def test_requests_are_added_and_never_changed() -> None:
    """A container's own requests stay, and what it does not ask for is the default, or that of its name."""
    patch = patches.with_requests(
        {"cpu": "20m", "memory": "128Mi"}, {"main": {"cpu": "100m", "memory": "1Gi"}}
    )
    named = pod_spec(patch(deployment(resources={"requests": {"cpu": "5m"}})))["containers"][0]
    assert named["resources"]["requests"] == {"cpu": "5m", "memory": "1Gi"}
    unnamed = pod_spec(patches.with_requests({"cpu": "20m", "memory": "128Mi"}, {})(deployment()))
    assert unnamed["containers"][0]["resources"]["requests"] == {"cpu": "20m", "memory": "128Mi"}


def test_an_omitted_deployment_has_no_replicas() -> None:
    """An omitted Deployment has no replicas, and no resource depends on one."""
    item = PATCHES["left_out"](deployment())
    assert item["spec"]["replicas"] == 0
    assert item["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    assert PATCHES["left_out"](deployment("another")) == deployment("another")


def test_bindings_to_everyone_are_narrowed() -> None:
    """Everyone makes place for those who work on the cluster; other bindings stay as they are."""
    group = {"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}
    account = {"kind": "ServiceAccount", "name": "ml-pipeline", "namespace": "kubeflow"}
    readers = [{"kind": "Group", "name": "system:serviceaccounts"}]
    binding = {"kind": "RoleBinding", "metadata": {"name": "public"}, "subjects": [account, group]}
    assert patches.for_readers(readers)(binding)["subjects"] == [account, *readers]
    private = {**binding, "subjects": [account]}
    assert patches.for_readers(readers)(private) is private


def test_a_role_is_narrowed_to_what_is_used() -> None:
    """Verbs are replaced, changes limited to named objects, and other rules stay as they are."""
    pods, jobs, reading, changing, *rest = PATCHES["narrowed"](ROLE)["rules"]
    assert (pods["resources"], pods["verbs"]) == (["pods"], ["get", "update"])
    assert (jobs["resources"], jobs["verbs"]) == (["jobs"], ["get"])
    assert (reading["resources"], reading["verbs"]) == (["secrets"], ["get"])
    assert "resourceNames" not in reading
    assert (changing["verbs"], changing["resourceNames"]) == (["update"], ["thing"])
    assert rest == ROLE["rules"][1:]
    assert patches.narrowed({"jobs": ()}, {})(ROLE)["rules"][0]["resources"] == ["pods", "secrets"]
