"""Parameters of a control plane, determined before its start: ports, certificates, identities, arguments.

Ports are reserved so that parallel rehearsals use different ones. Sources of arguments: the command line
references of Kubernetes 1.36, etcd 3.6 and kwok 0.8.
"""

import base64
import csv
import io
import secrets
import socket
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import trustme

LOCALHOST = "127.0.0.1"
FRONT_PROXY = "front-proxy-client"
"""Common name of the API server as a proxy for aggregated APIs."""
_VALID = timedelta(days=30)
MASTERS = "system:masters"
CloudName = Literal["gke", "aks"]
NAMES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "streaming-server",
    "kueue",
    "kwok-stages",
    "provisioning-request-crds",
)
"""Names of a control plane's tools. The programs of `available` are used if present, too."""
SERVICES = "10.96.0.0/16"
"""Service addresses, without listeners. See `egress`."""
NODE_ADDRESS = "10.63.0.1"
"""Address of every node, outside the pods' network."""
KUBELET_PORT = 10250
POD_NETWORK = "10.64.0.1/12"
"""Addresses of kwok's running pods."""


class PortReservation:
    """Reserved ports.

    They are bound, so that the system does not assign them. Release them just before their program starts; if
    another process takes one first, the program fails and is restarted with other ports.
    """

    def __init__(self, count: int) -> None:
        self._held = ExitStack()
        sockets = [self._held.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind((LOCALHOST, 0))
        self.ports = tuple(int(item.getsockname()[1]) for item in sockets)

    def release(self) -> None:
        """Release all ports."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


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
        api_server: the API server's serving certificate.
        etcd: etcd's serving and client certificate.
        front_proxy: the API server's client certificate for aggregated APIs.
        kubelet: the kubelets' serving certificate.
        accounts_key: the signing key of service account tokens, including its public half.
    """

    authority: Path
    api_server: KeyPair
    etcd: KeyPair
    front_proxy: KeyPair
    kubelet: KeyPair
    accounts_key: Path

    def authority_data(self) -> str:
        """Return the authority in kubeconfig format: PEM in base64."""
        return base64.b64encode(self.authority.read_bytes()).decode()


def issue(directory: Path) -> Certificates:
    """Create an authority, and a certificate for each purpose, in a directory that others must not read."""
    directory.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA(organization_name="Ebbtide rehearsal")
    trusted = directory / "ca.crt"
    trusted.write_bytes(authority.cert_pem.bytes())

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
        api_server=pair("api-server", *local, *inside),
        etcd=pair("etcd", *local),
        front_proxy=pair("front-proxy", *local, common_name=FRONT_PROXY),
        kubelet=pair("kubelet", NODE_ADDRESS),
        accounts_key=pair("service-accounts", *local).key,
    )


