"""Google Cloud: quotas of Compute Engine, the price catalog, the node pools of a cluster that sleeps, logins
to Artifact Registry, enabled APIs, the user's own permissions and metrics, over their REST APIs.

google-auth's session replaces google-cloud-compute, whose import takes 6 s of CPU and 35 MB of disk (measured
with 1.57.0, 2026-11), for two GET requests.

Sources: Compute Engine API v1, `projects.get` and `regions.get`; Cloud Quotas API v1, `quotaInfos.get`; Cloud
Billing API v1, `services.skus.list`; Service Usage API v1, `services.get`; Resource Manager API v1,
`projects.testIamPermissions`; Monitoring API v1, `projects.location.prometheus.api.v1.query` (Google's REST
reference, 2026). Quota ids, such as
`GPUS-PER-GPU-FAMILY-per-project-region`: public project files of 2026-05 to 2026-09.
"""

import logging
import math
import os
import re
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, Self, cast

import google.auth
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import AuthorizedSession, Request

from ebbtide.clients.clouds.http import PROMETHEUS, get_json, pages, part, post_json, samples, with_retries
from ebbtide.clients.clouds.interfaces import (
    CloudApiError,
    CredentialsError,
    NodePoolSize,
    QuotaLimit,
    Sample,
)
from ebbtide.declaration.catalog.amounts import HOURS_PER_MONTH
from ebbtide.declaration.catalog.prices import GLOBAL, Price, components

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_COMPUTE_ENGINE: Final = "services/6F81-5844-456A"
LOGIN: Final = "gcloud auth application-default login"

PAGE_SIZE = 5000
"""Maximum number of SKUs of a page (Cloud Billing API v1)."""

_USAGE: Final = {"OnDemand", "Preemptible"}
"""Usage types of SKUs without a commitment. Spot SKUs are identified by their descriptions, since the catalog
lists those of A4 as on-demand (public price parsers, 2026-09)."""

_REGION: Final = re.compile(r"( running)?( in .+)?$")
"""The region at the end of a description, such as `running in Americas`."""

_COMPUTE: Final = "compute.googleapis.com"
_REFUSED: Final = (403, 404)

_CONSOLE: Final = "https://console.cloud.google.com/apis/library"
_STEP: Final = 5.0  # seconds between two requests for an operation's state
_TIMEOUT: Final = 3600.0  # seconds; nodes are drained for up to an hour (GKE docs, resize a cluster, 2026)
_USER: Final = "oauth2accesstoken"


@dataclass(frozen=True, slots=True)
class GoogleEndpoints:
    """Base URLs of the APIs."""

    compute: str = f"https://{_COMPUTE}/compute/v1"
    container: str = "https://container.googleapis.com/v1"
    cloud_billing: str = "https://cloudbilling.googleapis.com/v1"
    cloud_quotas: str = "https://cloudquotas.googleapis.com/v1"
    monitoring: str = "https://monitoring.googleapis.com/v1"
    storage: str = "https://storage.googleapis.com/storage/v1"
    artifact_registry: str = "https://artifactregistry.googleapis.com/v1"
    resource_manager: str = "https://cloudresourcemanager.googleapis.com/v1"
    service_usage: str = "https://serviceusage.googleapis.com/v1"
    iam: str = "https://iam.googleapis.com/v1"
    filestore: str = "https://file.googleapis.com/v1"

    @classmethod
    def configured(cls) -> Self:
        """Return the URLs that the environment sets for Pulumi's provider too, else the public ones:
        `GOOGLE_COMPUTE_CUSTOM_ENDPOINT` and so on (provider documentation of pulumi-gcp, 2026-07).
        """
        variables = {api.name: f"GOOGLE_{api.name.upper()}_CUSTOM_ENDPOINT" for api in fields(cls)}
        return cls(
            **{api: url.rstrip("/") for api, name in variables.items() if (url := os.environ.get(name))}
        )


def google_session() -> AuthorizedSession:
    """Return a session with the application default credentials, refreshed.

    Raises:
        CredentialsError: there are none, or they have expired.
        CloudApiError: the token server does not answer.
    """
    try:
        credentials = _default_credentials()
        credentials.refresh(Request())  # pyright: ignore[reportUnknownMemberType]
    except TransportError as error:
        raise CloudApiError("Google's authorization server cannot be reached. Check the network.") from error
    except GoogleAuthError as error:
        raise CredentialsError(
            f"There are no valid credentials for Google Cloud. Log in with `{LOGIN}`."
        ) from error
    return with_retries(AuthorizedSession(credentials))


