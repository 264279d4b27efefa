"""Common interfaces and errors of the clouds' clients.

Every method of a client raises `CloudApiError` if the cloud rejects the request or does not answer.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.catalog.prices import Price
from ebbtide.errors import EbbtideError
from ebbtide.values.cloud_kind import CloudKind


class CloudApiError(EbbtideError):
    """A cloud rejects a request, or does not answer.

    Attributes:
        status: HTTP status; 0 without an answer.
    """

    rule = "cloud-api"

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class CredentialsError(CloudApiError):
    """Credentials for a cloud are missing or have expired."""

    rule = "credentials"


@dataclass(frozen=True, slots=True)
class NodePoolSize:
    """The size of a GKE node pool when its cluster runs.

    Attributes:
        autoscaling: the API's `NodePoolAutoscaling`; empty for a fixed count.
        count: nodes in each zone to start with.
    """

    name: str
    autoscaling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    count: int = 0


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """Limit of a quota in a region.

    Attributes:
        limit: the limit; infinite if there is none, None if unknown.
        usage: current usage by anything in the project or subscription; None if unknown.
        reason: sentence why the limit is unknown; empty if the cloud does not list it.
    """

    limit: float | None = None
    usage: float | None = None
    reason: str = ""


class QuotaSource(Protocol):
    """Quotas of a project or subscription."""

    def limits(self, region: str, names: Collection[str]) -> Mapping[str, QuotaLimit]:
        """Return the limits of a region, or of the whole project for `global`, by name of the quota.

        Args:
            region: the region, or `global`.
            names: the clouds' names of the needed quotas; the result may have others, too.
        """
        ...


class Rights(Protocol):
    """Enabled APIs of a project or subscription, and the user's own permissions in it."""

    def disabled(self, apis: Collection[str]) -> Sequence[str]:
        """Return the APIs, or resource providers, that are not enabled."""
        ...

    def lacking(self, permissions: Collection[str]) -> Sequence[str]:
        """Return the permissions that the user does not have."""
        ...


class ClusterPower(Protocol):
    """Machines of a cluster, which can be stopped and started together."""

    def refusal(self) -> str:
        """Return a sentence why the cluster can never be stopped; empty if it can."""
        ...

    def is_stopped(self) -> bool:
        """Return whether the cluster is stopped."""
        ...

    def stop(self, on_step: Callable[[str], None]) -> None:
        """Stop the machines and wait. Stopped machines are unchanged.

        Args:
            on_step: called with a short description of each step.
        """
        ...

    def start(self, on_step: Callable[[str], None]) -> None:
        """Start the machines and wait. Running machines are unchanged.

        Args:
            on_step: called with a short description of each step.
        """
        ...


class PriceSource(Protocol):
    """A cloud's price list."""

    @property
    def name(self) -> str:
        """Name of the list, the source of its prices."""
        ...

    def prices(self, region: str, items: Collection[str]) -> Mapping[str, Price]:
        """Return the current prices of items in a region.

        Items are named as in `catalog/data/prices.csv`. An item without a price, or with several different
        prices, is omitted; an unknown rate is None.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric."""

    labels: Mapping[str, str]
    value: float


class MetricSource(Protocol):
    """A store of metrics that answers PromQL."""

    def query(self, promql: str) -> Sequence[Sample]:
        """Return the current values of a query."""
        ...


