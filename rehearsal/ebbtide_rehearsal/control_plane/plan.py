"""Parameters of a control plane, determined before its start."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ebbtide_rehearsal.control_plane.certificates import Certificates
from ebbtide_rehearsal.control_plane.identities import Identities
from ebbtide_rehearsal.control_plane.ports import LOCALHOST

CloudName = Literal["gke", "aks"]

NAMES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "kueue",
    "kwok-crds",
    "kwok-stages",
    "provisioning-request-crds",
)
"""Names of a control plane's tools. The programs of `available` are used if present, too."""


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
        name: the cluster's name.
        cloud: the cloud whose defaults a new cluster has.
        directory: its directory, readable by the user only.
        sockets: a directory with a short path, for Unix sockets.
        etcd_port: etcd's port.
        api_port: the API server's port.
        certificates: its certificates.
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
        """The socket of kwok's kubelet API."""
        return self.sockets / "kubelet"

    @property
    def stages(self) -> Path:
        """The stages of kwok."""
        return self.directory / "stages.yaml"

    def log(self, name: str) -> Path:
        """Return the log file of a program."""
        return self.directory / "logs" / f"{name}.log"
