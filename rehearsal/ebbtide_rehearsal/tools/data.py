"""The data of a rehearsal: files that Go modules contain besides programs."""

from typing import Final

from ebbtide_rehearsal.tools.items import Data, Part, When

_TRAINER: Final = "github.com/kubeflow/trainer/v2"


def _from_module(
    name: str, group: str, module: str, pin: str, source: str, why: str, when: When = When.ALWAYS
) -> Data:
    return Data(
        name=name, group=group, parts=(Part(module=module, pin=pin, source=source),), why=why, when=when
    )


DATA: Final = (
    _from_module("kueue-chart", "kueue", "sigs.k8s.io/kueue", "kueue", "charts/kueue", "Kueue's manifests."),
    _from_module(
        "provisioning-request-crds",
        "kueue",
        "k8s.io/autoscaler/cluster-autoscaler/apis",
        "provisioning-request",
        "config/crd",
        "The ProvisioningRequest CRD, which GKE preinstalls.",
    ),
    _from_module(
        "kwok-stages",
        "kwok",
        "sigs.k8s.io/kwok",
        "kwok",
        "kustomize/stage",
        "kwok's stages for nodes and pods.",
    ),
    _from_module(
        "pulumi-language-python-exec",
        "pulumi",
        "github.com/pulumi/pulumi/sdk/v3",
        "pulumi",
        "python/cmd",
        "The language host's script that starts a program.",
        When.BY_NAME,
    ),
    _from_module(
        "argo-crds",
        "argo",
        "github.com/argoproj/argo-workflows/v4",
        "argo-workflows",
        "manifests/base/crds/minimal",
        "Argo's kinds.",
        When.BY_NAME,
    ),
    Data(
        name="trainer-chart",
        group="kubeflow",
        parts=(
            Part(module=_TRAINER, pin="trainer", source="charts/kubeflow-trainer"),
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
        when=When.TRAINER,
    ),
    _from_module(
        "trainer-manifests",
        "kubeflow",
        _TRAINER,
        "trainer",
        "manifests",
        "Trainer's CRDs and runtimes.",
        When.TRAINER,
    ),
    _from_module(
        "katib-manifests",
        "kubeflow",
        "github.com/kubeflow/katib",
        "katib",
        "manifests/v1beta1",
        "Katib's manifests.",
        When.KATIB,
    ),
)
