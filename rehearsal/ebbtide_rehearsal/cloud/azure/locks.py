"""Management locks, which keep what is in their scope from being deleted."""

from typing import Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import CLOUD, Arm
from ebbtide_rehearsal.cloud.azure.errors import CONFLICT, refused
from ebbtide_rehearsal.cloud.store import Resource, Store

_TYPE: Final = "Microsoft.Authorization/locks"


def lock(store: Store, scope: str, name: str = "do-not-delete") -> None:
    """Put a lock of the level `CanNotDelete` on something, as an administrator would."""
    identity = f"{scope}/providers/{_TYPE}/{name}"
    store.put(Resource(CLOUD, identity, _TYPE, state={"level": "CanNotDelete", "scope": scope}))


def locked(arm: Arm, identity: str) -> str | None:
    """Return the refusal to delete what is locked, in the scope of a lock, or around what is locked.

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
