"""Service accounts, and who may do what.

ForceNew and validation are those of hashicorp/terraform-provider-google-beta 7.45
(google-beta/services/resourcemanager and tpgiamresource, 2026-08).
"""

import re
from typing import Any, Final

from ebbtide.catalog.clouds import account_host
from ebbtide_rehearsal.cloud.gcp.asked import (
    ACCOUNT_MEMBER,
    BAD_REQUEST,
    BUCKET_MEMBER,
    CLOUD,
    CLUSTER,
    NOT_FOUND,
    REPOSITORY_MEMBER,
    Asked,
    World,
    api_error,
    inputs_of,
    last,
)
from ebbtide_rehearsal.cloud.gcp.kind import Check, Kind, Refusal

_SCHEMA: Final = "hashicorp/terraform-provider-google-beta 7.45, services/resourcemanager (2026-08)"
_ACCOUNT_ID: Final = r"^[a-z](?:[-a-z0-9]{4,28}[a-z0-9])$"


def _account_id(value: Any) -> str | None:
    """Terraform's `ValidateRFC1035Name(6, 30)`."""
    fits = re.match(_ACCOUNT_ID, str(value)) is not None
    return None if fits else f'"account_id" ("{value}") doesn\'t match regexp "{_ACCOUNT_ID}"'


def email_of(asked: Asked) -> str:
    """Address of the service account that is asked for."""
    return f"{asked.said.text('accountId')}@{account_host(asked.project)}"


def _account(asked: Asked) -> str:
    return f"projects/{asked.project}/serviceAccounts/{email_of(asked)}"


def _account_outputs(asked: Asked) -> dict[str, Any]:
    email = email_of(asked)
    return {
        "project": asked.project,
        "email": email,
        "member": f"serviceAccount:{email}",
        "name": _account(asked),
    }


def _account_taken(identity: str) -> str:
    name, project = last(identity).partition("@")[0], identity.split("/")[1]
    message = f"Service account {name} already exists within project projects/{project}."
    return f"Error creating service account: {api_error(409, message, 'alreadyExists')}"


ACCOUNT_KIND: Final = Kind(
    identity=_account,
    outputs=_account_outputs,
    defaults={"disabled": False},
    replaces=frozenset({"accountId", "project"}),
    checks=(
        Check("accountId", _SCHEMA, _account_id),
        Check("description", _SCHEMA, lambda value: _longer(value, 256)),
    ),
    taken=_account_taken,
    gone=lambda world, account: forget_grants(world, account.id),
)


def _longer(value: Any, most: int) -> str | None:
    length = len(str(value))
    return None if length <= most else f"expected length to be in the range (0 - {most}), got {length}"


_MEMBER: Final = re.compile(
    r"^(allUsers|allAuthenticatedUsers|(deleted:)?[A-Za-z]+:.+|principal(Set)?://.+)$"
)
_ROLE: Final = re.compile(r"^(roles|(projects|organizations)/[^/]+/roles)/[A-Za-z0-9._]+$")


def _member(value: Any) -> str | None:
    """Terraform's `validateIAMMember`: a kind and a name."""
    if _MEMBER.match(str(value)):
        return None
    where = "https://cloud.google.com/billing/docs/reference/rest/v1/Policy#Binding"
    wanted = f"IAM members must have one of the values outlined here: {where}"
    return f"invalid value for member ({wanted}), got {value}"


def _no_such_role(asked: Asked) -> str | None:
    role = asked.said.text("role")
    if _ROLE.match(role):
        return None
    return api_error(400, f"Role {role} is not supported for this resource.", BAD_REQUEST)


_POOL: Final = re.compile(r"^serviceAccount:([^\[]+)\.svc\.id\.goog\[.+/.+\]$")


def _no_such_member(asked: Asked) -> str | None:
    """Kubernetes' identities come with a project's first cluster that has them."""
    member = asked.said.text("member")
    pool = _POOL.match(member)
    if pool is not None and not _has_identities(asked, pool[1]):
        message = (
            f"Identity Pool does not exist ({pool[1]}.svc.id.goog). Please check that you specified a valid "
            "resource name as returned in the `name` attribute in the configuration API."
        )
        return api_error(400, message, BAD_REQUEST)
    return None


