"""The clouds that Ebbtide declares clusters on."""

import re

_ZONE = re.compile(r"^(?P<region>[a-z]+-[a-z]+[0-9]+)-(?:ai[0-9]+)?[a-z]$")
"""A zone, or an AI zone such as `us-central1-ai1a`, in which GKE makes nodes as well (Compute docs, ai-zones,
2026)."""

GKE_REGION_ZONES = 3
"""Zones in which a regional cluster has nodes by default (GKE docs, regional-clusters, 2026)."""

PREEMPTIBLE_SECONDS = 24 * 3600
"""A preemptible VM lives 24 hours at most (Compute Engine docs, preemptible)."""


def region_of(location: str) -> str:
    """Return the region of a location: of a GKE zone (`us-central1-a`) its region, of anything else
    itself."""
    zone = _ZONE.match(location)
    return zone["region"] if zone else location


def is_gke_zone(location: str) -> bool:
    """Check that a GKE location is a zone (`us-central1-a`) and not a region (`us-central1`)."""
    return _ZONE.match(location) is not None


def account_host(project: str) -> str:
    """Host name of the service accounts of a Google Cloud project.

    A project of a domain, `acme.example:ml`, is written backwards, as `ml.acme.example` (addresses of
    google.com:skia-buildbots, in google/skia-buildbot, 2026).
    """
    domain, _, name = project.rpartition(":")
    return f"{name}.{domain}.iam.gserviceaccount.com" if domain else f"{name}.iam.gserviceaccount.com"
