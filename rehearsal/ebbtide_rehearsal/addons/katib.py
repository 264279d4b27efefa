"""Katib."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.addons.definition import Rehearsed, Revision
from ebbtide_rehearsal.control_plane.plan import LOCALHOST
from ebbtide_rehearsal.control_plane.program import SERVERS, Assignment, Listening, Program, port_of, section
from ebbtide_rehearsal.tools.items import Condition, SourcePatch, Tool, from_module

_REVISION: Final = Revision("github.com/kubeflow/katib", PINS["katib"].commit)
_WEBHOOK, _METRICS, _HEALTH = 8443, 8080, 18080


def out_of_cluster(
    configuration: Mapping[str, Any], assignment: Assignment
) -> tuple[dict[str, Any], Listening]:
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
    out_of_cluster=out_of_cluster,
)

REHEARSED: Final = Rehearsed(
    data=(
        from_module(
            "katib-manifests",
            "kubeflow",
            "github.com/kubeflow/katib",
            "katib",
            "manifests/v1beta1",
            "Katib's manifests.",
            Condition.DECLARED,
        ),
    ),
    tools=(
        Tool(
            name="katib-controller",
            group="katib",
            module="github.com/kubeflow/katib",
            package="github.com/kubeflow/katib/cmd/katib-controller/v1beta1",
            pin="katib",
            why="Mutates the pods of trials, and validates experiments.",
            minutes=1.5,
            when=Condition.DECLARED,
            changes=(
                SourcePatch("pkg/controller.v1beta1/consts/const.go", '"/tmp/cert"', '"./tmp/cert"'),
                # The configuration has no listen address; here it must be the loopback interface.
                SourcePatch(
                    "cmd/katib-controller/v1beta1/main.go",
                    "webhook.NewServer(webhook.Options{",
                    'webhook.NewServer(webhook.Options{Host: "127.0.0.1",',
                ),
            ),
        ),
    ),
    programs=(KATIB,),
    directories={"katib-manifests": (_REVISION, "manifests/v1beta1")},
)
