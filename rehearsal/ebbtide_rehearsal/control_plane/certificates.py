"""A certificate authority per control plane, and its certificates."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
import trustme

from ebbtide_rehearsal.control_plane.ports import LOCALHOST

FRONT_PROXY = "front-proxy-client"
"""Common name of the API server as a proxy for aggregated APIs."""

_VALID = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """The control plane's certificates and trust.

    Attributes:
        authority: certificate of the authority, PEM.
        bundle: the public authorities and this one. As `SSL_CERT_FILE` it lets a client whose kubeconfig has
            no authority verify the API server: GKE's DNS endpoint has a publicly trusted certificate.
        api_server: the API server's serving certificate.
        etcd: etcd's serving and client certificate.
        front_proxy: the API server's client certificate for aggregated APIs.
        accounts_key: the signing key of service account tokens, including its public half.
    """

    authority: Path
    bundle: Path
    api_server: KeyPair
    etcd: KeyPair
    front_proxy: KeyPair
    accounts_key: Path

    def authority_data(self) -> str:
        """Return the authority in kubeconfig format: PEM in base64."""
        return base64.b64encode(self.authority.read_bytes()).decode()


def issue(directory: Path, names: Sequence[str] = ()) -> Certificates:
    """Create an authority, and a certificate for each purpose.

    Args:
        directory: the directory of the files; it must not be readable by others.
        names: additional names and addresses of the API server.
    """
    directory.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA(organization_name="Ebbtide rehearsal")
    trusted, bundle = directory / "ca.crt", directory / "bundle.crt"
    pem = authority.cert_pem.bytes()
    trusted.write_bytes(pem)
    bundle.write_bytes(Path(certifi.where()).read_bytes() + pem)

    def pair(name: str, *identities: str, common_name: str | None = None) -> KeyPair:
        key_pair = KeyPair(directory / f"{name}.crt", directory / f"{name}.key")
        leaf = authority.issue_cert(
            *identities, common_name=common_name, not_after=datetime.now(UTC) + _VALID
        )
        key_pair.certificate.write_bytes(b"".join(part.bytes() for part in leaf.cert_chain_pems))
        key_pair.key.touch(mode=0o600)
        key_pair.key.write_bytes(leaf.private_key_pem.bytes())
        return key_pair

    local = ("localhost", LOCALHOST)
    inside = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
    return Certificates(
        authority=trusted,
        bundle=bundle,
        api_server=pair("api-server", *local, *inside, *names),
        etcd=pair("etcd", *local),
        front_proxy=pair("front-proxy", *local, common_name=FRONT_PROXY),
        accounts_key=pair("service-accounts", *local).key,
    )
