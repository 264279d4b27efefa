"""Adopted resources: their import into a stack's state, what an update may do to them, and their removal from
the state.

Neither the import nor the removal changes anything in the cloud; the removal gives Kueue's objects the fields
back that they had, so that their owner's quota is theirs again. Every step follows from the state, the files
and the cluster alone: an interrupted command continues.
"""

import copy
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from ebbtide.analysis.changes.inputs import recreates_nodes
from ebbtide.analysis.preview.words import type_words
from ebbtide.analysis.recording.recording import Recording, Resource, urn_name
from ebbtide.clients.kubernetes import JSON_PATCH, Api
from ebbtide.clients.kubernetes.objects import parts, text
from ebbtide.declaration.project.adopt_file import (
    FIELD,
    IMPORT_ONLY,
    AdoptedResource,
    default_file,
    read_adopt_file,
)
from ebbtide.declaration.project.configuration import NAMESPACE
from ebbtide.declaration.project.extends import DECLARATION
from ebbtide.operations import access
from ebbtide.operations.adopting.kueue_objects import compare_objects, content
from ebbtide.operations.engine.events import Step
from ebbtide.operations.engine.failures import OperationError, explanation, unlocking
from ebbtide.operations.engine.stack import Completed, Preview
from ebbtide.operations.engine.state import AKS_CLUSTER, record, with_record
from ebbtide.operations.leftovers import stack
from ebbtide.operations.leftovers.cloud import Others
from ebbtide.operations.update import pool_replacement
from ebbtide.operations.update.plan import is_later, listed
from ebbtide.operations.update.up import Update, configured
from ebbtide.text import several
from ebbtide.values.given_command import given_command
from ebbtide.values.kueue_api import object_path
from ebbtide.values.paths import path_keys, path_text, value_at

ALLOWED: Final = frozenset({"import", "update", "same", "read", "refresh"})
"""Operations of the engine on adopted resources."""
_PATHS: Final = 4
_SETTING: Final = f"{DECLARATION}.{FIELD}"
_POOLS: Final = "agentPoolProfiles"
_FINGERPRINT: Final = "aksClusterInputs"
"""Output of a stack on AKS."""
_PROVIDER: Final = "pulumi:providers:"
_KUBERNETES: Final = "kubernetes:"
_RESTORING: Final = "ebbtideRestoredObjects"
"""Record of the objects of Kueue that an undo restores once the state is without them, by URN."""
_LAST: Final = re.compile(r"[/ ]")
"""Separators in ids."""


@dataclass(frozen=True, slots=True)
class Check:
    """Effect of an update on adopted resources, as the engine previews it.

    Attributes:
        updates: a line for each resource that is updated.
        refusals: reasons why the update is refused; empty if it is not.
    """

    updates: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


def held(recording: Recording, deployment: Mapping[str, Any], completed: Completed) -> frozenset[str]:
    """Return the URNs of adopted resources that no update has confirmed yet: those that the next one imports,
    and those that were imported since the last one that succeeded.

    Args:
        deployment: the `deployment` of `pulumi stack export`.
        completed: the end of the last update that succeeded.
    """
    present = {str(item["urn"]): item for item in parts(deployment, "resources")}
    pending = {item.urn for item in recording if item.import_id and item.urn not in present}
    imported = {
        urn
        for urn, item in present.items()
        if item.get("importID") and is_later(item.get("created"), completed.update)
    }
    return frozenset(pending | imported)


def check(update: Update, recording: Recording, urns: Collection[str]) -> Check:
    """Run the engine's preview of an update, and return its effect on adopted resources.

    A role assignment that a preview would replace for the principal id of an identity, which is unknown while
    the identity's tags change, is kept by the update.

    Args:
        recording: the program, as recorded for this update.
        urns: URNs of the adopted resources, as from `held`.
    """
    pools = pool_replacement.refused(recording).keys() & {urn_name(urn) for urn in urns}
    if pools:
        return Check(refusals=tuple(_refusal(name, "replaced") for name in sorted(pools)))
    return _previewed(update, urns, update.stack.preview)


