"""What a control plane will be like, settled before anything of it starts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ebbtide.rehearsal.control_plane.certificates import Certificates
from ebbtide.rehearsal.control_plane.identities import Identities
from ebbtide.rehearsal.control_plane.ports import LOCALHOST

CloudName = Literal["gke", "aks"]

NAMES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "kueue",
    "kwok-stages",
    "provisioning-request-crds",
)
"""What a control plane is made of, as the tools call it. The programs of `at_hand` are used where they are
there, too."""


class Tools(Protocol):
    """Where the programs and data are that a control plane is made of; `NAMES` are those that it takes."""

    def path(self, name: str) -> Path:
        """A program's file, or a directory of data.

        Raises:
            KeyError: it is not there.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A control plane's directory, ports, and who and what it trusts.

    Attributes:
        name: of the cluster.
        cloud: whose additions a new cluster has.
        directory: its own, which nobody else can read.
        sockets: a directory with a short path, for Unix sockets.
        etcd_port: etcd's.
        api_port: the API server's.
        certificates: what it shows and trusts.
        identities: whom it lets in.
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
        """The administrator's."""
        return self.directory / "admin.kubeconfig"

    @property
    def token_file(self) -> Path:
        """Whom the API server lets in."""
        return self.directory / "tokens.csv"

    @property
    def egress_file(self) -> Path:
        """How the API server reaches what runs in the cluster."""
        return self.directory / "egress.yaml"

    @property
    def egress_socket(self) -> Path:
        """Where it does."""
        return self.sockets / "egress"

    @property
    def stages(self) -> Path:
        """What kwok does with nodes and pods."""
        return self.directory / "stages.yaml"

    def log(self, name: str) -> Path:
        """The log of a program."""
        return self.directory / "logs" / f"{name}.log"
