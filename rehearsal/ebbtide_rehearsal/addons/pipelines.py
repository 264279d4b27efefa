"""Kubeflow Pipelines: Argo Workflows' controller, for scenarios that run a pipeline, and the manifests of
both, for tests. A stack's manifests are fetched from GitHub or the user's (`--manifests`)."""

from typing import Final

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.addons.definition import Rehearsed, Revision
from ebbtide_rehearsal.tools.items import Condition, Data, Part, Tool, from_module

_MODULE: Final = "github.com/argoproj/argo-workflows/v4"
_VERSION: Final = f"v{PINS['argo-workflows'].version}"
_FROM_ARGO: Final = (
    "base/crds/minimal",
    "base/workflow-controller",
    "namespace-install/workflow-controller-rbac",
)

REHEARSED: Final = Rehearsed(
    data=(
        from_module(
            "argo-crds",
            "argo",
            _MODULE,
            "argo-workflows",
            "manifests/base/crds/minimal",
            "Argo's kinds.",
            Condition.BY_NAME,
        ),
        Data(
            name="argo-manifests",
            group="argo",
            parts=tuple(
                Part(module=_MODULE, pin="argo-workflows", source=f"manifests/{path}", into=path)
                for path in _FROM_ARGO
            ),
            why="Argo's manifests that those of Kubeflow Pipelines refer to.",
            when=Condition.BY_NAME,
        ),
        from_module(
            "pipelines-manifests",
            "pipelines",
            "github.com/kubeflow/pipelines",
            "pipelines-module",
            "manifests/kustomize",
            "The manifests of Kubeflow Pipelines.",
            Condition.BY_NAME,
        ),
    ),
    tools=(
        Tool(
            name="workflow-controller",
            group="argo",
            module=_MODULE,
            package=f"{_MODULE}/cmd/workflow-controller",
            pin="argo-workflows",
            why="Runs the steps of Kubeflow Pipelines, and retries them.",
            minutes=3,
            when=Condition.BY_NAME,
            stamps=(
                (f"{_MODULE}.version", _VERSION),
                (f"{_MODULE}.gitTag", _VERSION),
                (f"{_MODULE}.gitTreeState", "clean"),
            ),
        ),
    ),
    directories={
        "argo-manifests": (Revision("github.com/argoproj/argo-workflows", _VERSION), "manifests"),
        "pipelines-manifests": (
            Revision("github.com/kubeflow/pipelines", PINS["pipelines"].commit),
            "manifests/kustomize",
        ),
    },
)
