"""Management locks, which prevent deletion in their scope."""

from typing import Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import CLOUD, Arm
from ebbtide_rehearsal.cloud.azure.errors import CONFLICT, refused
from ebbtide_rehearsal.cloud.store import Resource, Store

_TYPE: Final = "Microsoft.Authorization/locks"


def lock(store: Store, scope: str, name: str = "do-not-delete") -> None:
    """Put a lock with the level `CanNotDelete` on a scope, as an administrator would."""
    identity = f"{scope}/providers/{_TYPE}/{name}"
    store.put(Resource(CLOUD, identity, _TYPE, state={"level": "CanNotDelete", "scope": scope}))


def locked(arm: Arm, identity: str) -> str | None:
    """Return the refusal to delete a resource in the scope of a lock, or one that contains a locked one.

    Source: learn.microsoft.com, azure-resource-manager/management/lock-resources (2026).
    """
    scopes = [str(lock.state["scope"]) for lock in arm.store.resources(CLOUD, _TYPE)]
    locks = [scope for scope in scopes if ids.within(identity, scope) or ids.within(scope, identity)]
    if not locks:
        return None
    return refused(
        "ScopeLocked",
        f"The scope '{identity}' cannot perform delete operation because following scope(s) are locked: "
        f"'{', '.join(locks)}'. Please remove the lock and try again.",
        status=CONFLICT,
    )
