"""Replaced pools in a stack's state.

A replaced pool has a second component beside it, whose name ends in `.next`. Once its work has moved, the two
are renamed: the drained one ends in `.old`, which is not in the program, and the new one gets the plain name.
The state is written immediately, so that it always records where a replacement was interrupted.
"""

import copy
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.review.consequences import POOL_NAMES, new_pools_beside
from ebbtide.analysis.urns import urn_name
from ebbtide.declaration.model.aks_labels_and_taints import AGENT_POOL
from ebbtide.declaration.model.gke_labels_and_taints import NODE_POOL
from ebbtide.operations.node_drain import DrainedPool
from ebbtide.placement.replacements import SUFFIX

OLD: Final = ".old"
"""Suffix of the name of a drained pool."""
TIMEOUT: Final = timedelta(hours=24)
"""Default time for work to finish, without a declared `drainTimeout`: the longest drain timeout of AKS
(azure-aks-docs, upgrade-cluster, 2026)."""
_GKE, _AKS = "ebbtide:gke:NodePool", "ebbtide:aks:NodePool"
_LABELS: Final = {_GKE: NODE_POOL, _AKS: AGENT_POOL}
_HASH: Final = 4
_AKS_LONGEST: Final = 12  # characters (azure-aks-docs, create-node-pools, 2026)
_GKE_LONGEST: Final = 40  # characters (GKE docs, node pool names, 2026)
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True)
class StatePool:
    """A node pool in a stack's state.

    Attributes:
        resource_name: logical name of the component.
        component: the component.
        resource: the provider's resource; None if it was not created.
    """

    resource_name: str
    component: Mapping[str, Any]
    resource: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """Name in the declaration."""
        return str(self.component["inputs"][POOL_NAMES[self.component["type"]]])

    @property
    def cloud_name(self) -> str:
        """Name in the cloud."""
        inputs: Mapping[str, Any] = (self.resource or self.component)["inputs"]
        return str(inputs[POOL_NAMES[self.component["type"]]])

    @property
    def is_ready(self) -> bool:
        """True if the cloud has created it without an error."""
        return self.resource is not None and not self.resource.get("initErrors")

    @property
    def count(self) -> int | None:
        """Fixed node count; None if the autoscaler sets it."""
        count = self.resource["inputs"].get("count") if self.resource else None
        return None if count is None else int(count)

    @property
    def urns(self) -> list[str]:
        """URNs of its resources."""
        return [str(item["urn"]) for item in (self.resource, self.component) if item is not None]

    def drained(self, timeout: timedelta) -> DrainedPool:
        """Return the pool as input of a drain."""
        return DrainedPool(self.name, _LABELS[self.component["type"]], self.cloud_name, timeout)


def pools(deployment: Mapping[str, Any]) -> dict[str, StatePool]:
    """Return the node pools of a state, by the logical name of their component."""
    resources = _live(deployment)
    children = {item.get("parent"): item for item in resources if item.get("custom")}
    return {
        name: StatePool(name, item, children.get(item["urn"]))
        for item in resources
        if item["type"] in POOL_NAMES
        for name in [urn_name(str(item["urn"]))]
    }


def _live(deployment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [item for item in deployment.get("resources") or () if not item.get("delete")]


def interrupted(deployment: Mapping[str, Any]) -> list[str]:
    """Return the names of pools whose replacement an earlier update has started."""
    return sorted({pool.name for name, pool in pools(deployment).items() if name.endswith((SUFFIX, OLD))})


def without_replacements(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state without the resources of unfinished replacements."""
    extra = {
        urn for name, pool in pools(deployment).items() if name.endswith((SUFFIX, OLD)) for urn in pool.urns
    }
    kept = [item for item in deployment.get("resources") or () if item["urn"] not in extra]
    return {**deployment, "resources": kept}


def refused(recording: Recording) -> dict[str, str]:
    """Return the work pools whose change a cloud rejects, with their URN, by the logical name of their
    component."""
    return {urn_name(message.urn): message.urn for message in new_pools_beside(recording) if message.urn}


def declared_name(component: Resource) -> str:
    """Return the name in the declaration of a recorded pool."""
    return str(component.inputs[POOL_NAMES[component.type]])


def timeout(recording: Recording, name: str, given: timedelta | None = None) -> timedelta:
    """Return the time for a pool's work to finish: the given one, or else that of the declaration."""
    if given is not None:
        return given
    component = next((item for item in recording if item.type in POOL_NAMES and item.name == name), None)
    seconds = component.inputs.get("drainTimeoutSeconds") if component else None
    return timedelta(seconds=float(seconds)) if isinstance(seconds, int | float) else TIMEOUT


def replacement_name(recording: Recording, name: str, taken: Collection[str]) -> str:
    """Return the name in the cloud of a pool's replacement, which depends only on its inputs.

    Args:
        recording: the recorded program.
        name: logical name of the pool's component.
        taken: names in the cloud of other pools.
    """
    component = next(item for item in recording if item.type in POOL_NAMES and item.name == name)
    pool = str(component.inputs[POOL_NAMES[component.type]])
    text = json.dumps(dict(component.inputs), sort_keys=True, default=str)
    return next(candidate for candidate in _candidates(component.type, pool, text) if candidate not in taken)


def _candidates(type_: str, pool: str, inputs: str) -> Iterator[str]:
    number = 0
    while True:
        digest = hashlib.sha256(f"{pool} {number} {inputs}".encode()).digest()
        tail = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_HASH])
        if type_ == _AKS:
            yield pool[: _AKS_LONGEST - _HASH] + tail
        else:
            yield f"{pool[: _GKE_LONGEST - _HASH - 1].rstrip('-')}-{tail}"
        number += 1


def renamed(deployment: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a state with pools and all references to them renamed.

    Args:
        deployment: the state.
        names: new logical names of components, by current name.
    """
    urns = {
        urn: f"{urn.rpartition('::')[0]}::{names[pool.resource_name]}"
        for pool in pools(deployment).values()
        if pool.resource_name in names
        for urn in pool.urns
    }
    return _replaced(copy.deepcopy(dict(deployment)), urns)


def _replaced(value: Any, urns: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(item, urns) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType] - JSON
    if isinstance(value, list):
        return [_replaced(item, urns) for item in value]  # pyright: ignore[reportUnknownVariableType] - JSON
    return urns.get(value, value) if isinstance(value, str) else value


def swapped(name: str) -> dict[str, str]:
    """Return the new names that swap a pool and its replacement."""
    return {name: f"{name}{SUFFIX}", f"{name}{SUFFIX}": name}


def withdrawn(name: str) -> dict[str, str]:
    """Return the new name of a drained replacement."""
    return {f"{name}{SUFFIX}": f"{name}{OLD}"}


def retired(name: str) -> dict[str, str]:
    """Return the new names after a drain."""
    return {name: f"{name}{OLD}", f"{name}{SUFFIX}": name}
