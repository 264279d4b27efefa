"""Leftover cloud resources of a deleted cluster: report them with their costs, and delete them on request."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ebbtide.analysis.costs.charges import rates
from ebbtide.clients.clouds.interfaces import CloudApiError, CloudResource, ClusterIdentity, Inventory
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.catalog.prices import find_price
from ebbtide.declaration.cloud_kind import CloudKind, by_cloud
from ebbtide.operations.access import Clouds, commands
from ebbtide.operations.user_objects import CloudNames


def idle_cost(exported: Mapping[str, Any]) -> Amount | None:
    """Return the cost of a stack without work; None if it is unknown.

    Args:
        exported: the output of `pulumi stack export`.

    Raises:
        StateError: it is not an exported state.
    """
    amount = rates(exported).idle
    return amount if amount.prices and not amount.is_unknown else None


def cost_of(cloud: CloudKind, resource: CloudResource) -> float | None:
    """Return the cost of a resource, USD per hour; None if no price is known."""
    place = "" if resource.location == "global" else region_of(resource.location)
    price = find_price(cloud, place, resource.price_item) if resource.price_item else None
    return None if price is None or price.on_demand is None else price.on_demand * resource.quantity


_CHECKED = by_cloud(
    gke="the cluster, disks, snapshots, load balancers, addresses, firewall rules and network "
    "endpoint groups",
    aks="the cluster, its node resource group, and disks, snapshots and addresses outside of it",
)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Leftover resources of a cluster.

    Attributes:
        reason: why they are unknown; empty if the cloud answered.
    """

    cluster: ClusterIdentity
    resources: Sequence[CloudResource] = ()
    reason: str = ""


def identify(clouds: Clouds, clusters: Iterable[ClusterIdentity], names: CloudNames) -> list[ClusterIdentity]:
    """Return clusters with everything that identifies their resources, while they exist.

    Args:
        clouds: access to the clouds.
        clusters: the clusters of a stack, of which an earlier destroy may have deleted some.
        names: names known to the cluster that exists; empty if it does not answer.
    """
    identified: list[ClusterIdentity] = []
    for cluster in clusters:
        known = cluster
        if cluster.namespace_uid in ("", names.namespace_uid):
            known = replace(
                cluster,
                namespace_uid=names.namespace_uid,
                handles=names.handles | cluster.handles,
                load_balancers=names.load_balancers | cluster.load_balancers,
            )
        inventory = clouds.inventories.get(cluster.account)
        try:
            identified.append(inventory.identify(known) if inventory else known)
        except CloudApiError:
            identified.append(known)
    return identified


def left(clouds: Clouds, cluster: ClusterIdentity) -> Leftovers:
    """Query the cloud for leftovers of a cluster."""
    inventory = clouds.inventories.get(cluster.account)
    if inventory is None:
        return Leftovers(cluster, reason=clouds.reasons.get(cluster.account, "It was not checked."))
    try:
        return Leftovers(cluster, inventory.of_cluster(cluster))
    except CloudApiError as error:
        return Leftovers(cluster, reason=str(error))


def delete(
    inventory: Inventory,
    resources: Iterable[CloudResource],
    log: Callable[[str], None],
    is_doomed: Callable[[CloudResource], bool] = lambda _: True,
) -> dict[str, str]:
    """Delete resources one by one; a failure does not stop the others.

    Args:
        inventory: their project or subscription.
        resources: the resources, in order of deletion; a resource whose group is included is deleted with it.
        log: called with a line for each resource.
        is_doomed: called with each resource before its deletion; False to keep it.

    Returns:
        The errors, by the resource's id.
    """
    listed = list(resources)
    groups = {resource.id for resource in listed}
    errors: dict[str, str] = {}
    for resource in listed:
        if resource.group in groups:
            continue
        try:
            if not is_doomed(resource):
                continue
            inventory.delete(resource)
            log(f"deleted: {resource.kind} {resource.name} in {resource.location}")
        except CloudApiError as error:
            errors[resource.id] = str(error)
            log(f"{resource.kind} {resource.name} is not deleted: {error}")
    return errors


def lines(leftovers: Leftovers, kept: frozenset[str]) -> Iterator[str]:
    """Describe the leftovers of a cluster, or state that there are none.

    Args:
        kept: ids of the disks and snapshots that are kept on purpose.
    """
    cluster = leftovers.cluster
    if leftovers.reason:
        yield (
            f"Remaining resources of cluster {cluster.name} in {cluster.account} are unknown: "
            f"{leftovers.reason}"
        )
        yield f"List it with: {commands(cluster)}"
        return
    if leftovers.resources:
        yield f"Remaining resources of cluster {cluster.name} in {cluster.account}:"
        for resource in leftovers.resources:
            yield f"  {line(cluster.account.cloud, resource)}{', kept' if resource.id in kept else ''}"
        yield f"They cost {rate(cluster.account.cloud, leftovers.resources)}."
        return
    yield (
        f"No resources of cluster {cluster.name} remain in {cluster.account}. Checked: "
        f"{_CHECKED[cluster.account.cloud]}."
    )
    if cluster.account.cloud is CloudKind.GKE and not cluster.uid:
        yield (
            "Its firewall rules and load balancers could not be distinguished from those of another cluster "
            "of that name, because the cluster had already been deleted."
        )


def line(cloud: CloudKind, resource: CloudResource) -> str:
    """Describe a resource in one line."""
    size = f", {resource.quantity:g} GiB" if resource.price_item.endswith("-gib") else ""
    cost = cost_of(cloud, resource)
    price = f", ${cost:.4f}/h" if cost else ""
    return f"{resource.kind} {resource.name} in {resource.location}{size}{price}"


def rate(cloud: CloudKind, resources: Iterable[CloudResource]) -> str:
    """Format the cost of resources, as far as prices are known."""
    known = [cost for resource in resources if (cost := cost_of(cloud, resource))]
    return f"at least ${sum(known):.4f}/h" if known else "an unknown amount"
