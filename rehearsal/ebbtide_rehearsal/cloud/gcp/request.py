"""Google Cloud as configured for a provider, its resource types, and requests for its resources.

Ids and outputs come from the templates that previews also use: `ebbtide.analysis.recording.assumed_gcp`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.recording.assumed_gcp import INVOKES, RESOURCES
from ebbtide.analysis.recording.assumption_tables import Text, overlaid, rendered_properties
from ebbtide.declaration.catalog.clouds import account_host, region_of
from ebbtide_rehearsal.cloud import fake_provider
from ebbtide_rehearsal.cloud.fake_provider import BaseRequest
from ebbtide_rehearsal.cloud.provider import Clusters, Properties, RefusedError
from ebbtide_rehearsal.cloud.store import Resource, Store

CLOUD: Final = "gcp"
"""Package of the provider, under which the store has its resources."""

NETWORK: Final = "gcp:compute/network:Network"
SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"
FUTURE_RESERVATION: Final = "gcp:compute/futureReservation:FutureReservation"
CLUSTER: Final = "gcp:container/cluster:Cluster"
NODE_POOL: Final = "gcp:container/nodePool:NodePool"
ACCOUNT: Final = "gcp:serviceaccount/account:Account"
KEY_MEMBER: Final = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
BUCKET: Final = "gcp:storage/bucket:Bucket"
FILESTORE: Final = "gcp:filestore/instance:Instance"

BAD_REQUEST: Final = "badRequest"
NOT_FOUND: Final = "notFound"


def api_error(code: int, message: str, reason: str) -> str:
    """Format an error as Google's Go client does (googleapi.Error)."""
    return f"googleapi: Error {code}: {message}, {reason}"


