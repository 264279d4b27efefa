"""The fake clouds' REST APIs for the clients in `ebbtide.clients.clouds`, with TLS and credentials."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from ebbtide.clients.clouds.azure import AzurePrices
from ebbtide.clients.clouds.google import GooglePrices, google_session
from ebbtide.clients.clouds.interfaces import PriceSource
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.ids import AZURE, GCP, azure_type
from ebbtide_rehearsal.cloud.rest.access import Served, rest_access
from ebbtide_rehearsal.cloud.rest.google import kind_of
from ebbtide_rehearsal.cloud.store import Resource, Store

PROJECT: Final = "acme-ml"
_PROJECTS: Final = {PROJECT, "ml-pipeline-project"}
"""The second is that of the preemptible story."""
SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"
SUBSCRIPTIONS: Final = (SUBSCRIPTION, "00000000-0000-0000-0000-000000000001")


@dataclass(frozen=True)
class RestClouds:
    """The fake clouds.

    Attributes:
        store: their state.
        origin: the address of their APIs.
    """

    store: Store
    origin: str

    def google(self, collection: str, scope: str, name: str, **state: Any) -> str:
        """Put a resource of Compute Engine that no program declares, as its API returns it; return its id."""
        identity = f"{scope}/{collection}/{name}"
        noun, _, location = scope.split("/", 2)[2].partition("/")
        where = {noun.removesuffix("s"): f"https://www.googleapis.com/compute/v1/{scope}"} if location else {}
        link, kind = f"https://www.googleapis.com/compute/v1/{identity}", kind_of(collection)
        document = {"kind": kind, "name": name, "selfLink": link, **where, **state}
        self.store.put(Resource(GCP, identity, kind, state=document))
        return identity

    def azure(self, identity: str, **state: Any) -> str:
        """Put a resource of Azure that no program declares; return its id."""
        document = {"location": "eastus", **state}
        self.store.put(Resource(AZURE, identity, azure_type(identity), state=document))
        return identity

    def prices(self, cloud: CloudKind) -> PriceSource:
        """Return a price list, as `price_source` does; no variable of Azure names the address of its own."""
        return GooglePrices(google_session()) if cloud is CloudKind.GKE else AzurePrices(self.origin)


@contextmanager
def rest_clouds(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    skus: Sequence[Mapping[str, Any]] = (),
    items: Sequence[Mapping[str, Any]] = (),
    store: Store | None = None,
) -> Generator[RestClouds]:
    """Serve the fake clouds, with the credentials of a user in the environment.

    Args:
        directory: for their files.
        monkeypatch: sets the environment.
        skus: Google's price catalog.
        items: Azure's retail prices.
        store: their state; a new one by default.
    """
    store = store or Store(directory / "store")
    served = Served(projects=_PROJECTS, subscriptions=SUBSCRIPTIONS, skus=skus, items=items, page=2)
    with rest_access(directory, store, directory / "ca.pem", served) as access:
        for name, value in access.environment.items():
            monkeypatch.setenv(name, value)
        yield RestClouds(store, access.origin)
