"""Declared resources that exist already: those of a stack whose state is lost, and those of others.

Resources of a lost state's teams are adopted, and roles that are assigned already are named. Names of
resources follow from the declaration. Besides, the labels of each, or of the resource that it is part of,
must name the stack's cluster and team; service accounts have none. Kubernetes objects are those in namespaces
that are labelled with their team, and Kueue's if a queue of such a namespace submits to them.

Namespaces, add-ons, Kueue's objects, drivers and device plugins of others are refused before anything is
changed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ebbtide.analysis import device_plugins
from ebbtide.analysis.recording.recording import Recording, Resource, urn_name
from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.interfaces import Account, CloudApiError
from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import items_of, part, parts, text
from ebbtide.declaration.model.addons import ADD_ONS
from ebbtide.declaration.project.adopt_file import AdoptedResource, read_adopt_file, write_adopt_file
from ebbtide.errors import EbbtideError
from ebbtide.operations import access
from ebbtide.operations.engine import state
from ebbtide.operations.engine.events import Step
from ebbtide.operations.engine.failures import OperationError, explanation
from ebbtide.operations.engine.stack import Stack
from ebbtide.operations.engine.state import CLUSTERS, ObjectReference
from ebbtide.operations.leftovers.cloud import Others
from ebbtide.placement import Profile, ProfileError
from ebbtide.placement.profile_sources import CONFIG_MAP, KEY, OUTPUT
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.given_command import given_command
from ebbtide.values.kueue_api import API_PATH, API_VERSION, TYPES, object_path, plural

_TYPES: Final = {
    "gcp:artifactregistry/repository:Repository",
    "gcp:filestore/instance:Instance",
    "gcp:serviceaccount/account:Account",
    "gcp:storage/bucket:Bucket",
    "azure-native:containerregistry:Registry",
    "azure-native:managedidentity:FederatedIdentityCredential",
    "azure-native:managedidentity:UserAssignedIdentity",
    "azure-native:resources:ResourceGroup",
    "azure-native:storage:BlobContainer",
    "azure-native:storage:FileShare",
    "azure-native:storage:StorageAccount",
}
"""Resources of teams that a cloud refuses to create again."""
_CLUSTER: Final = "ebbtide-cluster"
_TEAM: Final = "ebbtide-team"
_LABEL: Final = "ebbtide.dev/team"
"""Label of a namespace."""
_KUBERNETES: Final = "kubernetes:"
_NAMESPACE: Final = f"{_KUBERNETES}core/v1:Namespace"
_PROFILE: Final = f"{_KUBERNETES}core/v1:ConfigMap"
_POLICY: Final = f"{_KUBERNETES}admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
"""Prefix of the types of the policies for members, which have the cluster in their names instead of a
namespace."""
_ROLE_ASSIGNMENT: Final = "azure-native:authorization:RoleAssignment"
_SUBMITS_TO: Final = ("spec", "clusterQueue")
_RESOURCES: Final = ("deployment", "resources")
_EXISTING_ADD_ON: Final = "ebbtide:addons:ExistingAddOn"
_UNKNOWN: Final = "existing namespaces are unknown"


def lost_state_refusals(recording: Recording, deployment: Mapping[str, Any], stack: str) -> Iterator[str]:
    """Yield why a stack without resources must not be created: a cluster of its name exists.

    A cloud that does not answer, or cannot be asked, forbids nothing.

    Args:
        deployment: the `deployment` of the stack's state.
    """
    known = state.read(deployment)
    if known.resources or known.pending:
        return
    for item in recording:
        if item.type in state.CLUSTERS and item.custom and not (item.read or item.import_id):
            account, name = _account(item), str(item.id).rpartition("/")[2]
            with suppress(EbbtideError, ModuleNotFoundError):
                if connect.inventory(account).existing([str(item.id)]):
                    again = given_command().on_stack("adopt", stack, "--cluster", name)
                    yield (
                        f"Nothing was changed: the state of stack {stack} is empty, and cluster {name} "
                        f"exists in {account}. If its state is lost, adopt it first: {again} "
                        "(docs/adopting.md, A lost state). Otherwise declare another name, or delete it."
                    )


def find_teams(
    stack: Stack, file: Path, recording: Recording, others: Others, log: Callable[[str], None]
) -> bool:
    """Add the resources of teams that the program would create and that exist, as those of a stack whose
    state is lost, to the file of adopted resources; return whether there are any.

    Those of another stack of the backend stay its own. If a cloud does not answer, it refuses to create them
    later.

    Args:
        file: the file of adopted resources.
        others: returns the exported states of all stacks of the backend.
        log: called with a line for each resource.
    """
    own = {item.urn: item for item in recording if item.type in _TYPES and item.id and not item.read}
    teams = {
        urn: item for urn, item in own.items() if (labels := _labels(item, own)) is None or _TEAM in labels
    }
    if not teams:
        return False
    exported = stack.exported()
    present = {text(item, "urn") for item in parts(exported, *_RESOURCES)}
    created = [item for urn, item in teams.items() if urn not in present and not item.import_id]
    found = _existing(created, own)
    states: list[Mapping[str, Any]] = []
    if found:
        states += others()
        owned = {
            text(item, "id").lower() for known in (exported, *states) for item in parts(known, *_RESOURCES)
        }
        found = [item for item in found if str(item.id).lower() not in owned]
    if found or any(item.import_id for item in teams.values()):
        new = [item for item in recording if item.urn not in present and not (item.import_id or item.read)]
        found += _objects(stack, recording, new, states or list(others()))
    if found:
        entries = [AdoptedResource(item.type, item.name, str(item.id)) for item in found]
        given_command().happens(f"{file.name} lists what exists of a lost state")
        write_adopt_file(file, [*read_adopt_file(file), *entries])
        for item in found:
            kind = item.type.rpartition(":")[2]
            name = f"{kind} {item.id}" if item.type.startswith(_KUBERNETES) else item.id
            log(f"{name} exists, as of a stack whose state is lost: it is added to {file.name}.")
    return bool(found)


def _labels(item: Resource, resources: Mapping[str, Resource]) -> Mapping[str, Any] | None:
    """Return the labels or tags of a resource, or those of the resource that it is part of; None without
    any."""
    above = [other for other in resources.values() if f"{item.id}/".startswith(f"{other.id}/")]
    for other in sorted(above, key=lambda other: len(str(other.id)), reverse=True):
        if labels := part(other.inputs, "labels") or part(other.inputs, "tags"):
            return labels
    return None


def _existing(created: Sequence[Resource], own: Mapping[str, Resource]) -> list[Resource]:
    """Return the resources that exist in their clouds, with the labels that the program gives them."""
    accounts: dict[Account, list[Resource]] = {}
    for item in created:
        accounts.setdefault(_account(item), []).append(item)
    found: list[Resource] = []
    try:
        for account, inventory in access.reach(accounts).inventories.items():
            existing = inventory.existing([str(item.id) for item in accounts[account]])
            for item in accounts[account]:
                labels, wanted = existing.get(str(item.id)), _labels(item, own) or {}
                if labels is not None and all(
                    labels.get(key) == wanted[key] for key in (_CLUSTER, _TEAM) if key in wanted
                ):
                    found.append(item)
    except (CloudApiError, OperationError):
        return []
    return found


def _account(item: Resource) -> Account:
    return state.account_of(text(item.inputs, "project"), str(item.id))


def _objects(
    stack: Stack, recording: Recording, new: Sequence[Resource], states: Sequence[Mapping[str, Any]]
) -> list[Resource]:
    """Return the Kubernetes objects of teams, and of their queues, that the program would create and that
    exist."""
    tenants = {
        item.parent: (text(item.inputs, "metadata", "name"), text(item.inputs, "metadata", "labels", _LABEL))
        for item in recording
        if item.type.startswith(_NAMESPACE) and state.TENANT in item.urn
    }
    objects = [item for item in new if item.parent in tenants and not item.type.endswith("Patch")]
    queueing = [item for item in new if item.type.startswith(TYPES)]
    if not (objects or queueing):
        return []
    policies = [item for item in new if item.type.startswith(_POLICY)]
    try:
        profile = Profile.load(str(recording.outputs[OUTPUT]))
        kubeconfig = stack.outputs().get("kubeconfig") or stack.preview().kubeconfig
        api = access.client(kubeconfig, _UNKNOWN)
        with access.reaching(_UNKNOWN):
            others = set(_taken(states, profile))
            ours = {
                tenant
                for tenant, (name, team) in tenants.items()
                if name not in others
                and (existing := api.find(f"/api/v1/namespaces/{name}")) is not None
                and text(existing, "metadata", "labels", _LABEL) == team
            }
            wanted = [item for item in objects if item.parent in ours]
            wanted += policies if wanted else ()
            found = [item for item in wanted if _find(api, item)]
            return found + _queueing(api, queueing, {tenants[tenant][0] for tenant in ours})
    except (OperationError, ProfileError):
        return []


def _queueing(api: Api, created: Sequence[Resource], namespaces: Collection[str]) -> list[Resource]:
    """Return Kueue's objects that exist, if a queue of these namespaces submits to one of the program's: two
    stacks with queues on one cluster are refused, so that the others are of the same stack."""
    own = [item for item in created if text(item.inputs, "metadata", "namespace") in ("", *namespaces)]
    found = [(item, existing) for item in own if (existing := _find(api, item))]
    is_ours = any(text(item.inputs, *_SUBMITS_TO) == text(it, *_SUBMITS_TO) != "" for item, it in found)
    return [item for item, _ in found] if is_ours else []


def _find(api: Api, item: Resource) -> Mapping[str, Any] | None:
    """Return the object that a resource would be; None if it does not exist."""
    return api.find(object_path(item.type, str(item.id)))


def _taken(states: Sequence[Mapping[str, Any]], profile: Profile) -> Iterator[str]:
    """Yield the namespaces in which other stacks have a profile of the same cluster, or an unreadable one."""
    for item in (item for known in states for item in parts(known, *_RESOURCES)):
        namespace, _, name = text(item, "id").rpartition("/")
        if item["type"] == _PROFILE and name == CONFIG_MAP:
            data = text(item, "inputs", "data", KEY) or text(item, "outputs", "data", KEY)
            if not data or _is_of_cluster(data, profile):
                yield namespace


def _is_of_cluster(data: str, profile: Profile) -> bool:
    try:
        theirs = Profile.load(data)
    except ProfileError:
        return True
    return (theirs.cluster, theirs.location) == (profile.cluster, profile.location)


def assigned_already(steps: Mapping[str, Mapping[str, Step]]) -> Iterator[str]:
    """Yield a message for each role that would be assigned and that its principal has already, as in a
    stack whose state is lost: Azure refuses a second assignment, and does so only during the update.

    Args:
        steps: the steps of a preview, by URN and operation.
    """
    created = {
        urn: own["create"].inputs
        for urn, own in steps.items()
        if "create" in own and own["create"].type == _ROLE_ASSIGNMENT
    }
    wanted = {
        _grant(*(text(inputs, key) for key in ("scope", "roleDefinitionId", "principalId"))): urn_name(urn)
        for urn, inputs in created.items()
    }
    subscriptions = {scope.split("/")[2] for scope, _, _ in wanted if scope.startswith("/subscriptions/")}
    try:
        clouds = access.reach(Account(CloudKind.AKS, id_) for id_ in sorted(subscriptions))
        principals = {text(inputs, "principalId") for inputs in created.values()}
        listed = [item for own in clouds.inventories.values() for item in own.grants(principals)]
    except (CloudApiError, OperationError):
        return  # Azure's own refusal follows, during the update
    for item in listed:
        scope = item.id.partition("/providers/Microsoft.Authorization/")[0]
        if name := wanted.get(_grant(scope, item.role, item.principal)):
            yield (
                f"The update is refused: the role of {name} is assigned already, as by a stack whose state "
                "is lost, and Azure refuses a second one. Delete it, and it is assigned anew: az role "
                f"assignment delete --ids {item.id}"
            )


def _grant(scope: str, role: str, principal: str) -> tuple[str, str, str]:
    """Return the key of a role assignment. Ids of definitions may have a subscription or none."""
    return scope.lower(), role.rpartition("/")[2].lower(), principal.lower()


def existing_refusals(
    stack: Stack,
    recording: Recording,
    deployment: Mapping[str, Any],
    log: Callable[[str], None],
    *,
    verbose: bool = False,
) -> list[str]:
    """Return messages about namespaces and objects of Kueue that the update would create and that exist,
    about an existing Kueue with which the queues cannot work, and about DaemonSets that would install
    drivers or device plugins on its new pools a second time.

    The provider refuses to create what exists as well, but after other changes. Without an output
    `kubeconfig`, as before the first update on an existing cluster, and where the program reads an
    existing add-on, the engine's preview comes first. If the cluster does not answer, there are no
    messages.

    Args:
        deployment: the `deployment` of the stack's state.
        log: called with warnings.
        verbose: True for the engine's errors in full.
    """
    own = state.read(deployment)
    interrupted = {text(item, "resource", "urn") for item in parts(deployment, "pending_operations")}
    new = [
        resource
        for resource in recording
        if resource.urn not in interrupted and not resource.read and not resource.import_id
    ]
    names = {
        name: state.TENANT in resource.urn
        for resource in new
        if resource.type == _NAMESPACE
        and (name := text(resource.inputs, "metadata", "name")) not in own.namespaces
    }
    queueing = {
        item for resource in new if (item := _kueue_object(resource)) is not None and item not in own.objects
    }
    reads_add_on = any(resource.type == _EXISTING_ADD_ON for resource in recording)
    if not (names or queueing or reads_add_on or device_plugins.has_gpus(recording)):
        return []
    clusters = {resource.urn for resource in recording if resource.type in CLUSTERS and not resource.read}
    created = {item.urn for item in new} - {text(item, "urn") for item in parts(deployment, "resources")}
    if clusters & created:
        return []
    kubeconfig = stack.outputs().get("kubeconfig")
    if not (kubeconfig or reads_add_on or created):
        return []
    if not kubeconfig or (reads_add_on and not clusters):
        preview = stack.preview()
        if preview.errors:
            lines = explanation(stack.name, preview.errors, verbose=verbose)
            return [*lines, "Nothing was changed: the preview of the update fails."]
        for line in dict.fromkeys(preview.warnings) if reads_add_on else ():
            log(f"Warning: {line}")
        kubeconfig = preview.kubeconfig
    try:
        api = access.client(kubeconfig, _UNKNOWN)
        with access.reaching(_UNKNOWN):
            existing = [name for name in names if api.find(f"/api/v1/namespaces/{name}")]
            elsewhere = list(existing_elsewhere(api, names.keys() - set(existing)))
            taken = sorted(queueing & _kueue_objects(api, {item.kind for item in queueing}), key=str)
        plugins = list(_device_plugins(api, recording, deployment, log))
    except OperationError:
        return []
    return [
        *plugins,
        *(_existing_namespace(name, of_team=names[name]) for name in existing),
        *elsewhere,
        *_existing_objects(taken),
    ]


def _device_plugins(
    api: Api, recording: Recording, deployment: Mapping[str, Any], log: Callable[[str], None]
) -> Iterator[str]:
    """Yield messages about DaemonSets that certainly conflict with drivers or device plugins on pools that
    the update creates, or on all of them if it creates the stack's drivers; print the others."""
    if not device_plugins.has_gpus(recording):
        return
    present = {text(item, "urn") for item in parts(deployment, "resources")}
    created = {item.urn: item.type for item in recording if not item.import_id and item.urn not in present}
    is_new = device_plugins.OF_DRIVERS in created.values()
    try:
        with access.reaching("DaemonSets of drivers are unknown"):
            daemon_sets = api.items(device_plugins.DAEMON_SETS)
    except OperationError:
        return
    for conflict in device_plugins.conflicts(recording, daemon_sets):
        if conflict.is_certain and (is_new or conflict.urns & created.keys()):
            yield f"Nothing was changed: {conflict}"
        else:
            log(f"Warning: {conflict}")


