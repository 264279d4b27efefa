"""REST APIs of Google Cloud: OAuth tokens, quotas, prices, and resources that are listed and deleted.

Resources of Compute Engine are in the store under the API's kind, such as `compute#disk`, with the API's
document as their state; in a real cloud users' controllers create them, here tests do. Clusters and node
pools are those of the fake provider, as are buckets, repositories, file shares and service accounts.

Sources: Google's REST references (2026) of Compute Engine v1 (`disks.aggregatedList`, `firewalls.list`,
`disks.delete`, `zoneOperations.get`, `projects.get`, `regions.get`), Cloud Storage JSON API v1
(`buckets.get`, `objects.list`), Artifact Registry v1 (`projects.locations.repositories.get`), Filestore v1
(`projects.locations.instances.get`), IAM v1 (`projects.serviceAccounts.get`), Kubernetes Engine v1
(`projects.locations.clusters`, `.nodePools`, `.operations`), Cloud Quotas v1 (`quotaInfos.get`), Cloud
Billing v1 (`services.skus.list`) and OAuth 2.0 for installed applications. Quotas that Compute Engine does
not list, and their ids: public project files of 2026-05 to 2026-09.
"""

import json
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.fake_provider import objects
from ebbtide_rehearsal.cloud.ids import GCP, GKE_CLUSTER
from ebbtide_rehearsal.cloud.node_pools import fleet
from ebbtide_rehearsal.cloud.pools import all_machines, forget, locations
from ebbtide_rehearsal.cloud.rest.google_clusters import GoogleClusters, described
from ebbtide_rehearsal.cloud.rest.server import (
    RefusedRequestError,
    Request,
    bearer,
    is_enabled,
    role,
    route,
    routes_of,
    samples,
)
from ebbtide_rehearsal.cloud.store import Resource, Store

_LARGEST_RESOURCE_PAGE: Final = 500
_LARGEST_PAGE_OF_OBJECTS: Final = 1000
_GRANT: Final = "gcp:projects/iAMMember:IAMMember"
_SELF_LINK: Final = r"/compute/v1/(?P<scope>projects/(?P<project>[^/]+)/(?:global|(?:zones|regions)/[^/]+))"
_COMPUTE: Final = r"/compute/v1/projects/(?P<project>[^/]+)"
_COLLECTION: Final = "/(?P<collection>[A-Za-z]+)"
_OPERATION: Final = "/operations/(?P<operation>[^/]+)"
_OF_CLUSTER: Final = "/clusters/(?P<cluster>[^/]+)"
_CONTAINER: Final = r"/v1/(?P<parent>projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+))"
_INVALID_GRANT: Final = "invalid_grant"
_COMPUTE_ENGINE: Final = "6F81-5844-456A"
_SERVICE: Final = "compute.googleapis.com"
_LARGEST_PAGE: Final = 5000
_MOST_PERMISSIONS: Final = 100
_UNLISTED: Final = re.compile("FAMILY|_H100_MEGA_|_H200_|_B200_|_RTX_PRO_6000_|_TPU_V6E")
"""Quotas that only the Cloud Quotas API has."""
_OTHERS: Final = ("DISKS_TOTAL_GB", "IN_USE_ADDRESSES", "INSTANCES", "SSD_TOTAL_GB", "STATIC_ADDRESSES")
_OF_PROJECT: Final = ("CPUS_ALL_REGIONS", "FIREWALLS", fleet.OF_PROJECT, "NETWORKS", "SNAPSHOTS")
_REASONS: Final = {
    400: "badRequest",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    429: "rateLimitExceeded",
    503: "backendError",
}


def kind_of(collection: str) -> str:
    """Return the kind of the resources of a collection, such as `disks`."""
    singular = {
        "addresses": "address",
        "targetHttpProxies": "targetHttpProxy",
        "targetHttpsProxies": "targetHttpsProxy",
    }
    return f"compute#{singular.get(collection, collection.removesuffix('s'))}"


