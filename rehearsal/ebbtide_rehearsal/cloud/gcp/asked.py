"""What a call of Google Cloud's API is about: the cloud as it is, and what is asked of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ebbtide.catalog.clouds import region_of
from ebbtide.reading.inputs import Inputs
from ebbtide_rehearsal.cloud.clusters import Clusters
from ebbtide_rehearsal.cloud.provider import Properties, RefusedError
from ebbtide_rehearsal.cloud.store import Resource, Store

CLOUD: Final = "gcp"
"""Under which the store has what is here: the provider's package."""

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
    """An error as Google's client for Go writes it (googleapi.Error)."""
    return f"googleapi: Error {code}: {message}, {reason}"


@dataclass(frozen=True, slots=True)
class World:
    """The cloud as it is.

    Attributes:
        store: what is in it.
        clusters: the control planes of its clusters.
    """

    store: Store
    clusters: Clusters

    def get(self, identity: str) -> Resource | None:
        """The resource of an id."""
        return self.store.get(CLOUD, identity)

    def of(self, kind: str) -> list[Resource]:
        """All resources of a type."""
        return self.store.resources(CLOUD, kind)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a provider resource says, and its resources need not.

    Attributes:
        project: project id; empty where none is set.
        region: empty where none is set.
        zone: empty where none is set.
    """

    project: str = ""
    region: str = ""
    zone: str = ""

    @classmethod
    def of(cls, variables: Properties) -> "Settings":
        """Those of a provider's inputs."""
        said = Inputs(variables)
        return cls(said.text("project"), said.text("region"), said.text("zone"))


@dataclass(frozen=True, slots=True)
class Asked:
    """A resource that is asked for.

    Attributes:
        world: the cloud.
        settings: of the provider.
        type: token of its type.
        urn: the engine's name for it.
        inputs: what is asked for, completed.
        old: the resource as it is, where it is to be changed.
    """

    world: World
    settings: Settings
    type: str
    urn: str
    inputs: Properties
    old: Resource | None = None

    @property
    def said(self) -> Inputs:
        """The inputs, to be read by path."""
        return Inputs(self.inputs)

    @property
    def name(self) -> str:
        """Its name in the cloud."""
        return self.said.text("name")

    @property
    def project(self) -> str:
        """The project that it is in.

        Raises:
            RefusedError: neither it nor the provider says one.
        """
        project = self.said.text("project") or self.settings.project
        if not project:
            raise RefusedError("Failed to retrieve project, pid: , err: project: required field is not set")
        return project

    @property
    def location(self) -> str:
        """The zone or region that it is in.

        Raises:
            RefusedError: neither it nor the provider says one.
        """
        said, settings = self.said, self.settings
        for found in (said.text("location"), said.text("zone"), said.text("region")):
            if found:
                return found
        if settings.zone or settings.region:
            return settings.zone or settings.region
        raise RefusedError(
            "Cannot determine location: set location in this resource, or set provider-level zone"
        )

    @property
    def region(self) -> str:
        """The region that it is in; raises RefusedError as `location`."""
        return self.said.text("region") or region_of(self.said.text("location")) or self._settings_region()

    def _settings_region(self) -> str:
        region = self.settings.region or region_of(self.settings.zone)
        if not region:
            raise RefusedError(
                "Cannot determine region: set in this resource, or set provider-level 'region' or 'zone'."
            )
        return region

    def network(self, reference: str) -> str:
        """The id of a network that is spoken of by name, id or link."""
        return resource_id(reference) or f"projects/{self.project}/global/networks/{reference}"

    def subnetwork(self, reference: str) -> str:
        """The id of a subnetwork that is spoken of by name, id or link."""
        return (
            resource_id(reference) or f"projects/{self.project}/regions/{self.region}/subnetworks/{reference}"
        )


def resource_id(reference: str) -> str:
    """The id in a link, or the id itself: all from `projects/`; empty where it is neither, but a name."""
    _, found, rest = reference.rpartition("projects/")
    return f"projects/{rest}" if found else ""


def last(reference: str) -> str:
    """The name at the end of an id or link."""
    return reference.rpartition("/")[2]


def inputs_of(resource: Resource) -> Inputs:
    """What was asked for, to be read by path."""
    return Inputs(_plain(resource.inputs))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(values)
