"""Kueue, which every rehearsal has."""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.addons.definition import Rehearsed, Revision
from ebbtide_rehearsal.control_plane.plan import LOCALHOST
from ebbtide_rehearsal.control_plane.program import SERVERS, Assignment, Listening, Program, managed, section
from ebbtide_rehearsal.control_plane.volumes import inside
from ebbtide_rehearsal.tools.items import Condition, Tool, from_module

_VISIBILITY = 8082
_CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 # a path in the container
# Defaults of Kueue 0.19.2: apis/config/v1beta2/defaults.go, charts/kueue.

_REVISION: Final = Revision("github.com/kubernetes-sigs/kueue", f"v{PINS['kueue'].version}")


def out_of_cluster(
    configuration: Mapping[str, Any], assignment: Assignment
) -> tuple[dict[str, Any], Listening]:
    """Convert Kueue's configuration for a process outside of a cluster: as for any controller manager, with
    the visibility server and Kueue's namespace. That server's certificates are in `visibility` below the
    working directory, a path fixed at build time. API config.kueue.x-k8s.io/v1beta2."""
    settings, listening = managed(configuration, assignment)
    visibility = section(settings, "visibilityServer")
    port = int(visibility.get("bindPort") or _VISIBILITY)
    visibility |= {"bindAddress": LOCALHOST, "bindPort": assignment.ports[SERVERS]}
    webhook = section(settings, "webhook")
    webhook["certDir"] = str(inside(assignment.root, webhook.get("certDir") or _CERTIFICATES))
    settings["namespace"] = assignment.namespace
    return settings, Listening(listening.health, {**listening.ports, port: assignment.ports[SERVERS]})


KUEUE = Program(
    tool="kueue",
    # From the chart of Kueue 0.19.2.
    labels={"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"},
    ports=SERVERS + 1,
    out_of_cluster=out_of_cluster,
)

REHEARSED: Final = Rehearsed(
    data=(
        from_module(
            "kueue-chart", "kueue", "sigs.k8s.io/kueue", "kueue", "charts/kueue", "Kueue's manifests."
        ),
        from_module(
            "provisioning-request-crds",
            "kueue",
            "k8s.io/autoscaler/cluster-autoscaler/apis",
            "provisioning-request",
            "config/crd",
            "The ProvisioningRequest CRD, which GKE preinstalls.",
        ),
        from_module(
            "kueue-crds",
            "kueue",
            "sigs.k8s.io/kueue",
            "kueue",
            "config/components/crd",
            "Kueue's CRDs, for tests of the objects alone.",
            Condition.BY_NAME,
        ),
    ),
    tools=(
        Tool(
            name="kueue",
            group="kueue",
            module="sigs.k8s.io/kueue",
            package="sigs.k8s.io/kueue/cmd/kueue",
            pin="kueue",
            why="Admits Jobs by quota, and requests capacity.",
            minutes=1.5,
            stamps=(
                ("sigs.k8s.io/kueue/pkg/version.GitVersion", f"v{PINS['kueue'].version}"),
                # The default is at the root of the file system, which only a container owns.
                ("sigs.k8s.io/kueue/pkg/visibility.certDir", "visibility"),
            ),
            unoptimized="all",
        ),
        Tool(
            name="kueue-replay",
            group="kueue-replay",
            module="sigs.k8s.io/kueue",
            package="ebbtide.dev/tools/kueue-replay",
            pin="kueue",
            why="Kueue's scheduler and reconciler on a virtual clock, for replays of traces.",
            minutes=4,
            when=Condition.BY_NAME,
        ),
    ),
    programs=(KUEUE,),
    charts={f"oci://registry.k8s.io/kueue/charts/kueue@{PINS['kueue'].digest}": "kueue-chart"},
    directories={"kueue-crds": (_REVISION, "config/components/crd")},
)
