"""The difference between two recordings of a stack, as the engine would plan it.

Sources: pulumi 3.259, pkg/resource/deploy/step_generator.go: options of a resource, and
`calculateDependentReplacements` for the dependents of what is deleted before its replacement exists.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from ebbtide.analysis.changes.inputs import FieldChange, field_changes, is_deleted_first
from ebbtide.analysis.changes.property_path import top_level
from ebbtide.analysis.recording.assumption_tables import is_assumed
from ebbtide.analysis.recording.recording import Recording, Resource, former_resources
from ebbtide.analysis.recording.values import UNKNOWN, Plain, Secret, at, leaves, mapped
from ebbtide.declaration.model.addons import REMOTE_INPUTS

Action: TypeAlias = Literal["adopt", "create", "update", "replace", "delete"]

_ALL: Final = "*"
_SHORTEST: Final = 8
"""Minimum length of an assumed text to search for in other values; a shorter one may occur by chance."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a resource.

    Attributes:
        action: what the engine would do.
        old: the resource before; None for an adopted or created one.
        new: the resource after; None for a deleted one.
        fields: changed inputs; empty for an adopted, created or deleted resource.
    """

    action: Action
    old: Resource | None
    new: Resource | None
    fields: tuple[FieldChange, ...] = ()

    @property
    def resource(self) -> Resource:
        """The resource after, or before its deletion."""
        resource = self.new or self.old
        assert resource is not None  # noqa: S101 - a change is of something
        return resource

    @property
    def is_refused(self) -> bool:
        """True if the engine rejects it because the resource is protected."""
        if self.action == "delete":
            return self.old is not None and self.old.protect
        is_replaced = self.action == "replace" and self.old is not None and self.new is not None
        return is_replaced and self.old.protect and self.new.protect  # pyright: ignore[reportOptionalMemberAccess]


def compare(before: Recording, after: Recording, *, deployed: bool = False) -> tuple[Change, ...]:
    """Return the changes of the engine's plan, without components and resources that are only read.

    If a component's provider creates its children, the component has the changed inputs; its children are
    unknown.

    Args:
        before: the current stack.
        after: the stack after the update.
        deployed: True if `before` is a deployed state, whose values a recording can only assume.
    """
    plan = _planned(before, after, deployed=deployed)
    kept = {resource.urn for resource in plan.former.values()}
    hidden = {plan.former[urn].urn for urn in plan.former if after[urn].remote}
    deleted = (
        Change("delete", resource, None)
        for resource in before
        if (resource.custom or resource.remote)
        and not resource.read
        and resource.urn not in kept
        and hidden.isdisjoint(ancestor.urn for ancestor in before.ancestors(resource.urn))
    )
    return (*plan.changes.values(), *deleted)


def deleted(changes: Iterable[Change]) -> tuple[Resource, ...]:
    """Return the resources that changes delete from the cloud, also those that are created again."""
    return tuple(
        change.old
        for change in changes
        if change.action in ("delete", "replace") and change.old and not change.old.retain_on_delete
    )


def updates(
    before: Recording, after: Recording, *, deployed: bool = False
) -> list[tuple[Resource, Resource]]:
    """Return the updated resources with hooks, before and after; arguments as for `compare`.

    As in the engine's preview, inputs that depend on outputs of a replaced resource are unknown.
    """
    plan = _planned(before, after, deployed=deployed)
    pairs = ((old, after[urn]) for urn, old in plan.former.items() if urn not in plan.replaced)
    known = ((old, replace(new, inputs=plan.without_unsettled(new, old))) for old, new in pairs if new.hooks)
    return [(old, new) for old, new in known if old.inputs != new.inputs]


def _planned(before: Recording, after: Recording, *, deployed: bool) -> "_Plan":
    answers = frozenset(_answers(after)) if deployed else frozenset[str]()
    plan = _Plan(before, after, former_resources(before, after), deployed=deployed, answers=answers)
    for resource in after:
        if (resource.custom or resource.remote) and not resource.read:
            plan.add(resource)
    return plan


@dataclass
class _Plan:
    """A plan under construction, in the order of registration.

    Attributes:
        before: the current stack.
        after: the stack after the update.
        former: resources of `before` by their URN in `after`.
        deployed: True if `before` is a deployed state.
        answers: texts in the assumed results of functions that the program calls.
        changes: the changes so far, by URN.
        deleted_first: former URNs of resources that are deleted before their replacement is created.
        replaced: URNs of replaced resources.
        created: URNs of replaced and new resources, whose outputs only the cloud will know.
    """

    before: Recording
    after: Recording
    former: Mapping[str, Resource]
    deployed: bool
    answers: frozenset[str]
    changes: dict[str, Change] = field(default_factory=dict[str, Change])
    deleted_first: set[str] = field(default_factory=set[str])
    replaced: set[str] = field(default_factory=set[str])
    created: set[str] = field(default_factory=set[str])

    def add(self, resource: Resource) -> None:
        """Add a resource's change, if it has one."""
        old = self.former.get(resource.urn)
        if old is None or old.read:
            self.changes[resource.urn] = Change("adopt" if resource.import_id else "create", None, resource)
            self.created.add(resource.urn)
            return
        fields = self._fields(old, resource)
        with_others = any(self._action(urn) == "replace" for urn in resource.replace_with)
        if with_others or any(change.replaces for change in fields):
            self._replace(old, resource, fields)
        elif fields:
            self.changes[resource.urn] = Change("update", old, resource, fields)

    def _replace(self, old: Resource, new: Resource, fields: tuple[FieldChange, ...]) -> None:
        self.changes[new.urn] = Change("replace", old, new, fields)
        first = new.delete_before_replace
        if is_deleted_first(new.type, old.inputs, new.inputs) if first is None else first:
            self.deleted_first.add(old.urn)
        self.replaced.add(new.urn)
        self.created.add(new.urn)

    def _fields(self, old: Resource, new: Resource) -> tuple[FieldChange, ...]:
        if new.remote and self.deployed and self._has_inputs_of(old, new):
            return ()
        provider = new.provider if new.provider in self.after else None
        settings = self.after[provider].inputs if provider else None
        if new.provider and self._action(new.provider) == "replace":
            return (FieldChange("provider", None, None, replaces=True),)

        def changed(inputs: Mapping[str, Plain]) -> tuple[FieldChange, ...]:
            ignored = new.ignore_changes
            fields = field_changes(new.type, old.inputs, inputs, settings=settings, ignored=ignored)
            return tuple(
                self._with_options(new, item) for item in fields if not self._is_unsettled(new, item)
            )

        gone = {
            name
            for name, urns in old.property_dependencies.items()
            if not self.deleted_first.isdisjoint(urns)
        }
        fields = changed(self.known(new))
        if gone and not any(item.replaces for item in fields):
            unknown = changed({**new.inputs, **dict.fromkeys(gone & new.inputs.keys(), UNKNOWN)})
            if any(item.replaces for item in unknown):
                return unknown
        return fields

    def _has_inputs_of(self, old: Resource, new: Resource) -> bool:
        """Return whether a deployed component has the inputs of the new one; the state does not keep them."""
        before = _remote_inputs(self.before, old.parent)
        return before is not None and before == _remote_inputs(self.after, new.parent)

    def known(self, new: Resource) -> dict[str, Plain]:
        """Return inputs, unknown where they depend on outputs of a replaced or new resource."""
        inputs = dict(new.inputs)
        for name, urns in new.property_dependencies.items():
            if made := self.created.intersection(urns):
                inputs[name] = _without(inputs.get(name), frozenset(self._assumed(made)))
        return inputs

    def without_unsettled(self, new: Resource, old: Resource) -> dict[str, Plain]:
        """Return inputs as from `known`, also unknown where a state differs from an assumed value."""
        inputs = self.known(new)
        if self.deployed:
            for name, urns in new.property_dependencies.items():
                if inputs.get(name) != old.inputs.get(name):
                    inputs[name] = _without(inputs.get(name), frozenset(self._assumed(urns)))
        return inputs

    def _with_options(self, new: Resource, change: FieldChange) -> FieldChange:
        paths = new.replace_on_changes
        listed = _ALL in paths or any(
            f"{change.path}.".startswith((f"{path}.", f"{path}[")) for path in paths
        )
        return replace(change, replaces=True) if listed else change

    def _is_unsettled(self, new: Resource, change: FieldChange) -> bool:
        """Return whether a difference is between an assumed value and the deployed one."""
        if not self.deployed:
            return change.old is UNKNOWN and change.new is UNKNOWN
        urns = new.property_dependencies.get(top_level(change.path), ())
        assumed = self.answers.union(self._assumed(urns))
        return change.old is not None and _without(change.new, assumed) != change.new

    def _assumed(self, urns: Iterable[str]) -> Iterator[str]:
        """Yield the assumed outputs of these resources."""
        for resource in (self.after[urn] for urn in urns if urn in self.after):
            yield from _assumed(resource)

    def _action(self, urn: str) -> Action | None:
        change = self.changes.get(urn)
        return change.action if change else None


