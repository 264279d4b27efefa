"""Cloud resources and objects in no state: those of a deleted cluster that remain, and those of others beside
a running stack: node pools, queues, and grants of roles.

What remains is reported with its costs, and deleted on request. Node pools are in the cluster's own list,
which the engine has read. Objects of Kueue count if they refer to the stack's queues, and RoleBindings if
they are in a team's namespace. Roles in a project or subscription count if they are those of a principal that
the stack has created.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

from ebbtide.analysis.charges import rates
from ebbtide.analysis.drift.differences import ReadResource, listed_resources
from ebbtide.analysis.drift.drift_document import UnownedResource
from ebbtide.analysis.recording.recording import urn_name
from ebbtide.clients.clouds.interfaces import CloudApiError, CloudResource, ClusterIdentity, Inventory
from ebbtide.clients.kubernetes import Api, Object
from ebbtide.clients.kubernetes.objects import items_of, part, parts, text
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.catalog.prices import find_price
from ebbtide.operations.access import Clouds, commands
from ebbtide.operations.engine.state import State
from ebbtide.operations.leftovers.users import CloudNames
from ebbtide.text import and_list
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.given_command import given_command
from ebbtide.values.kueue_api import API_PATH, flavor_names, plural

_CHECKED = by_cloud(
    gke="the cluster, disks, snapshots, load balancers, addresses, firewall rules and network "
    "endpoint groups",
    aks="the cluster, its node resource group, and disks, snapshots and addresses outside of it",
)
Others: TypeAlias = Callable[[], Iterable[Mapping[str, Any]]]
_PRINCIPALS: Final = {
    "gcp:serviceaccount/account:Account": "member",
    "azure-native:managedidentity:UserAssignedIdentity": "principalId",
}
"""Output that identifies a principal, by the type of its resource."""
_MEMBER: Final = "gcp:projects/iAMMember:IAMMember"
_BORROWS: Final = "from cohort {}, whose quota is that of the stack's pools."
_REFERENCES: Final = (
    ("ClusterQueue", "cohortName", "Cohort", f"It borrows {_BORROWS}"),
    ("Cohort", "parentName", "Cohort", f"Its queues borrow {_BORROWS}"),
    ("LocalQueue", "clusterQueue", "ClusterQueue", "Work in it uses the quota of ClusterQueue {}."),
)
"""Kinds of Kueue whose objects can refer to the stack's: the field with the reference, the kind to which it
refers, and its effect."""
_ROLE_BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings"
OUTSIDE: Final = (
    "It is outside of the stack's cohort, and its quota of flavor {} is of the same nodes: together they "
    "admit more work than the pools have."
)
"""Effect of a ClusterQueue with the stack's flavors, which are named in it."""


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
            given_command().happens(f"{resource.kind} {resource.name} is deleted")
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


