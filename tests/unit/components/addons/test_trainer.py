"""Values of Trainer's chart, and patches of objects from its templates."""

import yaml

from components.addons.patches import CONTROL_PLANE_PORT, Object, containers, patched, pod_spec
from components.addons.trainer import PATCHES, RUNTIME_PATCHES, values
from ebbtide.declaration.catalog.resources import footprint
from ebbtide.declaration.model.addons import Trainer
from ebbtide.placement.profile import SAFE_TO_EVICT
from tests.manifests import HOME, mebibytes, millicores


def config(api_version: str) -> Object:
    """A controller's settings, as JobSet's chart writes them."""
    text = yaml.safe_dump({"apiVersion": api_version, "leaderElection": {"leaderElect": True}})
    return {
        "kind": "ConfigMap",
        "metadata": {"name": "config"},
        "data": {"controller_manager_config.yaml": text},
    }


def test_the_footprint_is_what_the_chart_is_told() -> None:
    """The catalog's sum is that of the two controllers' requests."""
    chart_values = values(HOME, Trainer())
    requests = [
        chart_values["manager"]["resources"]["requests"],
        chart_values["jobset"]["controller"]["resources"]["requests"],
    ]
    expected = footprint("trainer")
    assert expected.requests.cpu_m == sum(millicores(item["cpu"]) for item in requests)
    assert expected.requests.memory_mib == sum(mebibytes(item["memory"]) for item in requests)
    assert expected.pods == len(requests)


def test_jobset_listens_where_it_is_reached() -> None:
    """JobSet's settings and container name the port that is open on a private cluster."""
    configured = patched(config("config.jobset.x-k8s.io/v1alpha1"), PATCHES)
    settings = yaml.safe_load(configured["data"]["controller_manager_config.yaml"])
    assert settings["webhook"] == {"port": CONTROL_PLANE_PORT}
    assert settings["leaderElection"] == {"leaderElect": True}
    ports = [{"name": "webhook", "containerPort": 9443}, {"name": "metrics", "containerPort": 8443}]
    template = {"spec": {"containers": [{"name": "controller", "ports": ports}]}}
    made = patched(
        {"kind": "Deployment", "metadata": {"name": "jobset"}, "spec": {"template": template}}, PATCHES
    )
    (controller,) = containers(made)
    assert [port["containerPort"] for port in controller["ports"]] == [CONTROL_PLANE_PORT, 8443]
    assert made["spec"]["template"]["metadata"]["annotations"][SAFE_TO_EVICT] == "true"
    assert pod_spec(made)


def test_training_pods_are_secured() -> None:
    """Pods of every replicated job have the security context of Jobs, and keep a runtime's user."""
    spec = {
        "securityContext": {"fsGroup": 1000},
        "containers": [{"name": "node", "image": "mpi", "securityContext": {"runAsUser": 1000}}],
    }
    job = {"name": "node", "template": {"spec": {"template": {"spec": spec}}}}
    runtime: Object = {
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "deepspeed-distributed"},
        "spec": {"template": {"spec": {"network": {}, "replicatedJobs": [job]}}},
    }
    template = patched(runtime, RUNTIME_PATCHES)["spec"]["template"]["spec"]
    assert template["network"] == {}
    (made,) = template["replicatedJobs"]
    pod = made["template"]["spec"]["template"]["spec"]
    assert pod["securityContext"] == {"fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "runAsUser": 1000,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["NET_RAW"]},
    }


def test_jobsets_certificate_is_its_controllers() -> None:
    """The chart's empty keys are not ours: JobSet writes them."""
    secret: Object = {
        "kind": "Secret",
        "metadata": {"name": "jobset-webhook-server-cert"},
        "data": {"ca.crt": ""},
    }
    assert "data" not in patched(secret, PATCHES)
    other: Object = {"kind": "Secret", "metadata": {"name": "other"}, "data": {"ca.crt": ""}}
    assert patched(other, PATCHES) == other
