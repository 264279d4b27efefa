"""Service of both clouds' APIs, with credentials that their own client libraries find in the environment.

Sources: google-auth 2.62, `google.auth.external_account_authorized_user` (the file names its token server);
azure-identity 1.27, `DefaultAzureCredential` and `AZURE_TOKEN_CREDENTIALS`; `GoogleEndpoints.configured` and
`management_endpoint` have those of the addresses.
"""

import json
import os
import ssl
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trustme

from ebbtide_rehearsal.cloud.rest.azure import Azure
from ebbtide_rehearsal.cloud.rest.google import Google
from ebbtide_rehearsal.cloud.rest.server import RestServer
from ebbtide_rehearsal.cloud.store import Store

_LOGIN: Final = "a-refresh-token"
_IDENTITY: Final = "the-secret-of-a-managed-identity"


@dataclass(frozen=True, slots=True)
class RestAccess:
    """Access to the APIs.

    Attributes:
        origin: their address.
        environment: variables with which the clouds' clients find it, trust it and log in.
    """

    origin: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Contents of the APIs beside the store.

    Attributes:
        projects: ids of the existing Google projects; None for any.
        subscriptions: ids of the existing Azure subscriptions; None for any.
        skus: Google's price catalog.
        items: Azure's retail prices.
        page: number of items of Azure's pages.
    """

    projects: Collection[str] | None = None
    subscriptions: Collection[str] | None = None
    skus: Sequence[Mapping[str, Any]] = field(default=())
    items: Sequence[Mapping[str, Any]] = field(default=())
    page: int = 100


@contextmanager
def rest_access(
    directory: Path, store: Store, trusted: Path, served: Served | None = None
) -> Generator[RestAccess]:
    """Serve both clouds' APIs in this process.

    Args:
        directory: directory of the login's file.
        trusted: file of trusted authorities; the APIs' own is added.
        served: other contents.
    """
    served = served or Served()
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
    with trusted.open("ab") as bundle:
        bundle.write(authority.cert_pem.bytes())
    google = Google(store, served.projects, {_LOGIN}, served.skus)
    azure = Azure(store, served.subscriptions, {_IDENTITY}, served.items, served.page)
    with RestServer(store, (google, azure), context) as server:
        login = directory / "application_default_credentials.json"
        write_google_login(login, server.origin)
        yield RestAccess(server.origin, _environment(server.origin, login, trusted))


def write_google_login(file: Path, origin: str, refresh_token: str = _LOGIN) -> None:
    """Write what `gcloud auth application-default login` writes for a user of workforce identity federation.

    Args:
        origin: address of the token server.
        refresh_token: the login; by default the valid one.
    """
    login = {
        "type": "external_account_authorized_user",
        "token_url": f"{origin}/token",
        "client_id": "gcloud",
        "client_secret": "gcloud",
        "refresh_token": refresh_token,
    }
    file.write_text(json.dumps(login), encoding="utf-8")


def _environment(origin: str, login: Path, trusted: Path) -> Mapping[str, str]:
    not_proxied = ",".join(filter(None, (os.environ.get("NO_PROXY"), "localhost", "127.0.0.1")))
    return {
        "REQUESTS_CA_BUNDLE": str(trusted),
        "NO_PROXY": not_proxied,
        "no_proxy": not_proxied,
        "GOOGLE_APPLICATION_CREDENTIALS": str(login),
        "GOOGLE_COMPUTE_CUSTOM_ENDPOINT": f"{origin}/compute/v1/",
        "GOOGLE_CONTAINER_CUSTOM_ENDPOINT": f"{origin}/v1/",
        "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT": f"{origin}/v1/",
        "GOOGLE_CLOUD_QUOTAS_CUSTOM_ENDPOINT": f"{origin}/v1/",
        "GOOGLE_MONITORING_CUSTOM_ENDPOINT": f"{origin}/v1/",
        "GOOGLE_STORAGE_CUSTOM_ENDPOINT": f"{origin}/storage/v1/",
        "GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT": f"{origin}/v1/",
        "GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT": f"{origin}/v1/",
        "GOOGLE_IAM_CUSTOM_ENDPOINT": f"{origin}/v1/",
        "GOOGLE_FILESTORE_CUSTOM_ENDPOINT": f"{origin}/v1/",
        "GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT": f"{origin}/v1/",
        "ARM_METADATA_HOSTNAME": origin.removeprefix("https://"),
        "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
        "IDENTITY_ENDPOINT": f"{origin}/msi/token",
        "IDENTITY_HEADER": _IDENTITY,
    }
