"""Who may come in, and with what: tokens that the API server knows, and kubeconfigs with them."""

import csv
import io
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Identity:
    """Someone whom the API server knows by a token.

    Attributes:
        user: the name that bindings of roles name.
        groups: the groups, which bindings may name, too.
        token: what is shown.
    """

    user: str
    groups: tuple[str, ...]
    token: str

    @classmethod
    def new(cls, user: str, groups: Iterable[str] = ()) -> "Identity":
        """Someone new, with a token of their own."""
        return cls(user, tuple(groups), secrets.token_urlsafe(24))


@dataclass(frozen=True, slots=True)
class Identities:
    """Everyone whom the API server knows.

    Attributes:
        admin: the control plane's own programs; may do everything.
        person: whom the clouds' credential helpers speak for.
        members: people of teams, by name, with the groups that their cloud says they are in.
    """

    admin: Identity
    person: Identity
    members: Mapping[str, Identity]

    @classmethod
    def new(cls, person: str, members: Mapping[str, Iterable[str]]) -> "Identities":
        """An administrator, the person who makes the cluster, who may do everything in it, and members."""
        return cls(
            Identity.new("ebbtide:control-plane", [MASTERS]),
            Identity.new(person, [MASTERS]),
            {name: Identity.new(name, groups) for name, groups in members.items()},
        )

    def token_file(self) -> str:
        """All of them as the API server reads them: token, user, uid, groups (Kubernetes docs, static token
        file)."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        for one in (self.admin, self.person, *self.members.values()):
            lines.writerow([one.token, one.user, one.user, ",".join(one.groups)])
        return text.getvalue()


def kubeconfig(
    *, server: str, authority: str, user: Mapping[str, Any], namespace: str = ""
) -> dict[str, Any]:
    """A kubeconfig with one context.

    Args:
        server: URL of the API server.
        authority: PEM in base64; empty where a trusted authority vouches for the server.
        user: how to show who one is, such as `{"token": …}`.
        namespace: where the context is; empty for `default`.
    """
    trust = {"certificate-authority-data": authority} if authority else {}
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "rehearsal",
        "clusters": [{"name": "rehearsal", "cluster": {"server": server, **trust}}],
        "users": [{"name": "rehearsal", "user": dict(user)}],
        "contexts": [
            {"name": "rehearsal", "context": {"cluster": "rehearsal", "user": "rehearsal", **place}}
        ],
    }