@dataclass(frozen=True, slots=True)
class GoogleCloud:
    """Google Cloud, with the settings of a provider resource.

    Attributes:
        store: its resources.
        clusters: the control planes of its clusters.
        project: default project id; empty for none.
        region: default region; empty for none.
        zone: default zone; empty for none.
    """

    store: Store
    clusters: Clusters
    project: str = ""
    region: str = ""
    zone: str = ""

    def configured(self, variables: Properties) -> "GoogleCloud":
        """Return the same cloud with a provider resource's settings."""
        fields = Inputs(variables)
        settings = (fields.text("project"), fields.text("region"), fields.text("zone"))
        return GoogleCloud(self.store, self.clusters, *settings)

    def get(self, identity: str) -> Resource | None:
        """Return the resource of an id."""
        return self.store.get(CLOUD, identity)

    def of(self, kind: str) -> list[Resource]:
        """Return all resources of a type."""
        return self.store.resources(CLOUD, kind)

    def forget_below(self, identity: str, *types: str) -> None:
        """Remove the resources of some types whose ids begin with another resource's id."""
        for type_ in types:
            for resource in self.of(type_):
                if resource.id.startswith(f"{identity}/"):
                    self.store.remove(CLOUD, resource.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(BaseRequest[GoogleCloud]):
    """A resource to be created or updated on Google Cloud."""

    @property
    def name(self) -> str:
        """Name in the cloud."""
        return self.fields.text("name")

    @property
    def project(self) -> str:
        """Project; raises RefusedError if neither the resource nor the provider sets one."""
        project = self.fields.text("project") or self.cloud.project
        if not project:
            raise RefusedError("Failed to retrieve project, pid: , err: project: required field is not set")
        return project

    @property
    def location(self) -> str:
        """Zone or region; raises RefusedError if neither the resource nor the provider sets one."""
        fields = self.fields
        own = (fields.text("location"), fields.text("zone"), fields.text("region"))
        location = next(filter(None, (*own, self.cloud.zone, self.cloud.region)), "")
        if not location:
            raise RefusedError(
                "Cannot determine location: set location in this resource, or set provider-level zone"
            )
        return location

    @property
    def region(self) -> str:
        """Region; raises RefusedError like `location`."""
        fields = self.fields
        own = (fields.text("region"), region_of(fields.text("location")))
        region = next(filter(None, (*own, self.cloud.region, region_of(self.cloud.zone))), "")
        if not region:
            raise RefusedError(
                "Cannot determine region: set in this resource, or set provider-level 'region' or 'zone'."
            )
        return region

    def network(self, reference: str) -> str:
        """Return the id of a network from its name, id or link."""
        return resource_id(reference) or f"projects/{self.project}/global/networks/{reference}"

    def subnetwork(self, reference: str) -> str:
        """Return the id of a subnetwork from its name, id or link."""
        return (
            resource_id(reference) or f"projects/{self.project}/regions/{self.region}/subnetworks/{reference}"
        )


def resource_id(reference: str) -> str:
    """Return the id in a link, which begins with `projects/`, or the id itself; empty for a name."""
    _, separator, rest = reference.rpartition("projects/")
    return f"projects/{rest}" if separator else ""


def last(reference: str) -> str:
    """Return the name at the end of an id or link."""
    return reference.rpartition("/")[2]


def inputs_of(resource: Resource) -> Inputs:
    """Return the inputs of a resource, for access by path."""
    return Inputs(dict(resource.inputs))


Rule: TypeAlias = fake_provider.Rule[Request]


@dataclass(frozen=True, kw_only=True)
class ResourceKind(fake_provider.ResourceKind[Request, GoogleCloud]):
    """A resource type of Google Cloud.

    Attributes:
        maps: paths of maps that are read back completely, including the cloud's additions.
        failing: prefix of the API's message if a resource is not created.
        unfinished: returns the error of a resource that was created nevertheless; None for none.
    """

    outputs: Callable[[Request], Mapping[str, Any]] = field(default=lambda request: outputs_of(request))  # noqa: PLW0108 - defined below
    maps: frozenset[str] = frozenset()
    failing: str = ""
    unfinished: Callable[[Request], str | None] = lambda _request: None

    @property
    def autonamed(self) -> str:
        """Property that defaults to a name derived from the logical name; empty for none."""
        return "name" if "{name}" in RESOURCES[self.type].id else ""

    @property
    def shares_id(self) -> bool:
        """True if creating an existing id again has no effect: members of an IAM policy."""
        return "{role}" in RESOURCES[self.type].id


_PUBLIC: Final = "192.0.2.10"  # reserved for documentation (RFC 5737), unreachable

_DERIVED: Final[Mapping[str, Callable[[Request], str]]] = {
    "project": lambda request: request.project,
    "location": lambda request: request.location,
    "region": lambda request: request.region,
    "accountHost": lambda request: account_host(request.project),
    "address": lambda request: _endpoint(request)[0],
    "dnsEndpoint": lambda request: _endpoint(request)[1],
    "certificate": lambda request: _endpoint(request)[2],
    "networkId": lambda request: request.network(request.fields.text("network") or "default"),
    "number": lambda request: str(int.from_bytes(_project(request).encode()[:5], "big")).zfill(12),
}


def _project(request: Request) -> str:
    return request.fields.text("projectId") or request.project


class _Facts(dict[str, str]):
    """Facts that a template references, derived from a request, or its inputs."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    def __missing__(self, key: str) -> Text:
        derive = _DERIVED.get(key)
        return Text(derive(self._request) if derive else self._request.fields.text(key))


def _endpoint(request: Request) -> tuple[str, str, str]:
    """Return address, host name and certificate of a cluster's control plane; empty before it starts."""
    fields = request.fields
    try:
        endpoint = request.cloud.clusters.endpoint(request.id)
    except KeyError:
        host, authority = "", ""
    else:
        host, authority = endpoint.host, endpoint.certificate_authority
    by_address = fields.flag("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled")
    return host if by_address else _PUBLIC, host, authority


def identity_of(request: Request) -> str:
    """Return the id of a requested resource; raises RefusedError if it cannot be determined."""
    cluster = resource_id(request.fields.text("cluster"))
    template = RESOURCES[request.type].id
    if cluster:  # a node pool with its cluster's id, which has the location
        template = template.replace(
            "projects/{project}/locations/{location}/clusters/{cluster:last}", cluster
        )
    return template.format_map(_Facts(request))


def outputs_of(request: Request) -> dict[str, Any]:
    """Return the outputs of a requested resource; those in an item of a list are merged into it."""
    rendered = rendered_properties(RESOURCES[request.type].outputs, _Facts(request))
    return {
        key: overlaid(request.inputs.get(key), item) if isinstance(item, list) else item
        for key, item in rendered.items()
    }


def result_of(token: str, request: Request) -> dict[str, Any]:
    """Return the result of a function about a requested resource."""
    return rendered_properties(INVOKES[token], _Facts(request))
