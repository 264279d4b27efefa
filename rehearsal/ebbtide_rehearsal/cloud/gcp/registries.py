"""Artifact Registry: repositories and IAM policy members."""

import re
from typing import Final

from ebbtide_rehearsal.cloud.gcp.answers import outputs_of
from ebbtide_rehearsal.cloud.gcp.identities import forget_grants, member_kind
from ebbtide_rehearsal.cloud.gcp.labels import bad_labels
from ebbtide_rehearsal.cloud.gcp.request import (
    BAD_REQUEST,
    NOT_FOUND,
    REPOSITORY,
    REPOSITORY_MEMBER,
    Request,
    api_error,
    last,
)
from ebbtide_rehearsal.cloud.gcp.resource_kind import ResourceKind, Rule

_DOCS: Final = "Artifact Registry docs, repositories/create-repos (2026)"
_CLEANUP: Final = "Artifact Registry docs, repositories/cleanup-policy (2026)"
_NAME: Final = re.compile(r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")
_LOCATION: Final = re.compile(r"^(us|europe|asia|[a-z]+-[a-z]+\d+)$")
_DURATION: Final = re.compile(r"^\d+(\.\d{1,9})?s$")
_MOST_POLICIES: Final = 10


def _name(request: Request) -> str | None:
    name = request.fields.text("repositoryId")
    if _NAME.match(name):
        return None
    message = (
        f'Repository ID "{name}" is invalid: it may contain lowercase letters, numbers and hyphens, must '
        "begin with a letter and end with a letter or number, and has at most 63 characters."
    )
    return api_error(400, message, BAD_REQUEST)


def _location(request: Request) -> str | None:
    if _LOCATION.match(request.location):
        return None
    message = f"Location '{request.location}' is not found or access is unauthorized."
    return api_error(403, message, "forbidden")


def _labels(request: Request) -> str | None:
    reason = bad_labels(request.fields.labels("labels"))
    return api_error(400, reason, BAD_REQUEST) if reason else None


def _policies(request: Request) -> str | None:
    policies = request.fields.parts("cleanupPolicies")
    if len(policies) > _MOST_POLICIES:
        return api_error(400, f"at most {_MOST_POLICIES} cleanup policies are allowed", BAD_REQUEST)
    for policy in policies:
        for field in ("olderThan", "newerThan"):
            age = policy.text(f"condition.{field}")
            if age and not _DURATION.match(age):
                message = f"Invalid value at 'condition.{field}' (google.protobuf.Duration), \"{age}\""
                return api_error(400, message, BAD_REQUEST)
    return None


def _taken(_identity: str) -> str:
    return f"Error creating Repository: {api_error(409, 'the repository already exists', 'alreadyExists')}"


def _of_member(request: Request) -> str:
    name = last(request.fields.text("repository"))
    return f"projects/{request.project}/locations/{request.location}/repositories/{name}"


def _no_such_repository(request: Request) -> str | None:
    if request.cloud.get(_of_member(request)) is not None:
        return None
    return api_error(404, "Requested entity was not found.", NOT_FOUND)


KINDS: Final = (
    ResourceKind(
        type=REPOSITORY,
        outputs=lambda request: {
            **outputs_of(request),
            "location": request.location,
            # A domain-scoped project is below its domain.
            "registryUri": outputs_of(request)["registryUri"].replace(":", "/"),
        },
        rules=(
            Rule("a repository's name", _DOCS, _name),
            Rule(
                "a region or multi-region",
                "Artifact Registry docs, repositories/repo-locations (2026)",
                _location,
            ),
            Rule("labels", "Resource Manager docs, creating-managing-labels (2026)", _labels),
            Rule("ages of cleanup policies", _CLEANUP, _policies),
        ),
        failing="Error creating Repository",
        already_exists=_taken,
        after_delete=forget_grants,
        events="repository",
    ),
    member_kind(
        REPOSITORY_MEMBER,
        "artifactregistry repository",
        Rule(
            "a repository that there is",
            "Artifact Registry API, repositories.setIamPolicy (2026)",
            _no_such_repository,
        ),
    ),
)
