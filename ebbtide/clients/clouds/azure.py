"""Azure: quotas of Compute, the Retail Prices API, which needs no credentials, the power of a cluster, logins
to container registries with the user's own short-lived token, enabled APIs, the user's own permissions and
metrics.

Sources: azure-rest-api-specs, Compute `Usage_List` (2026); Azure docs, cost-management retail-prices (2026);
Azure/acr, docs/AAD-OAuth.md; Azure SDK for Python, azure-containerregistry, audience (2026);
azure-rest-api-specs, Resources 2021-04-01, `Providers_Get`, Authorization 2022-04-01, permissions, and
Microsoft.Monitor 2023-04-03, `AzureMonitorWorkspaces_Get`; azure-docs,
role-based-access-control-manage-access-rest (2026): the permissions of the caller at the scope of a
subscription; azure-monitor docs, prometheus-api-promql (2026): the workspace's query endpoint, and the scope
of its tokens.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Final, cast
from urllib.parse import urlsplit

import requests
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.identity import CredentialUnavailableError, DefaultAzureCredential

from ebbtide.clients.clouds.http import (
    PROMETHEUS,
    document_of,
    get_json,
    linked,
    of_host,
    part,
    read_body,
    samples,
    send,
    with_retries,
)
from ebbtide.clients.clouds.interfaces import CloudApiError, CredentialsError, QuotaLimit, Sample
from ebbtide.declaration.catalog.amounts import HOURS_PER_MONTH
from ebbtide.declaration.catalog.prices import GLOBAL, Price

LOGIN: Final = "az login"
_DISK: Final = re.compile(r"disk-premium-p(?P<tier>\d+)-\d+gib")
_RETAIL: Final = "https://prices.azure.com"
_NOT_LINUX: Final = (" Windows", "Cloud Services", "Dedicated Host")
"""Parts of the names of other products for the same machine sizes."""

_USAGES: Final = "2026-04-01"
"""API version of `Usage_List`."""
_PER_REQUEST: Final = 10
"""Maximum number of machine sizes of a filter, so that the URL is not too long."""
_VERSION: Final = "2025-09-01"
_STEP: Final = 10.0  # seconds between two requests for the cluster's state
_TIMEOUT: Final = 3600.0
_ENDED: Final = frozenset({"Succeeded", "Failed", "Canceled"})
"""Terminal values of `provisioningState` (ARM, asynchronous operations)."""
_USER: Final = "00000000-0000-0000-0000-000000000000"
_SCOPE: Final = "https://containerregistry.azure.net/.default"
_LOGIN_TIMEOUT: Final = 30  # seconds
_PROVIDERS: Final = "2021-04-01"
_PERMISSIONS: Final = "2022-04-01"
_WORKSPACE_VERSION: Final = "2023-04-03"
_HOSTS: Final = ".prometheus.monitor.azure.com"
"""End of the names of the hosts for which the tokens are."""
_METRICS_SCOPE: Final = "https://prometheus.monitor.azure.com/.default"


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
        url = (
            f"{self.endpoint}/subscriptions/{self.subscription}/providers/Microsoft.Compute/locations/{region}"
            "/usages"
        )
        advice = {
            403: f"Ask an owner of subscription {self.subscription} for the role Reader.",
            404: "Check the stack's subscription and region.",
        }
        with azure_session(self.credential, f"{self.endpoint}/.default") as session:
            return {
                str(usage["name"]["value"]): QuotaLimit(usage["limit"], usage["currentValue"])
                for page in linked(session, url, {"api-version": _USAGES}, advice, "nextLink")
                for usage in page["value"]
            }


def azure_credential() -> TokenCredential:
    """Return the credentials of the environment, a managed identity or the Azure CLI, unchecked."""
    # It prints the failure of each of its kinds of credentials; the error has the login.
    logging.getLogger("azure.identity").setLevel(logging.ERROR)
    return DefaultAzureCredential()


def azure_session(credential: TokenCredential, scope: str) -> requests.Session:
    """Return a session with a token, and retries.

    Args:
        scope: scope of the token, such as `https://management.azure.com/.default`.

    Raises:
        CredentialsError: there are no valid credentials.
        CloudApiError: the token server does not answer.
    """
    try:
        token = credential.get_token(scope).token
    except (CredentialUnavailableError, ClientAuthenticationError) as error:
        raise CredentialsError(f"There are no valid credentials for Azure. Log in with `{LOGIN}`.") from error
    except AzureError as error:
        raise CloudApiError("Azure cannot be reached. Check the network, then run this again.") from error
    session = with_retries(requests.Session())
    session.headers["Authorization"] = f"Bearer {token}"
    return session


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
        return [row for page in linked(session, url, parameters, {}, "NextPageLink") for row in page["Items"]]


def _rate(rows: Iterable[dict[str, Any]]) -> float | None:
    """Return the newest price of the rows; None without rows, or if prices of the same day differ."""
    by_date: dict[str, set[float]] = {}
    for row in rows:
        by_date.setdefault(row["effectiveStartDate"], set()).add(float(row["retailPrice"]))
    newest = by_date[max(by_date)] if by_date else set[float]()
    return newest.pop() if len(newest) == 1 else None


@dataclass(frozen=True, slots=True)
class AzurePower:
    """Power state of an AKS cluster.

    Its state is preserved for 12 months while it is stopped; disks and addresses are billed. Source:
    azure-rest-api-specs, Microsoft.ContainerService 2025-09-01, `ManagedClusters_Stop` and
    `ManagedClusters_Start`; azure-aks-docs, start-stop-cluster (2026).

    Attributes:
        cluster: its resource id.
    """

    cluster: str
    credential: TokenCredential
    endpoint: str = field(default_factory=management_endpoint)

    def refusal(self) -> str:
        """Return the reason why the cluster can never be stopped; empty if it can."""
        properties = self._properties()
        if part(properties, "nodeProvisioningProfile").get("mode") == "Auto":
            return "It has node auto-provisioning, and AKS cannot stop such a cluster (Azure/AKS#5356)."
        sets = {pool.get("type", "VirtualMachineScaleSets") for pool in properties["agentPoolProfiles"]}
        if sets != {"VirtualMachineScaleSets"}:
            return "It has node pools without virtual machine scale sets, and AKS cannot stop such a cluster."
        return ""

    def is_stopped(self) -> bool:
        """Return whether the cluster is stopped."""
        return _power(self._properties()) == "Stopped"

    def stop(self, on_step: Callable[[str], None]) -> None:
        """Stop the cluster, including its control plane."""
        self._change("stop", "Stopped", on_step)

    def start(self, on_step: Callable[[str], None]) -> None:
        """Start the cluster."""
        self._change("start", "Running", on_step)

    def _change(self, action: str, desired: str, on_step: Callable[[str], None]) -> None:
        """Change the power state and wait. A change in progress, for example of an interrupted command, is
        waited for first.
        """
        properties = self._settled()
        if _power(properties) == desired and properties.get("provisioningState") == "Succeeded":
            return
        on_step(f"{action} the AKS cluster")
        self._call("POST", f"/{action}")
        properties = self._settled()
        if _power(properties) != desired or properties.get("provisioningState") != "Succeeded":
            raise CloudApiError(
                f"AKS did not {action} the cluster: its state is {properties.get('provisioningState')}, "
                f"{_power(properties)}. Run this again, or look at its activity log."
            )

    def _settled(self) -> dict[str, Any]:
        """Return the cluster's properties once no operation is in progress."""
        end = time.monotonic() + _TIMEOUT
        while (properties := self._properties()).get("provisioningState") not in _ENDED:
            if time.monotonic() > end:
                raise CloudApiError(
                    f"AKS is still busy after an hour ({properties.get('provisioningState')}). Run this "
                    "again to continue."
                )
            time.sleep(_STEP)
        return properties

    def _properties(self) -> dict[str, Any]:
        return self._call("GET")["properties"]

    def _call(self, method: str, action: str = "") -> dict[str, Any]:
        """Send a request and return the response's document; empty without one."""
        advice = {
            403: "Ask an owner for the role Azure Kubernetes Service Contributor.",
            404: "Check with `pulumi refresh` that the cluster exists.",
        }
        url, version = f"{self.endpoint}{self.cluster}{action}", {"api-version": _VERSION}
        with azure_session(self.credential, f"{self.endpoint}/.default") as session:
            response = send(session, method, url, advice, version)
        return document_of(response) or {}


