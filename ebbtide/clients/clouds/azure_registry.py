"""Logins to Azure's container registries with the user's own short-lived token.

Sources: Azure/acr, docs/AAD-OAuth.md; Azure SDK for Python, azure-containerregistry, audience (2026).
"""

import logging
from typing import Any, Final

import requests
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError
from azure.identity import DefaultAzureCredential

from ebbtide.clients.clouds.http import document_of, read_body
from ebbtide.clients.clouds.interfaces import CloudApiError, CredentialsError

_USER: Final = "00000000-0000-0000-0000-000000000000"
_SCOPE: Final = "https://containerregistry.azure.net/.default"
_TIMEOUT: Final = 30  # seconds


def azure_login(host: str, credential: TokenCredential | None = None) -> tuple[str, str]:
    """Return user name and refresh token for a registry.

    Args:
        credential: the user's credentials; by default those of the environment or the Azure CLI.

    Raises:
        CredentialsError: there are none, they have expired, or the registry refuses them.
        CloudApiError: the registry does not answer.
    """
    # It warns on the terminal of each credential that does not exist.
    logging.getLogger("azure.identity").setLevel(logging.ERROR)
    try:
        token = (credential or DefaultAzureCredential()).get_token(_SCOPE).token
    except AzureError as error:
        raise CredentialsError("There are no valid credentials for Azure. Log in with `az login`.") from error
    form = {"grant_type": "access_token", "service": host, "access_token": token}
    try:
        address = f"https://{host}/oauth2/exchange"
        response = requests.post(address, data=form, timeout=_TIMEOUT, stream=True, allow_redirects=False)
        read_body(response, host)
        document: Any = document_of(response) if response.ok else None
        match document:
            case {"refresh_token": str(refresh_token)}:
                pass
            case _:
                refresh_token = ""
    except requests.RequestException as error:
        raise CloudApiError(
            f"{host} does not answer ({type(error).__name__}). Check that the registry exists, and the "
            "network."
        ) from error
    if not refresh_token:
        raise CredentialsError(
            f"{host} refuses the login of your Azure account with status {response.status_code}. Check that "
            "`az account show` has the registry's tenant."
        )
    return _USER, refresh_token
