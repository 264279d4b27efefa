"""Drift of a deployed stack: the engine reads its resources, without writing the state."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from ebbtide.analysis.drift.differences import ReadResource, differences_of
from ebbtide.analysis.drift.drift_document import Drift, UnownedResource, drift_of, refreshed
from ebbtide.analysis.preview.stack_files import StackFiles, record_stack
from ebbtide.analysis.recording.recording import urn_name
from ebbtide.analysis.review.baseline import baseline_of
from ebbtide.clients.clouds.interfaces import CloudApiError
from ebbtide.operations import access
from ebbtide.operations.engine import state
from ebbtide.operations.engine.failures import OperationError, explanation
from ebbtide.operations.engine.stack import Stack
from ebbtide.operations.leftovers.cloud import (
    Others,
    principals_of,
    unowned_grants,
    unowned_objects,
    unowned_pools,
)
from ebbtide.operations.update import pool_replacement
from ebbtide.operations.work import take_snapshot, work
from ebbtide.text import and_list, several
from ebbtide.values.given_command import given_command

_PATHS: Final = 3
"""Maximum number of properties, or of Jobs, that a sentence names."""


def inspect(stack: Stack, files: StackFiles, others: Others = tuple) -> Drift:
    """Compare a stack's state with what exists, and predict what an update would do to a person's changes.

    Args:
        others: returns the exported states of all stacks of the backend; called if the cluster has pools that
            are not in this one.

    Raises:
        OperationError: the state, a cloud or the cluster cannot be read, or the stack has no resources or is
            asleep.
        ProgramError: the program fails.
    """
    document = stack.exported()
    if not document["deployment"].get("resources"):
        raise OperationError(f"Stack {stack.name} has no resources: nothing can differ from its state.")
    resources = read(stack)
    queues = (item.read_outputs for item in resources if item.type.endswith(":ClusterQueue"))
    if any(access.is_asleep(dict(queue)) for queue in queues if queue):
        raise OperationError(access.asleep_message(stack.name))
    items = document["deployment"]["resources"]
    external = {item["urn"] for item in items if item.get("external")}
    resources = [resource for resource in resources if resource.urn not in external]
    names = {"project": files.project, "stack": files.stack}
    before = baseline_of(document, **names)
    cloud = baseline_of(refreshed(document, resources), **names)
    after = record_stack(files, cloud.updates, deployed=cloud.state)
    own = {str(item.get("id")) for item in items}
    failed = [
        f"{urn_name(item['urn'])} is not as declared, and the state does not have in what: its last change "
        f"failed. `{given_command().on_stack('up', stack.name)}` repeats it, and names what cannot be set."
        for item in items
        if item.get("initErrors")
    ]
    objects, unread = _objects(stack, document["deployment"])
    grants, unknown = _grants(document["deployment"], others)
    found = [*unowned_pools(resources, own, others), *grants, *objects]
    drift = drift_of(resources, after, before, cloud, unowned=found, unread=[*failed, *unknown, *unread])
    running = () if unread else running_work(stack, document["deployment"], drift)
    return drift.model_copy(update={"consequences": (*drift.consequences, *running)})


def running_work(stack: Stack, deployment: Mapping[str, Any], drift: Drift) -> Iterator[str]:
    """Yield the work that runs now on each pool whose nodes an update replaces."""
    pools = [
        item.pool
        for item in drift.of_person
        if item.pool
        and (item.action == "replace" or any(f"Pool {item.pool} " in text for text in drift.consequences))
    ]
    if not pools:
        return
    consequence = "running work is unknown"
    try:
        with access.reaching(consequence):
            api, profile = access.connected(stack.outputs(), consequence)
            running = work(take_snapshot(api), profile, state.read(deployment))
    except OperationError as error:
        yield str(error)
        return
    for pool in dict.fromkeys(pools):
        own = [item for item in running if pool in item.pools]
        if own:
            named = [f"{item.kind} {item.name} in {item.namespace}" for item in own[:_PATHS]]
            more = [f"{len(own) - _PATHS} more"] if len(own) > _PATHS else []
            pods = several(sum(item.pods for item in own), "pod")
            yield f"On pool {pool} now: {and_list([*named, *more])}, with {pods}."
        else:
            yield f"Nothing runs on pool {pool} now."


def _grants(deployment: Mapping[str, Any], others: Others) -> tuple[list[UnownedResource], list[str]]:
    """Return the roles of the stack's principals that are in no state, and why they are unknown, if they
    are."""
    items = deployment["resources"]
    principals = principals_of(items)
    if not principals:
        return [], []
    try:
        clouds = access.reach(state.read(deployment).accounts)
        found = list(unowned_grants(clouds.inventories.values(), principals, items, others))
    except (CloudApiError, OperationError) as error:
        return [], [f"Roles that no state has are unknown: {error}"]
    return found, [f"Roles that no state has are unknown: {reason}" for reason in clouds.reasons.values()]


def _objects(stack: Stack, deployment: Mapping[str, Any]) -> tuple[list[UnownedResource], list[str]]:
    """Return the objects on the cluster that are in no state, and why they are unknown, if they are."""
    known, consequence = state.read(deployment), "queues and rights that no state has are unknown"
    if not known.objects:
        return [], []
    try:
        with access.reaching(consequence):
            api, _ = access.connected(stack.outputs(), consequence)
            return list(unowned_objects(api, known)), []
    except OperationError as error:
        return [], [str(error)]


def read(stack: Stack, urns: Sequence[str] | None = None) -> list[ReadResource]:
    """Read resources of a stack from their clouds.

    Args:
        urns: their URNs; None for all of its state.

    Raises:
        OperationError: one of them cannot be read.
    """
    resources, errors = stack.read(None if urns is None else list(urns))
    if errors:
        lines = list(explanation(stack.name, errors))
        if state.read(stack.exported()["deployment"]).may_be_stopped:
            lines.append(access.asleep(stack.name))
        raise OperationError("\n".join(lines))
    return resources


def commands(stack: str) -> tuple[str, ...]:
    """Return the command lines that set a person's changes back."""
    given = given_command()
    return given.pulumi("refresh", "--stack", stack), given.on_stack("up", stack)


