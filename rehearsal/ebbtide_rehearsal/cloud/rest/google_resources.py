"""Resources of Compute Engine and Kubernetes Engine: list them, and delete them with asynchronous operations.

Resources of Compute Engine are in the store under the API's kind, such as `compute#disk`, with the API's
document as their state; in a real cloud users' controllers create them, here tests do. Clusters and node
pools are those of the fake provider, as are buckets and repositories.

Sources: Compute Engine v1 (`disks.aggregatedList`, `firewalls.list`, `disks.delete`, `zoneOperations.get`),
Cloud Storage JSON API v1 (`objects.list`), Artifact Registry v1 (`projects.locations.repositories.get`)
and Kubernetes Engine v1 (`projects.locations.clusters`, `.nodePools`, `.operations`), REST references (2026).
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from ebbtide_rehearsal.cloud.gcp.clusters import location_of
from ebbtide_rehearsal.cloud.gcp.request import CLUSTER, NODE_POOL
from ebbtide_rehearsal.cloud.gcp.storage import objects
from ebbtide_rehearsal.cloud.pools import forget
from ebbtide_rehearsal.cloud.rest.routes import RefusedRequestError, Request, Route
from ebbtide_rehearsal.cloud.store import Resource, Store

_CLOUD: Final = "gcp"
_LARGEST_PAGE: Final = 500
_LARGEST_PAGE_OF_OBJECTS: Final = 1000
_COMPUTE: Final = r"/compute/v1/(?P<scope>projects/(?P<project>[^/]+)/(?:global|(?:zones|regions)/[^/]+))"
_CONTAINER: Final = r"/v1/(?P<parent>projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+))"


def planted(collection: str, scope: str, name: str, **state: Any) -> Resource:
    """Return a resource of Compute Engine as returned by its API.

    Args:
        collection: collection in the API, such as `disks`.
        scope: project and location, such as `projects/acme-ml/zones/us-central1-a` or `…/global`.
        name: name of the resource.
        state: rest of its document.
    """
    identity = f"{scope}/{collection}/{name}"
    noun, _, location = scope.split("/", 2)[2].partition("/")
    where = {noun.removesuffix("s"): f"https://www.googleapis.com/compute/v1/{scope}"} if location else {}
    link = f"https://www.googleapis.com/compute/v1/{identity}"
    document = {"kind": _kind(collection), "name": name, "selfLink": link, **where, **state}
    return Resource(_CLOUD, identity, _kind(collection), state=document)


def _kind(collection: str) -> str:
    singular = {
        "addresses": "address",
        "targetHttpProxies": "targetHttpProxy",
        "targetHttpsProxies": "targetHttpsProxy",
    }
    return f"compute#{singular.get(collection, collection.removesuffix('s'))}"


class GoogleResources:
    """Resources of projects."""

    def __init__(self, store: Store, check: Callable[[Request], None]) -> None:
        """Serve resources.

        Args:
            store: the fake cloud's store.
            check: rejects a request without credentials, or for an unknown project.
        """
        self._store, self._check = store, check
        self._operations: dict[str, str] = {}

    def routes(self) -> Iterator[Route]:
        """Yield the routes of the operations."""
        listed = r"/compute/v1/projects/(?P<project>[^/]+)/{}/(?P<collection>[A-Za-z]+)"
        operations = r"/operations/(?P<operation>[^/]+)"
        cluster_path = r"/clusters/(?P<cluster>[^/]+)"
        for name, method, path, handle in (
            ("compute.aggregatedList", "GET", listed.format("aggregated"), self._aggregated),
            ("compute.list", "GET", listed.format("global"), self._global),
            ("compute.operations.get", "GET", _COMPUTE + operations, self._operation),
            (
                "compute.delete",
                "DELETE",
                _COMPUTE + "/(?P<collection>[A-Za-z]+)/(?P<name>[^/]+)",
                self._delete,
            ),
            ("storage.objects.list", "GET", "/storage/v1/b/(?P<bucket>[^/]+)/o", self._objects),
            (
                "artifactregistry.projects.locations.repositories.get",
                "GET",
                _CONTAINER + "/repositories/(?P<repository>[^/]+)",
                self._repository,
            ),
            ("container.clusters.list", "GET", _CONTAINER + "/clusters", self._clusters),
            ("container.operations.get", "GET", _CONTAINER + operations, self._operation),
            ("container.clusters.delete", "DELETE", _CONTAINER + cluster_path, self._delete_cluster),
            (
                "container.nodePools.delete",
                "DELETE",
                _CONTAINER + cluster_path + "/nodePools/(?P<pool>[^/]+)",
                self._delete_cluster,
            ),
        ):
            yield Route(name, method, re.compile(path), handle)

    def _of(self, request: Request) -> list[Resource]:
        project = f"projects/{request.names['project']}/"
        resources = self._store.resources(_CLOUD, _kind(request.names["collection"]))
        return [resource for resource in resources if resource.id.startswith(project)]

    def _aggregated(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        collection = request.names["collection"]
        page, following = _page(request, self._of(request))
        warning = {"code": "NO_RESULTS_ON_PAGE", "message": "There are no results for scope 'global'."}
        items: dict[str, Any] = {"global": {"warning": warning}}
        for resource in page:
            scope = resource.id.split("/", 2)[2].rsplit("/", 2)[0]
            listed = items.setdefault(scope, {})
            listed.pop("warning", None)
            listed.setdefault(collection, []).append(resource.state)
        return {"kind": f"{_kind(collection)}AggregatedList", "items": items, **following}

    def _global(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        resources = [resource for resource in self._of(request) if "/global/" in resource.id]
        page, following = _page(request, resources)
        kind = f"{_kind(request.names['collection'])}List"
        return {"kind": kind, "items": [resource.state for resource in page], **following}

    def _delete(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        scope, collection, name = (request.names[part] for part in ("scope", "collection", "name"))
        identity = f"{scope}/{collection}/{name}"
        if self._store.get(_CLOUD, identity) is None:
            raise RefusedRequestError(404, f"The resource '{identity}' was not found")
        if user := self._user(identity):
            noun = collection.removesuffix("s")
            message = f"The {noun} resource '{identity}' is already being used by '{user}'"
            raise RefusedRequestError(400, message)
        self._store.remove(_CLOUD, identity)
        return self._started(f"https://compute.googleapis.com/compute/v1/{scope}/operations")

    def _user(self, identity: str) -> str:
        """Return the id of a resource that refers to this one; empty for none."""
        own = self._store.get(_CLOUD, identity)
        users = own.state.get("users") if own else None
        if users:
            return str(users[0]).partition("/compute/v1/")[2]
        for resource in self._store.resources(_CLOUD):
            if resource.type.startswith("compute#") and resource.id != identity:
                document = {key: value for key, value in resource.state.items() if key != "users"}
                if f'/{identity}"' in json.dumps(document):
                    return resource.id
        return ""

    def _objects(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        bucket = request.names["bucket"]
        if self._store.get(_CLOUD, bucket) is None:
            raise RefusedRequestError(404, "The specified bucket does not exist.")
        page, following = _page(request, objects(self._store, bucket), _LARGEST_PAGE_OF_OBJECTS)
        return {"kind": "storage#objects", "items": [item.state for item in page], **following}

    def _repository(self, request: Request) -> Mapping[str, Any]:
        """Return a repository; the size of its images is a 64-bit number, thus text."""
        self._check(request)
        identity = f"{request.names['parent']}/repositories/{request.names['repository']}"
        repository = self._store.get(_CLOUD, identity)
        if repository is None:
            raise RefusedRequestError(404, "Requested entity was not found.")
        size = str(repository.state.get("sizeBytes", 0))
        return {"name": identity, "format": repository.inputs.get("format", ""), "sizeBytes": size}

    def _clusters(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        parent, location = request.names["parent"], request.names["location"]
        project = (
            f"{parent.rpartition('/locations/')[0]}/locations/{'' if location == '-' else location + '/'}"
        )
        clusters = [
            cluster for cluster in self._store.resources(_CLOUD, CLUSTER) if cluster.id.startswith(project)
        ]
        return {"clusters": [self._cluster(cluster) for cluster in clusters]} if clusters else {}

    def _cluster(self, cluster: Resource) -> Mapping[str, Any]:
        pools = [
            pool
            for pool in self._store.resources(_CLOUD, NODE_POOL)
            if pool.id.startswith(f"{cluster.id}/nodePools/")
        ]
        return {
            "id": uid_of(cluster.id),
            "name": cluster.id.rpartition("/")[2],
            "location": location_of(cluster),
            "selfLink": f"https://container.googleapis.com/v1/{cluster.id}",
            "resourceLabels": dict(cluster.inputs.get("resourceLabels") or {}),
            "status": "RUNNING",
            "nodePools": [
                {"name": pool.id.rpartition("/")[2], "config": pool.inputs.get("nodeConfig") or {}}
                for pool in pools
            ],
        }

    def _delete_cluster(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        parent, pool = request.names["parent"], request.names.get("pool")
        cluster = f"{parent}/clusters/{request.names['cluster']}"
        identity = f"{cluster}/nodePools/{pool}" if pool else cluster
        if self._store.get(_CLOUD, identity) is None:
            raise RefusedRequestError(404, f"Not found: {identity}.", "")
        below = [
            resource.id
            for resource in self._store.resources(_CLOUD)
            if resource.id.startswith(f"{identity}/")
        ]
        for resource in (*below, identity):
            self._store.remove(_CLOUD, resource)
            forget(self._store, cluster, resource.rpartition("/nodePools/")[2])
        return self._started(f"https://container.googleapis.com/v1/{parent}/operations")

    def _started(self, operations: str) -> Mapping[str, Any]:
        """Return a running operation, which is done at the next read."""
        name = f"operation-{secrets.token_hex(8)}"
        self._operations[name] = f"{operations}/{name}"
        return {"name": name, "status": "RUNNING", "selfLink": self._operations[name]}

    def _operation(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        name = request.names["operation"]
        if name not in self._operations:
            raise RefusedRequestError(404, f"The resource 'operations/{name}' was not found")
        return {"name": name, "status": "DONE", "selfLink": self._operations[name]}


def uid_of(cluster: str) -> str:
    """Return GKE's id of a cluster."""
    return sha256(cluster.encode()).hexdigest()


def _page(
    request: Request, resources: list[Resource], largest: int = _LARGEST_PAGE
) -> tuple[list[Resource], Mapping[str, str]]:
    size = request.query.get("maxResults", str(largest))
    start = request.query.get("pageToken") or "0"
    if not (size.isdecimal() and 0 < int(size) <= largest and start.isdecimal()):
        raise RefusedRequestError(400, f"Invalid value for field 'maxResults': '{size}'.")
    end = int(start) + int(size)
    return resources[int(start) : end], {"nextPageToken": str(end)} if end < len(resources) else {}
