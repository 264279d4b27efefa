"""The user's credentials for registries."""

import base64
import binascii
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final


@cache
def user_credentials(host: str) -> tuple[str, str] | None:
    """Return user name and password for a registry; None for anonymous access.

    For a registry of Google Cloud or Azure they are a short-lived token of the user's login to the cloud, for
    any other those of `docker login`.

    Raises:
        CredentialsError: the user is not logged in to the cloud.
        CloudApiError: the cloud does not answer.
    """
    if host == "gcr.io" or host.endswith((".gcr.io", ".pkg.dev")):
        from ebbtide.clients.clouds.google_registry import google_login  # noqa: PLC0415

        return google_login()
    if host.endswith(".azurecr.io"):
        from ebbtide.clients.clouds.azure_registry import azure_login  # noqa: PLC0415

        return azure_login(host)
    return docker_login(host)


_DOCKER_HUB: Final = {"registry-1.docker.io": "https://index.docker.io/v1/"}
"""Docker's key for Docker Hub, by the host of its registry."""
_TOKEN: Final = "<token>"  # noqa: S105 # marks an identity token, which has no user name


def docker_login(host: str) -> tuple[str, str] | None:
    """Return user name and password for a registry from Docker's configuration; None without any.

    `docker login` or a credential helper keeps them (Docker docs, docker login, credential stores and
    credential helpers, 2026).
    """
    directory = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
    try:
        configuration: Any = json.loads(Path(directory, "config.json").read_bytes())
    except (OSError, ValueError):
        return None
    match configuration:
        case {"credHelpers": {**helpers}} if isinstance(helper := helpers.get(host), str):
            return _from_helper(helper, host)
        case {"credsStore": str(helper)}:
            return _from_helper(helper, _DOCKER_HUB.get(host, host))
        case {"auths": {**entries}}:
            return _decoded(entries.get(_DOCKER_HUB.get(host, host)))
        case _:
            return None


def _decoded(entry: object) -> tuple[str, str] | None:
    match entry:
        case {"auth": str(encoded)}:
            try:
                user, colon, password = base64.b64decode(encoded).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                return None
            return (user, password) if colon else None
        case _:
            return None


def _from_helper(helper: str, host: str) -> tuple[str, str] | None:
    """Ask a credential helper, which reads the registry from its standard input."""
    program = shutil.which(f"docker-credential-{helper}")
    if program is None:
        return None
    done = subprocess.run([program, "get"], input=host, capture_output=True, text=True, check=False)  # noqa: S603
    try:
        answer: Any = json.loads(done.stdout)
    except ValueError:
        return None
    match answer:
        case {"Username": str(user), "Secret": str(secret)} if user != _TOKEN:
            return user, secret
        case _:
            return None
