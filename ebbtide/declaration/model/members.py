"""Members of teams, and their names in Kubernetes and the clouds."""

import re
from collections.abc import Iterable

_GROUP = "group:"
_WORKFORCE, _WORKFORCE_GROUP = "principal://", "principalSet://"
_OBJECT_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ACCOUNT = ".gserviceaccount.com"


def is_group(member: str) -> bool:
    """Return whether a member is a group in GKE's form: of Google, or of a workforce identity pool."""
    return member.startswith((_GROUP, _WORKFORCE_GROUP))


def name_of(member: str) -> str:
    """Return a member's name in Kubernetes, without the prefix for groups."""
    return member.removeprefix(_GROUP)


def is_object_id(member: str) -> bool:
    """Return whether a member is an Entra object id, to which Azure can assign a role."""
    return _OBJECT_ID.fullmatch(member) is not None


def principal(member: str) -> str:
    """Return a member as an IAM principal with its type (cloud.google.com/iam/docs/principal-identifiers,
    2026)."""
    if is_group(member) or member.startswith(_WORKFORCE):
        return member
    return f"serviceAccount:{member}" if member.endswith(_ACCOUNT) else f"user:{member}"


def groups_domain(members: Iterable[str]) -> str:
    """Return the domain of Google's groups among the members; empty if there is none."""
    return next((member.rpartition("@")[2] for member in members if member.startswith(_GROUP)), "")
