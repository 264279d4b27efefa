"""A token server for the real registry: what Artifact Registry, Azure and Docker Hub have in front of theirs.

Source: distribution 3.1, docs/content/spec/auth/token.md and jwt.md.
"""

import base64
import json
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import trustme
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from ebbtide_rehearsal.control_plane.plan import LOCALHOST
from tests.loopback import Handler, listening

ISSUER: Final = "token-server"
SERVICE: Final = "registry"
REFRESH_TOKEN: Final = "refresh-token"  # noqa: S105 # of the test
_NUMBER: Final = 32  # bytes

Grants = Mapping[tuple[str, str], frozenset[str]]
"""Actions on every repository, by user name and password."""


class TokenServer:
    """A token server.

    Attributes:
        address: its host and port.
        grants: its users.
        entra_tokens: tokens of Azure's users, which it exchanges for `REFRESH_TOKEN`.
        scopes: the scopes that were requested.
    """

    def __init__(self, authority: trustme.CA, address: str, grants: Grants) -> None:
        certificate = authority.issue_cert(LOCALHOST)
        key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        self._key = key
        leaf = load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes())
        self._chain = base64.b64encode(leaf.public_bytes(Encoding.DER)).decode()
        self.address, self.grants = address, grants
        self.entra_tokens: set[str] = set()
        self.scopes: list[str] = []

    def token(self, authorization: str, scopes: list[str]) -> str | None:
        """Return a token for the requested actions that a user may take; None for an unknown user."""
        user, _, password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if authorization and (user, password) not in self.grants:
            return None
        self.scopes += scopes
        allowed = self.grants.get((user, password), frozenset[str]())
        access: list[dict[str, Any]] = []
        for scope in scopes:
            kind, name, actions = scope.split(":")
            access.append(
                {
                    "type": kind,
                    "name": name,
                    "actions": [item for item in actions.split(",") if item in allowed],
                }
            )
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "sub": user,
            "aud": SERVICE,
            "exp": now + 60,
            "nbf": now - 60,
            "access": access,
        }
        head = {"typ": "JWT", "alg": "ES256", "x5c": [self._chain]}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in (head, claims))
        numbers = decode_dss_signature(self._key.sign(signed.encode(), ECDSA(SHA256())))
        return f"{signed}.{_encoded(b''.join(number.to_bytes(_NUMBER, 'big') for number in numbers))}"

    def exchanged(self, form: Mapping[str, list[str]]) -> str | None:
        """Return Azure's refresh token for a user's token; None for an unknown user."""
        (kind,), (token,) = form["grant_type"], form["access_token"]
        return REFRESH_TOKEN if kind == "access_token" and token in self.entra_tokens else None


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


@contextmanager
def token_server(authority: trustme.CA, grants: Grants) -> Generator[TokenServer]:
    """Serve tokens over TLS, with the paths of Azure's registries."""

    class Answers(Handler):
        """Requests for tokens."""

        def do_GET(self) -> None:  # noqa: N802 - named by http.server
            """Give a token."""
            query = parse_qs(urlsplit(self.path).query)
            token = served.token(self.headers.get("Authorization", ""), query.get("scope", []))
            self._answer({"access_token": token} if token else None)

        def do_POST(self) -> None:  # noqa: N802 - named by http.server
            """Exchange a token of Entra for one of the registry."""
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            token = served.exchanged(form)
            self._answer({"refresh_token": token} if token else None)

        def _answer(self, document: dict[str, str] | None) -> None:
            self.send(200 if document else 401, document or {"errors": [{"code": "UNAUTHORIZED"}]})

    with listening(Answers, authority) as port:
        served = TokenServer(authority, f"{LOCALHOST}:{port}", grants)
        yield served
