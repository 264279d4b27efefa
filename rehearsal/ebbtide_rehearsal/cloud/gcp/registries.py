"""Artifact Registry: repositories, and who may push and pull.

ForceNew, defaults and validation are those of hashicorp/terraform-provider-google-beta 7.45
(google-beta/services/artifactregistry, 2026-08).
"""

import re
from typing import Any, Final

from ebbtide_rehearsal.cloud.gcp.asked import BAD_REQUEST, NOT_FOUND, Asked, api_error, last
from ebbtide_rehearsal.cloud.gcp.identities import (
    MEMBER_CHECKS,
    MEMBER_REPLACES,
    MEMBERS,
    ROLES,
    forget_grants,
)
from ebbtide_rehearsal.cloud.gcp.kind import Kind, Refusal, one_of
from ebbtide_rehearsal.cloud.gcp.labels import bad_labels

_SCHEMA: Final = "hashicorp/terraform-provider-google-beta 7.45, services/artifactregistry (2026-08)"
_DOCS: Final = "Artifact Registry docs, repositories/create-repos (2026)"
_CLEANUP: Final = "Artifact Registry docs, repositories/cleanup-policy (2026)"
_NAME: Final = re.compile(r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")
_LOCATION: Final = re.compile(r"^(us|europe|asia|[a-z]+-[a-z]+\d+)$")
_DURATION: Final = re.compile(r"^\d+(\.\d{1,9})?s$")
_MOST_POLICIES: Final = 10


def _repository_id(asked: Asked) -> str:
    name = asked.said.text("repositoryId")
    return f"projects/{asked.project}/locations/{asked.location}/repositories/{name}"


def _outputs(asked: Asked) -> dict[str, Any]:
    name, project = asked.said.text("repositoryId"), asked.project.replace(":", "/")
    return {
        "name": name,
        "project": asked.project,
        "location": asked.location,
        "registryUri": f"{asked.location}-docker.pkg.dev/{project}/{name}",
    }


def _name(asked: Asked) -> str | None:
    name = asked.said.text("repositoryId")
    if _NAME.match(name):
        return None
    message = (
        f'Repository ID "{name}" is invalid: it may contain lowercase letters, numbers and hyphens, must '
        "begin with a letter and end with a letter or number, and has at most 63 characters."
    )
    return api_error(400, message, BAD_REQUEST)


def _location(asked: Asked) -> str | None:
    if _LOCATION.match(asked.location):
        return None
    message = f"Location '{asked.location}' is not found or access is unauthorized."
    return api_error(403, message, "forbidden")


def _labels(asked: Asked) -> str | None:
    reason = bad_labels(asked.said.labels("labels"))
    return api_error(400, reason, BAD_REQUEST) if reason else None


def _policies(asked: Asked) -> str | None:
    policies = asked.said.parts("cleanupPolicies")
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


REPOSITORY_KIND: Final = Kind(
    identity=_repository_id,
    outputs=_outputs,
    defaults={"mode": "STANDARD_REPOSITORY", "deletionPolicy": "DELETE"},
    replaces=frozenset({"repositoryId", "location", "project", "format", "kmsKeyName", "mode"}),
    checks=(
        one_of(
            "mode",
            "STANDARD_REPOSITORY",
            "VIRTUAL_REPOSITORY",
            "REMOTE_REPOSITORY",
            "AOSS_REPOSITORY",
            "ASSURED_OSS_REPOSITORY",
            source=_SCHEMA,
        ),
        one_of("cleanupPolicies.action", "DELETE", "KEEP", source=_SCHEMA),
        one_of("cleanupPolicies.condition.tagState", "TAGGED", "UNTAGGED", "ANY", source=_SCHEMA),
    ),
    refusals=(
        Refusal("a repository's name", _DOCS, _name),
        Refusal(
            "a region or multi-region",
            "Artifact Registry docs, repositories/repo-locations (2026)",
            _location,
        ),
        Refusal("labels", "Resource Manager docs, creating-managing-labels (2026)", _labels),
        Refusal("ages of cleanup policies", _CLEANUP, _policies),
    ),
    failing="Error creating Repository",
    taken=_taken,
    gone=lambda world, repository: forget_grants(world, repository.id),
    events="repository",
)


def _of_member(asked: Asked) -> str:
    name = last(asked.said.text("repository"))
    return f"projects/{asked.project}/locations/{asked.location}/repositories/{name}"


def _no_such_repository(asked: Asked) -> str | None:
    if asked.world.get(_of_member(asked)) is not None:
        return None
    return api_error(404, "Requested entity was not found.", NOT_FOUND)


REPOSITORY_MEMBER_KIND: Final = Kind(
    identity=lambda asked: f"{_of_member(asked)}/{asked.said.text('role')}/{asked.said.text('member')}",
    outputs=lambda _asked: {"etag": "BwYAAAAAAAA="},
    replaces=MEMBER_REPLACES | {"repository", "location"},
    checks=MEMBER_CHECKS,
    refusals=(
        Refusal(
            "a repository that there is",
            "Artifact Registry API, repositories.setIamPolicy (2026)",
            _no_such_repository,
        ),
        ROLES,
        MEMBERS,
    ),
    failing="Error applying IAM policy for artifactregistry repository",
)
