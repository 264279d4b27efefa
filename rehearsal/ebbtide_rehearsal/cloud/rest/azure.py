"""Azure: the cloud's metadata, tokens of a managed identity, usages of Compute, and the public Retail Prices
API; other modules have the rest.

Sources: azure-rest-api-specs, Compute `Usage_List`, and ARM's common errors (2026); Azure docs,
cost-management retail-prices (2026): filters are case-sensitive, and pages continue at `NextPageLink`;
app-service overview-managed-identity (2026): `IDENTITY_ENDPOINT` and `X-IDENTITY-HEADER`.
"""

import re
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.catalog.tables import rows
from ebbtide_rehearsal.cloud.nodes import quotas
from ebbtide_rehearsal.cloud.nodes.machines import all_machines
from ebbtide_rehearsal.cloud.regions import locations
from ebbtide_rehearsal.cloud.rest.azure_clusters import AzureClusters
from ebbtide_rehearsal.cloud.rest.azure_resources import AzureResources
from ebbtide_rehearsal.cloud.rest.prometheus import SCOPE, Prometheus
from ebbtide_rehearsal.cloud.rest.routes import RefusedRequestError, Request, Route, bearer
from ebbtide_rehearsal.cloud.store import Store

_REGISTRIES: Final = "https://containerregistry.azure.net"
_USAGES: Final = (
    "/subscriptions/(?P<subscription>[^/]+)/providers/Microsoft.Compute/locations/(?P<location>[^/]+)/usages"
)
_VERSION: Final = re.compile(r"20\d\d-\d\d-\d\d(-preview)?")
_OTHERS: Final = (
    "availabilitySets",
    "cores",
    "virtualMachines",
    "virtualMachineScaleSets",
    "PremiumDiskCount",
)
_CODES: Final = {
    400: "BadRequest",
    401: "InvalidAuthenticationToken",
    403: "AuthorizationFailed",
    404: "ResourceNotFound",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}
_CLAUSE: Final = re.compile(r"(?P<field>\w+) eq (?:'(?P<text>[^']*)'|(?P<flag>true|false))")
_FIELDS: Final = {"priceType": "type"}
"""Fields of a filter with a different name in the items."""


