"""REST APIs of Azure: metadata, tokens, usages, prices, AKS clusters, and lists and deletions of resources.

Resources are those of the fake provider, and others that tests put into the store under Azure's own type.

Sources: azure-rest-api-specs: Resources 2021-04-01 with asynchronous operations (lists have only top-level
resources; a deletion is accepted with 202 and a URL to poll), Azure Monitor metrics 2023-10-01,
Registries_ListUsages 2023-07-01, Microsoft.ContainerService 2025-09-01 (`ManagedClusters_Get`, `_Stop`,
`_Start`), Compute `Usage_List`, and ARM's common errors (2026); azure-aks-docs, start-stop-cluster (2026);
Azure docs, cost-management retail-prices (2026): filters are case-sensitive, and pages continue at
`NextPageLink`; app-service overview-managed-identity (2026): `IDENTITY_ENDPOINT` and `X-IDENTITY-HEADER`.
"""

import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import value_at
from ebbtide_rehearsal.cloud import ids
from ebbtide_rehearsal.cloud.fake_provider import locks
from ebbtide_rehearsal.cloud.hosting import power, power_message
from ebbtide_rehearsal.cloud.ids import AGENT_POOL, AKS_CLUSTER, ASSIGNMENT, AZURE
from ebbtide_rehearsal.cloud.node_pools import fleet
from ebbtide_rehearsal.cloud.pools import all_machines, locations, start, stop
from ebbtide_rehearsal.cloud.properties import names
from ebbtide_rehearsal.cloud.rest.server import (
    RefusedRequestError,
    Request,
    Response,
    bearer,
    is_enabled,
    role,
    route,
    routes_of,
    samples,
)
from ebbtide_rehearsal.cloud.store import Resource, Store

_SCOPE: Final = r"(?i:/subscriptions/)(?P<subscription>[^/]+)"
_GROUP: Final = _SCOPE + r"(?i:/resourceGroups/)(?P<group>[^/]+)"
_PARTS: Final = (
    r".+?/(?:federatedIdentityCredentials|blobServices/default/containers|fileServices/default/shares)/[^/]+"
)
_REGISTRY: Final = _GROUP + "/providers/Microsoft.ContainerRegistry/registries/[^/]+"
_METRICS: Final = "/providers/Microsoft.Insights/metrics"
_PERMISSIONS: Final = r"(?i:/providers/Microsoft\.Authorization/permissions)"
_RESULT: Final = "a9f1"
_VERSIONS: Final = ("2027-01-01-preview", "2024-05-01", "2023-01-01")


Paged: TypeAlias = Callable[[list[Mapping[str, Any]], Request], Mapping[str, Any]]
_CLUSTER: Final = (
    r"(?P<cluster>/subscriptions/(?P<subscription>[^/]+)/resourceGroups/[^/]+/providers"
    r"/Microsoft\.ContainerService/managedClusters/[^/]+)"
)
_MAINTENANCE: Final = "azure-native:containerservice:MaintenanceConfiguration"
_SETS: Final = "VirtualMachineScaleSets"
_TRACKED: Final = frozenset({"location", "tags", "identity", "sku"})
"""Properties of a resource that are beside its `properties` (Azure Resource Manager, TrackedResource)."""
_REGISTRIES: Final = "https://containerregistry.azure.net"
_QUERIES: Final = "https://prometheus.monitor.azure.com"
"""Audiences of tokens for registries and for queries of metrics."""
_WORKSPACE: Final = _GROUP + r"/providers/Microsoft\.Monitor/accounts/(?P<name>[^/]+)"
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


