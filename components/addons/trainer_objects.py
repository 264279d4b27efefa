"""Values of Kubeflow Trainer's chart, and patches of its objects."""

from typing import Any, Final

import yaml

from ebbtide.declaration.catalog import PINS
from ebbtide.declaration.model import Trainer

from .network_policies import policy, ports
from .objects import Object, Patch, data_of, is_, kind_of, updated
from .patches import (
    CONTROL_PLANE_PORT,
    WEBHOOKS,
    filled_in_the_cluster,
    movable,
    narrowed,
    webhook_ports,
)
from .system_placement import SystemPlacement

NAMESPACE: Final = Trainer.spec.namespace

_METRICS: Final = 8443
"""Metrics of Trainer and JobSet, served over TLS to clients that the API server authorizes (their charts,
2.3.0 and 0.12.0)."""
_STATUS: Final = 10443
"""Port for training pods to report their progress to Trainer, with a token (Trainer 2.3.0, charts)."""

_MANAGER = {"requests": {"cpu": "100m", "memory": "300Mi"}, "limits": {"memory": "300Mi"}}
"""The chart's suggestion (2.3.0, values.yaml)."""

_JOBSET = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}
"""The chart of JobSet 0.12.0 requests 500m, for clusters with thousands of JobSets, with a limit of 4 GiB."""


def values(placement: SystemPlacement, declared: Trainer) -> dict[str, Any]:
    """Return the values of the chart. A release that was not tested has its own JobSet.

    The chart's runtimes are disabled: it creates them in a hook, which Pulumi skips, and which would download
    an unpinned kubectl. They are created from their kustomization instead.
    """
    pod_fields = {"nodeSelector": placement.node_selector, "tolerations": placement.tolerations}
    # The chart in the repository has a branch as its version.
    jobset = {
        "repository": "registry.k8s.io/jobset/jobset",
        "tag": f"v{PINS['jobset'].version}",
        "pullPolicy": "IfNotPresent",
    }
    return {
        "image": {"tag": f"v{declared.release.version}"},
        "manager": {
            **pod_fields,
            "resources": _MANAGER,
            "config": {"webhook": {"port": CONTROL_PLANE_PORT}},
        },
        "jobset": {
            "install": True,
            **({"image": jobset} if declared.is_tested else {}),
            "controller": {**pod_fields, "resources": _JOBSET},
        },
        "runtimes": {"defaultEnabled": False},
    }


def network_policies() -> tuple[Object, ...]:
    """Return the network policy of the namespace of Trainer and JobSet: webhooks, metrics, progress."""
    return (policy("controllers", NAMESPACE, [ports(CONTROL_PLANE_PORT, _METRICS, _STATUS)]),)


def _jobset_listening(manifest: Object) -> Object:
    """Serve JobSet's webhooks on a port that the control plane reaches: the chart has no value for it, but
    the controller's configuration has (JobSet 0.12.0, api/config/v1alpha1)."""
    key = "controller_manager_config.yaml"
    if not is_(manifest, "ConfigMap") or key not in data_of(manifest):
        return manifest
    config: Object = yaml.safe_load(data_of(manifest)[key])
    if not str(config.get("apiVersion", "")).startswith("config.jobset.x-k8s.io/"):
        return manifest
    changed = updated(config, ("webhook", "port"), CONTROL_PLANE_PORT)
    return updated(manifest, ("data",), {**manifest["data"], key: yaml.safe_dump(changed, sort_keys=False)})


def _secured(manifest: Object) -> Object:
    """Apply the security settings of Jobs to a runtime's pods: see `ebbtide.work.jobs`. Pods of
    Trainer's own runtimes need no Kubernetes API access, except those with a service account."""
    if kind_of(manifest) != "ClusterTrainingRuntime":
        return manifest
    path = ("spec", "template", "spec", "replicatedJobs")
    jobs: list[Object] = manifest["spec"]["template"]["spec"].get("replicatedJobs") or []
    return updated(manifest, path, [_job_secured(job) for job in jobs]) if jobs else manifest


def _job_secured(job: Object) -> Object:
    path = ("template", "spec", "template", "spec")
    pod: Object = job["template"]["spec"]["template"]["spec"]
    changed = updated(pod, ("securityContext", "seccompProfile"), {"type": "RuntimeDefault"})
    if "serviceAccountName" not in pod:
        changed["automountServiceAccountToken"] = False
    for field in ("initContainers", "containers"):
        if pod.get(field):
            changed[field] = [_container_secured(container) for container in pod[field]]
    return updated(job, path, changed)


def _container_secured(container: Object) -> Object:
    return {**container, "securityContext": {**(container.get("securityContext") or {}), **_SECURITY}}


_SECURITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["NET_RAW"]}}

RUNTIME_PATCHES: tuple[Patch, ...] = (_secured,)
"""Patches of the runtimes."""

_CERTIFICATE = "jobset-webhook-server-cert"
"""The Secret that JobSet's controller fills; its chart creates it with four empty keys (JobSet 0.12.0,
charts/jobset/templates/webhook)."""

_WEBHOOKS = (
    "defaulter.trainer.kubeflow.org",
    "validator.trainer.kubeflow.org",
    "jobset-mutating-webhook-configuration",
    "jobset-validating-webhook-configuration",
)
"""Webhook configurations whose certificate authority the controllers write (Trainer 2.3.0 and JobSet 0.12.0,
charts)."""

PATCHES: tuple[Patch, ...] = (
    movable,
    narrowed({}, dict.fromkeys(WEBHOOKS, _WEBHOOKS)),
    _jobset_listening,
    webhook_ports(),
    filled_in_the_cluster(_CERTIFICATE),
)
"""Patches of the chart's objects, for settings that it has no values for."""
