"""Kubeflow Trainer, and JobSet, which its chart includes."""

from typing import Final

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.addons.definition import Rehearsed, Revision
from ebbtide_rehearsal.control_plane.program import Program, managed
from ebbtide_rehearsal.tools.items import Condition, Data, Part, SourcePatch, Tool, from_module

_MODULE: Final = "github.com/kubeflow/trainer/v2"
_REVISION: Final = Revision("github.com/kubeflow/trainer", PINS["trainer"].commit)
_IN_THE_CONTAINER: Final = (
    "/tmp/k8s-webhook-server/serving-certs",  # noqa: S108 - of the container, whose root is below where it runs
    "/var/run/secrets/kubernetes.io/serviceaccount/namespace",
)
"""Hard-coded paths of Trainer and JobSet for certificates and for their namespace."""

TRAINER = Program(
    tool="trainer-controller-manager",
    # From the chart of Trainer 2.3.0.
    labels={"app.kubernetes.io/name": "kubeflow-trainer", "app.kubernetes.io/component": "manager"},
    out_of_cluster=managed,
)

JOBSET = Program(
    tool="jobset",
    # From the chart of JobSet 0.12.0.
    labels={"app.kubernetes.io/name": "jobset", "app.kubernetes.io/component": "controller"},
    out_of_cluster=managed,
)

REHEARSED: Final = Rehearsed(
    data=(
        Data(
            name="trainer-chart",
            group="kubeflow",
            parts=(
                Part(module=_MODULE, pin="trainer", source="charts/kubeflow-trainer"),
                Part(
                    module="sigs.k8s.io/jobset",
                    pin="jobset",
                    source="charts/jobset",
                    into="charts/jobset",
                ),
                Part(
                    module="sigs.k8s.io/lws",
                    pin="leaderworkerset",
                    source="charts/lws",
                    into="charts/lws",
                ),
            ),
            why="Trainer's chart, with its dependencies.",
            when=Condition.DECLARED,
        ),
        from_module(
            "trainer-manifests",
            "kubeflow",
            _MODULE,
            "trainer",
            "manifests",
            "Trainer's CRDs and runtimes.",
            Condition.DECLARED,
        ),
    ),
    tools=(
        Tool(
            name="trainer-controller-manager",
            group="trainer",
            module="github.com/kubeflow/trainer/v2",
            package="github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
            pin="trainer",
            why="Creates JobSets for TrainJobs, and validates them.",
            minutes=1,
            when=Condition.DECLARED,
            changes=tuple(
                SourcePatch("pkg/util/cert/cert.go", f'"{path}"', f'".{path}"') for path in _IN_THE_CONTAINER
            ),
        ),
        Tool(
            name="jobset",
            group="trainer",
            module="sigs.k8s.io/jobset",
            package="sigs.k8s.io/jobset",
            pin="jobset",
            why="Creates the Jobs of a JobSet, all or none.",
            minutes=0.2,
            when=Condition.DECLARED,
            stamps=(("sigs.k8s.io/jobset/pkg/version.GitVersion", f"v{PINS['jobset'].version}"),),
            changes=tuple(
                SourcePatch("pkg/util/cert/cert.go", f'"{path}"', f'".{path}"') for path in _IN_THE_CONTAINER
            ),
        ),
    ),
    programs=(TRAINER, JOBSET),
    charts={"oci://ghcr.io/kubeflow/charts/kubeflow-trainer": "trainer-chart"},
    directories={"trainer-manifests": (_REVISION, "manifests")},
)
