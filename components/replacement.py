"""Changes of node pools that the cloud cannot make: `ebbtide up` replaces a pool without ending its
workloads, and the preview refuses anything else, with the command to use.

Replacement: for one run of the engine, `ebbtide up` adds `ebbtide:replacements` to the stack's configuration:
for each pool, the replacement's name in the cloud, and the pool's node count and inputs. In that run, the
program declares the pool unchanged, without its autoscaler, and the replacement in addition. Both have the
same labels and taints, so that queues and workloads accept the nodes of both.

Refusal: otherwise the provider would delete the pool with its workloads and create it again, or the cloud
would reject the update after a preview without errors. Therefore the pool's component registers the immutable
fields as its own inputs, and a hook compares them before the component is updated, which precedes every
change of the pool. Tested with engine 3.259: a component's update hook receives its old and new inputs in
preview and update, its exception stops both, a plain `destroy` does not need it (unlike a delete hook), and
it is called only if the inputs have changed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import pulumi
from pulumi.runtime import settings

from ebbtide.declaration.model.base import POOL_TYPES
from ebbtide.declaration.model.declare import check_pool
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.pool_inputs import field_by_input
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.declaration.model.site import Site
from ebbtide.declaration.project.configuration import NAMESPACE, REPLACEMENTS, SUFFIX
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.declaration.providers.schema import properties
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import is_within, python_name, value_at

from .inputs import input_errors, without_none
from .topology import Labels

NEW_POOL_BESIDE: Final = (
    "`ebbtide up {stack}` creates the new pool beside it, lets its work finish, and then deletes it."
)
"""The replacement of a work pool that ends none of its workloads."""

NEEDS_NEW_NAME: Final = "needsNewName"
"""A component's input: true for a work pool that `ebbtide up` cannot replace under its name."""

NEW_NAME: Final = "Declare it with another name: the new pool is created before {name} is deleted."
"""The replacement of a pool that `ebbtide up` cannot make: of a program in another language, or one whose
machines the stack reserves."""

constructed: ContextVar[str] = ContextVar("constructed", default="")
"""Name of the component that a program in another language constructs; empty in a Python program."""

_bindings: ContextVar[tuple[Any, dict[str, pulumi.ResourceHookBinding]]] = ContextVar(
    "bindings", default=(None, {})
)
"""The engine's client and its registered hooks, by cloud. Their lifetime is the run's context, since a hook
refers to every resource of its program."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A replacement of a node pool.

    Attributes:
        name: the replacement's name in the cloud.
        nodes: the node count of the replaced pool.
        inputs: inputs of the replaced pool's component. The engine stores a component's inputs in the state,
            regardless of ignored changes (tested with pulumi 3.259); they show that the pool is replaced.
    """

    name: str
    nodes: int
    inputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolArgs:
    """Arguments of a node pool on either cloud.

    Attributes:
        pool: the declared pool; it is validated, and its defaults are filled in.
        site: the cluster around it, for validation and zones.
        cluster: name of the cluster.
        labels: billing labels, which Azure calls tags.
        deleted_with: the cluster, if its deletion deletes the pool, so that a destroy skips separate
            deletions.
        depends_on: prerequisites of a node: the network's egress, the grants of its account or of the
            cluster's identity.
        protect: whether the engine refuses to delete the pool.
        cloud_name: name in the cloud when the pool is created. Default: the pool's.
        replaced_by: the replacement, to keep the pool as it is, without its autoscaler (see `node_pools`).
            Default: the pool matches its declaration.

    Raises:
        pulumi.InputPropertiesError: the pool breaks a rule of its cloud; every error is listed.
    """

    pool: Pool
    site: Site
    cluster: pulumi.Input[str]
    labels: Labels = field(default_factory=dict[str, pulumi.Input[str]])
    deleted_with: pulumi.Resource | None = None
    depends_on: tuple[pulumi.Resource, ...] = ()
    protect: bool = False
    cloud_name: str | None = None
    replaced_by: Replacement | None = None

    def __post_init__(self) -> None:
        """Validate and resolve the pool, unless it is of a valid declaration."""
        if isinstance(self.pool, ResolvedPool) and self.pool.site == self.site:
            return
        try:
            object.__setattr__(self, "pool", check_pool(self.pool, self.site))
        except DeclarationError as error:
            raise input_errors(f"The node pool {self.pool.name} is refused.", error.faults) from None

    @property
    def resolved(self) -> ResolvedPool:
        """The pool with its defaults."""
        return cast("ResolvedPool", self.pool)


