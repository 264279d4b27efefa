"""The fake clouds' REST APIs for the clients in `ebbtide.cloud_apis`, with TLS and credentials."""

import json
import ssl
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
from azure.core.credentials import AccessToken

from ebbtide.catalog import CloudKind
from ebbtide.cloud_apis.azure import AzurePrices, AzureQuotas
from ebbtide.cloud_apis.azure_inventory import AzureInventory
from ebbtide.cloud_apis.azure_power import AzurePower
from ebbtide.cloud_apis.google import GoogleEndpoints, GooglePrices, GoogleQuotas, google_session
from ebbtide.cloud_apis.google_inventory import GoogleInventory
from ebbtide.cloud_apis.google_power import GooglePower
from ebbtide.cloud_apis.interfaces import Account, ClusterPower, Inventory, PriceSource, QuotaSource
from ebbtide.cloud_apis.node_pools import NodePoolSize
from ebbtide_rehearsal.cloud.rest import Azure, Google, RestServer
from ebbtide_rehearsal.cloud.store import Store

PROJECT: Final = "acme-ml"
SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"
SUBSCRIPTIONS: Final = (SUBSCRIPTION, "00000000-0000-0000-0000-000000000001")
_LOGIN: Final = "1//a-refresh-token"
_TOKEN: Final = "a token of Entra"  # noqa: S105 - of the fake cloud


class _Credential:
    """Azure credentials with a fixed token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **_options: Any) -> AccessToken:
        assert scopes == ("https://management.azure.com/.default",)
        return AccessToken(self._token, int(time.time()) + 3600)


@dataclass(frozen=True)
class RestClouds:
    """The fake clouds.

    Attributes:
        store: their state.
        origin: the address of their APIs.
    """

    store: Store
    origin: str

    @property
    def google(self) -> GoogleEndpoints:
        """Addresses of Google's APIs."""
        return GoogleEndpoints(*[self.origin] * 4)

    def quotas(self, cloud: CloudKind, account: str, token: str = _TOKEN) -> QuotaSource:
        """Return the quotas of a project or subscription, as `quota_source` does."""
        if cloud is CloudKind.GKE:
            return GoogleQuotas(account, google_session(), self.google)
        return AzureQuotas(account, _Credential(token), self.origin)

    def inventory(self, account: Account) -> Inventory:
        """Return the resources of a project or subscription, as `connect.inventory` does."""
        if account.cloud is CloudKind.GKE:
            return GoogleInventory(account, google_session(), self.google)
        return AzureInventory(account, _Credential(_TOKEN), self.origin)

    def power(self, cloud: CloudKind, cluster: str, pools: Sequence[NodePoolSize] = ()) -> ClusterPower:
        """Return the power of a cluster, as `cluster_power` does."""
        if cloud is CloudKind.GKE:
            return GooglePower(cluster, pools, google_session(), self.google)
        return AzurePower(cluster, _Credential(_TOKEN), self.origin)

    def prices(self, cloud: CloudKind) -> PriceSource:
        """Return a price list, as `price_source` does."""
        if cloud is CloudKind.GKE:
            return GooglePrices(google_session(), self.google)
        return AzurePrices(self.origin)


@contextmanager
def rest_clouds(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    skus: Sequence[Mapping[str, Any]] = (),
    items: Sequence[Mapping[str, Any]] = (),
    store: Store | None = None,
) -> Generator[RestClouds]:
    """Serve the fake clouds, with application default credentials for Google in the environment.

    Args:
        directory: for their files.
        monkeypatch: sets the environment.
        skus: Google's price catalog.
        items: Azure's retail prices.
        store: their state; a new one by default.
    """
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
    authority.cert_pem.write_to_path(str(directory / "ca.pem"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(directory / "ca.pem"))
    monkeypatch.setenv("NO_PROXY", "localhost")
    store = store or Store(directory / "store")
    google = Google(store, {PROJECT}, {_LOGIN}, skus)
    azure = Azure(store, SUBSCRIPTIONS, {_TOKEN}, items, page=2)
    with RestServer(store, (google, azure), context) as server:
        monkeypatch.setattr(
            "google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{server.origin}/token"
        )
        clouds = RestClouds(store, server.origin)
        log_in(directory, monkeypatch)
        yield clouds


def log_in(directory: Path, monkeypatch: pytest.MonkeyPatch, refresh_token: str = _LOGIN) -> None:
    """Write what `gcloud auth application-default login` writes."""
    login = {"type": "authorized_user", "client_id": "gcloud", "client_secret": "gcloud"}
    file = directory / "application_default_credentials.json"
    file.write_text(json.dumps({**login, "refresh_token": refresh_token}), encoding="utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
