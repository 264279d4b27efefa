"""Identities of an API server's clients: tokens and kubeconfigs."""

import csv
import io
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Identity:
    """A token's identity.

    Attributes:
        user: the user name in role bindings.
        groups: the groups in role bindings.
        token: the bearer token.
    """

    user: str
    groups: tuple[str, ...]
    token: str

    @classmethod
    def new(cls, user: str, groups: Iterable[str] = ()) -> "Identity":
        """Create an identity with a random token."""
        return cls(user, tuple(groups), secrets.token_urlsafe(24))


@dataclass(frozen=True, slots=True)
class Identities:
    """All identities of an API server.

    Attributes:
        admin: the control plane's own programs; a cluster administrator.
        person: the user of the clouds' credential helpers.
        members: team members by name, with their groups in the cloud.
    """

    admin: Identity
    person: Identity
    members: Mapping[str, Identity]

    @classmethod
    def new(cls, person: str, members: Mapping[str, Iterable[str]]) -> "Identities":
        """Create an administrator, the cluster's creator, also an administrator, and members."""
        return cls(
            Identity.new("ebbtide:control-plane", [MASTERS]),
            Identity.new(person, [MASTERS]),
            {name: Identity.new(name, groups) for name, groups in members.items()},
        )

    def token_file(self) -> str:
        """Format the identities as a static token file: token, user, uid, groups (Kubernetes docs, static
        token file).
        """
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        for identity in (self.admin, self.person, *self.members.values()):
            lines.writerow([identity.token, identity.user, identity.user, ",".join(identity.groups)])
        return text.getvalue()


def kubeconfig(
    *, server: str, authority: str, user: Mapping[str, Any], namespace: str = ""
) -> dict[str, Any]:
    """Build a kubeconfig with one context.

    Args:
        server: URL of the API server.
        authority: PEM in base64; empty if a trusted authority issued the server's certificate.
        user: credentials, such as `{"token": …}`.
        namespace: the context's namespace; empty for `default`.
    """
    trust = {"certificate-authority-data": authority} if authority else {}
    context = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "rehearsal",
        "clusters": [{"name": "rehearsal", "cluster": {"server": server, **trust}}],
        "users": [{"name": "rehearsal", "user": dict(user)}],
        "contexts": [
            {"name": "rehearsal", "context": {"cluster": "rehearsal", "user": "rehearsal", **context}}
        ],
    }
