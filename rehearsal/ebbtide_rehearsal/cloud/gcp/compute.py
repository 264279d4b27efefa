"""What the types of Compute Engine have in common.

ForceNew, values and defaults of all of them are those of hashicorp/terraform-provider-google-beta 7.45
(google-beta/services/compute, 2026-08), which pulumi-gcp 10.2 is made of.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from ebbtide_rehearsal.cloud.gcp.asked import Asked, api_error, last

COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
SCHEMA: Final = "hashicorp/terraform-provider-google-beta 7.45, services/compute (2026-08)"
_GCE_NAME: Final = r"^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"


def gce_name(value: Any) -> str | None:
    """Terraform's `ValidateGCEName`: RFC 1035, at most 63 characters."""
    fits = re.match(_GCE_NAME, str(value)) is not None
    return None if fits else f'"name" ("{value}") doesn\'t match regexp "{_GCE_NAME}"'


def taken(what: str) -> Callable[[str], str]:
    """The message where there is one of an id already."""

    def message(identity: str) -> str:
        error = api_error(409, f"The resource '{identity}' already exists", "alreadyExists")
        return f"Error creating {what}: {error}"

    return message


def links(identity: str) -> dict[str, Any]:
    """The outputs that lead to a resource."""
    return {"selfLink": f"{COMPUTE}{identity}"}


def invalid(field: str, text: str, why: str) -> str:
    """The message where a field's value cannot be."""
    return api_error(400, f"Invalid value for field '{field}': '{text}'. {why}.", "invalid")


def no_network(asked: Asked) -> str | None:
    """The message where the network that is spoken of is not there; every project has its default one."""
    reference = asked.said.text("network")
    identity = asked.network(reference)
    if not reference or asked.world.get(identity) is not None or last(identity) == "default":
        return None
    return api_error(404, f"The resource '{identity}' was not found", "notFound")