def _previewed(
    update: Update, urns: Collection[str], preview: Callable[[Callable[[Step], None]], Preview]
) -> Check:
    steps: dict[str, dict[str, Step]] = {}

    def watch(step: Step) -> None:
        if not step.done:
            steps.setdefault(step.urn, {})[step.operation] = step

    errors = unlocking(lambda: preview(watch), update.stack.unlock, update.log).errors
    updates: list[str] = []
    refusals: list[str] = []
    for urn in sorted(urns & steps.keys(), key=urn_name):
        own = steps[urn]
        others = [step for operation, step in own.items() if operation not in ALLOWED]
        if others and not any(step.is_unknown for step in others):
            does = "deleted" if all(step.operation == "delete" for step in others) else "replaced"
            paths = sorted({path for step in others for path in step.changed})
            why = f", because of {_shortened(paths)}" if paths and does == "replaced" else ""
            refusals.append(_refusal(urn_name(urn), does + why))
        elif "update" in own:
            paths = sorted(own["update"].changed)
            recreated = any(recreates_nodes(own["update"].type, path) for path in paths)
            how = "and recreate its nodes, evicting their pods" if recreated else "in place"
            updates.append(f"update {urn_name(urn)} {how}" + (f": {_shortened(paths)}" if paths else ""))
    refusals += stack.assigned_already(steps)
    if errors:
        lines = explanation(update.stack.name, errors, verbose=update.verbose)
        refusals = [*refusals, *lines, "Nothing was changed: the preview of the update fails."]
    return Check(tuple(updates), tuple(refusals))


def _refusal(name: str, does: str) -> str:
    return (
        f"The update is refused: {name} is adopted, and would be {does}. Until an update has succeeded, an "
        "adopted resource is imported and updated in place only. Change the declaration to match it."
    )


def _shortened(paths: list[str]) -> str:
    more = [several(len(paths) - _PATHS, "more field")] if len(paths) > _PATHS else []
    return ", ".join([*paths[:_PATHS], *more])


def import_resources(update: Update, confirmed: Callable[[str], bool], others: Others = tuple) -> bool:
    """Import the adopted resources into the state, and remove their file from the declaration, unless the
    next update needs it to take over the fields of Kubernetes objects.

    The engine runs the program for these resources, their parents, and those that they depend on, which it
    creates if they do not exist. Then imported inputs that the program omits, such as the name of AKS' node
    resource group, are removed from the state, as `_forget_undeclared` describes.

    Args:
        confirmed: asks the user a question.
        others: returns the exported states of all stacks of the backend, whose resources stay theirs.

    Returns:
        True if the state has all of them.

    Raises:
        OperationError: another update of the stack is in progress, or the declaration adopts nothing and the
            state has nothing imported.
    """
    document, _ = update.begin()
    if update.resolved():
        return False
    recording = update.recorded(update.baseline(document))
    if any(item.import_id for item in recording) and stack.find_teams(
        update.stack,
        update.files.root / str(update.files.declaration()[FIELD]),
        recording,
        others,
        update.log,
    ):
        recording = update.recorded(update.baseline(document))
    adopted = {item.urn: item for item in recording if item.import_id}
    document = update.stack.exported()
    resources = parts(document["deployment"], "resources")
    if not adopted:
        # An earlier import may have been interrupted after its last step.
        if imported := [item for item in resources if item.get("importID")]:
            return _imported(update, len(imported))
        raise OperationError(
            f"{update.files.config_file.name} adopts nothing. Write `{FIELD}: "
            f"{default_file(update.files.stack)}` in the declaration, as `ebbtide adopt` does."
        )
    present = {str(item["urn"]) for item in resources}
    needed = _needed(recording, adopted)
    targets = list(needed)
    if missing := [item for urn, item in adopted.items() if urn not in present]:
        created = [
            item
            for urn, item in needed.items()
            if urn not in present | adopted.keys()
            and (item.custom and not item.read and not item.type.startswith("pulumi:"))
        ]
        if not _run(update, confirmed, targets, missing, created):
            return False
    given = given_command()
    given.happens(f"the state of stack {update.stack.name} has the adopted resources")
    _forget_undeclared(update, adopted, targets)
    is_named = FIELD in _own_declaration(update)
    if is_named and any(item.type.startswith(_KUBERNETES) for item in adopted.values()):
        update.log(
            f"`{FIELD}` stays in the declaration: with it, the first update takes over the fields of "
            "Kubernetes objects. Remove it afterwards."
        )
    elif is_named:
        given.happens(f"{update.files.config_file.name} no longer names their file")
        update.stack.remove_setting(_SETTING)
    return _imported(update, len(adopted))


