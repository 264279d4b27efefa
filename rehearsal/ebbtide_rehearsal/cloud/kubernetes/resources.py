"""What is done with a resource: checked, compared, made, read, changed, removed.

Source: pulumi-kubernetes 4.32, provider/pkg/provider/provider.go.
"""

from typing import Final, cast

from ebbtide.kubernetes_api import ApiError
from ebbtide.recording.values import Plain
from ebbtide_rehearsal.cloud.kubernetes import settings, waiting
from ebbtide_rehearsal.cloud.kubernetes.changing import Wish, changed, relinquished
from ebbtide_rehearsal.cloud.kubernetes.cluster import Cluster
from ebbtide_rehearsal.cloud.kubernetes.difference import pruned
from ebbtide_rehearsal.cloud.kubernetes.discovery import UnknownKindError
from ebbtide_rehearsal.cloud.kubernetes.kinds import is_list, is_patch, kind_of, kind_of_token
from ebbtide_rehearsal.cloud.kubernetes.making import applied, explained
from ebbtide_rehearsal.cloud.kubernetes.making import created as made
from ebbtide_rehearsal.cloud.kubernetes.managers import forced
from ebbtide_rehearsal.cloud.kubernetes.objects import (
    Object,
    annotation,
    has_unknown,
    identity,
    name_of,
    namespace_of,
    normalized,
    parsed,
    with_metadata,
)
from ebbtide_rehearsal.cloud.kubernetes.replacing import fixed_fields
from ebbtide_rehearsal.cloud.kubernetes.resource import (
    as_manifest,
    change,
    known_inputs,
    known_object,
    manager_of,
    named,
    state_of,
)
from ebbtide_rehearsal.cloud.provider import (
    Call,
    Change,
    Made,
    Properties,
    Read,
    RefusedError,
    UnfinishedError,
)

_PROPAGATION: Final = "pulumi.com/deletionPropagationPolicy"
_POLICIES: Final = {"orphan": "Orphan", "background": "Background"}
_NO_KIND: Final = (
    "failed because the Kubernetes API server reported that the apiVersion for this resource does not exist. "
    "Verify that any required CRDs have been created"
)


def checked(cluster: Cluster | None, call: Call, old: Properties, new: Properties) -> Properties:
    """Inputs completed with what they are an object of, a name and a namespace.

    Raises:
        RefusedError: nobody can make such a thing.
    """
    if is_list(call.type):
        raise RefusedError(
            "list resources exist for compatibility with YAML manifests and Helm charts, and cannot be "
            "created directly. Use the underlying resource type instead"
        )
    kind = kind_of_token(call.type)
    inputs = {"apiVersion": kind.api_version, "kind": kind.kind, **as_manifest(new)}
    inputs = normalized(inputs)
    if is_patch(call.type, inputs) and not name_of(inputs):
        raise RefusedError("patch resources require the `.metadata.name` field to be set")
    if not name_of(inputs) and inputs["metadata"].get("generateName"):
        raise RefusedError("the `.metadata.generateName` field is not supported in Server-Side Apply mode")
    inputs = named(inputs, as_manifest(old), call.name)
    return cast("dict[str, Plain]", _placed(cluster, inputs))


def _placed(cluster: Cluster | None, inputs: Object) -> Object:
    """Inputs with the namespace that they name, or the provider's: an unknown kind is taken for one that has
    namespaces."""
    if cluster is None or namespace_of(inputs):
        return inputs
    endpoint = cluster.knows(kind_of(inputs))
    inside = endpoint is None or endpoint.namespaced
    return with_metadata(inputs, namespace=cluster.namespace) if inside else inputs


def compared(
    cluster: Cluster | None, variables: Properties, call: Call, old: Read, new: Properties
) -> Change:
    """What new inputs mean for a resource."""
    inputs, live = normalized(as_manifest(new)), known_object(old.state)
    endpoint = cluster.knows(kind_of(inputs)) if cluster is not None else None
    if endpoint is not None and not endpoint.namespaced:
        inputs = with_metadata(inputs, namespace=None)
    elif endpoint is not None:
        inputs = with_metadata(inputs, namespace=namespace_of(inputs) or "default")
    fixed = fixed_fields(
        inputs,
        patch=is_patch(call.type, inputs),
        mutable_config_maps=settings.on(variables, "enableConfigMapMutable"),
        mutable_secrets=settings.on(variables, "enableSecretMutable"),
    )
    return change(live, normalized(known_inputs(old.state)), inputs, fixed)


def created(cluster: Cluster, variables: Properties, call: Call, properties: Properties) -> Made:
    """Make a resource's object, and wait for it; in a preview, ask the server what it would be where that can
    be asked.

    Raises:
        RefusedError: the API server refuses.
        UnfinishedError: it was made, and does not become what it should.
    """
    inputs, manager = as_manifest(properties), manager_of(as_manifest(properties))
    patch = is_patch(call.type, inputs)
    if call.preview and (patch or has_unknown(inputs) or cluster.knows(kind_of(inputs)) is None):
        return Made("", properties)
    try:
        if patch or settings.on(variables, "upsertExistingObjects"):
            force = forced(
                inputs, None, always=settings.on(variables, "enablePatchForce"), preview=call.preview
            )
            live = applied(cluster, inputs, manager, force=force, preview=call.preview)
        else:
            live = made(cluster, inputs, preview=call.preview)
    except UnknownKindError as error:
        raise RefusedError(
            f'creation of resource "{call.urn}" with kind {kind_of(inputs)} {_NO_KIND}: {error}'
        ) from None
    except ApiError as error:
        if call.preview and (error.not_found or error.already_exists or error.forbidden):
            return Made("", properties)
        raise RefusedError(
            f'resource "{call.urn}" was not successfully created by the Kubernetes API server: '
            f"{explained(error, manager)}"
        ) from None
    if call.preview:
        live.pop("status", None)
        return Made("", state_of(live, inputs, manager))
    if live["kind"] == "CustomResourceDefinition":
        cluster.discovery.refresh()
    return Made(identity(live), _awaited(cluster, call, inputs, live, manager))