def _default_credentials() -> Credentials:
    # It warns on the terminal that the credentials have no project; the stack has one.
    logging.getLogger("google.auth._default").setLevel(logging.ERROR)
    default = cast("Callable[..., tuple[Credentials, str | None]]", google.auth.default)  # pyright: ignore[reportUnknownMemberType]
    return default(scopes=[_SCOPE])[0]


@dataclass(frozen=True, slots=True)
class GoogleQuotas:
    """Quotas of a project: those listed by Compute Engine, and single ones of the Cloud Quotas API.

    Compute Engine does not list those of the newest GPUs and TPUs; Cloud Quotas reports no usage.
    """

    project: str
    session: AuthorizedSession
    endpoints: GoogleEndpoints = field(default_factory=GoogleEndpoints.configured)

    def limits(self, region: str, names: Collection[str]) -> dict[str, QuotaLimit]:
        """See `QuotaSource.limits`."""
        listed = self._listed(region)
        return listed | {name: self._single(region, name) for name in names if name not in listed}

    def _listed(self, region: str) -> dict[str, QuotaLimit]:
        path = "" if region == GLOBAL else f"/regions/{region}"
        url = f"{self.endpoints.compute}/projects/{self.project}{path}"
        advice = {
            403: f"Ask an owner of {self.project} for roles/compute.viewer and the Compute Engine API "
            f"({_CONSOLE}/compute.googleapis.com?project={self.project}).",
            404: "Check the stack's project and region.",
        }
        quotas = get_json(self.session, url, {}, advice)["quotas"]  # of each project and region
        return {quota["metric"]: QuotaLimit(quota["limit"], quota["usage"]) for quota in quotas}

    def _single(self, region: str, name: str) -> QuotaLimit:
        """Return a limit from the Cloud Quotas API; unknown without access, a separate permission."""
        metric, _, family = name.partition(":")
        scope = "per-project" if region == GLOBAL else "per-project-region"
        url = (
            f"{self.endpoints.cloud_quotas}/projects/{self.project}/locations/global/services/{_COMPUTE}"
            f"/quotaInfos/{metric.replace('_', '-')}-{scope}"
        )
        page = f"{_CONSOLE}/cloudquotas.googleapis.com?project={self.project}"
        advice = {
            403: f"Enable the Cloud Quotas API ({page}) and ask an owner for roles/cloudquotas.viewer.",
            404: "The project has no such quota.",
        }
        try:
            answer = get_json(self.session, url, {}, advice)
        except CloudApiError as error:
            if error.status in _REFUSED:
                return QuotaLimit(reason=str(error))
            raise
        dimensions = {"region": region}
        if family:  # GPUS_PER_GPU_FAMILY:NVIDIA_H100 has the dimension gpu_family
            dimensions[metric.partition("_PER_")[2].lower()] = family
        return _limit_of(answer.get("dimensionsInfos", []), dimensions)


def _limit_of(infos: Sequence[dict[str, Any]], dimensions: Mapping[str, str]) -> QuotaLimit:
    """Return the limit that matches the most dimensions, and contradicts none.

    A limit of 0 is omitted from JSON, and -1 means unlimited.
    """
    matching = [info for info in infos if info.get("dimensions", {}).items() <= dimensions.items()]
    if not matching:
        values = ", ".join(f"{name} {value}" for name, value in dimensions.items())
        return QuotaLimit(reason=f"The Cloud Quotas API lists no limit for {values}.")
    closest = max(matching, key=lambda info: len(info.get("dimensions", {})))
    value = int(closest.get("details", {}).get("value", 0))
    return QuotaLimit(math.inf if value < 0 else value)