class GoogleResources:
    """Resources of projects."""

    def __init__(self, store: Store) -> None:
        """Serve resources of a store."""
        self._store = store
        self._operations: dict[str, str] = {}

    def _of(self, request: Request) -> list[Resource]:
        project = f"projects/{request.names['project']}/"
        resources = self._store.resources(GCP, kind_of(request.names["collection"]))
        return [resource for resource in resources if resource.id.startswith(project)]

    @route("compute.aggregatedList", "GET", _COMPUTE + "/aggregated" + _COLLECTION)
    def _aggregated(self, request: Request) -> Mapping[str, Any]:
        collection = request.names["collection"]
        page, following = _page(request, self._of(request))
        warning = {"code": "NO_RESULTS_ON_PAGE", "message": "There are no results for scope 'global'."}
        items: dict[str, Any] = {"global": {"warning": warning}}
        for resource in page:
            scope = resource.id.split("/", 2)[2].rsplit("/", 2)[0]
            listed = items.setdefault(scope, {})
            listed.pop("warning", None)
            listed.setdefault(collection, []).append(resource.state)
        return {"kind": f"{kind_of(collection)}AggregatedList", "items": items, **following}

    @route("compute.list", "GET", _COMPUTE + "/global" + _COLLECTION)
    def _global(self, request: Request) -> Mapping[str, Any]:
        resources = [resource for resource in self._of(request) if "/global/" in resource.id]
        page, following = _page(request, resources)
        kind = f"{kind_of(request.names['collection'])}List"
        return {"kind": kind, "items": [resource.state for resource in page], **following}

    @route("compute.delete", "DELETE", _SELF_LINK + _COLLECTION + "/(?P<name>[^/]+)")
    def _delete(self, request: Request) -> Mapping[str, Any]:
        scope, collection, name = (request.names[part] for part in ("scope", "collection", "name"))
        identity = f"{scope}/{collection}/{name}"
        if self._store.get(GCP, identity) is None:
            raise RefusedRequestError(404, f"The resource '{identity}' was not found")
        if user := self._user(identity):
            noun = collection.removesuffix("s")
            message = f"The {noun} resource '{identity}' is already being used by '{user}'"
            raise RefusedRequestError(400, message)
        self._store.remove(GCP, identity)
        return self._started(f"https://compute.googleapis.com/compute/v1/{scope}/operations")

    def _user(self, identity: str) -> str:
        """Return the id of a resource that refers to this one; empty for none."""
        own = self._store.get(GCP, identity)
        users = own.state.get("users") if own else None
        if users:
            return str(users[0]).partition("/compute/v1/")[2]
        for resource in self._store.resources(GCP):
            if resource.type.startswith("compute#") and resource.id != identity:
                document = {key: value for key, value in resource.state.items() if key != "users"}
                if f'/{identity}"' in json.dumps(document):
                    return resource.id
        return ""

    @route("file.projects.locations.instances.get", "GET", _CONTAINER + "/instances/[^/]+")
    def _instance(self, request: Request) -> Mapping[str, Any]:
        return self._labelled(request)

    @route(
        "iam.projects.serviceAccounts.get", "GET", "/v1/projects/(?P<project>[^/:]+)/serviceAccounts/[^/]+"
    )
    def _labelled(self, request: Request) -> Mapping[str, Any]:
        """Return the name and the labels of a resource."""
        return self._described(request.path.removeprefix("/v1/"))

    @route("storage.buckets.get", "GET", "/storage/v1/b/(?P<bucket>[^/]+)")
    def _bucket(self, request: Request) -> Mapping[str, Any]:
        return self._described(request.names["bucket"])

    def _described(self, identity: str) -> Mapping[str, Any]:
        resource = self._store.get(GCP, identity)
        if resource is None:
            raise RefusedRequestError(404, "Requested entity was not found.")
        labels = resource.inputs.get("labels")
        return {"name": identity, **({"labels": labels} if labels else {})}

    @route("storage.objects.list", "GET", "/storage/v1/b/(?P<bucket>[^/]+)/o")
    def _objects(self, request: Request) -> Mapping[str, Any]:
        bucket = request.names["bucket"]
        if self._store.get(GCP, bucket) is None:
            raise RefusedRequestError(404, "The specified bucket does not exist.")
        page, following = _page(request, objects(self._store, bucket), _LARGEST_PAGE_OF_OBJECTS)
        return {"kind": "storage#objects", "items": [item.state for item in page], **following}

    @route(
        "artifactregistry.projects.locations.repositories.get",
        "GET",
        _CONTAINER + "/repositories/(?P<repository>[^/]+)",
    )
    def _repository(self, request: Request) -> Mapping[str, Any]:
        """Return a repository; the size of its images is a 64-bit number, thus text."""
        identity = f"{request.names['parent']}/repositories/{request.names['repository']}"
        document = self._described(identity)
        repository = self._store.get(GCP, identity)
        assert repository is not None  # noqa: S101 - described
        size = str(repository.state.get("sizeBytes", 0))
        return {**document, "format": repository.inputs.get("format", ""), "sizeBytes": size}

    @route("resourcemanager.projects.getIamPolicy", "POST", "/v1/projects/(?P<project>[^/:]+):getIamPolicy")
    def _policy(self, request: Request) -> Mapping[str, Any]:
        members: dict[str, list[str]] = {}
        for grant in self._store.resources(GCP, _GRANT):
            if grant.state["project"] == request.names["project"]:
                members.setdefault(grant.state["role"], []).append(grant.state["member"])
        bindings = [{"role": role, "members": sorted(own)} for role, own in members.items()]
        return {"version": 3, "etag": "BwYAAAAAAAA=", "bindings": bindings}

    @route("container.clusters.list", "GET", _CONTAINER + "/clusters")
    def _clusters(self, request: Request) -> Mapping[str, Any]:
        parent, location = request.names["parent"], request.names["location"]
        project = (
            f"{parent.rpartition('/locations/')[0]}/locations/{'' if location == '-' else location + '/'}"
        )
        clusters = [
            cluster for cluster in self._store.resources(GCP, GKE_CLUSTER) if cluster.id.startswith(project)
        ]
        return {"clusters": [described(self._store, cluster) for cluster in clusters]} if clusters else {}

    @route("container.nodePools.delete", "DELETE", _CONTAINER + _OF_CLUSTER + "/nodePools/(?P<pool>[^/]+)")
    def _delete_pool(self, request: Request) -> Mapping[str, Any]:
        return self._delete_cluster(request)

    @route("container.clusters.delete", "DELETE", _CONTAINER + _OF_CLUSTER)
    def _delete_cluster(self, request: Request) -> Mapping[str, Any]:
        parent, pool = request.names["parent"], request.names.get("pool")
        cluster = f"{parent}/clusters/{request.names['cluster']}"
        identity = f"{cluster}/nodePools/{pool}" if pool else cluster
        if self._store.get(GCP, identity) is None:
            raise RefusedRequestError(404, f"Not found: {identity}.", "")
        below = [
            resource.id for resource in self._store.resources(GCP) if resource.id.startswith(f"{identity}/")
        ]
        for resource in (*below, identity):
            self._store.remove(GCP, resource)
            forget(self._store, cluster, resource.rpartition("/nodePools/")[2])
        return self._started(f"https://container.googleapis.com/v1/{parent}/operations")

    def _started(self, operations: str) -> Mapping[str, Any]:
        """Return a running operation, which is done at the next read."""
        name = f"operation-{secrets.token_hex(8)}"
        self._operations[name] = f"{operations}/{name}"
        return {"name": name, "status": "RUNNING", "selfLink": self._operations[name]}

    @route("compute.operations.get", "GET", _SELF_LINK + _OPERATION)
    def _compute_operation(self, request: Request) -> Mapping[str, Any]:
        return self._operation(request)

    @route("container.operations.get", "GET", _CONTAINER + _OPERATION)
    def _operation(self, request: Request) -> Mapping[str, Any]:
        name = request.names["operation"]
        if name not in self._operations:
            raise RefusedRequestError(404, f"The resource 'operations/{name}' was not found")
        return {"name": name, "status": "DONE", "selfLink": self._operations[name]}


