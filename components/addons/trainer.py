"""Kubeflow Trainer, for distributed training: its component, the values of its chart, and the patches of its
objects."""

from typing import Any, Final

import pulumi
import yaml
from pulumi_kubernetes import helm
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.addons import Trainer as Declared
from ebbtide.declaration.model.addons import remote_inputs

from .add_on import AddOnArgs, AddOnComponent, SystemPlacement, system_placement
from .patches import (
    CONTROL_PLANE_PORT,
    WEBHOOKS,
    Object,
    Patch,
    data_of,
    filled_in_the_cluster,
    for_readers,
    is_,
    kind_of,
    movable,
    narrowed,
    on_system_pool,
    patch_transform,
    updated,
    webhook_ports,
)
from .post_renderer import post_renderer
from .security import policy, ports, readers

RELEASE = "kubeflow-trainer"

_CHART = "oci://ghcr.io/kubeflow/charts/kubeflow-trainer"
_RUNTIMES = "github.com/kubeflow/trainer/manifests/overlays/runtimes"

NAMESPACE: Final = Declared.spec.namespace

_METRICS: Final = 8443
"""Metrics of Trainer and JobSet, served over TLS to clients that the API server authorizes (their charts,
2.3.0 and 0.12.0)."""
_STATUS: Final = 10443
"""Port for training pods to report their progress to Trainer, with a token (Trainer 2.3.0, charts)."""

_MANAGER = {"requests": {"cpu": "100m", "memory": "300Mi"}, "limits": {"memory": "300Mi"}}
"""The chart's suggestion (2.3.0, values.yaml)."""

_JOBSET = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}
"""The chart of JobSet 0.12.0 requests 500m, for clusters with thousands of JobSets, with a limit of 4 GiB."""

_SECURITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["NET_RAW"]}}

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


class Trainer(AddOnComponent):
    """Trainer and JobSet from Trainer's chart, and the runtimes from its kustomization.

    The runtimes are created after the controllers and deleted before them: a finalizer holds a runtime that a
    job uses until the controller removes it. Tenants' namespaces depend on `ready` for the same reason. It
    has no volume; its jobs' claims are in their namespaces. Sources: kubeflow/trainer 2.3.0, charts and
    manifests/overlays/runtimes.
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
        declared, placement = (
            args.declaration.addons.trainer or Declared(),
            system_placement(args.declaration),
        )
        release = declared.release
        namespace = self._system_namespace(NAMESPACE)
        self._network_policies(network_policies(), namespace)
        inputs: dict[str, Any] = {
            "chart": _CHART,
            "version": release.version,
            "name": RELEASE,
            "namespace": NAMESPACE,
            "values": values(placement, declared),
        }
        directory = f"{_RUNTIMES}?ref={release.commit}"
        chart = helm.v4.Chart(
            f"{name}-chart",
            **inputs,
            post_renderer=post_renderer(),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[namespace, *args.depends_on],
                transforms=[
                    patch_transform(
                        (*PATCHES, on_system_pool(placement), for_readers(readers(args.declaration))),
                        args.deleted_with,
                    )
                ],
            ),
        )
        runtimes = kustomize.Directory(
            f"{name}-runtimes",
            directory=directory,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[chart],
                transforms=[patch_transform(RUNTIME_PATCHES, args.deleted_with)],
            ),
        )
        self.ready = (chart, runtimes)
        self.register_outputs(remote_inputs(inputs, {"directory": directory}))


def values(placement: SystemPlacement, declared: Declared) -> dict[str, Any]:
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


RUNTIME_PATCHES: tuple[Patch, ...] = (_secured,)
"""Patches of the runtimes."""


PATCHES: tuple[Patch, ...] = (
    movable,
    narrowed({}, dict.fromkeys(WEBHOOKS, _WEBHOOKS)),
    _jobset_listening,
    webhook_ports(),
    filled_in_the_cluster(_CERTIFICATE),
)
"""Patches of the chart's objects, for settings that it has no values for."""