@dataclass
class GooglePrices:
    """Compute Engine's list prices, assembled from the SKUs of vCPUs, memory, accelerators and disks."""

    session: AuthorizedSession
    endpoints: GoogleEndpoints = field(default_factory=GoogleEndpoints.configured)
    name: str = "Cloud Billing Catalog API"

    def prices(self, region: str, items: Collection[str]) -> dict[str, Price]:
        """Return the prices of items in a region."""
        today = datetime.now(UTC).date().isoformat()
        known: dict[str, Price] = {}
        for item in items:
            parts = components(item)
            on_demand, spot, flex = (
                _total([(self._rate(getattr(skus, capacity), region), n) for skus, n in parts.items()])
                for capacity in ("on_demand", "spot", "flex")
            )
            if any(rate is not None for rate in (on_demand, spot, flex)):
                known[item] = Price(
                    on_demand=on_demand,
                    spot=spot,
                    flex=flex,
                    note="",
                    as_of=today,
                    source=self.name,
                    spot_estimated=False,
                )
        return known

    def _rate(self, descriptions: Sequence[str], region: str) -> float | None:
        """Return the rate of the SKU with one of these descriptions in a region; None if rates differ."""
        rates = set[float | None]().union(*(self._rates[region, words] for words in descriptions))
        return rates.pop() if len(rates) == 1 else None

    @cached_property
    def _rates(self) -> defaultdict[tuple[str, str], set[float | None]]:
        """Rates by region and description."""
        rates = defaultdict[tuple[str, str], set[float | None]](set)
        for sku in self._skus:
            if sku["category"]["usageType"] in _USAGE:
                for region in sku["serviceRegions"]:
                    rates[region, _REGION.sub("", sku["description"])].add(_unit_price(sku))
        return rates

    @cached_property
    def _skus(self) -> list[dict[str, Any]]:
        url = f"{self.endpoints.cloud_billing}/{_COMPUTE_ENGINE}/skus"
        advice = {
            403: f"Enable the Cloud Billing API ({_CONSOLE}/cloudbilling.googleapis.com) in a project, and "
            "name that with `gcloud auth application-default set-quota-project`."
        }
        parameters = {"pageSize": str(PAGE_SIZE), "currencyCode": "USD"}
        return [sku for page in pages(self.session, url, parameters, advice) for sku in page.get("skus", [])]


def _total(parts: list[tuple[float | None, float]]) -> float | None:
    """Return the sum of rates times quantities; None without parts or if a rate is unknown."""
    if not parts or any(rate is None for rate, _ in parts):
        return None
    return sum(rate * count for rate, count in parts if rate is not None)


def _unit_price(sku: dict[str, Any]) -> float | None:
    """Return the hourly unit price of the highest tier, since disks have a free tier."""
    expression = sku["pricingInfo"][-1]["pricingExpression"]
    price = expression["tieredRates"][-1]["unitPrice"]
    rate = int(price.get("units", 0)) + price.get("nanos", 0) / 1e9
    match expression["usageUnit"]:
        case "h" | "GiBy.h":
            return rate
        case "GiBy.mo":
            return rate / HOURS_PER_MONTH
        case _:
            return None


@dataclass(frozen=True, slots=True)
class GooglePower:
    """Node pools of a GKE cluster, which are scaled to zero and back.

    GKE cannot stop a cluster, and bills its control plane at zero nodes. The autoscaler is disabled first,
    since it runs in the control plane and would add nodes for pending pods. GKE makes one change of a cluster
    at a time. Source: Kubernetes Engine API v1, `projects.locations.clusters.nodePools` (`setAutoscaling`,
    `setSize`) and `projects.locations.operations` (Google's REST reference, 2026).

    Attributes:
        cluster: `projects/*/locations/*/clusters/*`.
        pools: their sizes when the cluster runs, those of the system first.
    """

    cluster: str
    pools: Sequence[NodePoolSize]
    session: AuthorizedSession
    endpoints: GoogleEndpoints = field(default_factory=GoogleEndpoints.configured)

    def refusal(self) -> str:
        """Return the reason why the cluster can never be stopped; empty if it can."""
        if part(self._get(self.cluster), "autopilot").get("enabled"):
            return "It is an Autopilot cluster, whose nodes GKE manages."
        return ""

    def is_stopped(self) -> bool:
        """Return whether every pool has zero nodes and no autoscaling."""
        return all(_is_stopped(self._pool(pool)) for pool in self.pools)

    def stop(self, on_step: Callable[[str], None]) -> None:
        """Scale the pools to zero, those of the system last, so that the components that drain nodes run."""
        for pool in reversed(self.pools):
            state = self._pool(pool)
            if _is_stopped(state):
                continue
            on_step(f"node pool {pool.name} to zero")
            if _is_autoscaled(state):
                self._change(pool, "setAutoscaling", {"autoscaling": {"enabled": False}})
            self._change(pool, "setSize", {"nodeCount": 0})

    def start(self, on_step: Callable[[str], None]) -> None:
        """Scale the pools back to their sizes, those of the system first."""
        for pool in self.pools:
            state = self._pool(pool)
            if _is_autoscaled(state) if pool.autoscaling else state.get("initialNodeCount") == pool.count:
                continue
            on_step(f"node pool {pool.name} to {pool.count}" + (", autoscaled" if pool.autoscaling else ""))
            if pool.count:
                self._change(pool, "setSize", {"nodeCount": pool.count})
            # Last, since it marks the pool as started.
            if pool.autoscaling:
                self._change(pool, "setAutoscaling", {"autoscaling": {"enabled": True, **pool.autoscaling}})

    def _get(self, path: str) -> dict[str, Any]:
        return get_json(self.session, f"{self.endpoints.container}/{path}", {}, self._advice())

    def _pool(self, pool: NodePoolSize) -> dict[str, Any]:
        return self._get(f"{self.cluster}/nodePools/{pool.name}")

    def _change(self, pool: NodePoolSize, method: str, body: Mapping[str, Any]) -> None:
        """Change a node pool and wait for the operation."""
        url = f"{self.endpoints.container}/{self.cluster}/nodePools/{pool.name}:{method}"
        operation = post_json(self.session, url, body, self._advice())
        location = self.cluster.rpartition("/clusters/")[0]
        end = time.monotonic() + _TIMEOUT
        while operation.get("status") != "DONE":
            if time.monotonic() > end:
                raise CloudApiError(
                    f"GKE's operation {operation['name']} is not done after an hour. Run this again to "
                    "continue."
                )
            time.sleep(_STEP)
            operation = self._get(f"{location}/operations/{operation['name']}")
        if problem := part(operation, "error").get("message"):
            raise CloudApiError(f"GKE failed to change node pool {pool.name}: {problem}")

    def _advice(self) -> dict[int, str]:
        return {
            400: "Another operation may be in progress; run this again when it is done.",
            403: "Ask an owner of the project for roles/container.clusterAdmin.",
            404: "Check with `pulumi refresh` that the cluster and its node pools exist.",
        }


