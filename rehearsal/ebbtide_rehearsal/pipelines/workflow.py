"""The Argo Workflow of a compiled pipeline, equivalent to the output of the API server's compiler
(argocompiler/argo.go, container.go, dag.go; 2.17.0).

The drivers' service addresses, and fields for KFP's UI, are omitted. Each step has a driver, without
tolerations, and an executor; a retried step's executor has a retry strategy; a graph is a template with its
own driver.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ebbtide.clients.kubernetes import Object
from ebbtide.clients.kubernetes.objects import part, text
from ebbtide_rehearsal.pipelines.compiled import Compiled
from ebbtide_rehearsal.pipelines.templates import argument_list, drivers, executor, input_

SERVICE_ACCOUNT: Final = "pipeline-runner"
_SECONDS: Final = "s"


def workflow(
    compiled: Compiled,
    arguments: Mapping[str, Any],
    annotations: Mapping[str, str] | None = None,
    *,
    speed: float = 1,
) -> Object:
    """Return the Workflow of a run.

    Args:
        compiled: the pipeline.
        arguments: values of its inputs; the others have their defaults.
        annotations: for all its pods, besides KFP's own.
        speed: divisor of the waits between retries.
    """
    templates: dict[str, Object] = {}
    parameters: dict[str, str] = {}
    for name in ("root", *part(compiled.spec, "components")):
        parameters[f"components-{name}"] = _json(compiled.component(name))
        if container := compiled.container(name):
            parameters[f"implementations-{name}"] = _json(container)
        if platform := compiled.platform(name):
            parameters[f"kubernetes-{name}"] = _json(platform)
    for name in ("root", *part(compiled.spec, "components")):
        if dag := part(compiled.component(name), "dag"):
            tasks = [
                dag_task
                for task, spec in sorted(part(dag, "tasks").items())
                for dag_task in _task(compiled, task, spec, templates, speed)
            ]
            templates[name] = {
                "name": name,
                "inputs": {"parameters": [{"name": "parent-dag-id"}]},
                "dag": {"tasks": tasks},
            }
    templates["entrypoint"] = {"name": "entrypoint", "dag": {"tasks": list(_entry(compiled, arguments))}}
    templates |= {template["name"]: template for template in drivers(compiled)}
    marks = {"pipelines.kubeflow.org/v2_component": "true"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": f"{compiled.name.rpartition('/')[2]}-"},
        "spec": {
            "entrypoint": "entrypoint",
            "serviceAccountName": SERVICE_ACCOUNT,
            "podMetadata": {"annotations": {**marks, **(annotations or {})}, "labels": marks},
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "arguments": {"parameters": argument_list(parameters)},
            "templates": list(templates.values()),
        },
    }


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"))


def _output(task: str, name: str) -> str:
    return f"{{{{tasks.{task}.outputs.parameters.{name}}}}}"


def _depends(tasks: list[str]) -> Object:
    """Upstream tasks must have succeeded: a skipped task skips its downstream tasks."""
    return {"depends": " && ".join(f"{task}.Succeeded" for task in tasks)} if tasks else {}


def _upstream(spec: Mapping[str, Any]) -> list[str]:
    """Return the tasks that a task names, and those whose outputs it uses."""
    producers = {
        text(source, kind, "producerTask")
        for inputs, kind in (("parameters", "taskOutputParameter"), ("artifacts", "taskOutputArtifact"))
        for source in part(spec, "inputs", inputs).values()
    }
    return sorted({*map(str, spec.get("dependentTasks") or ()), *producers} - {""})


def _entry(compiled: Compiled, arguments: Mapping[str, Any]) -> Iterator[Object]:
    given = {
        name: arguments[name] if name in arguments else definition.get("defaultValue")
        for name, definition in part(compiled.spec, "root", "inputDefinitions", "parameters").items()
    }
    parameters = {
        "component": "{{workflow.parameters.components-root}}",
        "runtime-config": _json({"parameterValues": given}),
        "driver-type": "ROOT_DAG",
    }
    yield {
        "name": "root-driver",
        "template": "system-dag-driver",
        "arguments": {"parameters": argument_list(parameters)},
    }
    graph = {"parent-dag-id": _output("root-driver", "execution-id"), "condition": ""}
    yield {
        "name": "root",
        "template": "root",
        "arguments": {"parameters": argument_list(graph)},
        **_depends(["root-driver"]),
    }


def _task(
    compiled: Compiled, name: str, spec: Mapping[str, Any], templates: dict[str, Object], speed: float
) -> Iterator[Object]:
    """Return a driver, and its graph or executor."""
    component = text(spec, "componentRef", "name")
    conditional = bool(text(spec, "triggerPolicy", "condition"))
    driver = f"{name}-driver"
    values = {
        "component": f"{{{{workflow.parameters.components-{component}}}}}",
        "task": _json(spec),
        "task-name": name,
        "parent-dag-id": input_("parent-dag-id"),
    }
    container = bool(compiled.container(component))
    if container:
        values["container"] = f"{{{{workflow.parameters.implementations-{component}}}}}"
        if compiled.platform(component):
            values["kubernetes-config"] = f"{{{{workflow.parameters.kubernetes-{component}}}}}"
    yield {
        "name": driver,
        "template": "system-container-driver" if container else "system-dag-driver",
        "arguments": {"parameters": argument_list(values)},
        **_depends(_upstream(spec)),
    }
    when = {"when": f"{_output(driver, 'condition')} != false"} if conditional else {}
    if not container:
        graph = {
            "parent-dag-id": _output(driver, "execution-id"),
            "condition": _output(driver, "condition"),
        }
        yield {
            "name": name,
            "template": component,
            "arguments": {"parameters": argument_list(graph)},
            **_depends([driver]),
            **when,
        }
        return
    metadata = _metadata(compiled.platform(component))
    retries = _retries(spec, speed)
    parameters = {
        "pod-spec-patch": _output(driver, "pod-spec-patch"),
        "cached-decision": _output(driver, "cached-decision"),
        **{key: value for pairs in metadata.values() for key, value in pairs.items()},
        **retries,
    }
    yield {
        "name": name,
        "template": executor(templates, metadata, retried=bool(retries)),
        "arguments": {"parameters": argument_list(parameters)},
        **_depends([driver]),
        **when,
    }


def _retries(spec: Mapping[str, Any], speed: float) -> dict[str, str]:
    """Return a step's retries, durations in whole seconds."""
    policy = part(spec, "retryPolicy")
    if not policy:
        return {}
    given = {
        "retry-max-count": str(policy.get("maxRetryCount", 0)),
        "retry-backoff-factor": f"{policy.get('backoffFactor', 0):g}",
    }
    for name, field in (
        ("retry-backoff-duration", "backoffDuration"),
        ("retry-backoff-max-duration", "backoffMaxDuration"),
    ):
        if field in policy:
            given[name] = str(math.ceil(float(text(policy, field).removesuffix(_SECONDS)) / speed))
    return given


def _metadata(platform: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return a step's annotations and labels as numbered parameters: Argo's patches do not support
    metadata.
    """
    metadata: dict[str, dict[str, str]] = {}
    for field, kind in (("annotations", "annotation"), ("labels", "label")):
        pairs = sorted(part(platform, "podMetadata", field).items())
        numbered: dict[str, str] = {}
        for number, (key, value) in enumerate(pairs, start=1):
            suffix = f"-{number}" if len(pairs) > 1 else ""
            numbered[f"pod-metadata-{kind}-key{suffix}"] = key
            numbered[f"pod-metadata-{kind}-val{suffix}"] = str(value)
        metadata[field] = numbered
    return metadata
