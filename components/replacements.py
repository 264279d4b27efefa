"""Node pools that `ebbtide up` replaces without ending their workloads.

For one run of the engine, it adds `ebbtide:replacements` to the stack's configuration: for each pool, the
replacement's name in the cloud, and the pool's node count and inputs. In that run, the program declares the
pool unchanged, without its autoscaler, and the replacement in addition. Both have the same labels and taints,
so that queues and workloads accept the nodes of both.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

import pulumi

from ebbtide.declaration.model import Pool
from ebbtide.declaration.providers.schema import properties
from ebbtide.placement.replacements import CONFIG, NAMESPACE, SUFFIX


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


class _NodePoolArgs(Protocol):
    """Arguments of either cloud's node pool: a dataclass that also has `cloud_name` and `replaced_by`."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def pool(self) -> Pool: ...


_Args = TypeVar("_Args", bound=_NodePoolArgs)
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
        opts: options of each pool.

    Returns:
        The pools by declared name; for a replaced pool, its replacement.
    """
    configured: Mapping[str, Mapping[str, Any]] = pulumi.Config(NAMESPACE).get_object(CONFIG) or {}
    created: dict[str, _NodePool] = {}
    for args in pools:
        pool, resource_name = args.pool.name, f"{name}-{args.pool.name}"
        if pool not in configured:
            created[pool] = component(resource_name, args, opts)
            continue
        replacement = Replacement(**configured[pool])
        component(resource_name, replace(args, replaced_by=replacement), opts)
        replacement_args = replace(args, cloud_name=replacement.name)
        created[pool] = component(f"{resource_name}{SUFFIX}", replacement_args, opts)
    return created


def drain_input(pool: Pool) -> dict[str, Any]:
    """Return the component's input that `ebbtide up` reads: the time for work to finish."""
    seconds = None if pool.drain_timeout is None else int(pool.drain_timeout.total_seconds())
    return {} if seconds is None else {"drainTimeoutSeconds": seconds}


def all_but(token: str, kept: frozenset[str]) -> list[str]:
    """Return the inputs of a resource type except some, for `ignore_changes`."""
    return sorted(properties(token).keys() - kept)
