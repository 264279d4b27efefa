"""Interface to control planes for the clouds' providers."""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

BEHIND: Final = "behind"
"""Cloud in the store of resources that are not the clouds' own."""
CLUSTER: Final = "rehearsal:cluster"
"""Type of a control plane, with its administrator's `kubeconfig`."""
DISK: Final = "rehearsal:disk"
"""Type of a disk that remains after its cluster was deleted."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Endpoint of a cluster's control plane.

    Attributes:
        host: host and port, such as `localhost:40123`; https.
        certificate_authority: CA of its certificate, PEM in base64 as in a kubeconfig.
    """

    host: str
    certificate_authority: str


class Clusters(Protocol):
    """Control planes on this machine, by cluster id."""

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        """Start the control plane of a cluster and the controllers of its node pools, and wait until it is
        ready.

        Raises:
            ToolError: one of its programs does not start.
        """
        ...

    def endpoint(self, identity: str) -> Endpoint:
        """Return the endpoint of a cluster's control plane.

        Raises:
            KeyError: there is no such cluster.
        """
        ...

    def delete(self, identity: str) -> None:
        """Stop a control plane and delete its data; a missing one is no error."""
        ...
