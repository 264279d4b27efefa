"""Whose a resource is, written on everything that is billed."""

import re

from ebbtide.model import Cluster


def _label_value(text: str) -> str:
    """Convert a text to a value that both Google Cloud labels and Azure tags accept: lower-case letters,
    digits, `_` and `-`."""
    return re.sub(r"[^a-z0-9_-]", "-", text.lower())[:63]


def billing_labels(cluster: Cluster) -> dict[str, str]:
    """Labels by which a bill is split and a forgotten cluster is found.

    The lifetime is a constant, its hours; when a stack was made stands in Pulumi's state. A clock here
    would change every label on every update.

    Returns:
        `ebbtide-cluster`, `ebbtide-owner`, and for an ephemeral cluster `ebbtide-lifetime-hours`.
    """
    labels = {"ebbtide-cluster": _label_value(cluster.name), "ebbtide-owner": _label_value(cluster.owner)}
    if cluster.lifetime is not None:
        labels["ebbtide-lifetime-hours"] = str(cluster.lifetime.hours)
    return labels