def _imported(update: Update, count: int) -> bool:
    """Report the end of an import."""
    given_command().finished(
        f"the state of stack {update.stack.name} has the adopted resources", of=("adopt",)
    )
    update.log(f"The state has {several(count, 'adopted resource')}; none of them was changed.")
    return True


def _run(
    update: Update,
    confirmed: Callable[[str], bool],
    targets: list[str],
    missing: Collection[Resource],
    created: Collection[Resource],
) -> bool:
    """Preview the import, ask, and run it."""
    with configured(update.files.config_file, f"{NAMESPACE}:{IMPORT_ONLY}", value=True) as file:
        urns = [item.urn for item in missing]
        checked = _previewed(
            update,
            urns,
            lambda watch: update.stack.preview(watch, config_file=file, targets=targets),
        )
        update.log(f"Stack {update.stack.name}: {len(missing)} to adopt.")
        for line in (*_listed("adopt", missing), *_listed("create", created), *checked.updates):
            update.log(f"  {line}")
        for line in checked.refusals:
            update.log(line)
        if checked.refusals or not confirmed(f"Take them into the state of stack {update.stack.name}?"):
            return False
        counted = {(item.type, item.name) for item in (*missing, *created)}
        return not update.run_engine(lambda watch: update.stack.up(watch, file, targets), counted)


def _listed(action: str, resources: Iterable[Resource]) -> Iterator[str]:
    """Yield a line for each type."""
    names: dict[str, list[str]] = {}
    for item in resources:
        names.setdefault(type_words(item.type).rpartition(".")[2], []).append(item.name)
    for kind, named in names.items():
        yield listed(f"{action} {kind} ", named)


def _needed(recording: Recording, urns: Iterable[str]) -> dict[str, Resource]:
    """Return resources with their parents, and with those that they depend on.

    The engine creates every provider of the program, and reads all that it reads, whatever the targets are:
    without their parents and dependencies it refuses, or leaves an invalid state (pulumi 3.259,
    step_generator.go).
    """
    needed: dict[str, Resource] = {}
    always = (item.urn for item in recording if item.read or item.type.startswith(_PROVIDER))
    following = [*urns, *always]
    while following:
        urn = following.pop()
        if urn in needed or urn not in recording:
            continue
        item = needed[urn] = recording[urn]
        own = (urn for urns in item.property_dependencies.values() for urn in urns)
        following += filter(None, (item.parent, item.provider, item.deleted_with, *item.dependencies, *own))
    return {item.urn: item for item in recording if item.urn in needed}


def _forget_undeclared(update: Update, adopted: Mapping[str, Resource], targets: list[str]) -> None:
    """Remove the imported inputs from the state that the program omits and the next update would remove, or
    replace the resource for: the cloud's own values, as of a resource that the stack has created."""
    _forget_listed_pools(update, adopted)
    removed: dict[str, set[str]] = {}

    def watch(step: Step) -> None:
        if step.urn in adopted and not step.done:
            removed.setdefault(step.urn, set()).update(step.removed)

    declaration = dict(_own_declaration(update))
    declaration.pop(FIELD, None)
    if "extends" in declaration:
        declaration[FIELD] = None
    with configured(update.files.config_file, DECLARATION, declaration) as file:
        update.stack.preview(watch, file, targets)
    if not any(removed.values()):
        return
    document = update.stack.exported()
    deployment = document["deployment"]
    resources = [
        {**item, "inputs": _without_paths(item["inputs"], removed[item["urn"]])}
        if item["urn"] in removed
        else item
        for item in parts(deployment, "resources")
    ]
    update.stack.replace_state({**document, "deployment": {**deployment, "resources": resources}})


