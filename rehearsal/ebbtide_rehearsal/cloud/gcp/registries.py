"""Artifact Registry: repositories and IAM policy members."""

from typing import Final

from ebbtide_rehearsal.cloud.gcp.answers import outputs_of
from ebbtide_rehearsal.cloud.gcp.identities import forget_grants, member_kind
from ebbtide_rehearsal.cloud.gcp.request import (
    NOT_FOUND,
    REPOSITORY,
    REPOSITORY_MEMBER,
    Request,
    api_error,
    last,
)
from ebbtide_rehearsal.cloud.gcp.resource_kind import ResourceKind, Rule


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
        failing="Error creating Repository",
        already_exists=_taken,
        after_delete=forget_grants,
        events="repository",
    ),
    member_kind(
        REPOSITORY_MEMBER,
        "artifactregistry repository",
        Rule(
            "existing repository",
            "Artifact Registry API, repositories.setIamPolicy (2026)",
            _no_such_repository,
        ),
    ),
)