def _power(properties: dict[str, Any]) -> str:
    return str(part(properties, "powerState").get("code") or "Running")


def azure_login(host: str, credential: TokenCredential | None = None) -> tuple[str, str]:
    """Return user name and refresh token for a registry.

    Args:
        credential: the user's credentials; by default those of the environment or the Azure CLI.

    Raises:
        CredentialsError: there are none, they have expired, or the registry refuses them.
        CloudApiError: the registry does not answer.
    """
    try:
        token = (credential or azure_credential()).get_token(_SCOPE).token
    except AzureError as error:
        raise CredentialsError("There are no valid credentials for Azure. Log in with `az login`.") from error
    form = {"grant_type": "access_token", "service": host, "access_token": token}
    try:
        address = f"https://{host}/oauth2/exchange"
        response = requests.post(
            address, data=form, timeout=_LOGIN_TIMEOUT, stream=True, allow_redirects=False
        )
        read_body(response, host)
        document = document_of(response) if response.ok else None
        answer = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    except requests.RequestException as error:
        raise CloudApiError(
            f"{host} does not answer ({type(error).__name__}). Check that the registry exists, and the "
            "network."
        ) from error
    refresh_token = answer.get("refresh_token")
    if not isinstance(refresh_token, str) or not refresh_token:
        raise CredentialsError(
            f"{host} refuses the login of your Azure account with status {response.status_code}. Check that "
            "`az account show` has the registry's tenant."
        )
    return _USER, refresh_token