_Args = TypeVar("_Args", bound=PoolArgs)
_NodePool = TypeVar("_NodePool")


def node_pools(
    component: Callable[[str, _Args, pulumi.ResourceOptions], _NodePool],
    name: str,
    pools: Iterable[_Args],
    opts: pulumi.ResourceOptions,
) -> dict[str, _NodePool]:
    """Create the node pools of a cluster, and the replacements of the pools that this run replaces.

    Args:
        component: the cloud's component.
        name: prefix of the pools' resource names.
        pools: the arguments of each pool.

    Returns:
        The pools by declared name; for a replaced pool, its replacement.
    """
    replaced = replacements()
    created: dict[str, _NodePool] = {}
    for args in pools:
        pool, resource_name = args.pool.name, f"{name}-{args.pool.name}"
        replacement = replaced.get(pool)
        if replacement is None:
            created[pool] = component(resource_name, args, opts)
            continue
        # Either may be deleted: the pool after its work, its replacement if the change is reverted.
        component(resource_name, replace(args, protect=False, replaced_by=replacement), opts)
        replacement_args = replace(args, protect=False, cloud_name=replacement.name)
        created[pool] = component(f"{resource_name}{SUFFIX}", replacement_args, opts)
    return created


def replacements() -> dict[str, Replacement]:
    """Return the replacements of this run, by name of the pool."""
    configured: Mapping[str, Mapping[str, Any]] = pulumi.Config(NAMESPACE).get_object(REPLACEMENTS) or {}
    return {pool: Replacement(**item) for pool, item in configured.items()}


def all_but(token: str, kept: frozenset[str]) -> list[str]:
    """Return the inputs of a resource type except some, for `ignore_changes`."""
    return sorted(properties(token).keys() - kept)


class ImmutableInputError(Exception):
    """A node pool cannot be changed as declared; the message has the alternative."""


@dataclass(frozen=True)
class ImmutableInput:
    """An immutable input of a node pool.

    Attributes:
        wire: the provider's path of the input.
        declared: the declaration's path of the input, below the pool; empty if it has none.
    """

    wire: str
    declared: str

    @cached_property
    def python(self) -> str:
        """The SDK's path of the input."""
        return python_name(self.wire)

    def is_within(self, paths: Collection[str]) -> bool:
        """Check that the input equals one of the provider's paths, or is below one."""
        return any(is_within(self.wire, path) for path in paths)

    @cached_property
    def key(self) -> str:
        """Name among the component's inputs: the last segment of its path."""
        return self.wire.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class ImmutableChange:
    """A change that the cloud rejects, or for which the provider deletes the pool.

    Attributes:
        field: the changed input.
        old: the pool's value; None if unset.
        new: the declared value; None if unset.
    """

    field: ImmutableInput
    old: Any
    new: Any

    def __str__(self) -> str:
        name = f"{self.field.declared} ({self.field.wire})" if self.field.declared else self.field.wire
        return f"{name} from {_shown(self.old)} to {_shown(self.new)}"