class Azure:
    """Azure's APIs.

    Attributes:
        routes: operations of the APIs.
    """

    def __init__(
        self,
        store: Store,
        subscriptions: Collection[str] | None,
        identities: Collection[str],
        prices: Sequence[Mapping[str, Any]],
        page: int = 100,
    ) -> None:
        """Serve subscriptions.

        Args:
            store: the fake cloud's store.
            subscriptions: ids of the existing subscriptions; None for any.
            identities: secrets of managed identities, which get tokens.
            prices: items of the Retail Prices API.
            page: number of items of a page.
        """
        self._store, self._subscriptions, self._identities = store, subscriptions, identities
        self._tokens: set[str] = set()
        self._query_tokens: set[str] = set()
        self._prices, self._page = prices, page
        self.routes = (
            Route("metadata/endpoints", "GET", re.compile("/metadata/endpoints"), self._metadata),
            Route("msi/token", "GET", re.compile("/msi/token"), self._token),
            Route("Microsoft.Compute/locations/usages/read", "GET", re.compile(_USAGES), self._usages),
            Route("retail/prices", "GET", re.compile("/api/retail/prices"), self._retail),
            *AzureResources(store, self._check, self._listed).routes(),
            *AzureClusters(store, self._check).routes,
            *Prometheus(store).azure(self._check, self._check_query),
        )

    def owns(self, path: str) -> bool:
        """Return whether a path is one of Azure's."""
        return path.startswith(("/subscriptions/", "/api/retail/", "/metadata/", "/msi/", "/prometheus/"))

    def refusal(self, error: RefusedRequestError) -> Mapping[str, Any]:
        """Return the document of an error."""
        return {
            "error": {
                "code": error.code or _CODES.get(error.status, "InternalServerError"),
                "message": error.message,
            }
        }

    def _check(self, request: Request) -> None:
        subscription = request.names["subscription"]
        if bearer(request) not in self._tokens:
            raise RefusedRequestError(401, "The access token is invalid.")
        if not _VERSION.fullmatch(request.query.get("api-version", "")):
            message = "The api-version query parameter (?api-version=) is required for all requests."
            raise RefusedRequestError(400, message, "MissingApiVersionParameter")
        if self._subscriptions is not None and subscription not in self._subscriptions:
            message = f"The subscription '{subscription}' could not be found."
            raise RefusedRequestError(404, message, "SubscriptionNotFound")

    def _check_query(self, request: Request) -> None:
        if bearer(request) not in self._query_tokens:
            raise RefusedRequestError(401, "The access token is invalid.")

    def _metadata(self, request: Request) -> Mapping[str, Any]:
        """Return the addresses of this cloud."""
        return {
            "name": "Rehearsal",
            "resourceManager": f"{request.origin}/",
            "authentication": {"loginEndpoint": request.origin, "audiences": [request.origin]},
        }

    def _token(self, request: Request) -> Mapping[str, Any]:
        """Return a token of a managed identity for Azure Resource Manager, metrics, or registries."""
        if request.headers.get("x-identity-header") not in self._identities:
            raise RefusedRequestError(401, "The identity header is invalid.", "Unauthorized")
        tokens = {request.origin: self._tokens, SCOPE: self._query_tokens, _REGISTRIES: set[str]()}
        resource = request.query.get("resource", "")
        if resource not in tokens:
            raise RefusedRequestError(400, "The resource principal was not found.", "invalid_resource")
        token = secrets.token_urlsafe(16)
        tokens[resource].add(token)
        return {
            "access_token": token,
            "expires_on": str(int(time.time()) + 3600),
            "resource": resource,
            "token_type": "Bearer",
        }

    def _usages(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        location = request.names["location"]
        if location not in locations(self._store, CloudKind.AKS).regions():
            message = f"No registered resource provider found for location '{location}'."
            raise RefusedRequestError(400, message, "NoRegisteredProviderFound")
        machines = [machine for machine in all_machines(self._store) if machine.state != "waiting"]
        used = quotas.usage(self._store, CloudKind.AKS, location, machines)
        usages = [
            {
                "unit": "Count",
                "currentValue": used.get(name, 0),
                "limit": int(quotas.limit(self._store, name)),
                "name": {"value": name, "localizedValue": name},
            }
            for name in _names()
        ]
        return self._listed(usages, request)

    def _listed(self, entries: Sequence[Mapping[str, Any]], request: Request) -> Mapping[str, Any]:
        """Return a page of an Azure Resource Manager list."""
        page, following = self._paged(entries, request, "$skiptoken")
        return {"value": page, **({"nextLink": following} if following else {})}

    def _retail(self, request: Request) -> Mapping[str, Any]:
        conditions = [_condition(part) for part in _conjuncts(request.query.get("$filter", ""))]
        items = [item for item in self._prices if all(_holds(item, condition) for condition in conditions)]
        page, following = self._paged(items, request, "$skip")
        return {
            "BillingCurrency": "USD",
            "CustomerEntityId": "Default",
            "CustomerEntityType": "Retail",
            "Items": page,
            "NextPageLink": following,
            "Count": len(page),
        }

    def _paged(
        self, entries: Sequence[Mapping[str, Any]], request: Request, parameter: str
    ) -> tuple[Sequence[Mapping[str, Any]], str | None]:
        """Return a page of entries, and the URL of the next page."""
        start = request.query.get(parameter) or "0"
        if not start.isdecimal():
            raise RefusedRequestError(400, f"The query parameter {parameter} is invalid.")
        end = int(start) + self._page
        query = urlencode({**request.query, parameter: end}, safe="$")
        return entries[int(start) : end], f"{request.origin}{request.path}?{query}" if end < len(
            entries
        ) else None


def _names() -> list[str]:
    families = {
        row[kind] for row in rows("quotas") for kind in ("on_demand", "spot") if row["cloud"] == "aks"
    }
    return sorted({*_OTHERS, *families})


def _conjuncts(condition: str) -> list[str]:
    """Return the parts of a filter between `and`, without parentheses."""
    return [part.strip("()") for part in re.split(r" and (?![^(]*\))", condition)] if condition else []


def _condition(part: str) -> list[re.Match[str]]:
    """Return the alternatives of a filter's part.

    Raises:
        RefusedRequestError: the filter is malformed.
    """
    matches = [_CLAUSE.fullmatch(clause) for clause in part.split(" or ")]
    if not all(matches):
        raise RefusedRequestError(400, f"Invalid OData filter: {part}")
    return [match for match in matches if match]


def _holds(item: Mapping[str, Any], alternatives: Sequence[re.Match[str]]) -> bool:
    def value(match: re.Match[str]) -> object:
        return match["text"] if match["flag"] is None else match["flag"] == "true"

    return any(
        item.get(_FIELDS.get(match["field"], match["field"])) == value(match) for match in alternatives
    )