class AzureResources:
    """Resources of subscriptions."""

    def __init__(self, store: Store, paged: Paged) -> None:
        """Serve resources.

        Args:
            paged: returns a page of a list.
        """
        self._store, self._paged = store, paged

    def _all(self, request: Request) -> list[Resource]:
        scope = f"/subscriptions/{request.names['subscription']}"
        return [resource for resource in self._store.resources(AZURE) if ids.within(resource.id, scope)]

    @route("Microsoft.Resources/subscriptions/read", "GET", _SCOPE)
    def _subscription(self, request: Request) -> Mapping[str, Any]:
        return {"id": request.path, "subscriptionId": request.names["subscription"], "state": "Enabled"}

    @route("Microsoft.Resources/resources/read", "GET", _SCOPE + "/resources")
    def _resources(self, request: Request) -> Mapping[str, Any]:
        listed = [
            _document(resource)
            for resource in self._all(request)
            if ids.azure_type(resource.id).count("/") == 1 and "/providers/" in resource.id
        ]
        return self._paged(listed, request)

    @route("Microsoft.Resources/resourceGroups/read", "GET", _SCOPE + "/resourcegroups")
    def _groups(self, request: Request) -> Mapping[str, Any]:
        groups = [_document(resource) for resource in self._all(request) if "/providers/" not in resource.id]
        return self._paged(groups, request)

    @route(
        "Microsoft.Authorization/roleAssignments/read",
        "GET",
        _SCOPE + "/providers/Microsoft.Authorization/roleAssignments",
    )
    def _assignments(self, request: Request) -> Mapping[str, Any]:
        listed: list[Mapping[str, Any]] = [
            {"id": item.id, "name": ids.last(item.id), "properties": dict(item.state)}
            for item in self._all(request)
            if item.type == ASSIGNMENT
        ]
        return self._paged(listed, request)

    @route("Microsoft.Resources/resources/read", "GET", f"(?P<resource>{_GROUP}/providers/{_PARTS})")
    def _part(self, request: Request) -> Mapping[str, Any]:
        return _document(self._existing(request))

    @route("Microsoft.Resources/providers/read", "GET", _SCOPE + "/providers/(?P<namespace>[^/]+)")
    def _provider(self, request: Request) -> Mapping[str, Any]:
        namespace = request.names["namespace"]
        types = {
            ids.azure_type(resource.id).partition("/")[2]
            for resource in self._all(request)
            if ids.azure_type(resource.id).lower().startswith(f"{namespace.lower()}/")
        }
        registered = is_enabled(self._store, request.names["subscription"], namespace)
        return {
            "namespace": namespace,
            "registrationState": "Registered" if registered else "NotRegistered",
            "resourceTypes": [
                {"resourceType": type_, "apiVersions": list(_VERSIONS)} for type_ in sorted(types)
            ],
        }

    def _existing(self, request: Request) -> Resource:
        identity = request.names["resource"]
        resource = next((item for item in self._all(request) if ids.same(item.id, identity)), None)
        if resource is None:
            raise RefusedRequestError(404, f"The Resource '{identity}' was not found.")
        return resource

    @route(
        "Microsoft.Insights/Metrics/Read",
        "GET",
        f"(?P<resource>{_GROUP}/providers/.+?)/(?:blob|file)Services/default{_METRICS}",
    )
    def _metrics(self, request: Request) -> Mapping[str, Any]:
        """Return the requested metrics of a storage account; no point for one without a value."""
        values = self._existing(request).state.get("metrics", {})
        points = {name: [{"average": float(value)}] for name, value in values.items()}
        return {
            "value": [
                {"name": {"value": name}, "unit": "", "timeseries": [{"data": points.get(name, [])}]}
                for name in request.query["metricnames"].split(",")
            ]
        }

    @route(
        "Microsoft.ContainerRegistry/registries/listUsages/read",
        "GET",
        f"(?P<resource>{_REGISTRY})/listUsages",
    )
    def _usages(self, request: Request) -> Mapping[str, Any]:
        size = self._existing(request).state.get("size", 0)
        return {"value": [{"name": "Size", "limit": 0, "currentValue": size, "unit": "Bytes"}]}

    @route("Microsoft.Resources/resources/delete", "DELETE", _GROUP + "(/providers/.+)?")
    def _delete(self, request: Request) -> Response:
        resource = next((item for item in self._all(request) if ids.same(item.id, request.path)), None)
        if resource is None:
            if "/providers/" in request.path:
                return Response(204, {})
            name = ids.last(request.path)
            raise RefusedRequestError(
                404, f"Resource group '{name}' could not be found.", "ResourceGroupNotFound"
            )
        self._check_locks(resource)
        if owner := resource.state.get("managedBy") if "/providers/" in resource.id else None:
            message = f"Disk {ids.last(resource.id)} is attached to VM {owner}."
            raise RefusedRequestError(409, message, "OperationNotAllowed")
        self._remove(resource, request)
        location = (
            f"{request.origin}/subscriptions/{request.names['subscription']}/operationresults/{_RESULT}"
        )
        return Response(202, {}, {"Location": f"{location}?api-version=2021-04-01", "Retry-After": "0"})

    def _remove(self, resource: Resource, request: Request) -> None:
        """Remove a resource; a cluster's node resource group is deleted with it."""
        self._store.remove(AZURE, resource.id)
        for other in self._all(request):
            is_inside = ids.within(other.id, resource.id)
            if is_inside or _is_node_group(other, resource):
                self._remove(other, request)

    def _check_locks(self, resource: Resource) -> None:
        for scope in locks(self._store, resource.id):
            message = (
                f"The scope '{resource.id}' cannot perform delete operation because following scope(s) "
                f"are locked: '{scope}'. Please remove the lock and try again."
            )
            raise RefusedRequestError(409, message, "ScopeLocked")

    @route("Microsoft.Resources/operationresults/read", "GET", _SCOPE + "/operationresults/[^/]+")
    def _done(self, _request: Request) -> Mapping[str, Any]:
        return {}


