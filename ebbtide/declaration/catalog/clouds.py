"""Supported clouds, and the syntax of their locations and accounts."""

import re

_ZONE = re.compile(r"^(?P<region>[a-z]+-[a-z]+[0-9]+)-(?:ai[0-9]+)?[a-z]$")
"""A zone, or an AI zone such as `us-central1-ai1a`, in which GKE also creates nodes (Compute docs, ai-zones,
2026)."""

_DISPLAYED = re.compile(r"[A-Za-z]+( ?[A-Za-z0-9]+)*")

GKE_REGION_ZONES = 3
"""Default number of zones with nodes of a regional cluster (GKE docs, regional-clusters, 2026)."""

PREEMPTIBLE_SECONDS = 24 * 3600
"""Maximum lifetime of a preemptible VM, 24 hours (Compute Engine docs, preemptible)."""


def region_of(location: str) -> str:
    """Return the region of a GKE zone (`us-central1-a`), or any other location unchanged."""
    zone = _ZONE.match(location)
    return zone["region"] if zone else location


def is_gke_zone(location: str) -> bool:
    """Return whether a GKE location is a zone (`us-central1-a`) and not a region (`us-central1`)."""
    return _ZONE.match(location) is not None


def azure_region(text: str) -> str:
    """Return the name of an Azure region that is written as Azure displays it: `East US` and `EastUS` are
    `eastus` (azure-cli, `az account list-locations`: `displayName` and `name`, 2026). Other texts are
    unchanged."""
    return text.replace(" ", "").lower() if _DISPLAYED.fullmatch(text) else text


def account_host(project: str) -> str:
    """Return the host name of the service accounts of a Google Cloud project.

    For a project of a domain, `acme.example:ml`, it is reversed: `ml.acme.example` (addresses of
    google.com:skia-buildbots, in google/skia-buildbot, 2026).
    """
    domain, _, name = project.rpartition(":")
    return f"{name}.{domain}.iam.gserviceaccount.com" if domain else f"{name}.iam.gserviceaccount.com"
