"""Clients with the user's credentials, and the comparison of known prices with the clouds' current lists.

Every function that opens one raises `CredentialsError` without credentials for the cloud.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ebbtide.clients.clouds.interfaces import (
    Account,
    CloudApiError,
    ClusterPower,
    Inventory,
    MetricSource,
    NodePoolSize,
    PriceSource,
    QuotaSource,
    Rights,
)
from ebbtide.declaration.catalog.prices import GLOBAL, Price, PriceKey, current_own_prices, find_price
from ebbtide.values.cloud_kind import CloudKind

_GOOGLE: Final = "Google Cloud"
_AZURE: Final = "Azure"

if TYPE_CHECKING:
    from ebbtide.clients.clouds.azure_inventory import AzureInventory

_Client = TypeVar("_Client")
_SHAPE: Final = (AttributeError, LookupError, RecursionError, StopIteration, TypeError, ValueError)


def quota_source(cloud: CloudKind, account: str) -> QuotaSource:
    """Return the quotas of a project or subscription.

    Args:
        account: id of the project or subscription.
    """
    match cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import GoogleQuotas, google_session  # noqa: PLC0415

            return _guarded(GoogleQuotas(account, google_session()), _GOOGLE)
        case CloudKind.AKS:
            from ebbtide.clients.clouds.azure import AzureQuotas, azure_credential  # noqa: PLC0415

            return _guarded(AzureQuotas(account, azure_credential()), _AZURE)


def price_source(cloud: CloudKind) -> PriceSource:
    """Return a cloud's price list; Azure's needs no credentials."""
    match cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import GooglePrices, google_session  # noqa: PLC0415

            return _guarded(GooglePrices(google_session()), _GOOGLE)
        case CloudKind.AKS:
            from ebbtide.clients.clouds.azure import AzurePrices  # noqa: PLC0415

            return _guarded(AzurePrices(), _AZURE)


def inventory(account: Account) -> Inventory:
    """Return the inventory of a project or subscription."""
    match account.cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import google_session  # noqa: PLC0415
            from ebbtide.clients.clouds.google_inventory import GoogleInventory  # noqa: PLC0415

            return _guarded(GoogleInventory(account, google_session()), _GOOGLE)
        case CloudKind.AKS:
            return _azure_inventory(account.id)


def gke_clusters(project: str) -> Sequence[Mapping[str, Any]]:
    """Return the descriptions of a project's clusters with their pools, as Kubernetes Engine v1 has them.

    Raises:
        CloudApiError: the cloud rejects the request or does not answer.
    """
    from ebbtide.clients.clouds.google import google_session  # noqa: PLC0415
    from ebbtide.clients.clouds.google_inventory import GoogleInventory  # noqa: PLC0415

    viewer = f"Ask an owner of {project} for the role Kubernetes Engine Viewer (roles/container.viewer)."
    with _understood(_GOOGLE):
        return GoogleInventory(Account(CloudKind.GKE, project), google_session()).clusters({403: viewer})


def aks_clusters(subscription: str) -> Sequence[Mapping[str, Any]]:
    """Return the descriptions of a subscription's clusters with their pools, as Azure Resource Manager has
    them.

    Raises:
        CloudApiError: the cloud rejects the request or does not answer.
    """
    return _azure_inventory(subscription).clusters()


def aks_schedules(subscription: str, cluster: str) -> Sequence[Mapping[str, Any]]:
    """Return the maintenance schedules of a cluster.

    Args:
        cluster: its resource id.

    Raises:
        CloudApiError: the cloud rejects the request or does not answer.
    """
    return _azure_inventory(subscription).schedules(cluster)


def _azure_inventory(subscription: str) -> "AzureInventory":
    from ebbtide.clients.clouds.azure import azure_credential  # noqa: PLC0415
    from ebbtide.clients.clouds.azure_inventory import AzureInventory  # noqa: PLC0415

    return _guarded(AzureInventory(Account(CloudKind.AKS, subscription), azure_credential()), _AZURE)


def rights(account: Account) -> Rights:
    """Return the user's rights in a project or subscription."""
    match account.cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import GoogleRights, google_session  # noqa: PLC0415

            return _guarded(GoogleRights(account.id, google_session()), _GOOGLE)
        case CloudKind.AKS:
            from ebbtide.clients.clouds.azure import AzureRights, azure_credential  # noqa: PLC0415

            return _guarded(AzureRights(account.id, azure_credential()), _AZURE)


