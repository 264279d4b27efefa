"""Every program and every piece of data that a rehearsal needs, in the order in which they are built.

Versions are in `ebbtide.catalog.versions`, hashes in `modules/*/go.sum`. Three modules' hashes come from
elsewhere than Go's checksum database: those of argo-workflows from the go.sum of Kubeflow Pipelines 2.17.0,
those of sigs.k8s.io/scheduler-library from the go.sum of Kueue 0.19.2, and those of katib were computed
from the files of its tag v0.19.0 (commit 578e60f1).
"""

from typing import Final

from ebbtide.catalog import PINS
from ebbtide.rehearsal.tools.items import Data, Item, OnPath, Part, Suits, Tool

_V: Final = {name: f"v{pin.version}" for name, pin in PINS.items()}
_MAJOR, _MINOR, _ = PINS["kubernetes"].version.split(".")
_COMPONENT: Final = "k8s.io/component-base/version"
_KUBERNETES_STAMPS: Final = (
    (f"{_COMPONENT}.gitVersion", _V["kubernetes"]),
    (f"{_COMPONENT}.gitMajor", _MAJOR),
    (f"{_COMPONENT}.gitMinor", _MINOR),
    (f"{_COMPONENT}.gitTreeState", "clean"),
)


def _kubernetes(name: str, why: str, minutes: float, ask: tuple[str, ...] = ("--version",)) -> Tool:
    return Tool(
        name=name,
        group="kubernetes",
        module="k8s.io/kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        pin="kubernetes",
        why=why,
        minutes=minutes,
        stamps=_KUBERNETES_STAMPS,
        on_path=OnPath(Suits.SAME_MINOR, ask),
    )


TOOLS: Final = (
    Tool(
        name="etcd",
        group="etcd",
        module="go.etcd.io/etcd/server/v3",
        package="go.etcd.io/etcd/server/v3",
        pin="etcd",
        why="The API server keeps its objects in it.",
        minutes=1,
        on_path=OnPath(Suits.NO_OLDER),
    ),
    _kubernetes("kube-apiserver", "Accepts or refuses every object, field by field.", 2.5),
    _kubernetes("kube-controller-manager", "Makes pods of Jobs, and watches over nodes and namespaces.", 1),
    _kubernetes("kube-scheduler", "Puts pods on the nodes that they fit.", 0.1),
    _kubernetes("kubectl", "Builds kustomizations, and shows what went wrong.", 0.5, ("version", "--client")),
    Tool(
        name="kwok",
        group="kwok",
        module="sigs.k8s.io/kwok",
        package="sigs.k8s.io/kwok/cmd/kwok",
        pin="kwok",
        why="Stands in for the kubelets of nodes that have no machine.",
        minutes=2,
        stamps=(("sigs.k8s.io/kwok/pkg/consts.Version", PINS["kwok"].version),),
    ),
    Tool(
        name="kueue",
        group="kueue",
        module="sigs.k8s.io/kueue",
        package="sigs.k8s.io/kueue/cmd/kueue",
        pin="kueue",
        why="Admits Jobs by quota, and asks for capacity.",
        minutes=4,
        stamps=(
            ("sigs.k8s.io/kueue/pkg/version.GitVersion", _V["kueue"]),
            # Its own default is at the root of the file system, which only a container of its own has.
            ("sigs.k8s.io/kueue/pkg/visibility.certDir", "visibility"),
        ),
    ),
    Tool(
        name="helm",
        group="helm",
        module="helm.sh/helm/v3",
        package="helm.sh/helm/v3/cmd/helm",
        pin="helm",
        why="Renders charts with the library that pulumi-kubernetes has in it.",
        minutes=1,
        # Helm's own default is Kubernetes 1.20, which charts refuse; its Makefile sets these, too.
        stamps=(
            ("helm.sh/helm/v3/internal/version.version", _V["helm"]),
            ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor", _MAJOR),
            ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor", _MINOR),
        ),
        on_path=OnPath(Suits.NO_OLDER, ("version", "--short")),
    ),
    Tool(
        name="workflow-controller",
        group="argo",
        module="github.com/argoproj/argo-workflows/v4",
        package="github.com/argoproj/argo-workflows/v4/cmd/workflow-controller",
        pin="argo-workflows",
        why="Runs the steps of Kubeflow Pipelines, and retries them.",
        minutes=3,
        stamps=(
            ("github.com/argoproj/argo-workflows/v4.version", _V["argo-workflows"]),
            ("github.com/argoproj/argo-workflows/v4.gitTag", _V["argo-workflows"]),
            ("github.com/argoproj/argo-workflows/v4.gitTreeState", "clean"),
        ),
    ),
    Tool(
        name="pulumi",
        group="pulumi",
        module="github.com/pulumi/pulumi/pkg/v3",
        package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        pin="pulumi",
        why="The engine: plans, orders and records what is created.",
        minutes=6,
        stamps=(("github.com/pulumi/pulumi/sdk/v3/go/common/version.Version", _V["pulumi"]),),
        tags=("osusergo", "grpcnotrace"),
        on_path=OnPath(Suits.NO_OLDER, ("version",)),
    ),
)


def _from_module(name: str, group: str, module: str, pin: str, source: str, why: str) -> Data:
    return Data(name=name, group=group, parts=(Part(module=module, pin=pin, source=source),), why=why)


_KUEUE: Final = "sigs.k8s.io/kueue"
_ARGO: Final = "github.com/argoproj/argo-workflows/v4"
_TRAINER: Final = "github.com/kubeflow/trainer/v2"

DATA: Final = (
    _from_module("kueue-crds", "kueue", _KUEUE, "kueue", "config/components/crd/bases", "Kueue's kinds."),
    _from_module(
        "kueue-webhooks", "kueue", _KUEUE, "kueue", "config/components/webhook", "Kueue's webhooks."
    ),
    _from_module("kueue-chart", "kueue", _KUEUE, "kueue", "charts/kueue", "Kueue as it is installed."),
    _from_module(
        "provisioning-request-crds",
        "kueue",
        "k8s.io/autoscaler/cluster-autoscaler/apis",
        "provisioning-request",
        "config/crd",
        "The kind by which Kueue asks for capacity, which GKE brings along.",
    ),
    _from_module(
        "kwok-stages", "kwok", "sigs.k8s.io/kwok", "kwok", "kustomize/stage", "How nodes and pods go on."
    ),
    _from_module(
        "argo-crds", "argo", _ARGO, "argo-workflows", "manifests/base/crds/minimal", "Argo's kinds."
    ),
    _from_module(
        "argo-manifests",
        "argo",
        _ARGO,
        "argo-workflows",
        "manifests/base/workflow-controller",
        "What the kustomization of Kubeflow Pipelines takes from GitHub.",
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
        why="Trainer as it is installed, with the charts that it depends on.",
    ),
    _from_module(
        "trainer-manifests", "kubeflow", _TRAINER, "trainer", "manifests", "Trainer's kinds and runtimes."
    ),
    _from_module(
        "katib-manifests",
        "kubeflow",
        "github.com/kubeflow/katib",
        "katib",
        "manifests/v1beta1",
        "Katib as it is installed.",
    ),
)

ITEMS: Final[dict[str, Item]] = {item.name: item for item in (*DATA, *TOOLS)}
"""By name; data first, since it takes no time and shows early whether modules can be had at all."""
