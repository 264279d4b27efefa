"""Messages for the errors of requests to registries."""

import http
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import requests
from dxf.exceptions import DXFAuthInsecureError, DXFDigestMismatchError, DXFUnauthorizedError

from ebbtide.registries.errors import RegistryError

_FULL: Final = ("no space left", "quota", "storage limit", "file too large")
"""Parts of the messages of a registry without free storage."""


@contextmanager
def explained(repository: str, *, pushing: bool = False) -> Generator[None]:
    """Convert the errors of requests and python-dxf.

    Args:
        repository: the repository, with its registry.
        pushing: whether images are pushed to it.

    Raises:
        RegistryError: the registry rejects a request or does not answer.
    """
    host = repository.partition("/")[0]
    try:
        yield
    except DXFUnauthorizedError:
        raise RegistryError(_refusal(repository, http.HTTPStatus.UNAUTHORIZED, "", pushing=pushing)) from None
    except DXFAuthInsecureError:
        raise RegistryError(
            f"{host} requires a login, which would be sent unencrypted over HTTP. Use a registry with HTTPS."
        ) from None
    except DXFDigestMismatchError:
        raise RegistryError(
            f"{host} sent content that does not match its digest. Check the network's proxy, then run this "
            "again."
        ) from None
    except requests.HTTPError as error:
        status, message = status_of(error), _message(error)
        raise RegistryError(_refusal(repository, status, message, pushing=pushing)) from None
    except requests.RequestException as error:
        raise RegistryError(
            f"{host} cannot be reached ({type(error).__name__}). Check the network and its proxy, then run "
            "this again: uploaded layers stay."
        ) from None


def status_of(error: requests.HTTPError) -> int:
    """Return the HTTP status of an error; 0 without a response."""
    return error.response.status_code if error.response is not None else 0


def _refusal(repository: str, status: int, message: str, *, pushing: bool) -> str:
    host = repository.partition("/")[0]
    details = f" ({message})" if message else ""
    denied = status in {http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN}
    if not pushing and (denied or status == http.HTTPStatus.NOT_FOUND):
        return (
            f"The image is not in {repository}, or you may not pull it. Check its name; for a private "
            f"registry, log in with `gcloud auth application-default login`, `az login` or "
            f"`docker login {host}`."
        )
    if status == http.HTTPStatus.INSUFFICIENT_STORAGE or any(part in message.lower() for part in _FULL):
        return (
            f"The registry of {repository} is full{details}. Delete images that are no longer used, or let "
            "it delete untagged ones: delete_untagged_days of the team's registry."
        )
    if denied:
        return (
            f"You may not push to {repository}{details}. Ask an administrator to make you a member of the "
            "team, which grants roles/artifactregistry.writer on Google Cloud and AcrPush on Azure, or use "
            "--code-in config-map."
        )
    if status == http.HTTPStatus.NOT_FOUND:
        return (
            f"The registry of {repository} does not exist{details}. Run `pulumi up` for the stack that "
            "declares it, or use --code-in config-map."
        )
    again = " Run this again in a minute." if status == http.HTTPStatus.TOO_MANY_REQUESTS else ""
    return f"{host} returned status {status}{details}.{again}"


def _message(error: requests.HTTPError) -> str:
    """Return the registry's own message (OCI distribution specification 1.1, error codes)."""
    try:
        document = error.response.json() if error.response is not None else None
    except requests.JSONDecodeError:
        return ""
    match document:
        case {"errors": [{"code": str(code), **first}, *_]}:
            return ": ".join(str(part) for part in (code, first.get("message"), first.get("detail")) if part)
        case _:
            return ""
