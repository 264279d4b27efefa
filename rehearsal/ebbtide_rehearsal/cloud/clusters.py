"""Clusters as the clouds' providers see them: something with a control plane that comes and goes."""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

BEHIND: Final = "behind"
"""In the store, the cloud of what stands behind the clouds' own resources:"""
CLUSTER: Final = "rehearsal:cluster"
"""a control plane, with its administrator's `kubeconfig`,"""
DISK: Final = "rehearsal:disk"
"""and a disk that was left when its cluster went."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Endpoint of a cluster's control plane.

    Attributes:
        host: name and port, such as `localhost:40123`; https.
        certificate_authority: of its certificate, PEM in base64 as a kubeconfig has it.
    """

    host: str
    certificate_authority: str


class Clusters(Protocol):
    """Control planes on this machine, by the id of their cluster."""

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        """Start the control plane of a cluster, and what goes on in its node pools; returns when it is ready.

        Raises:
            ToolError: a program of it would not start.
        """
        ...

    def endpoint(self, identity: str) -> Endpoint:
        """Return the endpoint of a cluster's control plane.

        Raises:
            KeyError: there is no such cluster.
        """
        ...

    def delete(self, identity: str) -> None:
        """Stop a control plane and forget all that was in it; one that is gone is no error."""
        ...
