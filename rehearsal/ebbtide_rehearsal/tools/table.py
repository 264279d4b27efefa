"""All programs and data of a rehearsal.

Versions are in `ebbtide.declaration.catalog.versions`, hashes in `modules/*/go.sum`. Six modules' hashes are
not from Go's checksum database: those of argo-workflows are from the go.sum of Kubeflow Pipelines 2.17.0,
those of sigs.k8s.io/scheduler-library from the go.sum of Kueue 0.19.2, those of go-containerregistry's
k8schain from the go.sum of Katib 0.19.0, those of katib and of Kubeflow Pipelines were computed from the
files of their tags (commits 578e60f1 and 4a3592cb), and those of pulumi-kubernetes' provider (commit
f47bc2d6) and of cluster-autoscaler from what Go's module proxy has (2026-11-22).
"""

from collections.abc import Container, Mapping
from functools import cache
from typing import Final

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.addons import REHEARSED
from ebbtide_rehearsal.tools.items import DATA, Condition, Item, OnPath, SourcePatch, Tool, VersionRule

_V: Final = {name: f"v{pin.version}" for name, pin in PINS.items()}
_MAJOR, _MINOR, _ = PINS["kubernetes"].version.split(".")
_COMPONENT: Final = "k8s.io/component-base/version"
_KUBERNETES_STAMPS: Final = (
    (f"{_COMPONENT}.gitVersion", _V["kubernetes"]),
    (f"{_COMPONENT}.gitMajor", _MAJOR),
    (f"{_COMPONENT}.gitMinor", _MINOR),
    (f"{_COMPONENT}.gitTreeState", "clean"),
)
_DISTRIBUTION: Final = "github.com/distribution/distribution/v3"
_PROVIDER: Final = "github.com/pulumi/pulumi-kubernetes/provider/v4"
_SDK: Final = "github.com/pulumi/pulumi/sdk/v3"


def _kubernetes(name: str, minutes: float, version_arguments: tuple[str, ...] = ("--version",)) -> Tool:
    return Tool(
        name=name,
        group="kubernetes",
        module="k8s.io/kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        pin="kubernetes",
        minutes=minutes,
        stamps=_KUBERNETES_STAMPS,
        on_path=OnPath(VersionRule.SAME_MINOR, version_arguments),
    )


def _language(name: str, package: str, pin: str, minutes: float = 1) -> Tool:
    return Tool(
        name=f"pulumi-language-{name}",
        group=f"pulumi-{name}",
        module=_SDK if package.startswith(_SDK) else "github.com/pulumi/pulumi-yaml",
        package=package,
        pin=pin,
        minutes=minutes,
        when=Condition.BY_NAME,
        tags=("osusergo", "grpcnotrace"),
    )