def principals_of(resources: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the principals that a stack has created, with their logical names.

    Args:
        resources: the `resources` of its state.
    """
    return {
        principal: urn_name(str(item["urn"]))
        for item in resources
        if (principal := text(item, "outputs", _PRINCIPALS.get(str(item["type"]), "")))
    }


def unowned_grants(
    inventories: Iterable[Inventory],
    principals: Mapping[str, str],
    own: Iterable[Mapping[str, Any]],
    others: Others,
) -> Iterator[UnownedResource]:
    """Yield the roles of a stack's principals that no state has.

    Args:
        inventories: the stack's projects and subscriptions.
        principals: as from `principals_of`.
        own: the `resources` of the stack's state.
        others: as for `unowned_pools`.

    Raises:
        CloudApiError: a cloud rejects the request or does not answer.
    """
    listed = [grant for inventory in inventories for grant in inventory.grants(list(principals))]
    owned = set(map(_grant, own))
    if all(grant.id.lower() in owned for grant in listed):
        return
    for document in others():
        owned |= set(map(_grant, parts(cast("Object", document["deployment"]), "resources")))
    for grant in listed:
        if grant.id.lower() not in owned:
            name = principals[grant.principal]
            effect = f"It gives {name} the role {grant.role}, which no update takes away."
            yield UnownedResource(kind="grant", name=name, id=grant.id, effect=effect)


def _grant(item: Mapping[str, Any]) -> str:
    """Return the id of a resource as a grant has it: Google Cloud's may have a condition."""
    outputs = part(item, "outputs")
    if item["type"] == _MEMBER:
        return f"{outputs.get('project')}/{outputs.get('role')}/{outputs.get('member')}".lower()
    return str(item.get("id")).lower()


def unowned_pools(
    resources: Iterable[ReadResource], own: Collection[str], others: Others
) -> Iterator[UnownedResource]:
    """Yield the node pools and subnets that a cluster or network lists and no state has.

    Args:
        resources: the stack's resources as read.
        own: ids of the stack's resources.
        others: returns the exported states of all stacks of the backend; called if there is a candidate.
    """
    owned = {identity.lower() for identity in own}
    candidates = [
        (resource, name, identity)
        for resource in resources
        for name, identity in listed_resources(resource)
        if identity.lower() not in owned
    ]
    if not candidates:
        return
    for document in others():
        items = parts(cast("Object", document["deployment"]), "resources")
        owned |= {str(item.get("id")).lower() for item in items}
    for resource, name, identity in candidates:
        if identity.lower() in owned:
            continue
        if "/subnets/" in identity:
            yield UnownedResource(
                kind="subnet", name=name, id=identity, effect="An update keeps it; a destroy fails on it."
            )
            continue
        cluster = resource.urn.rpartition("::")[2]
        yield UnownedResource(
            kind="node pool",
            name=name,
            id=identity,
            effect=f"It is billed, and no queue of the stack has its nodes. It is deleted with {cluster}.",
        )


def unowned_objects(api: Api, state: State) -> Iterator[UnownedResource]:
    """Yield the objects on the cluster that refer to the stack's queues, or give rights in its namespaces.

    A ClusterQueue in the stack's cohort borrows the quota of flavors that it has itself alone; one outside of
    it has quota of its own for the same nodes.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    flavors = {item.name for item in state.objects if item.kind == "ResourceFlavor"}
    for kind, field, to, sentence in _REFERENCES:
        names = {item.name for item in state.objects if item.kind == to}
        for item, name, path in _others(api, state, kind, f"{API_PATH}/{plural(kind)}"):
            referred = text(item, "spec", field)
            shared = sorted(flavors.intersection(flavor_names(part(item, "spec"))))
            effect = sentence.format(referred) if referred in names else ""
            if kind == "ClusterQueue":
                effect = (effect or OUTSIDE.format(and_list(shared))) if shared else ""
            if effect:
                yield UnownedResource(kind=kind, name=name, id=path, effect=effect)
    for namespace in sorted(state.teams):
        for item, name, path in _others(api, state, "RoleBinding", _ROLE_BINDINGS.format(namespace)):
            subjects = sorted(text(subject, "name") for subject in parts(item, "subjects"))
            role = f"{text(item, 'roleRef', 'kind')} {text(item, 'roleRef', 'name')}"
            effect = f"It gives {and_list(subjects)} the rights of {role}."
            if subjects:
                yield UnownedResource(kind="RoleBinding", name=name, id=path, effect=effect)


def _others(api: Api, state: State, kind: str, path: str) -> Iterator[tuple[Object, str, str]]:
    """Yield the objects of a list that neither the stack nor a controller has created, with name and path."""
    own = {(item.kind, item.namespace, item.name) for item in state.objects}
    for item in items_of(api.find(path)):
        namespace, name = text(item, "metadata", "namespace"), text(item, "metadata", "name")
        if (kind, namespace, name) not in own and not parts(item, "metadata", "ownerReferences"):
            within = path if f"/namespaces/{namespace}/" in path or not namespace else None
            yield (
                item,
                f"{namespace}/{name}" if namespace else name,
                f"{within or path.replace(API_PATH, f'{API_PATH}/namespaces/{namespace}')}/{name}",
            )
