"""Interfaces of the clients, the same for every cloud."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ebbtide.catalog import CLOUD_SPECS, CloudKind
from ebbtide.catalog.prices import Price


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """A quota's limit in a region.

    Attributes:
        limit: the limit; infinite if there is none, None if it is unknown.
        usage: the part of it that is in use, by anything in the project or subscription; None if unknown.
        reason: why the limit is unknown, a sentence; empty if the cloud does not list it.
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
            names: the needed quotas, by the cloud's names; there may be others beside them.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...


class ClusterPower(Protocol):
    """The machines of a cluster, which can be stopped and started together."""

    def refusal(self) -> str:
        """Return the reason for which the cluster can never be stopped, a sentence; empty if it can.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...

    def is_stopped(self) -> bool:
        """Return whether the cluster is stopped.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...

    def stop(self, say: Callable[[str], None]) -> None:
        """Stop the machines, and return once that is done. What is stopped already stays so.

        Args:
            say: is called with each step, a few words.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...

    def start(self, say: Callable[[str], None]) -> None:
        """Start the machines, and return once the cloud has done so. What runs already stays so.

        Args:
            say: is called with each step, a few words.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...


class PriceSource(Protocol):
    """A cloud's price list."""

    @property
    def name(self) -> str:
        """The name of the list, as the source of its prices."""
        ...

    def prices(self, region: str, items: Collection[str]) -> Mapping[str, Price]:
        """Return the prices of items in a region, as of today.

        Items are named as in `catalog/data/prices.csv`. An item without a price, or with several that differ,
        is omitted; a rate that is not known is None.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Account:
    """A project of Google Cloud or a subscription of Azure.

    Attributes:
        cloud: the cloud.
        id: its id.
    """

    cloud: CloudKind
    id: str

    def __str__(self) -> str:
        return f"{CLOUD_SPECS[self.cloud].account} {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIdentity:
    """A cluster, by everything that the cloud's resources name it with.

    Attributes:
        account: its project or subscription.
        location: its zone or region.
        name: its name.
        resource_group: its resource group; empty on Google Cloud.
        node_resource_group: the resource group of its nodes; empty on Google Cloud.
        uid: the id that GKE gave it, 64 hexadecimal digits; empty if unknown, and on Azure.
        namespace_uid: the UID of its namespace kube-system; empty if unknown.
        handles: ids of the disks and snapshots of its volumes, as its storage drivers name them.
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
        """The cloud's id of it."""
        if self.account.cloud is CloudKind.GKE:
            return f"projects/{self.account.id}/locations/{self.location}/clusters/{self.name}"
        group = f"/subscriptions/{self.account.id}/resourceGroups/{self.resource_group}"
        return f"{group}/providers/Microsoft.ContainerService/managedClusters/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudResource:
    """A resource that a cloud lists.

    Attributes:
        kind: in words, such as `disk`.
        id: the cloud's id of it.
        name: its name.
        location: its zone or region, or `global`.
        expires: the label or tag `ebbtide-expires`; empty for none.
        cluster: id of the cluster that it is part of; empty if unknown.
        group: id of the resource group whose deletion deletes it; empty for none.
        holds_data: true for disks, snapshots and what contains them.
        price_item: item of the price table; empty if it has no price there.
        quantity: of that item.
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


class Inventory(Protocol):
    """The resources of a project or subscription."""

    def check(self) -> None:
        """Check that the credentials have access.

        Raises:
            CloudApiError: with status 401, 403 or 404 if not; without a status if the cloud does not answer.
        """
        ...

    def identify(self, cluster: ClusterIdentity) -> ClusterIdentity:
        """Return a cluster with what the cloud alone knows of it; unchanged if it does not exist.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...

    def of_cluster(self, cluster: ClusterIdentity) -> Sequence[CloudResource]:
        """Return the resources that are marked as a cluster's, and the cluster itself, in the order in which
        they can be deleted.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...

    def expiring(self) -> Sequence[CloudResource]:
        """Return the resources with an expiry, in the order in which they can be deleted.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...

    def delete(self, resource: CloudResource) -> None:
        """Delete a resource and wait until it is gone; one that does not exist is no error.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...
