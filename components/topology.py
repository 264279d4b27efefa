"""A cluster on either cloud: its component, labels for billing, lifetime, Kubernetes provider, kubeconfig."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pulumi
from pulumi_kubernetes import Provider

from ebbtide.declaration.model import expiry
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.expiry import LABEL, label
from ebbtide.declaration.model.rules.resources import resource_overrides
from ebbtide.placement.profile_sources import PREVIEW_KUBECONFIG
from ebbtide.values import clock

from .inputs import overriding

Labels: TypeAlias = Mapping[str, pulumi.Input[str]]
"""Billing labels."""


def _label_value(text: str) -> str:
    """Convert a text to a value that is valid for both Google Cloud labels and Azure tags: lower-case
    letters of any script, digits, `_` and `-`."""
    return re.sub(r"[^\w-]", "-", text.lower())[:63]


def of_pool(labels: Labels, pool: str) -> Labels:
    """Return the billing labels of a node pool: also `ebbtide-pool`."""
    return {**labels, "ebbtide-pool": _label_value(pool)}


def of_team(labels: Labels, team: str) -> Labels:
    """Return the billing labels of a team's resource: also `ebbtide-team`."""
    return {**labels, "ebbtide-team": _label_value(team)}


def billing_labels(cluster: Cluster, expires: pulumi.Output[str] | None) -> Labels:
    """Return labels for cost allocation and for finding forgotten clusters.

    Args:
        cluster: the declaration.
        expires: time of expiry; None for a permanent cluster.

    Returns:
        `ebbtide-cluster`, `ebbtide-owner`, and for an ephemeral cluster `ebbtide-expires`.
    """
    labels = {"ebbtide-cluster": _label_value(cluster.name), "ebbtide-owner": _label_value(cluster.owner)}
    return labels if expires is None else {**labels, LABEL: expires.apply(label)}


class Lifetime(pulumi.ComponentResource):
    """The time of the first `pulumi up`, stored in the stack's state, and the expiry computed from it.

    A stash keeps its first value (pulumi 3.259, pkg/resource/deploy/builtins.go); the engine saves it before
    it creates anything with the label. A preview does not read the clock.
    """

    expires: pulumi.Output[str]
    """Time of expiry, as `2026-11-22T20:00Z`; in a preview before the first `up`, `8h-after-the-first-up`."""

    def __init__(self, name: str, hours: int, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(expiry.COMPONENT, name, {"hours": hours}, opts)
        first_up = pulumi.Stash(
            f"{name}-first-up",
            input=expiry.FIRST_UP if pulumi.runtime.is_dry_run() else expiry.text(clock.now()),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["input"]),
        )
        self.expires = first_up.output.apply(lambda moment: expiry.expiry(moment, hours))
        self.register_outputs({expiry.OUTPUT: self.expires})


def expires(name: str, declaration: Cluster, topology: pulumi.Resource) -> pulumi.Output[str] | None:
    """Return a cluster's time of expiry; None for a permanent cluster."""
    if declaration.lifetime is None:
        return None
    inside = pulumi.ResourceOptions(parent=topology)
    return Lifetime(f"{name}-lifetime", declaration.lifetime.hours, inside).expires


def kubernetes_provider(name: str, kubeconfig: pulumi.Input[str], opts: pulumi.ResourceOptions) -> Provider:
    """Create a provider that changes ConfigMaps and Secrets in place, and creates no object that exists.

    By default it replaces them when their data changes and, if the name is fixed, deletes the old one first:
    the profile or a controller's configuration would be missing for a while. Source: pulumi-kubernetes docs,
    provider configuration, enableConfigMapMutable (2026).

    An existing object that it took over would be deleted with the stack. Since 4.29 a creation fails instead,
    unless the environment variable `PULUMI_K8S_UPSERT_EXISTING_OBJECTS` is set, which this setting overrides
    (pulumi-kubernetes CHANGELOG, 4.29.0; pkg/await/await.go, `Creation`).

    In a preview for `ebbtide up`, the kubeconfig is written to a file, if it is known: on an existing cluster
    before the first update, no output has it.
    """
    if pulumi.runtime.is_dry_run() and (file := os.environ.get(PREVIEW_KUBECONFIG)):
        pulumi.Output.from_input(kubeconfig).apply(Path(file).write_text)
    return Provider(
        name,
        kubeconfig=kubeconfig,
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
        upsert_existing_objects=False,
        opts=opts,
    )


def exec_kubeconfig(name: str, cluster: Mapping[str, object], plugin: Mapping[str, object]) -> str:
    """Build a kubeconfig, as JSON, whose user gets tokens from a program.

    Args:
        name: name of cluster, user and context.
        cluster: the control plane's `server`, and `certificate-authority-data` unless it is public.
        plugin: the program, as in `exec`: `command`, `args`, `installHint`, etc.
    """
    called = {"apiVersion": "client.authentication.k8s.io/v1beta1", **plugin, "interactiveMode": "Never"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": dict(cluster)}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "users": [{"name": name, "user": {"exec": called}}],
        }
    )


class Topology(pulumi.ComponentResource):
    """All resources of a cluster. Its class on a cloud creates them, and calls `_reached` at the end.

    The cloud's provider is passed in `opts`. The Kubernetes provider is created here, once.
    """

    cluster_name: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    """A secret: it has no credential, but discloses the address of the control plane."""
    kubernetes: Provider
    expires: pulumi.Output[str] | None
    """Time of expiry; None for a permanent cluster."""
    labels: Labels
    own_outputs: Mapping[str, pulumi.Output[str]]
    """Outputs that the stack needs in its next deployment."""

    def __init__(
        self,
        name: str,
        declaration: Cluster,
        opts: pulumi.ResourceOptions | None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        # Reports read the declared commitments and overrides of resources from its inputs.
        commitments = [item.model_dump(by_alias=True, exclude_none=True) for item in declaration.commitments]
        overrides = declaration.cloud.resources.model_dump(by_alias=True)
        declared = {
            "commitments": commitments,
            "resources": {name: own for name, own in overrides.items() if own},
        }
        super().__init__(
            f"ebbtide:{declaration.cloud.kind}:Topology",
            name,
            {**{name: value for name, value in declared.items() if value}, **(inputs or {})},
            pulumi.ResourceOptions.merge(opts, overriding(resource_overrides(declaration))),
        )
        self.expires = expires(name, declaration, self)
        self.labels = billing_labels(declaration, self.expires)
        self.own_outputs = {}

    def _reached(self, name: str, depends_on: Sequence[pulumi.Resource] | None) -> None:
        """Create the Kubernetes provider, once what runs in the cluster can run."""
        options = pulumi.ResourceOptions(parent=self, depends_on=depends_on)
        self.kubernetes = kubernetes_provider(f"{name}-kubernetes", self.kubeconfig, options)
        self.register_outputs({"cluster_name": self.cluster_name, "kubeconfig": self.kubeconfig})