def _page(
    request: Request, resources: list[Resource], largest: int = _LARGEST_RESOURCE_PAGE
) -> tuple[list[Resource], Mapping[str, str]]:
    size = request.query.get("maxResults", str(largest))
    start = request.query.get("pageToken") or "0"
    if not (size.isdecimal() and 0 < int(size) <= largest and start.isdecimal()):
        raise RefusedRequestError(400, f"Invalid value for field 'maxResults': '{size}'.")
    end = int(start) + int(size)
    return resources[int(start) : end], {"nextPageToken": str(end)} if end < len(resources) else {}


def _names() -> list[str]:
    """Return the names of the regional quotas."""
    named = {row[kind] for row in rows("quotas") for kind in ("on_demand", "spot") if row["cloud"] == "gke"}
    return sorted({*_OTHERS, *filter(None, named)})


def _metric(name: str) -> str:
    """Return the metric of a quota, such as GPUS_PER_GPU_FAMILY for GPUS_PER_GPU_FAMILY:NVIDIA_H100."""
    return name.partition(":")[0]


def _family(name: str) -> dict[str, str]:
    """Return the family dimension of a quota, such as gpu_family for GPUS_PER_GPU_FAMILY:NVIDIA_H100."""
    metric, _, family = name.partition(":")
    return {metric.partition("_PER_")[2].lower(): family} if family else {}