TOOLS: Final = (
    Tool(
        name="etcd",
        group="etcd",
        module="go.etcd.io/etcd/server/v3",
        package="go.etcd.io/etcd/server/v3",
        pin="etcd",
        minutes=1,
        on_path=OnPath(VersionRule.NO_OLDER_MINOR),
    ),
    _kubernetes("kube-apiserver", 2.5),
    _kubernetes("kube-controller-manager", 1),
    _kubernetes("kube-scheduler", 0.1),
    _kubernetes("kubectl", 0.5, ("version", "--client")),
    Tool(
        name="kwok",  # the fake kubelets of nodes without a machine
        group="kueue",  # 825 of its 990 packages are Kueue's too, and are compiled once
        module="sigs.k8s.io/kwok",
        package="sigs.k8s.io/kwok/cmd/kwok",
        pin="kwok",
        minutes=1,
        stamps=(("sigs.k8s.io/kwok/pkg/consts.Version", PINS["kwok"].version),),
        unoptimized="all",
    ),
    Tool(
        name="streaming-server",  # `kubectl exec`, `logs` and `port-forward` of pods that run as processes
        group="streaming",
        module="k8s.io/cri-streaming",
        package="ebbtide.dev/tools/streaming",
        pin="kubernetes-staging",
        minutes=0.1,
        unoptimized="all",  # as Kueue's, which shares most of its packages
    ),
    Tool(
        name="helm",
        group="helm",
        module="helm.sh/helm/v3",
        package="helm.sh/helm/v3/cmd/helm",
        pin="helm",
        minutes=1,
        when=Condition.BY_NAME,
        # Helm's default is Kubernetes 1.20, which charts reject; its Makefile sets these as well.
        stamps=(
            ("helm.sh/helm/v3/internal/version.version", _V["helm"]),
            ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor", _MAJOR),
            ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor", _MINOR),
        ),
        on_path=OnPath(VersionRule.NO_OLDER, ("version", "--short")),
    ),
    Tool(
        name="kustomize",
        group="kustomize",
        module="sigs.k8s.io/kustomize/kustomize/v5",
        package="sigs.k8s.io/kustomize/kustomize/v5",
        pin="kustomize",
        minutes=1,
        when=Condition.BY_NAME,
        on_path=OnPath(VersionRule.NO_OLDER, ("version",)),
    ),
    Tool(
        name="registry",
        group="distribution",
        module=_DISTRIBUTION,
        package=f"{_DISTRIBUTION}/cmd/registry",
        pin="distribution",
        minutes=2,
        when=Condition.BY_NAME,
        stamps=((f"{_DISTRIBUTION}/version.version", _V["distribution"]),),
    ),
    Tool(
        name="cluster-autoscaler",
        group="cluster-autoscaler",
        module="k8s.io/autoscaler/cluster-autoscaler",
        package="k8s.io/autoscaler/cluster-autoscaler",
        pin="cluster-autoscaler",
        minutes=5,
        when=Condition.BY_NAME,
        tags=("externalgrpc",),
    ),
    Tool(
        name="pulumi",
        group="pulumi",
        module="github.com/pulumi/pulumi/pkg/v3",
        package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        pin="pulumi",
        minutes=6,
        stamps=(("github.com/pulumi/pulumi/sdk/v3/go/common/version.Version", _V["pulumi"]),),
        tags=("osusergo", "grpcnotrace"),
        on_path=OnPath(VersionRule.NO_OLDER, ("version",)),
    ),
    Tool(
        name="pulumi-resource-kubernetes",
        group="pulumi-kubernetes",
        module=_PROVIDER,
        package=f"{_PROVIDER}/cmd/pulumi-resource-kubernetes",
        pin="pulumi-kubernetes",
        minutes=7,
        stamps=((f"{_PROVIDER}/pkg/version.Version", PINS["pulumi-kubernetes"].version),),
        unoptimized="github.com/pulumi/pulumi-kubernetes/sdk/v4/...",
        changes=tuple(
            # The embedded files are generated copies of these, with the version in the schema.
            SourcePatch(
                "cmd/pulumi-resource-kubernetes/main.go",
                f"//go:embed {name}-embed.json",
                f"//go:embed {name}.json",
            )
            for name in ("schema", "terraform-mapping")
        ),
        plugin="kubernetes",
    ),
    # Of programs, for the `pulumi` command.
    _language("python", f"{_SDK}/python/cmd/pulumi-language-python", "pulumi-language-python"),
    _language("nodejs", f"{_SDK}/nodejs/cmd/pulumi-language-nodejs", "pulumi-language-nodejs"),
    _language("yaml", "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml", "pulumi-yaml", 2),
)


@cache
def all_items() -> Mapping[str, Item]:
    """Return every tool by name, those of the add-ons among them; data first, since it is fast and reveals
    early if modules are available.
    """
    add_ons = REHEARSED.values()
    data = (*DATA, *(item for add_on in add_ons for item in add_on.data))
    tools = (*TOOLS, *(item for add_on in add_ons for item in add_on.tools))
    return {item.name: item for item in (*data, *tools)}


def needed(addons: Container[str]) -> tuple[str, ...]:
    """Return the names of the tools that a rehearsal needs.

    Args:
        addons: declared add-ons, by their names in the declaration.
    """
    declared = {item.name for name, add_on in REHEARSED.items() if name in addons for item in add_on.items}
    return tuple(
        name
        for name, item in all_items().items()
        if item.when is Condition.ALWAYS or (item.when is Condition.DECLARED and name in declared)
    )
