"""Managed identities and their federated credentials."""

import time
from typing import Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.answers import outputs_of
from ebbtide_rehearsal.cloud.azure.arm import CLOUD, Arm
from ebbtide_rehearsal.cloud.azure.errors import CONFLICT, refused
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, ResourceKind, Rule
from ebbtide_rehearsal.cloud.store import Resource

IDENTITY: Final = "azure-native:managedidentity:UserAssignedIdentity"
CREDENTIAL: Final = "azure-native:managedidentity:FederatedIdentityCredential"

CREATED: Final = "identity-made"
"""Event kind of a new identity."""

_MOST_CREDENTIALS: Final = 20
_WRITE_SECONDS: Final = 0.2  # wall clock; long enough for concurrent writes to overlap


def _identity_done(request: Request, identity: Resource) -> None:
    if request.old is None:
        request.cloud.store.log_event(
            CREATED, f"Identity {ids.last(identity.id)} is made.", identity=identity.id
        )


def principals(arm: Arm) -> dict[str, Resource]:
    """Return the identities by the object ids of their service principals."""
    return {str(identity.state["principalId"]): identity for identity in arm.store.resources(CLOUD, IDENTITY)}


def _others(request: Request) -> list[Resource]:
    owner = request.id.rpartition("/federatedIdentityCredentials/")[0]
    return [
        identity
        for identity in request.cloud.below(owner, CREDENTIAL)
        if not ids.same(identity.id, request.id)
    ]


def _credential_limit(request: Request) -> str | None:
    if len(_others(request)) < _MOST_CREDENTIALS:
        return None
    return refused(
        "BadRequest",
        "The number of Federated Identity Credentials of a managed identity cannot exceed "
        f"{_MOST_CREDENTIALS}.",
    )


def _unique(request: Request) -> str | None:
    pair = (request.inputs["issuer"], request.inputs["subject"])
    if all((identity.state["issuer"], identity.state["subject"]) != pair for identity in _others(request)):
        return None
    message = "Issuer and subject combination already exists for this Managed Identity."
    return refused("Conflict", message, status=CONFLICT)


def _written(request: Request, credential: Resource) -> None:
    """Take the time of a write, and reject concurrent writes to the identity
    (Azure/bicep-registry-modules#1447)."""
    del credential
    owner = request.id.rpartition("/federatedIdentityCredentials/")[0]

    def concurrent(_identity: str, _doing: str) -> str:
        return refused(
            "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity",
            "Too many Federated Identity Credentials are written concurrently for the managed identity "
            f"'{owner}'. Concurrent Federated Identity Credentials writes under the same managed identity "
            "are "
            "not supported.",
            status=CONFLICT,
        )

    with request.cloud.operations.on(owner, "Writing", concurrent):
        time.sleep(_WRITE_SECONDS)


KINDS: Final = (
    ResourceKind(
        type=IDENTITY,
        api_version="2023-01-31",
        outputs=outputs_of,
        apply=_identity_done,
    ),
    ResourceKind(
        type=CREDENTIAL,
        api_version="2023-01-31",
        parent=IDENTITY,
        rules=(
            Rule(
                "maximum credentials of an identity",
                "learn.microsoft.com, entra/workload-id/workload-identity-federation-considerations (2026); "
                "Azure/azure-workload-identity#1172",
                _credential_limit,
            ),
            Rule("unique issuer and subject", "Azure/bicep-types-az#2054", _unique),
        ),
        apply=_written,
    ),
)
