"""Google Cloud: Compute Engine's quotas and the price catalog, over their REST APIs.

google-auth's own session, and not google-cloud-compute: importing that takes 6 s of CPU and 35 MB of disk
(measured with 1.57.0, 2026-11), for two GET requests.

Sources: Compute Engine API v1, `projects.get` and `regions.get`; Cloud Billing API v1, `services.skus.list`
(Google's REST reference, 2026).
"""

import logging
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, cast

import google.auth
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import AuthorizedSession, Request

from ebbtide.catalog.prices import GLOBAL, Price
from ebbtide.catalog.skus import components
from ebbtide.cloud_apis.errors import CloudApiError, CredentialsError
from ebbtide.cloud_apis.http import get_json, pages, with_retries
from ebbtide.cloud_apis.interfaces import QuotaLimit

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_COMPUTE_ENGINE: Final = "services/6F81-5844-456A"
LOGIN: Final = "gcloud auth application-default login"
_HOURS_OF_MONTH: Final = 730

PAGE_SIZE = 5000
"""SKUs of a page, at most (Cloud Billing API v1)."""

_USAGE: Final = {"on_demand": "OnDemand", "spot": "Preemptible", "flex": "OnDemand"}


_CONSOLE: Final = "https://console.cloud.google.com/apis/library"


@dataclass(frozen=True, slots=True)
class GoogleEndpoints:
    """Addresses of the APIs."""

    compute: str = "https://compute.googleapis.com"
    billing: str = "https://cloudbilling.googleapis.com"
    container: str = "https://container.googleapis.com"


def google_session() -> AuthorizedSession:
    """Return a session with the application default credentials, refreshed.

    Raises:
        CredentialsError: there are none, or they have expired.
        CloudApiError: the server that refreshes them does not answer.
    """
    try:
        credentials = _default_credentials()
        credentials.refresh(Request())  # pyright: ignore[reportUnknownMemberType]
    except TransportError as error:
        raise CloudApiError("Google's authorization server does not answer. Check the network.") from error
    except GoogleAuthError as error:
        raise CredentialsError(
            f"There are no valid credentials for Google Cloud. Log in with `{LOGIN}`."
        ) from error
    return with_retries(AuthorizedSession(credentials))


def _default_credentials() -> Credentials:
    # It warns on the terminal that the credentials name no project, which the stack does.
    logging.getLogger("google.auth._default").setLevel(logging.ERROR)
    default = cast("Callable[..., tuple[Credentials, str | None]]", google.auth.default)  # pyright: ignore[reportUnknownMemberType]
    return default(scopes=[_SCOPE])[0]


@dataclass(frozen=True, slots=True)
class GoogleQuotas:
    """Quotas of a project. Metrics that Compute Engine's API does not list, as those of the newest GPUs, are
    missing.
    """

    project: str
    session: AuthorizedSession
    endpoints: GoogleEndpoints = GoogleEndpoints()

    def limits(self, region: str) -> dict[str, QuotaLimit]:
        """Return the limits of a region, or of the whole project for `global`."""
        path = "" if region == GLOBAL else f"/regions/{region}"
        url = f"{self.endpoints.compute}/compute/v1/projects/{self.project}{path}"
        advice = {
            403: f"Ask an owner of {self.project} for roles/compute.viewer and the Compute Engine API "
            f"({_CONSOLE}/compute.googleapis.com?project={self.project}).",
            404: "Check the stack's project and region.",
        }
        quotas = get_json(self.session, url, {}, advice).get("quotas", [])
        return {quota["metric"]: QuotaLimit(quota["limit"], quota["usage"]) for quota in quotas}


@dataclass
class GooglePrices:
    """Compute Engine's list prices, assembled from the SKUs of vCPUs, memory, accelerators and disks."""

    session: AuthorizedSession
    endpoints: GoogleEndpoints = GoogleEndpoints()
    name: str = "Cloud Billing Catalog API"

    def prices(self, region: str, items: Collection[str]) -> dict[str, Price]:
        """Return the prices of items in a region."""
        today = datetime.now(UTC).date().isoformat()
        known: dict[str, Price] = {}
        for item in items:
            parts = components(item)
            rates = {
                capacity: _total(
                    [(self._rate(getattr(skus, capacity), usage, region), n) for skus, n in parts.items()]
                )
                for capacity, usage in _USAGE.items()
            }
            if any(rate is not None for rate in rates.values()):
                known[item] = Price(**rates, note="", as_of=today, source=self.name)
        return known

    def _rate(self, description: str, usage: str, region: str) -> float | None:
        """Return the rate of the one SKU of that description in a region; None if rates differ."""
        pattern = re.compile(re.escape(description) + r"( running)?( in .+)?")
        rates = {
            _unit_price(sku)
            for sku in self._skus
            if description
            and sku["category"]["usageType"] == usage
            and region in sku["serviceRegions"]
            and pattern.fullmatch(sku["description"])
        }
        return rates.pop() if len(rates) == 1 else None

    @cached_property
    def _skus(self) -> list[dict[str, Any]]:
        url = f"{self.endpoints.billing}/v1/{_COMPUTE_ENGINE}/skus"
        advice = {
            403: f"Enable the Cloud Billing API ({_CONSOLE}/cloudbilling.googleapis.com) in a project, and "
            "name that with `gcloud auth application-default set-quota-project`."
        }
        parameters = {"pageSize": str(PAGE_SIZE), "currencyCode": "USD"}
        return [sku for page in pages(self.session, url, parameters, advice) for sku in page.get("skus", [])]


def _total(parts: list[tuple[float | None, float]]) -> float | None:
    """Return the sum of rates by quantity; None if one is unknown, or without parts."""
    if not parts or any(rate is None for rate, _ in parts):
        return None
    return sum(rate * count for rate, count in parts if rate is not None)


def _unit_price(sku: dict[str, Any]) -> float | None:
    """Return the price of a unit and hour, of the highest tier: disks have a free one."""
    expression = sku["pricingInfo"][-1]["pricingExpression"]
    price = expression["tieredRates"][-1]["unitPrice"]
    rate = int(price.get("units", 0)) + price.get("nanos", 0) / 1e9
    match expression["usageUnit"]:
        case "h" | "GiBy.h":
            return rate
        case "GiBy.mo":
            return rate / _HOURS_OF_MONTH
        case _:
            return None
