"""Objects that a cluster has already and an update would create or install again: namespaces, add-ons,
Kueue's objects, drivers and device plugins. Each is refused before anything is changed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from ebbtide.analysis import device_plugins
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import parts, text
from ebbtide.declaration.model.addons import ADD_ONS
from ebbtide.operations import access
from ebbtide.operations.engine import state
from ebbtide.operations.engine.failures import OperationError, explanation
from ebbtide.operations.engine.state import CLUSTERS, ObjectReference
from ebbtide.operations.up import Update
from ebbtide.values.kueue_api import API_PATH, API_VERSION, plural

_KUBERNETES: Final = "kubernetes:"
_NAMESPACE: Final = "kubernetes:core/v1:Namespace"
_EXISTING_ADD_ON: Final = "ebbtide:addons:ExistingAddOn"
_UNKNOWN: Final = "existing namespaces are unknown"


def refusals(update: Update, recording: Recording, deployment: Mapping[str, Any]) -> list[str]:
    """Return messages about namespaces and objects of Kueue that the update would create and that exist,
    about an existing Kueue with which the queues cannot work, and about DaemonSets that would install
    drivers or device plugins on its new pools a second time.

    The provider refuses to create what exists as well, but after other changes. Without an output
    `kubeconfig`, as before the first update on an existing cluster, and where the program reads an
    existing add-on, the engine's preview comes first. If the cluster does not answer, there are no
    messages.

    Args:
        deployment: the `deployment` of the stack's state.
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
    kubeconfig = update.stack.outputs().get("kubeconfig")
    if not (kubeconfig or reads_add_on or created):
        return []
    if not kubeconfig or (reads_add_on and not clusters):
        preview = update.stack.preview()
        if preview.errors:
            lines = explanation(update.stack.name, preview.errors, verbose=update.verbose)
            return [*lines, "Nothing was changed: the preview of the update fails."]
        for line in dict.fromkeys(preview.warnings) if reads_add_on else ():
            update.log(f"Warning: {line}")
        kubeconfig = preview.kubeconfig
    try:
        api = access.client(kubeconfig, _UNKNOWN)
        with access.reaching(_UNKNOWN):
            existing = [name for name in names if api.find(f"/api/v1/namespaces/{name}")]
            elsewhere = list(existing_elsewhere(api, names.keys() - set(existing)))
            taken = sorted(queueing & _kueue_objects(api, {item.kind for item in queueing}), key=str)
        plugins = list(_device_plugins(update, api, recording, deployment))
    except OperationError:
        return []
    return [
        *plugins,
        *(_existing_namespace(name, of_team=names[name]) for name in existing),
        *elsewhere,
        *_existing_objects(taken),
    ]


def _device_plugins(
    update: Update, api: Api, recording: Recording, deployment: Mapping[str, Any]
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
            update.log(f"Warning: {conflict}")


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
        for item in (api.find(f"{API_PATH}/{plural(kind)}") or {}).get("items") or ()
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
