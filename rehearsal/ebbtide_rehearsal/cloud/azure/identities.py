"""Managed identities, and who may sign in as one."""

import time
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import CLOUD, TENANT, Arm
from ebbtide_rehearsal.cloud.azure.errors import CONFLICT, refused
from ebbtide_rehearsal.cloud.azure.kind import Kind, Limit, Refusal, Wish
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import Resource

IDENTITY: Final = "azure-native:managedidentity:UserAssignedIdentity"
CREDENTIAL: Final = "azure-native:managedidentity:FederatedIdentityCredential"

MADE: Final = "identity-made"
"""What the timeline says of a new identity."""

_PATH: Final = f"{ids.GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"
_MOST_CREDENTIALS: Final = 20
_WRITE_SECONDS: Final = 0.2  # of the wall clock: long enough for two writes to meet


def _identity_answers(_arm: Arm, wish: Wish) -> Mapping[str, Any]:
    return {
        "principalId": wish.kept("principalId", lambda: str(uuid4())),
        "clientId": wish.kept("clientId", lambda: str(uuid4())),
        "tenantId": TENANT,
    }


def _identity_done(arm: Arm, wish: Wish, made: Resource) -> None:
    if wish.was is None:
        arm.store.say(MADE, f"Identity {ids.last(made.id)} is made.", identity=made.id)


def principals(arm: Arm) -> dict[str, Resource]:
    """Identities by the object id of their service principal."""
    return {str(one.state["principalId"]): one for one in arm.store.resources(CLOUD, IDENTITY)}


def _others(arm: Arm, wish: Wish) -> list[Resource]:
    owner = wish.id.rpartition("/federatedIdentityCredentials/")[0]
    return [one for one in arm.below(owner, CREDENTIAL) if not ids.same(one.id, wish.id)]


def _few(arm: Arm, wish: Wish) -> RefusedError | None:
    if len(_others(arm, wish)) < _MOST_CREDENTIALS:
        return None
    return refused(
        "BadRequest",
        "The number of Federated Identity Credentials of a managed identity cannot exceed "
        f"{_MOST_CREDENTIALS}.",
    )


def _unique(arm: Arm, wish: Wish) -> RefusedError | None:
    pair = (wish.inputs["issuer"], wish.inputs["subject"])
    if all((one.state["issuer"], one.state["subject"]) != pair for one in _others(arm, wish)):
        return None
    message = "Issuer and subject combination already exists for this Managed Identity."
    return refused("Conflict", message, status=CONFLICT)


def _written(arm: Arm, wish: Wish, made: Resource) -> None:
    """Take the time that a write takes, alone with the identity (Azure/bicep-registry-modules#1447)."""
    del made
    owner = wish.id.rpartition("/federatedIdentityCredentials/")[0]

    def concurrent(_identity: str, _doing: str) -> RefusedError:
        return refused(
            "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity",
            "Too many Federated Identity Credentials are written concurrently for the managed identity "
            f"'{owner}'. Concurrent Federated Identity Credentials writes under the same managed identity "
            "are "
            "not supported.",
            status=CONFLICT,
        )

    with arm.operations.on(owner, "Writing", concurrent):
        time.sleep(_WRITE_SECONDS)


KINDS: Final = (
    Kind(
        token=IDENTITY,
        api_version="2023-01-31",
        path=_PATH,
        needed=("location",),
        replaces=frozenset({"location"}),
        limits={"resourceName": Limit(r"^[a-zA-Z0-9][a-zA-Z0-9_-]*$", shortest=3, longest=128)},
        outputs=_identity_answers,
        happens=_identity_done,
    ),
    Kind(
        token=CREDENTIAL,
        api_version="2023-01-31",
        path=f"{_PATH}/federatedIdentityCredentials/{{federatedIdentityCredentialResourceName}}",
        parent=IDENTITY,
        limits={"federatedIdentityCredentialResourceName": Limit(r"^[a-zA-Z0-9]{1}[a-zA-Z0-9-_]{2,119}$")},
        refusals=(
            Refusal(
                "at most 20 credentials of an identity",
                "learn.microsoft.com, entra/workload-id/workload-identity-federation-considerations (2026); "
                "Azure/azure-workload-identity#1172",
                _few,
            ),
            Refusal("issuer and subject once", "Azure/bicep-types-az#2054", _unique),
        ),
        happens=_written,
    ),
)
