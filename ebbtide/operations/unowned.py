"""Resources that exist in a stack's cluster and are in no state: node pools, queues, and grants of roles.

Node pools are in the cluster's own list, which the engine has read. Objects of Kueue count if they refer to
the stack's queues, and RoleBindings if they are in a team's namespace. Roles in a project or subscription
count if they are those of a principal that the stack has created.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from ebbtide.analysis.drift.differences import ReadResource, listed_resources
from ebbtide.analysis.drift.report import UnownedResource
from ebbtide.analysis.recording.recording import urn_name
from ebbtide.clients.clouds.interfaces import Inventory
from ebbtide.clients.kubernetes import Api, Object
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.operations.engine.state import State
from ebbtide.text import and_list
from ebbtide.values.kueue_api import API_PATH, flavor_names

Others: TypeAlias = Callable[[], Iterable[Mapping[str, Any]]]
_PRINCIPALS: Final = {
    "gcp:serviceaccount/account:Account": "member",
    "azure-native:managedidentity:UserAssignedIdentity": "principalId",
}
"""Output that identifies a principal, by the type of its resource."""
_MEMBER: Final = "gcp:projects/iAMMember:IAMMember"
_ROLE_BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings"


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


@dataclass(frozen=True, slots=True)
class _Reference:
    """A kind of Kueue whose objects can refer to the stack's.

    Attributes:
        plural: name in paths.
        field: field of the specification with the reference.
        to: kind that it refers to.
        effect: a sentence with the name of the referred object.
    """

    kind: str
    plural: str
    field: str
    to: str
    effect: str


_REFERENCES: Final = (
    _Reference(
        "ClusterQueue",
        "clusterqueues",
        "cohortName",
        "Cohort",
        "It borrows from cohort {}, whose quota is that of the stack's pools.",
    ),
    _Reference(
        "Cohort",
        "cohorts",
        "parentName",
        "Cohort",
        "Its queues borrow from cohort {}, whose quota is that of the stack's pools.",
    ),
    _Reference(
        "LocalQueue",
        "localqueues",
        "clusterQueue",
        "ClusterQueue",
        "Work in it uses the quota of ClusterQueue {}.",
    ),
)


OUTSIDE: Final = (
    "It is outside of the stack's cohort, and its quota of flavor {} is of the same nodes: together they "
    "admit more work than the pools have."
)
"""Effect of a ClusterQueue with the stack's flavors, which are named in it."""


def unowned_objects(api: Api, state: State) -> Iterator[UnownedResource]:
    """Yield the objects on the cluster that refer to the stack's queues, or give rights in its namespaces.

    A ClusterQueue in the stack's cohort borrows the quota of flavors that it has itself alone; one outside of
    it has quota of its own for the same nodes.

    Args:
        api: the cluster.
        state: the stack's state.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    flavors = {item.name for item in state.objects if item.kind == "ResourceFlavor"}
    for known in _REFERENCES:
        names = {item.name for item in state.objects if item.kind == known.to}
        for item, name, path in _others(api, state, known.kind, f"{API_PATH}/{known.plural}"):
            referred = text(item, "spec", known.field)
            shared = sorted(flavors.intersection(flavor_names(part(item, "spec"))))
            effect = known.effect.format(referred) if referred in names else ""
            if known.kind == "ClusterQueue":
                effect = (effect or OUTSIDE.format(and_list(shared))) if shared else ""
            if effect:
                yield UnownedResource(kind=known.kind, name=name, id=path, effect=effect)
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
    listed: Any = (api.find(path) or {}).get("items")
    for item in listed or ():
        namespace, name = text(item, "metadata", "namespace"), text(item, "metadata", "name")
        if (kind, namespace, name) not in own and not parts(item, "metadata", "ownerReferences"):
            within = path if f"/namespaces/{namespace}/" in path or not namespace else None
            yield (
                item,
                f"{namespace}/{name}" if namespace else name,
                f"{within or path.replace(API_PATH, f'{API_PATH}/namespaces/{namespace}')}/{name}",
            )
