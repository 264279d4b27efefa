"""What is known of a program that really runs in a rehearsal, as a process that stands for a pod of it."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from ebbtide.rehearsal.control_plane.failures import ControlPlaneError
from ebbtide.rehearsal.control_plane.ports import LOCALHOST

_WEBHOOK, _METRICS, _HEALTH = 9443, 8443, 8081

SERVERS: Final = 3
"""How many ports a controller manager listens on: webhooks, metrics, health."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a process listens on this machine, and what that is in the pod that it stands for.

    Attributes:
        health: the port of this machine that says whether it is ready, at `/readyz`.
        ports: from those of the pod to those of this machine.
    """

    health: int
    ports: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod's process runs.

    Attributes:
        ports: free ports of this machine, as many as the program listens on.
        root: the directory that stands for the root of its container.
        namespace: the pod's.
    """

    ports: tuple[int, ...]
    root: Path
    namespace: str


class Outside(Protocol):
    """A program's configuration for a process outside of a cluster: with what must differ there, and nothing
    else. A pure function."""

    def __call__(self, configuration: Mapping[str, Any], place: Place, /) -> tuple[dict[str, Any], Listening]:
        """Of the configuration that the pod mounts: what the process is told, and where it listens then."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that really runs while a pod of it is on a node.

    Attributes:
        tool: the program, as the tools call it.
        labels: those that its pods, and no others, carry.
        flag: the flag that names the file of its configuration.
        ports: how many ports it listens on.
        outside: its configuration outside of a cluster.
    """

    tool: str
    labels: Mapping[str, str]
    flag: str = "--config"
    ports: int = SERVERS
    outside: Outside

    @property
    def selector(self) -> str:
        """Its pods' labels, as the API server selects by them."""
        return ",".join(f"{key}={value}" for key, value in self.labels.items())

    def configuration(self, arguments: Sequence[str]) -> str:
        """Where its configuration is in the container.

        Raises:
            ControlPlaneError: its arguments do not say.
        """
        for word in arguments:
            if self._names_configuration(word):
                return word.partition("=")[2]
        raise ControlPlaneError(f"{self.tool} is given no {self.flag}=FILE")

    def arguments(self, given: Sequence[str], configuration: Path, kubeconfig: Path) -> list[str]:
        """The pod's arguments, with other files."""
        kept = [word for word in given if not self._names_configuration(word)]
        return [f"{self.flag}={configuration}", f"--kubeconfig={kubeconfig}", *kept]

    def _names_configuration(self, word: str) -> bool:
        return word.startswith(f"{self.flag}=")


def managed(configuration: Mapping[str, Any], place: Place) -> tuple[dict[str, Any], Listening]:
    """The configuration of a controller manager, as several projects share it: where it listens, and the
    namespace of its lease, which it would read from its service account.

    Certificates stay its own work: it makes them, keeps them in a Secret, and writes the authority into its
    webhooks. See `Outside`; defaults of Kueue 0.19.2, Trainer 2.3.0 and JobSet 0.12.0 (their
    SetDefaults_Configuration).
    """
    told = deepcopy(dict(configuration))
    webhook, metrics, health = section(told, "webhook"), section(told, "metrics"), section(told, "health")
    inside = (
        int(webhook.get("port") or _WEBHOOK),
        port_of(metrics.get("bindAddress"), _METRICS),
        port_of(health.get("healthProbeBindAddress"), _HEALTH),
    )
    webhook |= {"host": LOCALHOST, "port": place.ports[0]}
    metrics["bindAddress"] = f"{LOCALHOST}:{place.ports[1]}"
    health["healthProbeBindAddress"] = f"{LOCALHOST}:{place.ports[2]}"
    elected = section(told, "leaderElection")
    elected["resourceNamespace"] = elected.get("resourceNamespace") or place.namespace
    return told, Listening(place.ports[2], dict(zip(inside, place.ports, strict=False)))


def section(told: dict[str, Any], name: str) -> dict[str, Any]:
    """A section of a configuration, to be changed; empty where there is none yet."""
    found: dict[str, Any] = told.get(name) or {}
    told[name] = found
    return found


def port_of(address: str | None, otherwise: int) -> int:
    """The port of an address such as `:8443`."""
    return int(address.rpartition(":")[2]) if address else otherwise
