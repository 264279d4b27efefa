"""Azure: quotas of Compute, and the Retail Prices API, which needs no credentials.

Sources: azure-rest-api-specs, Compute `Usage_List` (2026); Azure docs, cost-management retail-prices (2026).
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import requests
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.identity import CredentialUnavailableError, DefaultAzureCredential
from azure.mgmt.compute import ComputeManagementClient

from ebbtide.clients.clouds.errors import CloudApiError, CredentialsError
from ebbtide.clients.clouds.http import get_json, refusal, with_retries
from ebbtide.clients.clouds.interfaces import QuotaLimit
from ebbtide.declaration.catalog.amounts import HOURS_PER_MONTH
from ebbtide.declaration.catalog.prices import GLOBAL, Price

LOGIN: Final = "az login"
_DISK: Final = re.compile(r"disk-premium-p(?P<tier>\d+)-\d+gib")
_RETAIL: Final = "https://prices.azure.com"
_NOT_LINUX: Final = (" Windows", "Cloud Services", "Dedicated Host")
"""Parts of the names of other products for the same machine sizes."""

_PER_REQUEST: Final = 10
"""Maximum number of machine sizes of a filter, so that the URL is not too long."""


def management_endpoint() -> str:
    """Return the URL of Azure Resource Manager: the public one, unless `ARM_METADATA_HOSTNAME` names another
    cloud, as for Pulumi's provider (pulumi-azure-native 3, `metadataHost`).

    Raises:
        CloudApiError: the metadata service does not answer.
    """
    host = os.environ.get("ARM_METADATA_HOSTNAME")
    if not host:
        return "https://management.azure.com"
    with with_retries(requests.Session()) as session:
        metadata = get_json(session, f"https://{host}/metadata/endpoints", {"api-version": "2022-09-01"}, {})
    return metadata["resourceManager"].rstrip("/")


@dataclass(frozen=True, slots=True)
class AzureQuotas:
    """Quotas of a subscription, in vCPUs by machine family."""

    subscription: str
    credential: TokenCredential
    endpoint: str = field(default_factory=management_endpoint)

    def limits(self, region: str, names: Collection[str]) -> dict[str, QuotaLimit]:  # noqa: ARG002 - all are listed
        """See `QuotaSource.limits`; Azure has no global quotas."""
        if region == GLOBAL:
            return {}
        client = ComputeManagementClient(
            self.credential,
            self.subscription,
            base_url=self.endpoint,
            credential_scopes=[f"{self.endpoint}/.default"],
        )
        try:
            with client:
                return {
                    str(usage.name.value): QuotaLimit(usage.limit, usage.current_value)
                    for usage in client.usage.list(region)
                }
        except (CredentialUnavailableError, ClientAuthenticationError) as error:
            raise CredentialsError(
                f"There are no valid credentials for Azure. Log in with `{LOGIN}`."
            ) from error
        except HttpResponseError as error:
            raise CloudApiError(self._refusal(error)) from error
        except AzureError as error:
            raise CloudApiError("Azure cannot be reached. Check the network, then run this again.") from error

    def _refusal(self, error: HttpResponseError) -> str:
        advice = {
            403: f"Ask an owner of subscription {self.subscription} for the role Reader.",
            404: "Check the stack's subscription and region.",
        }
        message = error.error.message if error.error else ""
        return refusal(self.endpoint.removeprefix("https://"), error.status_code or 0, message or "", advice)


def azure_credential() -> TokenCredential:
    """Return the credentials of the environment, a managed identity or the Azure CLI, unchecked."""
    return DefaultAzureCredential()


@dataclass(frozen=True, slots=True)
class AzurePrices:
    """Azure's retail prices for Linux machines and premium disks."""

    endpoint: str = _RETAIL
    name: str = "Azure Retail Prices API"

    def prices(self, region: str, items: Collection[str]) -> dict[str, Price]:
        """Return the prices of items in a region."""
        disks = {item: match["tier"] for item in items if (match := _DISK.fullmatch(item))}
        sizes = sorted(item for item in items if item.startswith("Standard_"))
        today = datetime.now(UTC).date().isoformat()
        known: dict[str, Price] = {}
        with with_retries(requests.Session()) as session:
            for start in range(0, len(sizes), _PER_REQUEST):
                known |= self._machines(session, region, sizes[start : start + _PER_REQUEST], today)
            for item, tier in disks.items():
                rows = self._rows(session, region, "Storage", f"skuName eq 'P{tier} LRS'")
                rate = _rate(
                    row
                    for row in rows
                    if row["meterName"] == f"P{tier} LRS Disk" and row["unitOfMeasure"] == "1/Month"
                )
                if rate is not None:
                    known[item] = Price(rate / HOURS_PER_MONTH, None, None, "", today, self.name)
        return known

    def _machines(
        self, session: requests.Session, region: str, sizes: Collection[str], today: str
    ) -> Iterator[tuple[str, Price]]:
        wanted = " or ".join(f"armSkuName eq '{size}'" for size in sizes)
        rows = [
            row
            for row in self._rows(session, region, "Virtual Machines", f"({wanted})")
            if row["unitOfMeasure"] == "1 Hour"
            and "Low Priority" not in row["skuName"]
            and not any(name in row["productName"] for name in _NOT_LINUX)
        ]
        for size in sizes:
            own = [row for row in rows if row["armSkuName"] == size]
            spot = [row for row in own if row["skuName"].endswith(" Spot")]
            rates = _rate(row for row in own if row not in spot), _rate(spot)
            if rates != (None, None):
                yield size, Price(*rates, None, "", today, self.name)

    def _rows(self, session: requests.Session, region: str, service: str, where: str) -> list[dict[str, Any]]:
        """Return the rows of a service's primary meters in a region."""
        condition = (
            f"serviceName eq '{service}' and armRegionName eq '{region}' and priceType eq 'Consumption' "
            f"and isPrimaryMeterRegion eq true and {where}"
        )
        url, parameters = (
            f"{self.endpoint}/api/retail/prices",
            {"currencyCode": "'USD'", "$filter": condition},
        )
        rows: list[dict[str, Any]] = []
        while url:
            page = get_json(session, url, parameters, {})
            rows += page["Items"]
            url, parameters = page["NextPageLink"], {}
        return rows


def _rate(rows: Iterable[dict[str, Any]]) -> float | None:
    """Return the newest price of the rows; None without rows, or if prices of the same day differ."""
    by_date: dict[str, set[float]] = {}
    for row in rows:
        by_date.setdefault(row["effectiveStartDate"], set()).add(float(row["retailPrice"]))
    newest = by_date[max(by_date)] if by_date else set[float]()
    return newest.pop() if len(newest) == 1 else None
