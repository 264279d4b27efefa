"""Assumed responses of Google Cloud.

The templates are those of `answers_gcp`; the DNS endpoint's host name follows Google's documentation. Not
compared with a live cloud: they are only displayed.
"""

from collections.abc import Mapping
from typing import Final

from ebbtide.analysis.recording.answers_gcp import INVOKES, RESOURCES
from ebbtide.analysis.recording.assumed_values import ADDRESS, CERTIFICATE_BASE64, WORD
from ebbtide.analysis.recording.assumption_tables import Assumptions, Question
from ebbtide.analysis.recording.templates import Derivation, Facts, Text, invoke_rule, resource_rule
from ebbtide.analysis.recording.values import Plain
from ebbtide.declaration.catalog.clouds import account_host

_NUMBER: Final = "000000000000"  # a project number that no project has


def _name(facts: Facts) -> str | None:
    """Return Pulumi's auto-name for a resource without a declared name: the logical name and random
    digits."""
    return f"{facts.question.name}-{WORD}" if facts.question.name else None


def _location(facts: Facts) -> str | None:
    return facts.known("zone") or facts.known("region")


def _region(facts: Facts) -> str | None:
    location = facts.known("location") or facts.known("zone")
    return format(Text(location), "region") if location else None


_DERIVED: Final[Mapping[str, Derivation]] = {
    "name": _name,
    "location": _location,
    "region": _region,
    "accountHost": lambda facts: account_host("{project}".format_map(facts)),
    "address": lambda _: ADDRESS,
    "certificate": lambda _: CERTIFICATE_BASE64,
    "dnsEndpoint": f"gke-{WORD}-{{name}}-{_NUMBER}.{{region}}.gke.goog".format_map,
    "number": lambda _: _NUMBER,
    "accessToken": lambda _: f"{WORD}-access-token",
}

# Regions whose zones do not start at a (compute/docs/regions-zones, 2026-11); all others are assumed to have
# zones a, b and c.
_ZONES: Final = {"us-east1": "bcd", "europe-west1": "bcd"}


def _zones(question: Question) -> dict[str, Plain]:
    region = question.text("region") or question.setting("region") or f"{WORD}-region"
    names: list[Plain] = [f"{region}-{letter}" for letter in _ZONES.get(region, "abc")]
    return {"id": f"projects/{WORD}/regions/{region}", "names": names}


TABLES: Final = Assumptions(
    resources={type_: resource_rule(_DERIVED, *entry) for type_, entry in RESOURCES.items()},
    invokes={
        **{token: invoke_rule(_DERIVED, result) for token, result in INVOKES.items()},
        "gcp:compute/getZones:getZones": _zones,
    },
)
"""Assumed responses of Google Cloud."""
