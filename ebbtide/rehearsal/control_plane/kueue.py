"""Kueue's own configuration, for a process outside of a cluster."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide.rehearsal.control_plane.ports import LOCALHOST

_WEBHOOK, _VISIBILITY, _METRICS, _HEALTH = 9443, 8082, 8443, 8081
_CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 # a path in the container
# Defaults of Kueue 0.19.2: apis/config/v1beta2/defaults.go, charts/kueue.

COUNT = 4
"""How many ports it listens on."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a process listens on this machine, and what that is in the pod that it stands for.

    Attributes:
        health: the port of this machine that says whether it is ready, at `/readyz`.
        ports: from those of the pod to those of this machine.
    """

    health: int
    ports: Mapping[int, int]


def outside(
    configuration: Mapping[str, Any], *, ports: tuple[int, ...], root: Path, namespace: str
) -> tuple[dict[str, Any], Listening]:
    """The configuration with what must differ outside of a cluster, and nothing else: where it listens,
    where its certificates are, and the namespace, which it would read from its service account.

    Its certificates stay its own work: it makes them, keeps them in a Secret, and writes the authority into
    its webhooks. The visibility server's are in the directory `visibility` below where it runs, which is
    decided when it is built.

    Args:
        configuration: as its ConfigMap has it (API config.kueue.x-k8s.io/v1beta2).
        ports: `COUNT` free ports.
        root: the directory that stands for the root of its container.
        namespace: where it is installed.
    """
    told = deepcopy(dict(configuration))
    webhook = _section(told, "webhook")
    visibility = _section(told, "visibilityServer")
    metrics, health = _section(told, "metrics"), _section(told, "health")
    inside = (
        int(webhook.get("port") or _WEBHOOK),
        int(visibility.get("bindPort") or _VISIBILITY),
        _port(metrics.get("bindAddress"), _METRICS),
        _port(health.get("healthProbeBindAddress"), _HEALTH),
    )
    certificates = webhook.get("certDir") or _CERTIFICATES
    webhook |= {"host": LOCALHOST, "port": ports[0], "certDir": str(root / certificates.lstrip("/"))}
    visibility |= {"bindAddress": LOCALHOST, "bindPort": ports[1]}
    metrics["bindAddress"] = f"{LOCALHOST}:{ports[2]}"
    health["healthProbeBindAddress"] = f"{LOCALHOST}:{ports[3]}"
    told["namespace"] = namespace
    elected = _section(told, "leaderElection")
    elected["resourceNamespace"] = elected.get("resourceNamespace") or namespace
    return told, Listening(ports[3], dict(zip(inside, ports, strict=True)))


def _section(told: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = told.get(name) or {}
    told[name] = found
    return found


def _port(address: str | None, otherwise: int) -> int:
    return int(address.rpartition(":")[2]) if address else otherwise
