"""Logins to Artifact Registry with the user's own short-lived token.

Source: Artifact Registry docs, docker/authentication (2026).
"""

import shutil
import subprocess
from typing import Final

from ebbtide.clients.clouds.errors import CredentialsError
from ebbtide.clients.clouds.google import google_session

_USER: Final = "oauth2accesstoken"


def google_login() -> tuple[str, str]:
    """Return user name and access token: of the application default credentials, or without them of gcloud.

    Raises:
        CredentialsError: there are none, or they have expired.
        CloudApiError: the token server does not answer.
    """
    try:
        return _USER, str(google_session().credentials.token)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    except CredentialsError:
        if token := _gcloud_token():
            return _USER, token
        raise


def _gcloud_token() -> str:
    """Return an access token of gcloud's account; empty without one."""
    gcloud = shutil.which("gcloud")
    if gcloud is None:
        return ""
    command = (gcloud, "auth", "print-access-token", "--quiet")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip()