def _kueue_object(resource: Resource) -> ObjectReference | None:
    """Return the object of Kueue that a resource is; None for any other resource."""
    group, _, kind = resource.type.removeprefix(_KUBERNETES).rpartition(":")
    if group != API_VERSION:
        return None
    names = (text(resource.inputs, "metadata", key) for key in ("namespace", "name"))
    return ObjectReference(kind, *names)


def _kueue_objects(api: Api, kinds: Iterable[str]) -> set[ObjectReference]:
    """Return the existing objects of kinds of Kueue; none of a kind that is not installed."""
    return {
        ObjectReference(kind, text(item, "metadata", "namespace"), text(item, "metadata", "name"))
        for kind in kinds
        for item in items_of(api.find(f"{API_PATH}/{plural(kind)}"))
    }


def _existing_objects(items: Iterable[ObjectReference]) -> Iterator[str]:
    """Yield messages about objects of Kueue that an update would create and that exist.

    The priority classes have the same names in every stack, so that they are the other stack's.
    """
    priorities: list[str] = []
    for item in items:
        if item.kind == "WorkloadPriorityClass":
            priorities.append(item.name)
            continue
        where = f" in {item.namespace}" if item.namespace else ""
        yield (
            f"Nothing was changed: {item.kind} {item.name}{where} exists, and not from this stack. If the "
            "stack took it over, it would be deleted with it. Write another name, or adopt it with `ebbtide "
            "adopt`."
        )
    if priorities:
        yield (
            "Nothing was changed: another stack has queues on this cluster, and would share its "
            f"WorkloadPriorityClasses with this one: {', '.join(priorities)}. The first destroy would delete "
            "them for both. Declare all queues of the cluster in one stack."
        )