def _forget_listed_pools(update: Update, adopted: Mapping[str, Resource]) -> None:
    """Remove the pools that AKS lists with its cluster from the cluster's inputs, except the declared one.

    The next update sends the declared list again: without the stack's output with the fingerprint of the
    cluster's inputs, the program does not ignore it (components/aks/ignored_changes.py).
    """
    document = update.stack.exported()
    before = list(parts(document["deployment"], "resources"))
    resources = [
        {**item, "inputs": _with_declared_pools(item["inputs"], adopted[item["urn"]])}
        if item["urn"] in adopted and item["type"] == AKS_CLUSTER
        else item
        for item in before
    ]
    if resources != before:
        deployment = with_record({**document["deployment"], "resources": resources}, _FINGERPRINT, None)
        update.stack.replace_state({**document, "deployment": deployment})


def _with_declared_pools(inputs: Mapping[str, Any], cluster: Resource) -> dict[str, Any]:
    declared = {text(pool, "name"): pool for pool in parts(cluster.inputs, _POOLS)}
    pools = [
        {key: value for key, value in pool.items() if key in declared[text(pool, "name")]}
        for pool in parts(inputs, _POOLS)
        if text(pool, "name") in declared
    ]
    return {**inputs, _POOLS: pools}


def _without_paths(inputs: Any, paths: Iterable[str]) -> Any:
    kept = copy.deepcopy(inputs)
    for path in paths:
        *above, last = path_keys(path)
        within = value_at(kept, path_text(above)) if above else kept
        if isinstance(within, dict):
            cast("dict[str, Any]", within).pop(str(last), None)
    return kept


def _own_declaration(update: Update) -> Mapping[str, Any]:
    """Return the declaration in the stack's own file."""
    from ebbtide.declaration.project import yaml_file  # noqa: PLC0415

    match yaml_file.read(update.files.config_file).value:
        case {"config": {"ebbtide:cluster": dict() as own}}:
            return own
        case _:
            return {}


