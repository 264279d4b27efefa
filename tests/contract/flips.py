"""Declarations that differ in one field, to compare what the program makes of both."""

import copy
from dataclasses import dataclass
from typing import Any

from tests.declarations import AKS, GKE, Declaration, changed, only


@dataclass(frozen=True)
class Flip:
    """Two declarations that differ in one field alone."""

    field: str
    before: Declaration
    after: Declaration


def with_value(base: Declaration, path: str, value: Any) -> Declaration:
    """Return a copy with another value at a dotted path; mappings on the way are created."""
    after = copy.deepcopy(base)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    at: Any = after
    for part in way:
        if part not in at and not isinstance(part, int):
            at[part] = {}
        at = at[part]
    at[last] = value
    return after


def flip(field: str, base: Declaration, path: str, value: Any, before: Any = None) -> Flip:
    """Set a field that is omitted, or has the value `before`."""
    return Flip(
        field, base if before is None else with_value(base, path, before), with_value(base, path, value)
    )


def work(field: str, base: Declaration, key: str, value: Any, before: Any = None) -> Flip:
    """Set a field of the one work pool."""
    return flip(field, base, f"pools.1.{key}", value, before)


def beside(case: Flip, other: Flip) -> Flip | None:
    """Return a flip of the work pool with another flip's change before and after it; None if both change one
    field."""
    own, change = _changed_fields(case), _changed_fields(other)
    if not change or not own.keys().isdisjoint(change):
        return None
    before, after = copy.deepcopy((case.before, case.after))
    for declaration in (before, after):
        declaration["pools"][-1].update({key: value for key, value in change.items() if value is not None})
    return Flip(f"{case.field} beside {other.field}", before, after)


def _changed_fields(case: Flip) -> dict[str, Any]:
    """Return the changed fields of the work pool, with their new values; None for a removed field."""
    before, after = (declaration["pools"][-1] for declaration in (case.before, case.after))
    return {key: after.get(key) for key in before | after if before.get(key) != after.get(key)}


GKE_CPU = only(GKE, machine="n2-standard-8")
GKE_SPOT = only(GKE, machine="n2-standard-8", capacity="spot")
GKE_GPU = only(GKE, machine="n1-standard-8", accelerator={"type": "nvidia-tesla-t4"})
AKS_CPU = only(AKS, machine="Standard_D8s_v5")
AKS_SPOT = only(AKS, machine="Standard_D8s_v5", capacity="spot")
GKE_EXISTING = changed(
    with_value(GKE_SPOT, "cloud.existing", {"name": "theirs"}), pools=GKE_SPOT["pools"][1:]
)
AKS_EXISTING = changed(
    with_value(AKS_SPOT, "cloud.existing", {"name": "theirs"}), pools=AKS_SPOT["pools"][1:]
)
EXISTING = {"gke": GKE_EXISTING, "aks": AKS_EXISTING}
ADMINS = ["11111111-1111-1111-1111-111111111111"]
GROUPS = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups"
SUBNETS = f"{GROUPS}/net/providers/Microsoft.Network/virtualNetworks/theirs/subnets"
