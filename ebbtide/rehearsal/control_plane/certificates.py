"""One certificate authority for each control plane, and what it has issued."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
import trustme

from ebbtide.rehearsal.control_plane.ports import LOCALHOST

FRONT_PROXY = "front-proxy-client"
"""Common name of the API server where it speaks to an aggregated API for someone else."""

_VALID = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Files in PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """What the control plane shows and trusts.

    Attributes:
        authority: certificate of the authority, PEM.
        bundle: the public authorities and this one. With `SSL_CERT_FILE` naming it, a client whose kubeconfig
            names no authority verifies the API server: GKE's DNS endpoint has a publicly trusted certificate.
        api_server: served by the API server.
        etcd: served by etcd, and shown to it.
        front_proxy: shown by the API server to aggregated APIs.
        accounts_key: signs the tokens of service accounts; the public half is in it.
    """

    authority: Path
    bundle: Path
    api_server: KeyPair
    etcd: KeyPair
    front_proxy: KeyPair
    accounts_key: Path

    def authority_data(self) -> str:
        """The authority as a kubeconfig has it: PEM in base64."""
        return base64.b64encode(self.authority.read_bytes()).decode()


def issue(directory: Path, names: Sequence[str] = ()) -> Certificates:
    """A new authority, and a certificate for each purpose.

    Args:
        directory: where the files go; it must not be readable by others.
        names: names and addresses of the API server beside this machine's own.
    """
    directory.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA(organization_name="Ebbtide rehearsal")
    trusted, bundle = directory / "ca.crt", directory / "bundle.crt"
    pem = authority.cert_pem.bytes()
    trusted.write_bytes(pem)
    bundle.write_bytes(Path(certifi.where()).read_bytes() + pem)

    def pair(name: str, *identities: str, common_name: str | None = None) -> KeyPair:
        found = KeyPair(directory / f"{name}.crt", directory / f"{name}.key")
        leaf = authority.issue_cert(
            *identities, common_name=common_name, not_after=datetime.now(UTC) + _VALID
        )
        found.certificate.write_bytes(b"".join(part.bytes() for part in leaf.cert_chain_pems))
        found.key.touch(mode=0o600)
        found.key.write_bytes(leaf.private_key_pem.bytes())
        return found

    here = ("localhost", LOCALHOST)
    inside = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
    return Certificates(
        authority=trusted,
        bundle=bundle,
        api_server=pair("api-server", *here, *inside, *names),
        etcd=pair("etcd", *here),
        front_proxy=pair("front-proxy", *here, common_name=FRONT_PROXY),
        accounts_key=pair("service-accounts", *here).key,
    )
