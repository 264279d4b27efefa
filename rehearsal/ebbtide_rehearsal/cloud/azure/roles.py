"""Role assignments."""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import CLOUD, DEPLOYER, TENANT, Arm
from ebbtide_rehearsal.cloud.azure.directory import knows
from ebbtide_rehearsal.cloud.azure.errors import CONFLICT, not_found, refused
from ebbtide_rehearsal.cloud.azure.identities import CREATED, principals
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, ResourceKind, Rule
from ebbtide_rehearsal.cloud.store import Resource

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
