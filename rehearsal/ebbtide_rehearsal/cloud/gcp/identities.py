"""Service accounts and IAM policy members."""

import re
from typing import Final

from ebbtide_rehearsal.cloud.gcp.request import (
    ACCOUNT,
    ACCOUNT_MEMBER,
    BAD_REQUEST,
    BUCKET_MEMBER,
    CLUSTER,
    KEY_MEMBER,
    NOT_FOUND,
    PROJECT_MEMBER,
    REPOSITORY_MEMBER,
    SERVICE_IDENTITY,
    GoogleCloud,
    Request,
    ResourceKind,
    Rule,
    api_error,
    inputs_of,
    last,
    outputs_of,
)
from ebbtide_rehearsal.cloud.store import Resource


def _account_taken(identity: str) -> str:
    name, project = last(identity).partition("@")[0], identity.split("/")[1]
    message = f"Service account {name} already exists within project projects/{project}."
    return f"Error creating service account: {api_error(409, message, 'alreadyExists')}"


_POOL: Final = re.compile(r"^serviceAccount:([^\[]+)\.svc\.id\.goog\[.+/.+\]$")


def _no_such_member(request: Request) -> str | None:
    """Kubernetes identities exist from a project's first cluster with Workload Identity."""
    member = request.fields.text("member")
    pool = _POOL.match(member)
    if pool is not None and not _has_identities(request, pool[1]):
        message = (
            f"Identity Pool does not exist ({pool[1]}.svc.id.goog). Please check that you specified a valid "
            "resource name as returned in the `name` attribute in the configuration API."
        )
        return api_error(400, message, BAD_REQUEST)
    return None


def _has_identities(request: Request, project: str) -> bool:
    return any(
        inputs_of(cluster).text("workloadIdentityConfig.workloadPool") == f"{project}.svc.id.goog"
        for cluster in request.cloud.of(CLUSTER)
    )


def _no_such_account(request: Request) -> str | None:
    identity = request.fields.text("serviceAccountId")
    if request.cloud.get(identity) is not None:
        return None
    return api_error(404, f"Unknown service account {last(identity)}", NOT_FOUND)


def _no_such_bucket(request: Request) -> str | None:
    if request.cloud.get(request.fields.text("bucket")) is not None:
        return None
    return api_error(404, "The specified bucket does not exist.", NOT_FOUND)


MEMBERS: Final = Rule(
    "identities of an existing cluster",
    "terraform-google-modules/terraform-google-kubernetes-engine#916",
    _no_such_member,
)


def forget_grants(cloud: GoogleCloud, resource: Resource) -> None:
    """Delete the IAM policy of a deleted resource."""
    types = (ACCOUNT_MEMBER, BUCKET_MEMBER, REPOSITORY_MEMBER)
    cloud.forget_below(resource.id, *types)
    cloud.forget_below(f"b/{resource.id}", *types)


def member_kind(type_: str, policy: str, *rules: Rule) -> ResourceKind:
    """Return the kind of an IAM policy member, with additional rules."""
    return ResourceKind(
        type=type_,
        outputs=lambda _request: {"etag": "CAE=" if type_ == BUCKET_MEMBER else "BwYAAAAAAAA="},
        rules=(*rules, MEMBERS),
        failing=f"Error applying IAM policy for {policy}",
    )


KINDS: Final = (
    ResourceKind(type=ACCOUNT, outputs=outputs_of, already_exists=_account_taken, after_delete=forget_grants),
    ResourceKind(type=SERVICE_IDENTITY, outputs=outputs_of),
    member_kind(PROJECT_MEMBER, "project"),
    member_kind(
        ACCOUNT_MEMBER,
        "service account",
        Rule("existing account", "IAM API, serviceAccounts.setIamPolicy (2026)", _no_such_account),
    ),
    member_kind(
        BUCKET_MEMBER,
        "storage bucket",
        Rule("existing bucket", "Cloud Storage API, buckets.setIamPolicy (2026)", _no_such_bucket),
    ),
    member_kind(KEY_MEMBER, "KMS CryptoKey"),
)