@dataclass(frozen=True, slots=True)
class AzureRights:
    """Rights in a subscription of Azure."""

    subscription: str
    credential: TokenCredential
    endpoint: str = field(default_factory=management_endpoint)

    def disabled(self, apis: Collection[str]) -> list[str]:
        """See `Rights.disabled`."""
        with self._session() as session:
            return [api for api in sorted(apis) if not self._is_registered(session, api)]

    def _is_registered(self, session: requests.Session, namespace: str) -> bool:
        provider = self._get(session, f"providers/{namespace}", _PROVIDERS)
        return provider.get("registrationState") == "Registered"

    def lacking(self, permissions: Collection[str]) -> list[str]:
        """See `Rights.lacking`. A role's actions may have `*`, and exceptions."""
        with self._session() as session:
            roles = self._get(session, "providers/Microsoft.Authorization/permissions", _PERMISSIONS)["value"]
        return [action for action in sorted(permissions) if not any(_grants(role, action) for role in roles)]

    def _session(self) -> requests.Session:
        return azure_session(self.credential, f"{self.endpoint}/.default")

    def _get(self, session: requests.Session, path: str, version: str) -> dict[str, Any]:
        url = f"{self.endpoint}/subscriptions/{self.subscription}/{path}"
        advice = {403: f"Ask an owner of subscription {self.subscription} for the role Reader."}
        return get_json(session, url, {"api-version": version}, advice)


def _grants(role: dict[str, Any], action: str) -> bool:
    """Return whether a role has an action; names are compared without case."""

    def has(patterns: list[str]) -> bool:
        return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)

    return has(role.get("actions") or []) and not has(role.get("notActions") or [])


@dataclass(frozen=True, slots=True)
class AzureMetrics:
    """Metrics of an Azure Monitor workspace, by its resource id."""

    workspace: str
    credential: TokenCredential
    endpoint: str = field(default_factory=management_endpoint)

    def query(self, promql: str) -> Sequence[Sample]:
        """See `MetricSource.query`."""
        with azure_session(self.credential, f"{self.endpoint}/.default") as session:
            advice = {403: "Ask its owner for the role Reader.", 404: "Run `ebbtide up` again."}
            version = {"api-version": _WORKSPACE_VERSION}
            document = get_json(session, f"{self.endpoint}{self.workspace}", version, advice)
        address = str(document["properties"]["metrics"]["prometheusQueryEndpoint"])
        if not str(urlsplit(address).hostname).endswith(_HOSTS):
            address = of_host(address, self.endpoint)
        with azure_session(self.credential, _METRICS_SCOPE) as session:
            advice = {403: "Ask an owner of the workspace for the role Monitoring Data Reader."}
            return samples(get_json(session, f"{address}/{PROMETHEUS}", {"query": promql}, advice))