def _is_node_group(group: Resource, cluster: Resource) -> bool:
    owner = str(group.state.get("managedBy") or "")
    return "/providers/" not in group.id and ids.same(owner, cluster.id)


def _document(resource: Resource) -> Mapping[str, Any]:
    """Return the entry of a resource in a list."""
    known = {**resource.inputs, **resource.state}
    document = {
        "id": resource.id,
        "name": ids.last(resource.id),
        "type": ids.azure_type(resource.id)
        if "/providers/" in resource.id
        else "Microsoft.Resources/resourceGroups",
        "location": str(known.get("location", "")),
        "tags": dict(known.get("tags") or {}),
    }
    return {**document, **({"managedBy": known["managedBy"]} if known.get("managedBy") else {})}


def _managed(resource: Resource, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document of a resource of AKS: what its provider reads, in Azure Resource Manager's form."""
    in_id = {*names(resource.type), "id", "name"}
    return {
        "id": resource.id,
        "name": ids.last(resource.id),
        "type": ids.azure_type(resource.id),
        **{key: value for key, value in state.items() if key in _TRACKED},
        "properties": {key: value for key, value in state.items() if key not in (*in_id, *_TRACKED)},
    }


def _below(store: Store, cluster: Resource, token: str) -> list[Resource]:
    return [resource for resource in store.resources(AZURE, token) if ids.within(resource.id, cluster.id)]


def _pools(store: Store, cluster: Resource) -> list[Mapping[str, Any]]:
    return [pool.state for pool in _below(store, cluster, AGENT_POOL)]


def described(store: Store, cluster: Resource) -> Mapping[str, Any]:
    """Return a cluster with its pools, as `managedClusters.get` does."""
    return _managed(cluster, {**cluster.state, "agentPoolProfiles": _pools(store, cluster)})


class AzureClusters:
    """AKS clusters."""

    def __init__(self, store: Store, paged: Paged) -> None:
        """Serve the clusters of a store; `paged` returns a page of a list."""
        self._store, self._paged = store, paged

    def _cluster(self, request: Request) -> Resource:
        identity = request.names["cluster"]
        for resource in self._store.resources(AZURE, AKS_CLUSTER):
            if resource.id.lower() == identity.lower():
                return resource
        name = identity.rpartition("/")[2]
        message = f"The Resource 'Microsoft.ContainerService/managedClusters/{name}' was not found."
        raise RefusedRequestError(404, message, "ResourceNotFound")

    @route("Microsoft.ContainerService/managedClusters/read", "GET", _CLUSTER)
    def _get(self, request: Request) -> Mapping[str, Any]:
        return described(self._store, self._cluster(request))

    @route(
        "Microsoft.ContainerService/managedClusters/list",
        "GET",
        _SCOPE + "/providers/Microsoft.ContainerService/managedClusters",
    )
    def _list(self, request: Request) -> Mapping[str, Any]:
        scope = f"/subscriptions/{request.names['subscription']}"
        clusters = self._store.resources(AZURE, AKS_CLUSTER)
        return self._paged(
            [described(self._store, item) for item in clusters if ids.within(item.id, scope)], request
        )

    @route(
        "Microsoft.ContainerService/managedClusters/maintenanceConfigurations/read",
        "GET",
        f"{_CLUSTER}/maintenanceConfigurations",
    )
    def _schedules(self, request: Request) -> Mapping[str, Any]:
        schedules = _below(self._store, self._cluster(request), _MAINTENANCE)
        return self._paged([_managed(item, item.state) for item in schedules], request)

    @route("Microsoft.ContainerService/managedClusters/stop/action", "POST", f"{_CLUSTER}/stop")
    def _stop(self, request: Request) -> Mapping[str, Any]:
        cluster = self._settled(request, "Running", "stopping")
        if value_at(cluster.inputs, "nodeProvisioningProfile.mode") == "Auto":  # Azure/AKS#5356
            raise RefusedRequestError(
                400, "Stop is not supported for clusters with node auto provisioning.", "BadRequest"
            )
        if any(pool["type"] != _SETS for pool in _pools(self._store, cluster)):  # Azure/AKS#2349
            raise RefusedRequestError(400, "Client Error: Availability Sets Not Supported", "BadRequest")
        stop(self._store, cluster.id)
        self._store.put(cluster.having(powerState={"code": "Stopped"}))
        return {}

    @route("Microsoft.ContainerService/managedClusters/start/action", "POST", f"{_CLUSTER}/start")
    def _start(self, request: Request) -> Mapping[str, Any]:
        cluster = self._settled(request, "Stopped", "starting")
        start(self._store, cluster.id)
        self._store.put(cluster.having(powerState={"code": "Running"}))
        return {}

    def _settled(self, request: Request, desired: str, doing: str) -> Resource:
        """Return a cluster in a power state; another is rejected (MicrosoftDocs/azure-docs#85161)."""
        cluster = self._cluster(request)
        if power(cluster.state) != desired:
            raise RefusedRequestError(400, power_message(cluster.state, doing), "BadRequest")
        return cluster


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
            *routes_of(self),
            *routes_of(AzureResources(store, self._listed)),
            *routes_of(AzureClusters(store, self._listed)),
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

    def check(self, request: Request) -> None:
        """See `RestApi.check`."""
        subscription = request.names["subscription"]
        if bearer(request) not in self._tokens:
            raise RefusedRequestError(401, "The access token is invalid.")
        if not _VERSION.fullmatch(request.query.get("api-version", "")):
            message = "The api-version query parameter (?api-version=) is required for all requests."
            raise RefusedRequestError(400, message, "MissingApiVersionParameter")
        if self._subscriptions is not None and subscription not in self._subscriptions:
            message = f"The subscription '{subscription}' could not be found."
            raise RefusedRequestError(404, message, "SubscriptionNotFound")

    @route("Microsoft.Authorization/permissions/read", "GET", _SCOPE + _PERMISSIONS)
    def _permissions(self, request: Request) -> Mapping[str, Any]:
        own = role(self._store, request.names["subscription"])
        return {"value": [{**own, "dataActions": [], "notDataActions": []}]}

    @route("Microsoft.Monitor/accounts/read", "GET", _WORKSPACE)
    def _workspace(self, request: Request) -> Mapping[str, Any]:
        identity, name = request.path, request.names["name"]
        if not any(ids.same(item.id, identity) for item in self._store.resources(AZURE)):
            message = f"The Resource 'Microsoft.Monitor/accounts/{name}' was not found."
            raise RefusedRequestError(404, message, "ResourceNotFound")
        metrics = {"prometheusQueryEndpoint": f"{request.origin}/prometheus/{name}"}
        return {"id": identity, "name": name, "properties": {"metrics": metrics}}

    @route(
        "Microsoft.Monitor/accounts/data/metrics/read",
        "GET",
        "/prometheus/[^/]+/api/v1/query",
        is_open=True,
    )
    def _samples(self, request: Request) -> Mapping[str, Any]:
        if bearer(request) not in self._query_tokens:
            raise RefusedRequestError(401, "The access token is invalid.")
        return samples(self._store, request)

    @route("metadata/endpoints", "GET", "/metadata/endpoints", is_open=True)
    def _metadata(self, request: Request) -> Mapping[str, Any]:
        """Return the addresses of this cloud."""
        return {
            "name": "Rehearsal",
            "resourceManager": f"{request.origin}/",
            "authentication": {"loginEndpoint": request.origin, "audiences": [request.origin]},
        }

    @route("msi/token", "GET", "/msi/token", is_open=True)
    def _token(self, request: Request) -> Mapping[str, Any]:
        """Return a token of a managed identity for Azure Resource Manager, metrics, or registries."""
        if request.headers.get("x-identity-header") not in self._identities:
            raise RefusedRequestError(401, "The identity header is invalid.", "Unauthorized")
        tokens = {request.origin: self._tokens, _QUERIES: self._query_tokens, _REGISTRIES: set[str]()}
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

    @route("Microsoft.Compute/locations/usages/read", "GET", _USAGES)
    def _usages(self, request: Request) -> Mapping[str, Any]:
        location = request.names["location"]
        if location not in locations(self._store, CloudKind.AKS).regions():
            message = f"No registered resource provider found for location '{location}'."
            raise RefusedRequestError(400, message, "NoRegisteredProviderFound")
        machines = [machine for machine in all_machines(self._store) if machine.state != "waiting"]
        used = fleet.usage(self._store, CloudKind.AKS, location, machines)
        usages = [
            {
                "unit": "Count",
                "currentValue": used.get(name, 0),
                "limit": int(fleet.limit(self._store, name)),
                "name": {"value": name, "localizedValue": name},
            }
            for name in _names()
        ]
        return self._listed(usages, request)

    def _listed(self, entries: Sequence[Mapping[str, Any]], request: Request) -> Mapping[str, Any]:
        """Return a page of an Azure Resource Manager list."""
        page, following = self._paged(entries, request, "$skiptoken")
        return {"value": page, **({"nextLink": following} if following else {})}

    @route("retail/prices", "GET", "/api/retail/prices", is_open=True)
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
