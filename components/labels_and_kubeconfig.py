"""Parts of a cluster on either cloud: billing labels, lifetime, Kubernetes provider, kubeconfig."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pulumi
from pulumi_kubernetes import Provider

from ebbtide.declaration.model import expiry
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.expiry import LABEL, label
from ebbtide.placement.profile_sources import PREVIEW_KUBECONFIG
from ebbtide.values import clock

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


def topology_inputs(cluster: Cluster) -> dict[str, Any]:
    """Return the inputs of a topology that reports read: declared commitments and overrides of resources."""
    commitments = [item.model_dump(by_alias=True, exclude_none=True) for item in cluster.commitments]
    resources = {name: own for name, own in cluster.cloud.resources.model_dump(by_alias=True).items() if own}
    inputs = {"commitments": commitments, "resources": resources}
    return {name: value for name, value in inputs.items() if value}


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
