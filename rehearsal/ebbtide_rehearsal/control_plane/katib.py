"""Katib's controller."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from ebbtide_rehearsal.control_plane.ports import LOCALHOST
from ebbtide_rehearsal.control_plane.program import SERVERS, Assignment, Listening, Program, port_of, section

_WEBHOOK, _METRICS, _HEALTH = 8443, 8080, 18080


def outside(configuration: Mapping[str, Any], assignment: Assignment) -> tuple[dict[str, Any], Listening]:
    """Convert Katib's configuration for a process outside of a cluster. The webhook address and certificate
    path are patched at build time.

    API config.kubeflow.org/v1beta1; defaults of Katib 0.19.0 (pkg/apis/config/v1beta1/defaults.go).
    """
    settings = deepcopy(dict(configuration))
    controller = section(section(settings, "init"), "controller")
    inside = (
        int(controller.get("webhookPort") or _WEBHOOK),
        port_of(controller.get("metricsAddr"), _METRICS),
        port_of(controller.get("healthzAddr"), _HEALTH),
    )
    webhook, metrics, health = assignment.ports
    controller |= {
        "webhookPort": webhook,
        "metricsAddr": f"{LOCALHOST}:{metrics}",
        "healthzAddr": f"{LOCALHOST}:{health}",
    }
    return settings, Listening(health, dict(zip(inside, assignment.ports, strict=True)))


KATIB = Program(
    tool="katib-controller",
    # From the kustomization of Katib 0.19.0.
    labels={"katib.kubeflow.org/component": "controller"},
    flag="--katib-config",
    ports=SERVERS,
    outside=outside,
)
