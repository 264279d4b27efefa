"""Katib's real objects, after our patches."""

import json
import re

import pytest
import yaml

from components.addons.katib import CONFIG, NAMESPACE, trials_policy
from components.addons.patches import CONTROL_PLANE_PORT, Object, containers
from tests.manifests import KATIB, after, upstream
from tests.unit.components.addons.patched import KUSTOMIZED

pytestmark = pytest.mark.usefixtures("minimal_and_released")

objects = KUSTOMIZED["katib"].objects


def test_it_stands_in_a_namespace_of_its_own() -> None:
    """Nothing names upstream's namespace any more, but the kinds, whose group is called after it."""
    manifests = objects()
    assert f"Namespace/{NAMESPACE}" in manifests
    for key, item in manifests.items():
        assert item["metadata"].get("namespace", NAMESPACE) == NAMESPACE
        if not key.startswith(("CustomResourceDefinition/", "ConfigMap/")):
            left = json.dumps(item).replace("kubeflow.org", "").replace("ghcr.io/kubeflow", "")
            assert "kubeflow" not in left


def test_its_webhooks_are_reached() -> None:
    """Settings, container and service name one port, which is open on a private cluster."""
    manifests = objects()
    config = yaml.safe_load(manifests[f"ConfigMap/{CONFIG}"]["data"]["katib-config.yaml"])
    assert config["init"]["controller"]["webhookPort"] == CONTROL_PLANE_PORT
    (controller,) = containers(manifests["Deployment/katib-controller"])
    ports = {port["name"]: port["containerPort"] for port in controller["ports"]}
    assert ports == {"webhook": CONTROL_PLANE_PORT, "metrics": 8080, "healthz": 18080}
    served = {
        port["name"]: port["targetPort"] for port in manifests["Service/katib-controller"]["spec"]["ports"]
    }
    assert served == ports


def test_its_settings_are_otherwise_upstreams() -> None:
    """The port, the collector's security context and JobSets as trials are all that is changed."""
    before = after(upstream(KATIB), ())[f"ConfigMap/{CONFIG}"]["data"]["katib-config.yaml"]
    config = yaml.safe_load(objects()[f"ConfigMap/{CONFIG}"]["data"]["katib-config.yaml"])
    stock = yaml.safe_load(before)
    stock["init"]["controller"] |= {"webhookPort": CONTROL_PLANE_PORT, "injectSecurityContext": True}
    stock["init"]["controller"]["trialResources"].append("JobSet.v1alpha2.jobset.x-k8s.io")
    assert config == stock


def test_every_kind_that_it_watches_may_be_a_trial() -> None:
    """The admission policy admits the kinds in Katib's settings."""
    config = yaml.safe_load(objects()[f"ConfigMap/{CONFIG}"]["data"]["katib-config.yaml"])
    watched = [name.split(".", 2) for name in config["init"]["controller"]["trialResources"]]
    policy, _ = trials_policy()
    expression = policy["spec"]["validations"][0]["expression"]
    admitted = set(re.findall(r"'(\w+\.[a-z0-9.-]+)'", expression))
    assert {f"{kind}.{group}" for kind, _, group in watched} <= admitted


def _verbs(role: Object, resource: str) -> dict[str, list[str]]:
    """Return the verbs of a role on a resource, by the names that they are limited to."""
    return {
        ",".join(rule.get("resourceNames", ())): sorted(rule["verbs"])
        for rule in role["rules"]
        if resource in rule["resources"]
    }


@pytest.mark.parametrize(
    ("resource", "written"),
    [
        ("secrets", "katib-webhook-cert"),
        ("mutatingwebhookconfigurations", "katib.kubeflow.org"),
        ("validatingwebhookconfigurations", "katib.kubeflow.org"),
    ],
)
def test_the_controller_writes_its_own_objects_alone(resource: str, written: str) -> None:
    """The controller can change only its certificate's Secret and its webhooks among their kinds."""
    role = objects()["ClusterRole/katib-controller"]
    assert _verbs(role, resource) == {"": ["get", "list", "watch"], written: ["patch", "update"]}


def test_its_roles_create_trials_and_no_volumes() -> None:
    """The controller creates JobSets, no volumes and no CronJobs; the UI changes no ConfigMap."""
    manifests = objects()
    role, screen = (manifests[f"ClusterRole/{name}"] for name in ("katib-controller", "katib-ui"))
    read = ["get", "list", "watch"]
    assert _verbs(role, "persistentvolumes") == _verbs(screen, "configmaps") == {"": read}
    assert _verbs(screen, "namespaces") == {"": read}
    assert _verbs(role, "cronjobs") == {}
    for kind in ("jobs", "jobsets", "trainjobs"):
        assert _verbs(role, kind) == {"": ["create", "delete", *read]}


def test_the_certificate_is_its_controllers() -> None:
    """An empty `data` would be written again by every update."""
    assert any("data" in item for item in upstream(KATIB) if item["metadata"]["name"] == "katib-webhook-cert")
    assert "data" not in objects()["Secret/katib-webhook-cert"]