def remove_resources(update: Update, confirmed: Callable[[str], bool]) -> bool:
    """Take the adopted resources out of the state again; the cloud keeps them, and Kueue's objects get their
    fields back.

    The declaration names their file again first: the next update imports them, and creates none of them anew.
    Then the state is without them, before any is restored: otherwise an import after an interruption would
    keep the state of objects whose fields are their owner's again, and no update would change these.

    Args:
        confirmed: asks the user a question.

    Returns:
        True if the state has none of them.

    Raises:
        OperationError: another update of the stack is in progress, or the cluster with objects to restore
            does not answer.
        AdoptFileError: the file is unreadable or invalid.
    """
    name = str(update.files.declaration().get(FIELD) or default_file(update.files.stack))
    entries = {item.key: item for item in read_adopt_file(update.files.root / name)}
    update.begin()
    if update.resolved():
        return False
    document = update.stack.exported()
    resources = list(parts(document["deployment"], "resources"))
    gone = {str(item["urn"]): str(item["type"]) for item in resources if _is_of(item, entries)}
    earlier: dict[str, str] = record(document["deployment"], _RESTORING) or {}
    keys = {urn: (type_, urn_name(urn)) for urn, type_ in {**earlier, **gone}.items()}
    found = {urn: entries[key] for urn, key in keys.items() if key in entries and entries[key].found}
    lost = f"nothing was changed. To leave Kueue's objects as they are, remove `found` from {name}"
    api, restored = None, list[Restoration]()
    if found:
        api = access.client(
            update.stack.outputs().get("kubeconfig") or update.stack.preview().kubeconfig, lost
        )
        with access.reaching(lost):
            restored = list(restorations(api, found.values()))
    if gone or restored:
        update.log(f"Stack {update.stack.name}: {len(gone)} to take out of the state; the cloud keeps them.")
        lines = [listed("", sorted(map(urn_name, gone)))] if gone else []
        lines += [f"restore {item.title} as it was adopted: {_shortened(item.paths)}" for item in restored]
        for line in lines:
            update.log(f"  {line}")
        if not confirmed(f"Take them out of the state of stack {update.stack.name}?"):
            return False
    if update.files.declaration().get(FIELD) is None:
        given_command().happens(f"{update.files.config_file.name} names {name} again")
        update.stack.configure(_SETTING, name)
    if gone:
        kept = [_without(item, gone) for item in resources if item["urn"] not in gone]
        given_command().happens("the adopted resources are out of the state")
        restoring = {urn: entry.type for urn, entry in found.items()}
        deployment = with_record({**document["deployment"], "resources": kept}, _RESTORING, restoring or None)
        update.stack.replace_state({**document, "deployment": deployment})
    if api:
        with access.reaching("its objects of Kueue are not restored. Run this command again"):
            for item in restored:
                given_command().happens(f"{item.title} is restored")
                api.patch(item.path, item.patch, JSON_PATCH)
        document = update.stack.exported()
        deployment = with_record(document["deployment"], _RESTORING, None)
        update.stack.replace_state({**document, "deployment": deployment})
    given_command().finished("what was adopted is out of the state", of=("adopt",))
    update.log(f"The state has no resource of {name}; the cloud keeps them.")
    return True


@dataclass(frozen=True, slots=True)
class Restoration:
    """An object of Kueue that differs from the adopted one.

    Attributes:
        title: its kind and name.
        path: its path in the API.
        paths: paths of the fields that differ.
        patch: the JSON patch that restores them.
    """

    title: str
    path: str
    paths: list[str]
    patch: Sequence[Mapping[str, Any]]


def restorations(api: Api, entries: Iterable[AdoptedResource]) -> Iterator[Restoration]:
    """Yield the objects of Kueue that are no longer as they were adopted; one that is deleted stays so.

    Args:
        entries: adopted resources with `found`.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    for entry in entries:
        kind, name = entry.type.rpartition(":")[2], entry.id.rpartition("/")[2]
        path = object_path(entry.type, entry.id)
        if (item := api.find(path)) is None:
            continue
        before = {**entry.found, "kind": kind, "metadata": item["metadata"]}
        if paths := [difference.path for difference in compare_objects([item], [before])]:
            patch = [{"op": "add", "path": f"/{key}", "value": value} for key, value in entry.found.items()]
            patch += [
                {"op": "remove", "path": f"/{key}"} for key in content(item).keys() - entry.found.keys()
            ]
            yield Restoration(f"{kind} {name}", path, paths, patch)


def _is_of(item: Mapping[str, Any], entries: Mapping[tuple[str, str], AdoptedResource]) -> bool:
    """Return whether a resource of the state is an adopted one, and not its replacement."""
    entry = entries.get((str(item["type"]), urn_name(str(item["urn"]))))
    ids = [str(item.get("importID") or item.get("id") or ""), entry.id if entry else ""]
    return entry is not None and len({_LAST.split(identity)[-1] for identity in ids}) == 1


def _without(item: Mapping[str, Any], gone: Collection[str]) -> dict[str, Any]:
    """Return a resource of the state without references to others."""
    kept = dict(item)
    if kept.get("deletedWith") in gone:
        del kept["deletedWith"]
    if "dependencies" in kept:
        kept["dependencies"] = [urn for urn in kept["dependencies"] if urn not in gone]
    if "propertyDependencies" in kept:
        kept["propertyDependencies"] = {
            key: [urn for urn in urns or () if urn not in gone]
            for key, urns in kept["propertyDependencies"].items()
        }
    return kept