def _is_autoscaled(pool: Mapping[str, Any]) -> bool:
    return bool(part(pool, "autoscaling").get("enabled"))


def _is_stopped(pool: Mapping[str, Any]) -> bool:
    """Return whether a pool has zero nodes and no autoscaling. Its `initialNodeCount` follows a resize
    (hashicorp/terraform-provider-google#6901)."""
    return not _is_autoscaled(pool) and not pool.get("initialNodeCount")


def google_login() -> tuple[str, str]:
    """Return user name and access token for Artifact Registry: of the application default credentials, or
    without them of gcloud (Artifact Registry docs, docker/authentication, 2026).

    Raises:
        CredentialsError: there are none, or they have expired.
        CloudApiError: the token server does not answer.
    """
    try:
        return _USER, str(google_session().credentials.token)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    except CredentialsError:
        if token := _gcloud_token():
            return _USER, token
        raise


def _gcloud_token() -> str:
    """Return an access token of gcloud's account; empty without one."""
    gcloud = shutil.which("gcloud")
    if gcloud is None:
        return ""
    command = (gcloud, "auth", "print-access-token", "--quiet")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class GoogleRights:
    """Rights in a project of Google Cloud."""

    project: str
    session: AuthorizedSession
    endpoints: GoogleEndpoints = field(default_factory=GoogleEndpoints.configured)

    def disabled(self, apis: Collection[str]) -> list[str]:
        """See `Rights.disabled`."""
        return [api for api in sorted(apis) if not self._is_enabled(api)]

    def _is_enabled(self, api: str) -> bool:
        url = f"{self.endpoints.service_usage}/projects/{self.project}/services/{api}"
        advice = {403: f"Ask an owner of {self.project} for roles/serviceusage.serviceUsageViewer."}
        return get_json(self.session, url, {}, advice).get("state") == "ENABLED"

    def lacking(self, permissions: Collection[str]) -> list[str]:
        """See `Rights.lacking`."""
        if not permissions:
            return []  # the API refuses a request without any
        url = f"{self.endpoints.resource_manager}/projects/{self.project}:testIamPermissions"
        advice = {403: f"Enable the API cloudresourcemanager.googleapis.com in {self.project}."}
        wanted = sorted(permissions)
        granted = post_json(self.session, url, {"permissions": wanted}, advice).get("permissions", [])
        return [permission for permission in wanted if permission not in granted]


@dataclass(frozen=True, slots=True)
class GoogleMetrics:
    """Cloud Monitoring's metrics of a project."""

    project: str
    session: AuthorizedSession
    endpoints: GoogleEndpoints = field(default_factory=GoogleEndpoints.configured)

    def query(self, promql: str) -> Sequence[Sample]:
        """See `MetricSource.query`."""
        url = f"{self.endpoints.monitoring}/projects/{self.project}/location/global/prometheus/{PROMETHEUS}"
        advice = {403: f"Ask an owner of {self.project} for roles/monitoring.viewer."}
        return samples(get_json(self.session, url, {"query": promql}, advice))