def new_token() -> str:
    """Return a random bearer token."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Identity:
    """A token's identity.

    Attributes:
        user: the user name in role bindings.
        groups: the groups in role bindings.
    """

    user: str
    groups: tuple[str, ...]
    token: str = field(default_factory=new_token)


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
    def new(cls, members: Mapping[str, Iterable[str]], token: str = "") -> "Identities":
        """Create an administrator, the cluster's creator, also an administrator, and members."""
        return cls(
            Identity("ebbtide:control-plane", (MASTERS,)),
            Identity("person@rehearsal.example", (MASTERS,), token or new_token()),
            {name: Identity(name, tuple(groups)) for name, groups in members.items()},
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
        authority: PEM in base64.
        user: credentials, such as `{"token": …}`.
        namespace: the context's namespace; empty for `default`.
    """
    cluster = {"server": server, "certificate-authority-data": authority}
    context = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "rehearsal",
        "clusters": [{"name": "rehearsal", "cluster": cluster}],
        "users": [{"name": "rehearsal", "user": dict(user)}],
        "contexts": [
            {"name": "rehearsal", "context": {"cluster": "rehearsal", "user": "rehearsal", **context}}
        ],
    }


class ControlPlaneTools(Protocol):
    """Locations of programs and data, at least of those in `NAMES`."""

    def path(self, name: str) -> Path:
        """Return a program's file, or a directory of data.

        Raises:
            KeyError: it is not there.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlanePlan:
    """A control plane's directory, ports, certificates and identities.

    Attributes:
        cloud: the cloud whose defaults a new cluster has.
        directory: its directory, readable by the user only.
        sockets: a directory with a short path, for Unix sockets.
        api_port: the API server's port.
        identities: its clients' identities.
    """

    name: str
    cloud: CloudName
    directory: Path
    sockets: Path
    etcd_port: int
    api_port: int
    certificates: Certificates
    identities: Identities

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://{LOCALHOST}:{self.api_port}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.directory / "admin.kubeconfig"

    @property
    def token_file(self) -> Path:
        """The static token file."""
        return self.directory / "tokens.csv"

    @property
    def egress_file(self) -> Path:
        """The egress configuration file."""
        return self.directory / "egress.yaml"

    @property
    def egress_socket(self) -> Path:
        """The egress proxy's socket."""
        return self.sockets / "egress"

    @property
    def kubelet_socket(self) -> Path:
        """The socket of the kubelets' streaming server."""
        return self.sockets / "kubelet"

    @property
    def sessions(self) -> Path:
        """The directory of the sessions that the streaming server offers."""
        return self.directory / "sessions"

    @property
    def stages(self) -> Path:
        """The stages of kwok."""
        return self.directory / "stages.yaml"

    def log(self, name: str) -> Path:
        """Return the log file of a program."""
        return self.directory / "logs" / f"{name}.log"


def etcd(plan: ControlPlanePlan) -> list[str]:
    """Return the command line of a single-member etcd. Its data may be lost with the machine, so fsync is
    disabled. Clients need a certificate: write access to etcd would allow running pods as the user."""
    url, pair = f"https://{LOCALHOST}:{plan.etcd_port}", plan.certificates.etcd
    peers = f"http://{LOCALHOST}:0"  # a port chosen by the system: there is no other member
    return [
        f"--data-dir={plan.directory / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        f"--cert-file={pair.certificate}",
        f"--key-file={pair.key}",
        "--client-cert-auth",
        f"--trusted-ca-file={plan.certificates.authority}",
        "--log-level=warn",
    ]


def api_server(plan: ControlPlanePlan) -> list[str]:
    """Return the command line of the API server, with the default admission plugins.

    Services and aggregated APIs are reached through a proxy, as in a cloud, where the control plane has no
    direct route to the cluster's network.
    """
    issued = plan.certificates
    return [
        f"--etcd-servers=https://{LOCALHOST}:{plan.etcd_port}",
        f"--etcd-cafile={issued.authority}",
        f"--etcd-certfile={issued.etcd.certificate}",
        f"--etcd-keyfile={issued.etcd.key}",
        f"--bind-address={LOCALHOST}",
        f"--advertise-address={LOCALHOST}",
        f"--secure-port={plan.api_port}",
        # No client needs the API server's endpoint, and an endpoint cannot be a loopback address.
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={issued.api_server.certificate}",
        f"--tls-private-key-file={issued.api_server.key}",
        f"--service-account-key-file={issued.accounts_key}",
        f"--service-account-signing-key-file={issued.accounts_key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-cluster-ip-range={SERVICES}",
        f"--token-auth-file={plan.token_file}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--egress-selector-config-file={plan.egress_file}",
        f"--requestheader-client-ca-file={issued.authority}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={issued.front_proxy.certificate}",
        f"--proxy-client-key-file={issued.front_proxy.key}",
        f"--kubelet-certificate-authority={issued.authority}",
        "--profiling=false",
    ]


def controller_manager(plan: ControlPlanePlan) -> list[str]:
    """Return the command line of the controller manager, without the attach-detach controller: there are no
    machines."""
    return [
        f"--kubeconfig={plan.kubeconfig}",
        # As in a cloud, each controller uses its own service account, which admission recognizes.
        "--use-service-account-credentials",
        f"--service-account-private-key-file={plan.certificates.accounts_key}",
        f"--root-ca-file={plan.certificates.authority}",
        "--controllers=*,-persistentvolume-attach-detach-controller",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--profiling=false",
    ]


def scheduler(plan: ControlPlanePlan) -> list[str]:
    """Return the command line of the scheduler."""
    return [
        f"--kubeconfig={plan.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
    ]


def kwok(plan: ControlPlanePlan) -> list[str]:
    """kwok, the fake kubelet of all nodes."""
    return [
        f"--kubeconfig={plan.kubeconfig}",
        f"--config={plan.stages}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        f"--node-ip={NODE_ADDRESS}",
        f"--cidr={POD_NETWORK}",
    ]


def streaming_server(plan: ControlPlanePlan) -> list[str]:
    """Return the command line of the kubelets' streaming server. It has a socket instead of the nodes' port,
    since every client can run commands as this user."""
    pair = plan.certificates.kubelet
    return [
        f"--socket={plan.kubelet_socket}",
        f"--sessions={plan.sessions}",
        f"--certificate={pair.certificate}",
        f"--key={pair.key}",
    ]


def egress(plan: ControlPlanePlan) -> dict[str, object]:
    """Return the API server's egress configuration for the cluster's network (Kubernetes docs, Konnectivity;
    API apiserver.k8s.io/v1beta1)."""
    transport = {"uds": {"udsName": str(plan.egress_socket)}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": transport}}
        ],
    }
