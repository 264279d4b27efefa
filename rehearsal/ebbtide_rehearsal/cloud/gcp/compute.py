"""Refusals that the types of Compute Engine have in common."""

from collections.abc import Callable
from typing import Final

from ebbtide_rehearsal.cloud.gcp.request import Request, api_error, last

COMPUTE: Final = "https://www.googleapis.com/compute/v1/"


def taken(what: str) -> Callable[[str], str]:
    """The message where there is one of an id already."""

    def message(identity: str) -> str:
        error = api_error(409, f"The resource '{identity}' already exists", "alreadyExists")
        return f"Error creating {what}: {error}"

    return message


def invalid(field: str, text: str, why: str) -> str:
    """The message where a field's value cannot be."""
    return api_error(400, f"Invalid value for field '{field}': '{text}'. {why}.", "invalid")


def no_network(request: Request) -> str | None:
    """The message where the network that is spoken of is not there; every project has its default one."""
    reference = request.fields.text("network")
    identity = request.network(reference)
    if not reference or request.cloud.get(identity) is not None or last(identity) == "default":
        return None
    return api_error(404, f"The resource '{identity}' was not found", "notFound")
