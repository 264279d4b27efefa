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


def refuse_locked(arm: Arm, identity: str) -> None:
    """Refuse to delete what is locked, what is in a scope that is, or what a locked thing is in.

    Source: learn.microsoft.com, azure-resource-manager/management/lock-resources (2026).

    Raises:
        RefusedError: it is locked.
    """
    scopes = [str(one.state["scope"]) for one in arm.store.resources(CLOUD, _TYPE)]
    locked = [scope for scope in scopes if ids.within(identity, scope) or ids.within(scope, identity)]
    if locked:
        raise refused(
            "ScopeLocked",
            f"The scope '{identity}' cannot perform delete operation because following scope(s) are locked: "
            f"'{', '.join(locked)}'. Please remove the lock and try again.",
            status=CONFLICT,
        )