@dataclass(frozen=True, kw_only=True)
class ImmutableInputs:
    """Immutable inputs of a cloud's node pools.

    Attributes:
        name: key of the component's input that has the pool's name.
        own: the immutable inputs that Ebbtide sets besides those of a pool's fields, each with its path in
            the declaration.
        exceptions: immutable inputs of the tables that are not compared, each with the reason.
        constants: values that Ebbtide gives to immutable inputs that only overrides change.
        unset: the cloud's defaults by path.
        implied: pairs of keys: inputs, and inputs that change with them and are not reported.
        work_fix: how to replace a work pool, with `{name}` and `{stack}` for the names.
        system_fix: the same for the system pool.
    """

    cloud: CloudKind
    name: str
    own: Mapping[str, str]
    exceptions: Mapping[str, str] = field(default_factory=dict[str, str])
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unset: Mapping[str, Any]
    implied: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    work_fix: str
    system_fix: str

    @cached_property
    def rows(self) -> tuple[ImmutableInput, ...]:
        """The immutable inputs that Ebbtide sets: its own, and those of a pool's fields."""
        declared = {**field_by_input(self.cloud, "fixed"), **self.own}
        return tuple(ImmutableInput(wire, path) for wire, path in declared.items())

    def of_pool(
        self, name: str, mode: str, inputs: Mapping[str, Any], ignored: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return the immutable inputs of a pool by key; its component registers them for `changes`.

        Args:
            mode: `System` or `User`.
            inputs: the pool's inputs under the SDK's names; values may be outputs.
            ignored: the provider's paths of inputs whose changes are ignored.
        """
        values = {row.key: value_at(inputs, row.python) for row in self.rows if not row.is_within(ignored)}
        known_values = {key: value for key, value in values.items() if value is not None}
        return {self.name: name, "mode": mode, **known_values}

    def of_component(
        self, pool: ResolvedPool, inputs: Mapping[str, Any], ignored: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return the inputs of a pool's component: those of `of_pool`, what is declared of overrides and
        machine, and the time for work to finish, which `ebbtide up` reads."""
        mode = inputs.get("mode") or ("System" if pool.is_system else "User")
        drain = None if pool.drain_timeout is None else int(pool.drain_timeout.total_seconds())
        declared = {
            "overrides": pool.overrides or None,
            "machine": pool.declared_shape,
            "drainTimeoutSeconds": drain,
        }
        return self.of_pool(pool.name, mode, inputs, ignored) | without_none(declared)

    def changes(
        self, old_inputs: Mapping[str, Any], new_inputs: Mapping[str, Any]
    ) -> tuple[ImmutableChange, ...]:
        """Return the changes of a pool that the cloud cannot make.

        Args:
            old_inputs: the deployed inputs, by key.
            new_inputs: the declared inputs, by key.

        Returns:
            The changes; none if the pool's name changes, since that is another pool. An unknown value counts
            as unchanged.
        """
        if old_inputs.get(self.name) != new_inputs.get(self.name):
            return ()
        changes = [
            ImmutableChange(row, *(inputs.get(row.key, unset) for inputs in (old_inputs, new_inputs)))
            for row in self.rows
            for unset in (self.unset.get(row.wire),)
        ]
        refused = {change.field.key: change for change in changes if _differ(change.old, change.new)}
        refused |= {change.field.wire: change for change in self._overridden(old_inputs, new_inputs)}
        for causes, effects in self.implied:
            if any(cause in refused for cause in causes):
                refused = {key: change for key, change in refused.items() if key not in effects}
        return tuple(refused.values())

    def overridable(self) -> tuple[str, ...]:
        """Return the immutable inputs that overrides alone can set, parents first."""
        constraints = constraints_of(POOL_TYPES[self.cloud])
        return tuple(
            path
            for path in sorted(constraints.replaces | constraints.fixed)
            if path not in self.exceptions and not any(is_within(path, row.wire) for row in self.rows)
        )

    def _overridden(
        self, old_inputs: Mapping[str, Any], new_inputs: Mapping[str, Any]
    ) -> Iterator[ImmutableChange]:
        """Yield the changes of immutable inputs by overrides, without those below another."""
        changed: list[str] = []
        old, new = (_overrides(inputs) for inputs in (old_inputs, new_inputs))
        defaults = {**self.unset, **self.constants}
        for path in self.overridable():
            values = [_at(overrides, path.split(".")) for overrides in (old, new)]
            before, after = (defaults.get(path) if value is None else value for value in values)
            if _differ(_present(before), _present(after)) and not any(is_within(path, up) for up in changed):
                changed.append(path)
                yield ImmutableChange(ImmutableInput(path, f"overrides.{path}"), before, after)

    def refuse(self, args: pulumi.ResourceHookArgs, work_fix: str = "") -> None:
        """Refuse an update that the cloud cannot make.

        Args:
            args: the old and the new inputs.
            work_fix: how to replace a work pool. Default: with the command line.

        Raises:
            ImmutableInputError: with every such change.
        """
        old: Mapping[str, Any] = args.old_inputs or {}
        new: Mapping[str, Any] = args.new_inputs or {}
        changes = self.changes(old, new)
        if changes:
            name = new[self.name]
            work_fix = NEW_NAME if old.get(NEEDS_NEW_NAME) else work_fix or self.work_fix
            template = self.system_fix if new.get("mode") == "System" else work_fix
            fix = template.format(name=name, stack=pulumi.get_stack())
            raise ImmutableInputError(
                f"{self.cloud.upper()} cannot change these fields of the node pool {name}: "
                f"{'; '.join(map(str, changes))}. The pool would have to be deleted with its "
                "workloads. " + fix
            )

    def refusing(self) -> pulumi.ResourceHookBinding:
        """Return the update hook of `refuse`: one for all pools of a program."""
        work_fix = NEW_NAME if constructed.get() else self.work_fix

        def refuse(args: pulumi.ResourceHookArgs) -> None:
            self.refuse(args, work_fix)

        return hooks(f"{self.cloud}:fixed-pool-inputs", before_update=refuse)


def refusing_fixed(token: str) -> pulumi.ResourceHookBinding:
    """Return the update hook of a resource whose inputs are in part fixed while it is in use; those of a
    cluster's pools are the pools'."""
    constraints = constraints_of(token)
    fixed = sorted(path for path in constraints.fixed if not is_within(path, "agentPoolProfiles"))

    def effective(inputs: Mapping[str, Any] | None, path: str) -> list[Any]:
        value = _at(inputs or {}, path.split("."))
        items = _items(value) if isinstance(value, list) else [value]
        return [item or constraints.fills.get(path) or None for item in items]

    def refuse(args: pulumi.ResourceHookArgs) -> None:
        changes = [
            str(ImmutableChange(ImmutableInput(path, ""), old, new))
            for path in fixed
            for old, new in zip(
                *(effective(it, path) for it in (args.old_inputs, args.new_inputs)), strict=False
            )
            if _differ(old, new)
        ]
        if changes:
            raise ImmutableInputError(
                f"{token.rpartition(':')[2]} {args.name}: {'; '.join(changes)} cannot change while it is in "
                "use, and the cloud refuses the update. Revert the change, or create another cluster beside "
                "this one."
            )

    return hooks(f"{token}:fixed-inputs", before_update=refuse)


def hooks(name: str, **callbacks: Callable[[pulumi.ResourceHookArgs], None]) -> pulumi.ResourceHookBinding:
    """Return the hooks of a name for all resources of a program, which run in previews too.

    A hook is registered with one engine, under a unique name: a program in another language has one for each
    component that it constructs. Without an engine there is none, and the SDK raises that error for the
    resource itself.

    Args:
        name: their name in the program; a second callback has its event's as well.
        callbacks: the callbacks by event, such as `before_update`.
    """
    monitor = settings.get_monitor()
    if monitor is None:
        return pulumi.ResourceHookBinding()
    known, bound = _bindings.get()
    if known is not monitor:
        bound: dict[str, pulumi.ResourceHookBinding] = {}
        _bindings.set((monitor, bound))
    if name not in bound:
        always = pulumi.ResourceHookOptions(on_dry_run=True)
        binding = bound[name] = pulumi.ResourceHookBinding()
        for event, callback in callbacks.items():
            parts = ("ebbtide", name, event if len(callbacks) > 1 else "", constructed.get())
            hook = pulumi.ResourceHook(":".join(filter(None, parts)), callback, always)
            setattr(binding, event, [hook])
    return bound[name]


def _overrides(inputs: Mapping[str, Any]) -> Any:
    """Return the overrides of a pool; a component of a cluster has its own beside those of its pool."""
    return inputs.get("poolOverrides", inputs.get("overrides"))


def _at(value: Any, keys: Sequence[str]) -> Any:
    """Return the value at a path without indices, for a list on the path that of each item."""
    if isinstance(value, list):
        return [_at(item, keys) for item in _items(value)]
    if not keys or not isinstance(value, Mapping):
        return value if not keys else None
    return _at(cast("Mapping[str, Any]", value).get(keys[0]), keys[1:])


def _present(value: Any) -> Any:
    """Reduce mappings to their presence: the inputs below one have paths of their own."""
    if isinstance(value, list):
        return list(map(_present, _items(value)))
    return True if isinstance(value, Mapping) else value


def _differ(old: Any, new: Any) -> bool:
    return _is_known(old) and _is_known(new) and _comparable(old) != _comparable(new)


def _is_known(value: Any) -> bool:
    """Check that a value is neither unknown nor secret."""
    if isinstance(value, Mapping | list):
        return all(map(_is_known, _items(value)))
    return value is None or isinstance(value, str | int | float)


def _items(value: Any) -> list[Any]:
    """Return the items of a list, or the values of a mapping by key: messages keep no order of keys."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return [fields[key] for key in sorted(fields)]
    return list(value)


def _comparable(value: Any) -> Any:
    """Normalize a value for comparison: the order of a list and the case of a resource id do not matter, and
    the engine returns integers as floats."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return sorted((key, repr(_comparable(item))) for key, item in fields.items())
    if isinstance(value, list):
        return sorted(repr(_comparable(item)) for item in _items(value))
    if isinstance(value, str) and value.startswith("/subscriptions/"):
        return value.lower()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping | list):
        return ", ".join(map(_shown, _items(value))) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
