"""Google Cloud: OAuth tokens, quotas of Compute Engine, the price catalog; other modules have the rest.

Sources: Google's REST references (2026) of Compute Engine v1 (`projects.get`, `regions.get`), Cloud Quotas v1
(`quotaInfos.get`), Cloud Billing v1 (`services.skus.list`) and OAuth 2.0 for installed applications. Quotas
that Compute Engine does not list, and their ids: public project files of 2026-05 to 2026-09.
"""

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.catalog.tables import rows
from ebbtide_rehearsal.cloud.nodes import quotas
from ebbtide_rehearsal.cloud.nodes.machines import all_machines
from ebbtide_rehearsal.cloud.regions import locations
from ebbtide_rehearsal.cloud.rest.google_clusters import GoogleClusters
from ebbtide_rehearsal.cloud.rest.google_resources import GoogleResources
from ebbtide_rehearsal.cloud.rest.prometheus import Prometheus
from ebbtide_rehearsal.cloud.rest.routes import RefusedRequestError, Request, Route, bearer
from ebbtide_rehearsal.cloud.store import Store

_COMPUTE: Final = r"/compute/v1/projects/(?P<project>[^/]+)"
_INVALID_GRANT: Final = "invalid_grant"
_COMPUTE_ENGINE: Final = "6F81-5844-456A"
_SERVICE: Final = "compute.googleapis.com"
_LARGEST_PAGE: Final = 5000
_UNLISTED: Final = re.compile("FAMILY|_H100_MEGA_|_H200_|_B200_|_RTX_PRO_6000_|_TPU_V6E")
"""Quotas that only the Cloud Quotas API has."""

_OTHERS: Final = ("DISKS_TOTAL_GB", "IN_USE_ADDRESSES", "INSTANCES", "SSD_TOTAL_GB", "STATIC_ADDRESSES")
_OF_PROJECT: Final = ("CPUS_ALL_REGIONS", "FIREWALLS", quotas.OF_PROJECT, "NETWORKS", "SNAPSHOTS")
_REASONS: Final = {
    400: "badRequest",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    429: "rateLimitExceeded",
    503: "backendError",
}


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
            store: the fake cloud's store.
            projects: ids of the existing projects; None for any.
            logins: valid refresh tokens.
            skus: price catalog of Compute Engine.
        """
        self._store, self._projects, self._logins, self._skus = store, projects, logins, skus
        self._tokens: set[str] = set()
        self.routes = (
            Route("oauth2.token", "POST", re.compile("/token"), self._token),
            Route("compute.projects.get", "GET", re.compile(_COMPUTE), self._project),
            Route(
                "compute.regions.get",
                "GET",
                re.compile(_COMPUTE + "/regions/(?P<region>[^/]+)"),
                self._region,
            ),
            Route(
                "cloudquotas.projects.locations.services.quotaInfos.get",
                "GET",
                re.compile(
                    "/v1/projects/(?P<project>[^/]+)/locations/global/services/(?P<service>[^/]+)"
                    "/quotaInfos/(?P<quota>[^/]+)"
                ),
                self._quota_info,
            ),
            Route(
                "cloudbilling.services.skus.list",
                "GET",
                re.compile("/v1/services/(?P<service>[^/]+)/skus"),
                self._sku_page,
            ),
            *GoogleResources(store, self._check).routes(),
            *GoogleClusters(store, self._check).routes,
            Prometheus(store).google(self._check),
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

    def _token(self, request: Request) -> Mapping[str, Any]:
        if request.body.get("grant_type") != "refresh_token":
            raise RefusedRequestError(400, "Invalid grant_type", "unsupported_grant_type")
        if request.body.get("refresh_token") not in self._logins:
            raise RefusedRequestError(400, "Token has been expired or revoked.", _INVALID_GRANT)
        token = f"ya29.{secrets.token_urlsafe(16)}"
        self._tokens.add(token)
        return {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}

    def _check(self, request: Request) -> None:
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

    def _project(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
        project = request.names["project"]
        return {"kind": "compute#project", "name": project, "quotas": self._quotas("", _OF_PROJECT)}

    def _region(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
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
        used = quotas.usage(self._store, CloudKind.GKE, region, machines)
        return [
            {"metric": name, "limit": quotas.limit(self._store, name), "usage": float(used.get(name, 0))}
            for name in names
        ]

    def _quota_info(self, request: Request) -> Mapping[str, Any]:
        """Return a quota with its default limit of 0 and the granted limit of each region."""
        self._check(request)
        service, quota = request.names["service"], request.names["quota"]
        names = [
            name for name in _names() if f"{_metric(name).replace('_', '-')}-per-project-region" == quota
        ]
        if service != _SERVICE or not names:
            raise RefusedRequestError(404, f"Quota info {quota} of service {service} was not found.")
        infos: list[dict[str, Any]] = []
        for name in names:
            limit = int(quotas.limit(self._store, name))
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

    def _sku_page(self, request: Request) -> Mapping[str, Any]:
        self._check(request)
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