def _has_identities(asked: Asked, project: str) -> bool:
    return any(
        inputs_of(cluster).text("workloadIdentityConfig.workloadPool") == f"{project}.svc.id.goog"
        for cluster in asked.world.of(CLUSTER)
    )


def _no_such_account(asked: Asked) -> str | None:
    identity = asked.said.text("serviceAccountId")
    if asked.world.get(identity) is not None:
        return None
    return api_error(404, f"Unknown service account {last(identity)}", NOT_FOUND)


def _no_such_bucket(asked: Asked) -> str | None:
    if asked.world.get(_bucket(asked)) is not None:
        return None
    return api_error(404, "The specified bucket does not exist.", NOT_FOUND)


def _bucket(asked: Asked) -> str:
    return asked.said.text("bucket").removeprefix("b/")


MEMBER_REPLACES: Final = frozenset({"role", "member", "project", "serviceAccountId", "bucket", "condition"})
MEMBER_CHECKS: Final = (Check("member", _SCHEMA, _member),)
ROLES: Final = Refusal("a role's name", "IAM docs, roles-overview (2026)", _no_such_role)
MEMBERS: Final = Refusal(
    "identities of a cluster that there is",
    "terraform-google-modules/terraform-google-kubernetes-engine#916",
    _no_such_member,
)

PROJECT_MEMBER_KIND: Final = Kind(
    identity=lambda asked: "/".join((asked.project, asked.said.text("role"), asked.said.text("member"))),
    outputs=lambda _asked: {"etag": "BwYAAAAAAAA="},
    replaces=MEMBER_REPLACES,
    checks=MEMBER_CHECKS,
    refusals=(ROLES, MEMBERS),
    failing="Error applying IAM policy for project",
)

ACCOUNT_MEMBER_KIND: Final = Kind(
    identity=lambda asked: "/".join(
        (asked.said.text("serviceAccountId"), asked.said.text("role"), asked.said.text("member"))
    ),
    outputs=lambda _asked: {"etag": "BwYAAAAAAAA="},
    replaces=MEMBER_REPLACES,
    checks=MEMBER_CHECKS,
    refusals=(
        Refusal("an account that there is", "IAM API, serviceAccounts.setIamPolicy (2026)", _no_such_account),
        ROLES,
        MEMBERS,
    ),
    failing="Error applying IAM policy for service account",
)

BUCKET_MEMBER_KIND: Final = Kind(
    identity=lambda asked: f"b/{_bucket(asked)}/{asked.said.text('role')}/{asked.said.text('member')}",
    outputs=lambda _asked: {"etag": "CAE="},
    replaces=MEMBER_REPLACES,
    checks=MEMBER_CHECKS,
    refusals=(
        Refusal("a bucket that there is", "Cloud Storage API, buckets.setIamPolicy (2026)", _no_such_bucket),
        ROLES,
        MEMBERS,
    ),
    failing="Error applying IAM policy for storage bucket",
)


KEY_MEMBER_KIND: Final = Kind(
    identity=lambda asked: "/".join(
        (asked.said.text("cryptoKeyId"), asked.said.text("role"), asked.said.text("member"))
    ),
    outputs=lambda _asked: {"etag": "BwYAAAAAAAA="},
    replaces=MEMBER_REPLACES | {"cryptoKeyId"},
    checks=MEMBER_CHECKS,
    refusals=(ROLES, MEMBERS),
    failing="Error applying IAM policy for KMS CryptoKey",
)


def forget_grants(world: World, identity: str) -> None:
    """The policy on a resource goes with it: its members are there no longer."""
    for kind in (ACCOUNT_MEMBER, BUCKET_MEMBER, REPOSITORY_MEMBER):
        for grant in world.of(kind):
            if grant.id.startswith((f"{identity}/", f"b/{identity}/")):
                world.store.remove(CLOUD, grant.id)