def _answers(recording: Recording) -> Iterator[str]:
    """Yield the assumed texts in the results of functions, without their arguments."""
    for call in recording.invocations:
        arguments = _texts(dict(call.args))
        for _, leaf in leaves(dict(call.answer)):
            if isinstance(leaf, str) and len(leaf) >= _SHORTEST and leaf not in arguments:
                yield leaf


def _assumed(resource: Resource) -> Iterator[str]:
    """Yield the assumed outputs of a resource."""
    outputs = {"id": resource.id, **resource.outputs}
    for path in resource.assumed:
        value = at(outputs, path)
        text = value.value if isinstance(value, Secret) else value
        if isinstance(text, str) and text:
            yield text


def _remote_inputs(recording: Recording, component: str | None) -> Plain:
    """Return the fingerprint in a component's outputs; None if there is none."""
    if component is None or component not in recording:
        return None
    return recording[component].outputs.get(REMOTE_INPUTS)


def _without(value: Plain, assumed: frozenset[str]) -> Plain:
    """Return a value in which every text that contains an assumed one is unknown."""

    def known(leaf: Plain) -> Plain:
        text = leaf.value if isinstance(leaf, Secret) else leaf
        if not isinstance(text, str):
            return leaf
        return UNKNOWN if is_assumed(text) or any(item in text for item in assumed) else leaf

    return mapped(value, known)


def _texts(value: Any) -> str:
    """Return all text in a value."""
    texts: Iterable[str] = (str(getattr(leaf, "value", leaf)) for _, leaf in leaves(value))
    return "\n".join(texts)
