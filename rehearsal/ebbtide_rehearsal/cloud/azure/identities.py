"""Managed identities with federated credentials, users and groups of the directory, and role assignments."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import (
    CLOUD,
    CONFLICT,
    DEPLOYER,
    TENANT,
    Arm,
    Request,
    ResourceKind,
    Rule,
    inner,
    not_found,
    outputs_of,
    refused,
)
from ebbtide_rehearsal.cloud.store import Resource, Store

DIRECTORY: Final = "entra"
"""Cloud of users and groups in the store; they exist independently of stacks."""
_PERSON: Final = "rehearsal:person"


def know(store: Store, people: Iterable[str]) -> None:
    """Add users and groups to the directory, by their object ids."""
    for person in people:
        store.put(Resource(DIRECTORY, person, _PERSON))


def knows(store: Store, principal: str) -> bool:
    """Return whether an object id belongs to a user or a group."""
    return store.get(DIRECTORY, principal) is not None


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


def assigned(request: Request) -> dict[str, Any]:
    """Return the `identity` of a resource with user-assigned identities, a list of ids in inputs, an object
    in the state; empty without them."""
    identity = inner(request.inputs, "identity")
    listed = identity.get("userAssignedIdentities")
    if not listed:
        return {}
    known = {resource.id.lower(): resource.state for resource in principals(request.cloud).values()}
    given = {
        str(name): {key: known.get(str(name).lower(), {}).get(key, "") for key in ("clientId", "principalId")}
        for name in listed
    }
    return {"type": identity.get("type", "UserAssigned"), "userAssignedIdentities": given}


def missing_identity(request: Request) -> str | None:
    """Refuse user-assigned identities that do not exist."""
    listed = inner(request.inputs, "identity").get("userAssignedIdentities") or ()
    return next((not_found(str(name)) for name in listed if request.cloud.lacks(str(name))), None)


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


ASSIGNMENT: Final = "azure-native:authorization:RoleAssignment"

_OWNER: Final = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"
_CONTRIBUTOR: Final = "b24988ac-6180-42a0-ab88-20f7382dd24c"
_NETWORK_CONTRIBUTOR: Final = "4d97b98b-1d4f-4787-a291-c67834d212e7"
_MAY_JOIN: Final = frozenset({_OWNER, _CONTRIBUTOR, _NETWORK_CONTRIBUTOR})
"""Roles with permission to join a subnet (learn.microsoft.com, azure/role-based-access-control/
built-in-roles, 2026-11)."""

_DOCS: Final = "learn.microsoft.com, azure/role-based-access-control/troubleshooting (2026)"
_REPLICATION_SECONDS: Final = 30.0  # simulated; Azure publishes no value


def may_join(arm: Arm, principal: str, subnet: str) -> bool:
    """Return whether a principal may put nodes into a subnet."""
    return any(
        assignment.state["principalId"] == principal
        and ids.last(str(assignment.state["roleDefinitionId"])) in _MAY_JOIN
        and ids.within(subnet, str(assignment.state["scope"]))
        for assignment in arm.store.resources(CLOUD, ASSIGNMENT)
    )


def _scope_exists(request: Request) -> str | None:
    scope = str(request.inputs["scope"])
    return not_found(scope) if request.cloud.lacks(scope) else None


def _fixed(request: Request) -> str | None:
    was = request.old.inputs if request.old is not None else request.inputs
    if all(
        was.get(name) == request.inputs.get(name) for name in ("roleDefinitionId", "principalId", "scope")
    ):
        return None
    return refused(
        "RoleAssignmentUpdateNotPermitted",
        "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.",
    )


def _principal_exists(request: Request) -> str | None:
    """Reject an unknown principal without a type, for which Azure queries a directory that may lag behind."""
    principal = str(request.inputs["principalId"])
    identity = principals(request.cloud).get(principal)
    is_made = identity is not None and _is_replicated(request.cloud, identity)
    is_known = principal == DEPLOYER or is_made or knows(request.cloud.store, principal)
    if request.old is not None or request.inputs.get("principalType") is not None or is_known:
        return None
    return refused(
        "PrincipalNotFound",
        f"Principal {principal.replace('-', '')} does not exist in the directory {TENANT}. Check that you "
        "have "
        "the correct principal ID. If you are creating this principal and then immediately assigning a role, "
        "this error might be related to a replication delay. In this case, set the role assignment "
        "principalType property to a value, such as ServicePrincipal, User, or Group. "
        "See https://aka.ms/docs-principaltype",
    )


def _is_replicated(arm: Arm, identity: Resource) -> bool:
    created = [event.at for event in arm.store.events(kind=CREATED) if event.facts["identity"] == identity.id]
    return not created or arm.store.clock.now() - created[-1] >= _REPLICATION_SECONDS


def _principal_is_of_type(request: Request) -> str | None:
    """Reject a wrong principal type; the spelling is Azure's own."""
    principal, given = str(request.inputs["principalId"]), request.inputs.get("principalType")
    is_service = principal == DEPLOYER or principal in principals(request.cloud)
    if given in (None, "ServicePrincipal") or not is_service:
        return None
    return refused(
        "UnmatchedPrincipalType",
        f"The PrincipalId '{principal.replace('-', '')}' has type 'ServicePrincipal' , which is different "
        "from "
        f"specified PrinciaplType '{given}'.",
    )


def _once(request: Request) -> str | None:
    for other in request.cloud.store.resources(CLOUD, ASSIGNMENT):
        if not ids.same(other.id, request.id) and _grant(other.state) == _grant(request.inputs):
            return refused(
                "RoleAssignmentExists",
                "The role assignment already exists. "
                f"The ID of the conflicting role assignment is {ids.last(other.id).replace('-', '')}.",
                status=CONFLICT,
            )
    return None


def _grant(of: Mapping[str, Any]) -> tuple[str, str, str]:
    scope, role = str(of["scope"]).lower(), ids.last(str(of["roleDefinitionId"])).lower()
    return scope, role, str(of["principalId"]).lower()


def _answers(request: Request) -> Mapping[str, Any]:
    principal = str(request.inputs["principalId"])
    is_service = principal == DEPLOYER or principal in principals(request.cloud)
    type_ = request.inputs.get("principalType") or ("ServicePrincipal" if is_service else "User")
    return {"principalType": type_, "scope": request.inputs["scope"]}


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
    ResourceKind(
        type=ASSIGNMENT,
        api_version="2022-04-01",
        rules=(
            Rule("existing scope", _DOCS, _scope_exists),
            Rule("fixed role, principal and scope", _DOCS, _fixed),
            Rule(
                "existing principal",
                "Azure-Samples/azure-search-openai-demo#9; MicrosoftDocs/azure-docs#103085",
                _principal_exists,
            ),
            Rule(
                "matching principal type",
                "Azure/modern-web-app-pattern-dotnet#129",
                _principal_is_of_type,
            ),
            Rule("unique assignment", "Azure/bicep#11367", _once),
        ),
        outputs=_answers,
    ),
)