class Google:
    """Google Cloud's APIs.

    Attributes:
        routes: operations of the APIs.
    """

    def __init__(
        self,
        store: Store,
        projects: Collection[str] | None,
        logins: Collection[str],
        skus: Sequence[Mapping[str, Any]],
    ) -> None:
        """Serve projects.

        Args:
            projects: ids of the existing projects; None for any.
            logins: valid refresh tokens.
            skus: price catalog of Compute Engine.
        """
        self._store, self._projects, self._logins, self._skus = store, projects, logins, skus
        self._tokens: set[str] = set()
        self.routes = (
            *routes_of(self),
            *routes_of(GoogleResources(store)),
            *routes_of(GoogleClusters(store)),
        )

    def owns(self, path: str) -> bool:
        """Return whether a path is one of Google's."""
        return path.startswith(("/compute/", "/storage/", "/v1/", "/token"))

    def refusal(self, error: RefusedRequestError) -> Mapping[str, Any]:
        """Return the document of an error."""
        reason = error.code or _REASONS.get(error.status, "internalError")
        if error.code:  # an error of OAuth 2.0 (RFC 6749, 5.2)
            return {"error": reason, "error_description": error.message}
        detail = {"message": error.message, "domain": "global", "reason": reason}
        return {"error": {"code": error.status, "message": error.message, "errors": [detail]}}

    @route("oauth2.token", "POST", "/token", is_open=True)
    def _token(self, request: Request) -> Mapping[str, Any]:
        if request.body.get("grant_type") != "refresh_token":
            raise RefusedRequestError(400, "Invalid grant_type", "unsupported_grant_type")
        if request.body.get("refresh_token") not in self._logins:
            raise RefusedRequestError(400, "Token has been expired or revoked.", _INVALID_GRANT)
        token = f"ya29.{secrets.token_urlsafe(16)}"
        self._tokens.add(token)
        return {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}

    def check(self, request: Request) -> None:
        """See `RestApi.check`."""
        if bearer(request) not in self._tokens:
            raise RefusedRequestError(
                401,
                "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie "
                "or other valid authentication credential.",
            )
        project = request.names.get("project")
        known = project is None or self._projects is None or project in self._projects
        if not known:
            raise RefusedRequestError(404, f"The resource 'projects/{project}' was not found")

    @route("compute.projects.get", "GET", _COMPUTE)
    def _project(self, request: Request) -> Mapping[str, Any]:
        project = request.names["project"]
        return {"kind": "compute#project", "name": project, "quotas": self._quotas("", _OF_PROJECT)}

    @route("compute.regions.get", "GET", _COMPUTE + "/regions/(?P<region>[^/]+)")
    def _region(self, request: Request) -> Mapping[str, Any]:
        project, region = request.names["project"], request.names["region"]
        if region not in locations(self._store, CloudKind.GKE).regions():
            message = f"The resource 'projects/{project}/regions/{region}' was not found"
            raise RefusedRequestError(404, message)
        return {
            "kind": "compute#region",
            "name": region,
            "status": "UP",
            "quotas": self._quotas(region, [name for name in _names() if not _UNLISTED.search(name)]),
            "selfLink": f"https://www.googleapis.com/compute/v1/projects/{project}/regions/{region}",
        }

    def _quotas(self, region: str, names: Sequence[str]) -> list[dict[str, Any]]:
        machines = [machine for machine in all_machines(self._store) if machine.state != "waiting"]
        used = fleet.usage(self._store, CloudKind.GKE, region, machines)
        return [
            {"metric": name, "limit": fleet.limit(self._store, name), "usage": float(used.get(name, 0))}
            for name in names
        ]

    @route(
        "cloudquotas.projects.locations.services.quotaInfos.get",
        "GET",
        "/v1/projects/(?P<project>[^/]+)/locations/global/services/(?P<service>[^/]+)/quotaInfos/(?P<quota>[^/]+)",
    )
    def _quota_info(self, request: Request) -> Mapping[str, Any]:
        """Return a quota with its default limit of 0 and the granted limit of each region."""
        service, quota = request.names["service"], request.names["quota"]
        names = [
            name for name in _names() if f"{_metric(name).replace('_', '-')}-per-project-region" == quota
        ]
        if service != _SERVICE or not names:
            raise RefusedRequestError(404, f"Quota info {quota} of service {service} was not found.")
        infos: list[dict[str, Any]] = []
        for name in names:
            limit = int(fleet.limit(self._store, name))
            infos.append({"dimensions": _family(name), "details": {}, "applicableLocations": []})
            infos += [
                {
                    "dimensions": {"region": region, **_family(name)},
                    "details": {"value": str(limit)} if limit else {},
                    "applicableLocations": [region],
                }
                for region in locations(self._store, CloudKind.GKE).regions()
            ]
        return {
            "name": request.path.removeprefix("/v1/"),
            "quotaId": quota,
            "metric": f"{_SERVICE}/{_metric(names[0]).lower()}",
            "service": _SERVICE,
            "containerType": "PROJECT",
            "dimensions": list(infos[-1]["dimensions"]),
            "dimensionsInfos": infos,
        }

    @route("cloudbilling.services.skus.list", "GET", "/v1/services/(?P<service>[^/]+)/skus")
    def _sku_page(self, request: Request) -> Mapping[str, Any]:
        if request.names["service"] != _COMPUTE_ENGINE:
            raise RefusedRequestError(404, "Requested entity was not found.")
        size, start = request.query.get("pageSize", str(_LARGEST_PAGE)), request.query.get("pageToken") or "0"
        if not (size.isdecimal() and start.isdecimal()):
            raise RefusedRequestError(400, "Request contains an invalid argument.")
        end = int(start) + min(int(size), _LARGEST_PAGE)
        return {
            "skus": list(self._skus[int(start) : end]),
            "nextPageToken": str(end) if end < len(self._skus) else "",
        }

    @route(
        "monitoring.projects.location.prometheus.api.v1.query",
        "GET",
        "/v1/projects/(?P<project>[^/]+)/location/global/prometheus/api/v1/query",
    )
    def _samples(self, request: Request) -> Mapping[str, Any]:
        return samples(self._store, request)

    @route("serviceusage.services.get", "GET", "/v1/projects/(?P<project>[^/:]+)/services/(?P<api>[^/]+)")
    def _service(self, request: Request) -> Mapping[str, Any]:
        enabled = is_enabled(self._store, request.names["project"], request.names["api"])
        return {"name": request.path.removeprefix("/v1/"), "state": "ENABLED" if enabled else "DISABLED"}

    @route(
        "cloudresourcemanager.projects.testIamPermissions",
        "POST",
        "/v1/projects/(?P<project>[^/:]+):testIamPermissions",
    )
    def _permissions(self, request: Request) -> Mapping[str, Any]:
        asked = list(request.body.get("permissions") or [])
        if not asked or len(asked) > _MOST_PERMISSIONS or any("*" in name for name in asked):
            raise RefusedRequestError(400, "Request contains an invalid argument.")
        own = role(self._store, request.names["project"])
        held = [name for name in asked if _has(own["actions"], name) and not _has(own["notActions"], name)]
        return {"permissions": held} if held else {}


def _has(patterns: list[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
