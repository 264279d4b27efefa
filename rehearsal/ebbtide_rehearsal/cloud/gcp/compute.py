"""Common refusals of Compute Engine's types."""

from collections.abc import Callable
from typing import Final

from ebbtide_rehearsal.cloud.gcp.request import Request, api_error, last

COMPUTE: Final = "https://www.googleapis.com/compute/v1/"


def already_exists(noun: str) -> Callable[[str], str]:
    """Return the message for an id that already exists."""

    def message(identity: str) -> str:
        error = api_error(409, f"The resource '{identity}' already exists", "alreadyExists")
        return f"Error creating {noun}: {error}"

    return message


def invalid(field: str, text: str, why: str) -> str:
    """Return the message for an invalid value of a field."""
    return api_error(400, f"Invalid value for field '{field}': '{text}'. {why}.", "invalid")


def no_network(request: Request) -> str | None:
    """Return the message for a network that does not exist; every project has a default network."""
    reference = request.fields.text("network")
    identity = request.network(reference)
    if not reference or request.cloud.get(identity) is not None or last(identity) == "default":
        return None
    return api_error(404, f"The resource '{identity}' was not found", "notFound")
