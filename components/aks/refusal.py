"""Refusing an update that AKS cannot make, in the preview already, with the way to make it.

azure-native 3.29 would do one of two things instead (`provider/pkg/gen/replacement.go`, `provider.go`). A
change of the machine it takes for a replacement, and deletes the pool first, with what runs on it.
Everything else it sends, and AKS answers PropertyChangeNotAllowed after a preview that looked well.

So a component with a pool in it registers what is fixed as its own inputs, and this hook runs before it is
updated, which comes before anything is done to the pool. Run with the real engine 3.259: a component's
update hook sees its old and new inputs in preview and update, what it raises stops both, a plain `destroy`
never needs it (a delete hook would), and nothing is called back unless something fixed has changed.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime import settings

from .immutable import refused_changes

_NAME = "ebbtide:aks:fixed-pool-inputs"

_WORK_WAY = (
    "Declare a new pool beside it, under another name; when work has moved there, take {name} out of the "
    "declaration."
)
_SYSTEM_WAY = (
    "Make a second system pool of the new kind (`az aks nodepool add --mode System --name NEW ...`: AKS adds "
    "none through the cluster), declare the system pool as NEW, and after the update remove the old one "
    "(`az aks nodepool delete --name {name} ...`)."
)


class FixedPoolError(Exception):
    """A node pool cannot become what is declared; the message says which way leads there."""


def refuse(args: pulumi.ResourceHookArgs) -> None:
    """Let an update pass that AKS can make.

    Raises:
        FixedPoolError: it cannot, with every reason.
    """
    new: Mapping[str, Any] = args.new_inputs or {}
    changes = refused_changes(args.old_inputs or {}, new)
    if changes:
        name = new["agentPoolName"]
        way = _SYSTEM_WAY if new.get("mode") == "System" else _WORK_WAY
        raise FixedPoolError(
            f"AKS cannot change the node pool {name} that way: {'; '.join(map(str, changes))}. "
            "It would have to be deleted, with all that runs on it. " + way.format(name=name)
        )


_bindings: WeakKeyDictionary[Any, pulumi.ResourceHookBinding] = WeakKeyDictionary()


def refusing() -> pulumi.ResourceHookBinding:
    """The hook that refuses, bound to updates: one for a whole program, whatever its number of pools.

    A hook belongs to the engine that it was made known to, by a name that may be given once. Without an
    engine there is none, and the SDK says so of the component itself.
    """
    monitor = settings.get_monitor()
    if monitor is None:
        return pulumi.ResourceHookBinding()
    binding = _bindings.get(monitor)
    if binding is None:
        hook = pulumi.ResourceHook(_NAME, refuse, pulumi.ResourceHookOptions(on_dry_run=True))
        binding = _bindings[monitor] = pulumi.ResourceHookBinding(before_update=[hook])
    return binding
