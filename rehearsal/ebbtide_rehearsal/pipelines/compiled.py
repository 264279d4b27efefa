"""A compiled pipeline: output of `kfp.compiler`, with its platform specification."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from ebbtide.clients.kubernetes.objects import part, parts, text

Object = Mapping[str, Any]

PLATFORM_FIELDS: Final = frozenset(
    {
        "activeDeadlineSeconds",
        "configMapAsEnv",
        "configMapAsVolume",
        "emptyDirMounts",
        "fieldPathAsEnv",
        "imagePullPolicy",
        "imagePullSecret",
        "nodeAffinity",
        "nodeSelector",
        "podMetadata",
        "pvcMount",
        "secretAsEnv",
        "secretAsVolume",
        "tolerations",
    }
)
"""Supported fields of a step's Kubernetes configuration."""
_TASK_FIELDS: Final = frozenset(
    {
        "cachingOptions",
        "componentRef",
        "dependentTasks",
        "inputs",
        "retryPolicy",
        "taskInfo",
        "triggerPolicy",
    }
)
_IMAGES: Final = ("argostub/createpvc", "argostub/deletepvc")
_DEFERRED: Final = ('{"IfPresent"', '{"Concat"')


class UnsupportedPipelineError(Exception):
    """A pipeline uses a feature that a rehearsal does not support."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A pipeline specification (`pipeline_spec.proto`) with its Kubernetes platform configuration.

    Attributes:
        kubernetes: each executor's Kubernetes configuration, by the executor's label.
    """

    spec: Object
    kubernetes: Mapping[str, Object]

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return text(self.spec, "pipelineInfo", "name")

    def component(self, name: str) -> Object:
        """Return a component's specification."""
        return part(self.spec, "root") if name == "root" else part(self.spec, "components", name)

    def container(self, component: str) -> Object:
        """Return the container of a component; empty for a graph."""
        label = text(self.component(component), "executorLabel")
        return part(self.spec, "deploymentSpec", "executors", label, "container")

    def platform(self, component: str) -> Object:
        """Return the Kubernetes configuration of a component's step; empty for none."""
        return self.kubernetes.get(text(self.component(component), "executorLabel"), {})


def read(content: str) -> Compiled:
    """Parse a compiled pipeline.

    Raises:
        UnsupportedPipelineError: lists all unsupported features.
    """
    documents = [document for document in yaml.safe_load_all(content) if document]
    if not documents or "pipelineInfo" not in documents[0]:
        raise UnsupportedPipelineError(
            "This is not a compiled pipeline: write the file with kfp.compiler.Compiler().compile()."
        )
    platforms = part(next(iter(documents[1:]), dict[str, Any]()), "platforms")
    executors = part(platforms, "kubernetes", "deploymentSpec", "executors")
    compiled = Compiled(documents[0], executors)
    problems = [*_platform_problems(platforms), *_problems(compiled, "root", part(compiled.spec, "root"))]
    for name, component in part(compiled.spec, "components").items():
        problems += _problems(compiled, name, component)
    if problems:
        raise UnsupportedPipelineError("\n".join(dict.fromkeys(problems)))
    return compiled


def _platform_problems(platforms: Object) -> Iterator[str]:
    if part(platforms, "kubernetes", "pipelineConfig"):
        yield "A rehearsal does not translate the pipeline's PipelineConfig (workspace, TTL, deadline)."
    for label, config in part(platforms, "kubernetes", "deploymentSpec", "executors").items():
        terms = (*parts(config, "tolerations"), *parts(config, "nodeAffinity"), part(config, "nodeSelector"))
        inside = {field for term in terms for field in term if field.endswith("Json")}
        for field in sorted((config.keys() - PLATFORM_FIELDS) | inside):
            yield f"{label}: a rehearsal does not translate its Kubernetes field {field}."


def _problems(compiled: Compiled, name: str, component: Object) -> Iterator[str]:
    for task, spec in part(component, "dag", "tasks").items():
        for field in sorted(spec.keys() - _TASK_FIELDS):
            yield f"Task {task}: a rehearsal does not translate {field} (loops)."
        if strategy := text(spec, "triggerPolicy", "strategy"):
            yield f"Task {task}: a rehearsal does not translate the strategy {strategy} (exit handlers)."
        for parameter in part(spec, "inputs", "parameters").values():
            if "parameterExpressionSelector" in parameter or "taskFinalStatus" in parameter:
                yield f"Task {task}: a rehearsal does not translate selectors and final statuses."
    label = text(component, "executorLabel")
    if not label:
        return
    container = compiled.container(name)
    if not container or container.get("image") in _IMAGES:
        yield f"{label}: a rehearsal runs containers, and neither importers nor the creation of volumes."
    if component.get("taskConfigPassthroughs"):
        yield f"{label}: a rehearsal does not translate task configuration passthrough."
    if any(str(word).startswith(_DEFERRED) for key in ("command", "args") for word in container.get(key, ())):
        yield f"{label}: a rehearsal does not resolve IfPresent and Concat placeholders."
