"""Requests for resources of Google Cloud, and Google Cloud as configured for a provider."""

from dataclasses import dataclass
from typing import Final

from ebbtide.analysis.reading.facts import Inputs
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide_rehearsal.cloud.clusters import Clusters
from ebbtide_rehearsal.cloud.core.resource_kind import BaseRequest
from ebbtide_rehearsal.cloud.provider import Properties, RefusedError
from ebbtide_rehearsal.cloud.store import Resource, Store

CLOUD: Final = "gcp"
"""Package of the provider, under which the store has its resources."""

NETWORK: Final = "gcp:compute/network:Network"
SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"
ROUTER: Final = "gcp:compute/router:Router"
ROUTER_NAT: Final = "gcp:compute/routerNat:RouterNat"
CLUSTER: Final = "gcp:container/cluster:Cluster"
NODE_POOL: Final = "gcp:container/nodePool:NodePool"
ACCOUNT: Final = "gcp:serviceaccount/account:Account"
ACCOUNT_MEMBER: Final = "gcp:serviceaccount/iAMMember:IAMMember"
PROJECT_MEMBER: Final = "gcp:projects/iAMMember:IAMMember"
KEY_MEMBER: Final = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
BUCKET: Final = "gcp:storage/bucket:Bucket"
BUCKET_MEMBER: Final = "gcp:storage/bucketIAMMember:BucketIAMMember"
FILESTORE: Final = "gcp:filestore/instance:Instance"
REPOSITORY: Final = "gcp:artifactregistry/repository:Repository"
REPOSITORY_MEMBER: Final = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"

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
