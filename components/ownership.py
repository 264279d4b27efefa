"""Labels with cluster, owner, pool, team and expiry, set on every billed resource."""

import re
from collections.abc import Mapping
from typing import TypeAlias

import pulumi

from ebbtide.declaration.model import Cluster
from ebbtide.declaration.model.expiry import LABEL, label

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
