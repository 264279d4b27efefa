"""Clients with the user's credentials."""

from collections.abc import Sequence

from ebbtide.clients.clouds.interfaces import (
    Account,
    ClusterPower,
    Inventory,
    MetricSource,
    PriceSource,
    QuotaSource,
)
from ebbtide.clients.clouds.node_pools import NodePoolSize
from ebbtide.declaration.catalog import CloudKind


def quota_source(cloud: CloudKind, account: str) -> QuotaSource:
    """Return the quotas of a project or subscription.

    Args:
        cloud: the cloud.
        account: id of the project or subscription.

    Raises:
        CredentialsError: there are no credentials for the cloud.
    """
    match cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import GoogleQuotas, google_session  # noqa: PLC0415

            return GoogleQuotas(account, google_session())
        case CloudKind.AKS:
            from ebbtide.clients.clouds.azure import AzureQuotas, azure_credential  # noqa: PLC0415

            return AzureQuotas(account, azure_credential())


def price_source(cloud: CloudKind) -> PriceSource:
    """Return a cloud's price list; Azure's needs no credentials.

    Raises:
        CredentialsError: there are no credentials for the cloud.
    """
    match cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import GooglePrices, google_session  # noqa: PLC0415

            return GooglePrices(google_session())
        case CloudKind.AKS:
            from ebbtide.clients.clouds.azure import AzurePrices  # noqa: PLC0415

            return AzurePrices()


def inventory(account: Account) -> Inventory:
    """Return the inventory of a project or subscription.

    Raises:
        CredentialsError: there are no credentials for the cloud.
    """
    match account.cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import google_session  # noqa: PLC0415
            from ebbtide.clients.clouds.google_inventory import GoogleInventory  # noqa: PLC0415

            return GoogleInventory(account, google_session())
        case CloudKind.AKS:
            from ebbtide.clients.clouds.azure import azure_credential  # noqa: PLC0415
            from ebbtide.clients.clouds.azure_inventory import AzureInventory  # noqa: PLC0415

            return AzureInventory(account, azure_credential())


def metric_source(cloud: CloudKind, store: str) -> MetricSource:
    """Return the metrics of a managed Prometheus.

    Args:
        cloud: the cloud.
        store: id of the project, or resource id of the Azure Monitor workspace.

    Raises:
        CredentialsError: there are no credentials for the cloud.
    """
    match cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import google_session  # noqa: PLC0415
            from ebbtide.clients.clouds.prometheus import GoogleMetrics  # noqa: PLC0415

            return GoogleMetrics(store, google_session())
        case CloudKind.AKS:
            from ebbtide.clients.clouds.azure import azure_credential  # noqa: PLC0415
            from ebbtide.clients.clouds.prometheus import AzureMetrics  # noqa: PLC0415

            return AzureMetrics(store, azure_credential())


def cluster_power(cloud: CloudKind, cluster: str, pools: Sequence[NodePoolSize]) -> ClusterPower:
    """Return the power control of a cluster.

    Args:
        cloud: the cloud.
        cluster: id of the cluster in the cloud: `projects/*/locations/*/clusters/*`, or Azure's resource id.
        pools: on Google Cloud the sizes of the node pools when it runs, those of the system first; AKS
            stores them itself.

    Raises:
        CredentialsError: there are no credentials for the cloud.
    """
    match cloud:
        case CloudKind.GKE:
            from ebbtide.clients.clouds.google import google_session  # noqa: PLC0415
            from ebbtide.clients.clouds.google_power import GooglePower  # noqa: PLC0415

            return GooglePower(cluster, pools, google_session())
        case CloudKind.AKS:
            from ebbtide.clients.clouds.azure import azure_credential  # noqa: PLC0415
            from ebbtide.clients.clouds.azure_power import AzurePower  # noqa: PLC0415

            return AzurePower(cluster, azure_credential())