@dataclass(frozen=True, slots=True)
class Account:
    """A Google Cloud project or an Azure subscription.

    Attributes:
        id: id of the project or subscription.
    """

    cloud: CloudKind
    id: str

    def __str__(self) -> str:
        return f"{CLOUD_SPECS[self.cloud].account} {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIdentity:
    """A cluster, with all names and ids that identify its resources in the cloud.

    Attributes:
        account: its project or subscription.
        location: its zone or region.
        resource_group: its resource group; empty on Google Cloud.
        node_resource_group: the resource group of its nodes; empty on Google Cloud.
        uid: id assigned by GKE, 64 hexadecimal digits; empty if unknown, and on Azure.
        namespace_uid: the UID of its namespace kube-system; empty if unknown.
        handles: ids of its volumes' disks and snapshots, in the form of its storage drivers.
        load_balancers: names of the cloud resources of its Services and Ingresses.
    """

    account: Account
    location: str
    name: str
    resource_group: str = ""
    node_resource_group: str = ""
    uid: str = ""
    namespace_uid: str = ""
    handles: frozenset[str] = frozenset()
    load_balancers: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """Id in the cloud."""
        match self.account.cloud:
            case CloudKind.GKE:
                return f"projects/{self.account.id}/locations/{self.location}/clusters/{self.name}"
            case CloudKind.AKS:
                group = f"/subscriptions/{self.account.id}/resourceGroups/{self.resource_group}"
                return f"{group}/providers/Microsoft.ContainerService/managedClusters/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudResource:
    """A resource in a cloud's list.

    Attributes:
        kind: display name of the type, such as `disk`.
        location: its zone or region, or `global`.
        expires: the label or tag `ebbtide-expires`; empty for none.
        cluster: id of the cluster that it is part of; empty if unknown.
        group: id of the resource group that it is deleted with; empty for none.
        holds_data: True for disks, snapshots and their containers.
        price_item: item of the price table; empty if it has no price there.
        quantity: quantity of that item.
    """

    kind: str
    id: str
    name: str
    location: str
    expires: str = ""
    cluster: str = ""
    group: str = ""
    holds_data: bool = False
    price_item: str = ""
    quantity: float = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredData:
    """A resource that contains people's data.

    Attributes:
        kind: display name of the type, such as `bucket`.
        id: id in the cloud; empty for a Kubernetes object.
        account: its project or subscription; None for a Kubernetes object.
        size: declared size; empty for none.
    """

    kind: str
    name: str
    id: str = ""
    account: Account | None = None
    size: str = ""


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a resource.

    Attributes:
        size: their size, bytes.
        objects: their number; None if unknown.
        is_partial: True if there are more.
    """

    size: int
    objects: int | None = None
    is_partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudGrant:
    """A role of a principal in a project or subscription.

    Attributes:
        id: id of the role assignment on Azure; role and member on Google Cloud, which has no other.
        role: name of the role on Google Cloud, id of its definition on Azure.
        principal: the member on Google Cloud, the object's id on Azure.
    """

    id: str
    role: str
    principal: str


class Inventory(Protocol):
    """Resources of a project or subscription."""

    def check(self) -> None:
        """Check that the credentials have access.

        Raises:
            CloudApiError: with status 401, 403 or 404 without access; without a status if there is no answer.
        """
        ...

    def identify(self, cluster: ClusterIdentity) -> ClusterIdentity:
        """Return a cluster with the ids that only the cloud has; unchanged if it does not exist."""
        ...

    def of_cluster(self, cluster: ClusterIdentity) -> Sequence[CloudResource]:
        """Return the resources that belong to a cluster, and the cluster itself, in order of deletion."""
        ...

    def expiring(self) -> Sequence[CloudResource]:
        """Return the resources with an expiry, in order of deletion."""
        ...

    def grants(self, principals: Collection[str]) -> Sequence[CloudGrant]:
        """Return the roles of principals in the project or subscription.

        Args:
            principals: members on Google Cloud, ids of objects on Azure.
        """
        ...

    def existing(self, ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Return those of some resources that exist, with their labels or tags; of a part of another
        resource on Azure, with those of the whole. A resource that the user may not read is omitted.

        Args:
            ids: ids of service accounts, buckets, file shares and registries, or on Azure of any resource, as
                Pulumi imports them.
        """
        ...

    def contents(self, data: StoredData) -> Contents | None:
        """Return the contents of a bucket, file share or registry; None if the cloud does not count them."""
        ...

    def delete(self, resource: CloudResource) -> None:
        """Delete a resource and wait until it is deleted; a missing resource is not an error."""
        ...