def existing_elsewhere(api: Api, namespaces: Collection[str]) -> Iterator[str]:
    """Yield a message about each add-on that an update would install into one of these new namespaces, and
    that the cluster has in another one."""
    for spec in (kind.spec for kind in ADD_ONS.values() if kind.spec.namespace in namespaces):
        kind = next(iter(spec.definitions), "")
        if kind and api.find(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind}"):
            yield (
                f"Nothing was changed: the cluster has {spec.title}, and not from this stack. Its kinds "
                f"cannot be installed twice. Write `addons: {{{spec.name}: {{existing: true}}}}` to use the "
                f"{spec.title} that is there."
            )


def _existing_namespace(name: str, *, of_team: bool) -> str:
    """Return the message about a namespace that an update would create and that exists."""
    add_on = next((kind.spec for kind in ADD_ONS.values() if kind.spec.namespace == name), None)
    fix = (
        f"Write `namespace: {{name: {name}, create: false}}` in the team to use it as it is, or another name"
        if of_team
        else f"Write `addons: {{{add_on.name}: {{existing: true}}}}` to use the {add_on.title} that is there"
        if add_on is not None
        else "Remove its add-on from the declaration, or from the cluster"
    )
    return (
        f"Nothing was changed: namespace {name} exists, and not from this stack. If the stack took it over, "
        f"its contents would be deleted with it. {fix}."
    )