def overwritten(
    stack: Stack,
    deployment: Mapping[str, Any],
    changed: Collection[tuple[str, str]],
    replaced: Collection[str],
) -> Iterator[str]:
    """Yield a sentence about each pool that a person has changed and that an update changes as well.

    Only these pools are read. If they cannot be, that is the sentence: the update stands without it.

    Args:
        deployment: the `deployment` of its state.
        changed: type and name of each resource that the update changes.
        replaced: logical names of the pools that it replaces.
    """
    pools = {
        str(pool.resource["urn"]): pool
        for name, pool in pool_replacement.pools_of(deployment).items()
        if pool.resource is not None
        and (name in replaced or (pool.resource["type"], urn_name(str(pool.resource["urn"]))) in changed)
    }
    if not pools:
        return
    try:
        resources = read(stack, list(pools))
    except OperationError as error:
        yield f"Changes of pools by hand are not known: {str(error).splitlines()[0]}"
        return
    for resource in resources:
        if resource.urn not in pools:
            continue
        name = pools[resource.urn].name
        if resource.is_deleted:
            yield (
                f"Pool {name} was deleted by hand, and the update of it fails: write that into the state "
                f"first, with `{commands(stack.name)[0]}`."
            )
        paths = [item.path for item in differences_of(resource) if item.maker == "person"]
        if paths:
            more = f" and {len(paths) - _PATHS} more" if len(paths) > _PATHS else ""
            yield (
                f"Pool {name} was changed by hand, which this update may overwrite: "
                f"{', '.join(paths[:_PATHS])}{more}. See `{given_command().on_stack('drift', stack.name)}`."
            )
