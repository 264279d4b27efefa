"""A team's members, as the declaration names them, and what the clouds make of it."""

import re

from ebbtide.model.cluster import Cluster

_GROUP = "group:"
_OBJECT_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ACCOUNT = ".gserviceaccount.com"


def is_group(member: str) -> bool:
    """Check that a member is a group in GKE's form."""
    return member.startswith(_GROUP)


def name_of(member: str) -> str:
    """Return a member's name in Kubernetes, without the prefix of groups."""
    return member.removeprefix(_GROUP)


def is_object_id(member: str) -> bool:
    """Check that a member is an Entra object id, which Azure can assign a role to."""
    return _OBJECT_ID.fullmatch(member) is not None


def principal(member: str) -> str:
    """Return a member in IAM's form, with its kind (cloud.google.com/iam/docs/principal-identifiers,
    2026)."""
    if is_group(member):
        return member
    return f"serviceAccount:{member}" if member.endswith(_ACCOUNT) else f"user:{member}"


def members_of(cluster: Cluster) -> tuple[str, ...]:
    """Every member of every team, each once."""
    return tuple(dict.fromkeys(member for team in cluster.teams for member in team.members))


def groups_domain(cluster: Cluster) -> str:
    """Domain of the groups among the members; empty where there is none."""
    return next((member.rpartition("@")[2] for member in members_of(cluster) if is_group(member)), "")