def metric_source(cloud: CloudKind, store: str) -> MetricSource:
    """Return the metrics of a managed Prometheus.

    Args:
        store: id of the project, or resource id of the Azure Monitor workspace.
    """
    match cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import GoogleMetrics, google_session  # noqa: PLC0415

            return _guarded(GoogleMetrics(store, google_session()), _GOOGLE)
        case CloudKind.AKS:
            from ebbtide.clients.clouds.azure import AzureMetrics, azure_credential  # noqa: PLC0415

            return _guarded(AzureMetrics(store, azure_credential()), _AZURE)


def cluster_power(cloud: CloudKind, cluster: str, pools: Sequence[NodePoolSize]) -> ClusterPower:
    """Return the power control of a cluster.

    Args:
        cluster: id of the cluster in the cloud: `projects/*/locations/*/clusters/*`, or Azure's resource id.
        pools: on Google Cloud the sizes of the node pools when it runs, those of the system first; AKS
            stores them itself.
    """
    match cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import GooglePower, google_session  # noqa: PLC0415

            return _guarded(GooglePower(cluster, pools, google_session()), _GOOGLE)
        case CloudKind.AKS:
            from ebbtide.clients.clouds.azure import AzurePower, azure_credential  # noqa: PLC0415

            return _guarded(AzurePower(cluster, azure_credential()), _AZURE)


def _guarded(client: _Client, cloud: str) -> _Client:
    """Return a client whose methods raise a `CloudApiError` for answers of another shape than documented.

    Args:
        cloud: the cloud's name, for the message.
    """
    return cast("_Client", _Guarded(client, cloud))


class _Guarded:
    """A client behind a translation of errors."""

    def __init__(self, client: Any, cloud: str) -> None:
        self._client, self._cloud = client, cloud

    def __getattr__(self, name: str) -> Any:
        attribute: Any = getattr(self._client, name)
        if not callable(attribute):
            return attribute

        def call(*args: Any, **options: Any) -> Any:
            with _understood(self._cloud):
                result = attribute(*args, **options)
                _check_texts(result)
                return result

        return call


def _check_texts(value: Any) -> None:
    """Check that the texts of what a cloud has are texts: a client takes them from the answer as they are.

    Raises:
        TypeError: one is not.
    """
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        items = cast("Mapping[Any, Any] | list[Any]", value)
        for item in (*items, *items.values()) if isinstance(items, Mapping) else items:
            _check_texts(item)
    elif is_dataclass(value):
        for field in fields(value):
            own = getattr(value, field.name)
            if field.type is str and not isinstance(own, str):
                raise TypeError(f"{field.name} is {own}")
            _check_texts(own)


@contextmanager
def _understood(cloud: str) -> Generator[None]:
    """Raise a `CloudApiError` in place of what a document of another shape raises."""
    try:
        yield
    except _SHAPE as error:
        raise CloudApiError(
            f"{cloud} answered with a document of another shape than its API has "
            f"({type(error).__name__}: {str(error)[:80]}). Check the network's "
            "proxy, then run this again."
        ) from error


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A price before and after.

    Attributes:
        key: cloud, region and item.
        old: the known price; None if unknown.
        new: the list's price; None if the list has none, and the old price is kept.
        is_own: True if the old price is the user's own, for example from a contract, and is kept.
    """

    key: PriceKey
    old: Price | None
    new: Price | None
    is_own: bool = False


def refresh(keys: Collection[PriceKey], open_source: Callable[[CloudKind], PriceSource]) -> list[Refreshed]:
    """Look prices up in the clouds' lists, which are opened on demand.

    Args:
        keys: cloud, region or `global`, and item of each price.
        open_source: returns a cloud's list.

    Raises:
        CloudApiError: a cloud rejects a request or does not answer.
    """
    refreshed: list[Refreshed] = []
    for cloud in sorted({cloud for cloud, _, _ in keys}):
        own_keys = sorted(key for key in keys if key[0] == cloud)
        regions = sorted({region for _, region, _ in own_keys if region != GLOBAL})
        source = open_source(CloudKind(cloud)) if regions else None
        for region in (*regions, GLOBAL):
            items = [item for _, place, item in own_keys if place == region]
            new = source.prices(region, items) if source and region != GLOBAL else dict[str, Price]()
            name = source.name if source else ""
            refreshed += (_refreshed((cloud, region, item), new.get(item), name) for item in items)
    return refreshed


def _refreshed(key: PriceKey, new: Price | None, source: str) -> Refreshed:
    cloud, region, item = key
    own = current_own_prices().get(key)
    is_own = own is not None and own.source != source
    return Refreshed(key, find_price(CloudKind(cloud), region, item), None if is_own else new, is_own)


def merged(refreshed: Iterable[Refreshed]) -> Mapping[PriceKey, Price]:
    """Return the user's own prices, updated with the refreshed ones."""
    return {**current_own_prices(), **{change.key: change.new for change in refreshed if change.new}}
