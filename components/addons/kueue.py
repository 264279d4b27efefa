"""Kueue."""

from typing import Any

import pulumi
from pulumi_kubernetes import helm

from ebbtide.values.remote_inputs import remote_inputs

from .add_on import AddOnArgs, AddOnComponent
from .deletion import leaf_options
from .kueue_values import NAMESPACE, VISIBILITY_PORT, network_policies, release_of, values
from .post_renderer import post_renderer

RELEASE = "kueue"
"""Name of the release, which Kueue's certificates depend on (kueue#6797)."""

_VISIBILITY = f"{RELEASE}-visibility-server"
"""Service whose target port is fixed in the chart, unlike the port of its server."""

_CHART = "oci://registry.k8s.io/kueue/charts/kueue"


class Kueue(AddOnComponent):
    """Kueue from its chart, on the system pool, watching labelled namespaces.

    It depends on the add-ons that install the kinds of its integrations. If the kind of training jobs exists
    before that of their runtimes, Kueue disables that integration permanently and rejects every training job
    (Kueue 0.19.2, pkg/controller/jobframework/setup.go and jobs/trainjob). A running controller restarts when
    its configuration changes: the chart adds its checksum to the pod.

    A Chart v4, not a Release: a Release cannot be deleted once the cluster is unreachable
    (pulumi-kubernetes#2675). Everything that uses Kueue's kinds, or creates pods in the namespaces that it
    watches, depends on `ready`. Sources: Kueue 0.19.2, charts/kueue; kueue.sigs.k8s.io, installation
    (2026-08).
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        namespace = self._system_namespace(NAMESPACE, args.deleted_with)
        self._network_policies(args, network_policies(), namespace)
        release = release_of(args.declaration)
        inputs: dict[str, Any] = {
            # Helm fetches the digest, and fails if the version's tag has another (v3.18.6, pkg/registry).
            "chart": f"{_CHART}@{release.digest}",
            "version": release.version,
            "name": RELEASE,
            "namespace": NAMESPACE,
            "values": values(args.declaration),
        }
        chart = helm.v4.Chart(
            f"{name}-chart",
            **inputs,
            post_renderer=post_renderer({_VISIBILITY: VISIBILITY_PORT}),
            opts=leaf_options(self, args.deleted_with, [namespace, *args.depends_on]),
        )
        self.ready = (chart,)
        self.register_outputs(remote_inputs(inputs))