def _awaited(cluster: Cluster, call: Call, inputs: Object, live: Object, manager: str) -> dict[str, Plain]:
    """The state of an object that was made or changed, once it is as it should be."""
    try:
        return state_of(waiting.ready(cluster, inputs, live, call.timeout), inputs, manager)
    except waiting.NotReadyError as error:
        cluster.store.say("object-not-ready", f"{live['kind']} {identity(live)} is not ready: {error}")
        state = state_of(error.live, inputs, manager)
        raise UnfinishedError(_late(live, str(error)), identity(live), state) from None


def _late(live: Object, why: str) -> str:
    name = identity(live)
    return (
        f'the Kubernetes API server reported that "{name}" failed to fully initialize or become live: {why}'
    )


def read(cluster: Cluster, call: Call, identifier: str, known: Properties) -> Read | None:
    """A resource's object as it is, and what would have to be asked for to get it: of the fields that were
    asked for. One that is read without having been made gives all of its fields.

    Raises:
        RefusedError: the API server refuses.
        UnfinishedError: it is not as it should be.
    """
    namespace, name = parsed(identifier)
    asked, kind = known_inputs(known), kind_of(known_object(known))
    if not kind.kind:
        kind = kind_of_token(call.type)
    try:
        live = cluster.find(kind, namespace or cluster.namespace, name)
    except ApiError as error:
        raise RefusedError(f'failed to read "{identifier}": {error}') from None
    if live is None:
        return None
    rest = normalized({key: value for key, value in live.items() if key != "status"})
    inputs = cast("Object", pruned(live, normalized(asked))) if asked else rest
    state = state_of(live, inputs, manager_of(inputs, known))
    found = Read(identifier, cast("dict[str, Plain]", inputs), state)
    late = waiting.still_missing(cluster, inputs, live) if asked else None
    if late:
        raise UnfinishedError(_late(live, late), identifier, found.state, found.inputs)
    return found


def updated(cluster: Cluster, variables: Properties, call: Call, old: Read, new: Properties) -> Properties:
    """Change a resource's object, and wait for it.

    Raises:
        RefusedError: the API server refuses.
        UnfinishedError: it was changed, and does not become what it should.
    """
    inputs = normalized(as_manifest(new))
    if call.preview and (has_unknown(inputs) or cluster.knows(kind_of(inputs)) is None):
        return new
    manager = manager_of(inputs, old.state)
    wish = Wish(
        inputs=inputs,
        manager=manager,
        patch=is_patch(call.type, inputs),
        always_force=settings.on(variables, "enablePatchForce"),
        ignored=tuple(call.ignored),
    )
    try:
        live = changed(cluster, wish, preview=call.preview)
    except UnknownKindError as error:
        raise RefusedError(f'update of resource "{call.urn}" {_NO_KIND}: {error}') from None
    except ApiError as error:
        raise RefusedError(f'update of resource "{call.urn}" failed: {explained(error, manager)}') from None
    if call.preview:
        return state_of(live, inputs, manager)
    state = _awaited(cluster, call, inputs, live, manager)
    before = manager_of(known_inputs(old.state), old.state)
    if before != manager:
        relinquished(cluster, live, before)
    return state


def deleted(cluster: Cluster, call: Call, known: Properties) -> None:
    """Remove a resource's object and wait until it is gone, or give back the fields of a patch. One that is
    gone, or whose kind is, is no error.

    Raises:
        RefusedError: the API server refuses, or something holds the object.
    """
    inputs, live = known_inputs(known), known_object(known)
    try:
        if is_patch(call.type, live):
            relinquished(cluster, live, manager_of(inputs, known))
            return
        policy = _POLICIES.get(annotation(inputs, _PROPAGATION).lower(), "Foreground")
        cluster.api.delete(cluster.path(live), propagationPolicy=policy)
        waiting.gone(cluster, inputs, live, call.timeout)
    except UnknownKindError:
        return
    except waiting.NotReadyError as error:
        text = f"{live['kind']} {identity(live)} does not go away: {error}"
        cluster.store.say("object-stays", text)
        raise RefusedError(text) from None
    except ApiError as error:
        if not error.not_found:
            raise RefusedError(_undeletable(call, live, error)) from None


def _undeletable(call: Call, live: Object, error: ApiError) -> str:
    required = [cause["field"] for cause in error.causes if cause.get("reason") == "FieldValueRequired"]
    if required and is_patch(call.type, live):
        return (
            "this Patch resource is currently managing a required field, so it can't be deleted directly. "
            "Either set the `retainOnDelete` resource option, or transfer ownership of the field before "
            f"deleting: {', '.join(required)}"
        )
    return f"{live['kind']} {identity(live)} cannot be deleted: {error}"
