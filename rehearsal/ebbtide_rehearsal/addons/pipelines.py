"""Kubeflow Pipelines: Argo Workflows' controller, for scenarios that run a pipeline. Its manifests are the
user's (`--manifests`)."""

from typing import Final

from ebbtide.catalog import PINS
from ebbtide_rehearsal.addons.definition import Rehearsed
from ebbtide_rehearsal.tools.items import Condition, Tool, from_module

_MODULE: Final = "github.com/argoproj/argo-workflows/v4"
_VERSION: Final = f"v{PINS['argo-workflows'].version}"

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
)
