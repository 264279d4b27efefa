"""Definition of a program that really runs in a rehearsal, as a local process for a pod."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from ebbtide_rehearsal.control_plane.plan import LOCALHOST
from ebbtide_rehearsal.control_plane.processes import ControlPlaneError

_WEBHOOK, _METRICS, _HEALTH = 9443, 8443, 8081

SERVERS: Final = 3
"""Number of a controller manager's ports: webhooks, metrics, health."""


@dataclass(frozen=True, slots=True)
class Listening:
    """The local addresses of a process, and its ports in the pod.

    Attributes:
        health: the local port of its readiness probe, `/readyz`.
        ports: pod ports mapped to local ports.
    """

    health: int
    ports: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The environment of a pod's process.

    Attributes:
        ports: free local ports, as many as the program listens on.
        root: the directory that serves as its container's root.
    """

    ports: tuple[int, ...]
    root: Path
    namespace: str


class OutOfCluster(Protocol):
    """A program's configuration for a process outside of a cluster, with the minimum of changes. A pure
    function.
    """

    def __call__(
        self, configuration: Mapping[str, Any], assignment: Assignment, /
    ) -> tuple[dict[str, Any], Listening]:
        """Convert the configuration that the pod mounts; returns the process's configuration and
        addresses.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that runs while a pod of it is scheduled on a node.

    Attributes:
        tool: its name among the tools.
        labels: labels that identify its pods.
        flag: the flag for its configuration file.
        ports: the number of ports it listens on.
        out_of_cluster: its configuration outside of a cluster.
    """

    tool: str
    labels: Mapping[str, str]
    flag: str = "--config"
    ports: int = SERVERS
    out_of_cluster: OutOfCluster

    @property
    def selector(self) -> str:
        """The label selector of its pods."""
        return ",".join(f"{key}={value}" for key, value in self.labels.items())

    def configuration(self, arguments: Sequence[str]) -> str:
        """Return the path of its configuration in the container.

        Raises:
            ControlPlaneError: its arguments have none.
        """
        for word in arguments:
            if self._names_configuration(word):
                return word.partition("=")[2]
        raise ControlPlaneError(f"{self.tool} is given no {self.flag}=FILE")

    def arguments(self, given: Sequence[str], configuration: Path, kubeconfig: Path) -> list[str]:
        """Return the pod's arguments with replaced files."""
        remaining = [word for word in given if not self._names_configuration(word)]
        return [f"{self.flag}={configuration}", f"--kubeconfig={kubeconfig}", *remaining]

    def _names_configuration(self, word: str) -> bool:
        return word.startswith(f"{self.flag}=")


def managed(configuration: Mapping[str, Any], assignment: Assignment) -> tuple[dict[str, Any], Listening]:
    """Convert a controller manager's configuration, as several projects share it: addresses, and the
    namespace of its lease, which it would read from its service account.

    The controller still creates its certificates, stores them in a Secret, and writes the authority into its
    webhooks. See `Outside`; defaults of Kueue 0.19.2, Trainer 2.3.0 and JobSet 0.12.0 (their
    SetDefaults_Configuration).
    """
    settings = deepcopy(dict(configuration))
    webhook, metrics, health = (
        section(settings, "webhook"),
        section(settings, "metrics"),
        section(settings, "health"),
    )
    inside = (
        int(webhook.get("port") or _WEBHOOK),
        port_of(metrics.get("bindAddress"), _METRICS),
        port_of(health.get("healthProbeBindAddress"), _HEALTH),
    )
    webhook |= {"host": LOCALHOST, "port": assignment.ports[0]}
    metrics["bindAddress"] = f"{LOCALHOST}:{assignment.ports[1]}"
    health["healthProbeBindAddress"] = f"{LOCALHOST}:{assignment.ports[2]}"
    elected = section(settings, "leaderElection")
    elected["resourceNamespace"] = elected.get("resourceNamespace") or assignment.namespace
    return settings, Listening(assignment.ports[2], dict(zip(inside, assignment.ports, strict=False)))


def section(configuration: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a mutable section of a configuration; created if missing."""
    value: dict[str, Any] = configuration.get(name) or {}
    configuration[name] = value
    return value


def port_of(address: str | None, otherwise: int) -> int:
    """Parse the port of an address such as `:8443`."""
    return int(address.rpartition(":")[2]) if address else otherwise
