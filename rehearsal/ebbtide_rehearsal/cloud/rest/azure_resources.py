"""Azure Resource Manager: list and delete resources and resource groups.

Resources are those of the fake provider, and others that tests put into the store under Azure's own type.

Sources: Azure Resource Manager REST reference, Resources 2021-04-01, and asynchronous operations (2026);
Azure Monitor metrics 2023-10-01; Registries_ListUsages 2023-07-01:
lists have only top-level resources; a deletion is accepted with 202 and a URL to poll.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.rest.routes import RefusedRequestError, Request, Response, Route
from ebbtide_rehearsal.cloud.store import Resource, Store

_CLOUD: Final = "azure-native"
_SCOPE: Final = r"(?i:/subscriptions/)(?P<subscription>[^/]+)"
_GROUP: Final = _SCOPE + r"(?i:/resourceGroups/)(?P<group>[^/]+)"
_METRICS: Final = "/providers/Microsoft.Insights/metrics"
_VERSION: Final = re.compile(r"20\d\d-\d\d-\d\d(-preview)?")
_RESULT: Final = "a9f1"
_VERSIONS: Final = ("2027-01-01-preview", "2024-05-01", "2023-01-01")


def planted(identity: str, *, location: str = "eastus", **state: Any) -> Resource:
    """Return a resource that no program declares, such as a disk of a storage driver.

    Args:
        identity: resource id.
        location: region.
        state: rest of its document, such as `tags`.
    """
    return Resource(_CLOUD, identity, ids.azure_type(identity), state={"location": location, **state})


class AzureResources:
    """Resources of subscriptions."""

    def __init__(
        self,
        store: Store,
        check: Callable[[Request], None],
        paged: Callable[[list[Mapping[str, Any]], Request], Mapping[str, Any]],
    ) -> None:
        """Serve resources.

        Args:
            store: the fake cloud's store.
            check: rejects a request without credentials, version or subscription.
            paged: returns a page of a list.
        """
        self._store, self._check, self._paged = store, check, paged

    def routes(self) -> Iterator[Route]:
        """Yield the routes of the operations."""
        for name, method, path, handle in (
            ("Microsoft.Resources/subscriptions/read", "GET", _SCOPE, self._subscription),
            ("Microsoft.Resources/resources/read", "GET", _SCOPE + "/resources", self._resources),
            ("Microsoft.Resources/resourceGroups/read", "GET", _SCOPE + "/resourcegroups", self._groups),
            (
                "Microsoft.Resources/providers/read",
                "GET",
                _SCOPE + r"/providers/(?P<namespace>[^/]+)",
                self._provider,
            ),
            (
                "Microsoft.Resources/operationresults/read",
                "GET",
                _SCOPE + "/operationresults/[^/]+",
                self._done,
            ),
            (
                "Microsoft.Insights/Metrics/Read",
                "GET",
                f"(?P<resource>{_GROUP}/providers/.+?)/(?:blob|file)Services/default{_METRICS}",
                self._metrics,
            ),
            (
                "Microsoft.ContainerRegistry/registries/listUsages/read",
                "GET",
                f"(?P<resource>{_GROUP}/providers/Microsoft.ContainerRegistry/registries/[^/]+)/listUsages",
                self._usages,
            ),
            ("Microsoft.Resources/resourceGroups/delete", "DELETE", _GROUP, self._delete),
            ("Microsoft.Resources/resources/delete", "DELETE", _GROUP + "/providers/.+", self._delete),
        ):
            yield Route(name, method, re.compile(path), handle)

    def _all(self, request: Request) -> list[Resource]:
        scope = f"/subscriptions/{request.names['subscription']}"
        return [resource for resource in self._store.resources(_CLOUD) if ids.within(resource.id, scope)]

    def _subscription(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        return {"id": request.path, "subscriptionId": request.names["subscription"], "state": "Enabled"}

    def _resources(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        listed = [
            _document(resource)
            for resource in self._all(request)
            if ids.azure_type(resource.id).count("/") == 1 and "/providers/" in resource.id
        ]
        return self._paged(listed, request)

    def _groups(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        groups = [_document(resource) for resource in self._all(request) if "/providers/" not in resource.id]
        return self._paged(groups, request)

    def _provider(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        namespace = request.names["namespace"]
        types = {
            ids.azure_type(resource.id).partition("/")[2]
            for resource in self._all(request)
            if ids.azure_type(resource.id).lower().startswith(f"{namespace.lower()}/")
        }
        return {
            "namespace": namespace,
            "resourceTypes": [
                {"resourceType": type_, "apiVersions": list(_VERSIONS)} for type_ in sorted(types)
            ],
        }

    def _existing(self, request: Request) -> Resource:
        self._check(request)
        identity = request.names["resource"]
        resource = next((item for item in self._all(request) if ids.same(item.id, identity)), None)
        if resource is None:
            raise RefusedRequestError(404, f"The Resource '{identity}' was not found.")
        return resource

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

    def _usages(self, request: Request) -> Mapping[str, Any]:
        size = self._existing(request).state.get("size", 0)
        return {"value": [{"name": "Size", "limit": 0, "currentValue": size, "unit": "Bytes"}]}

    def _delete(self, request: Request) -> Response:
        self._check(request)
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
        self._store.remove(_CLOUD, resource.id)
        for other in self._all(request):
            is_inside = ids.within(other.id, resource.id)
            if is_inside or _is_node_group(other, resource):
                self._remove(other, request)

    def _check_locks(self, resource: Resource) -> None:
        for lock in self._store.resources(_CLOUD, "Microsoft.Authorization/locks"):
            scope = str(lock.state["scope"])
            if ids.within(resource.id, scope) or ids.within(scope, resource.id):
                message = (
                    f"The scope '{resource.id}' cannot perform delete operation because following scope(s) "
                    f"are locked: '{scope}'. Please remove the lock and try again."
                )
                raise RefusedRequestError(409, message, "ScopeLocked")

    def _done(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
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
