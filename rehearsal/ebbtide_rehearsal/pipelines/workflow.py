"""A compiled pipeline, the output of `kfp.compiler` with its platform specification, and its Argo Workflow,
equivalent to the output of the API server's compiler.

Sources: argocompiler/argo.go, container.go, dag.go; 2.17.0. The drivers' service addresses, and fields for
KFP's UI, are omitted. Each step has a driver, without tolerations, and an executor; a retried step's
executor has a retry strategy; a graph is a template with its own driver.
"""

import copy
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from ebbtide.clients.kubernetes import Object
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.pipelines.driver import LAUNCHER, UnsupportedPipelineError

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
_VERSION: Final = PINS["pipelines"].version
_DRIVER_RESOURCES: Final = {
    "limits": {"memory": "0.5Gi", "cpu": "0.5"},
    "requests": {"memory": "64Mi", "cpu": "0.1"},
}
_LAUNCHER_RESOURCES: Final = {"limits": {"memory": "256Mi", "cpu": "0.5"}, "requests": {"cpu": "0.1"}}
_SCRATCH: Final = {
    "kfp-launcher": "/kfp-launcher",
    "gcs-scratch": "/gcs",
    "s3-scratch": "/s3",
    "minio-scratch": "/minio",
    "dot-local-scratch": "/.local",
    "dot-cache-scratch": "/.cache",
    "dot-config-scratch": "/.config",
}
_ENVIRONMENT: Final = [
    {"name": "KFP_POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "KFP_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
]

LAUNCHED: Final = {"pipelines.kubeflow.org/runtime-role": "launcher"}
"""Annotation of a step's pods, but not of its driver's."""

_RETRIES: Final = (
    "retry-max-count",
    "retry-backoff-duration",
    "retry-backoff-factor",
    "retry-backoff-max-duration",
)
SERVICE_ACCOUNT: Final = "pipeline-runner"
_SECONDS: Final = "s"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A pipeline specification (`pipeline_spec.proto`) with its Kubernetes platform configuration.

    Attributes:
        kubernetes: each executor's Kubernetes configuration, by the executor's label.
    """

    spec: Mapping[str, Any]
    kubernetes: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return text(self.spec, "pipelineInfo", "name")

    def component(self, name: str) -> Mapping[str, Any]:
        """Return a component's specification."""
        return part(self.spec, "root") if name == "root" else part(self.spec, "components", name)

    def container(self, component: str) -> Mapping[str, Any]:
        """Return the container of a component; empty for a graph."""
        label = text(self.component(component), "executorLabel")
        return part(self.spec, "deploymentSpec", "executors", label, "container")

    def platform(self, component: str) -> Mapping[str, Any]:
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


def _platform_problems(platforms: Mapping[str, Any]) -> Iterator[str]:
    if part(platforms, "kubernetes", "pipelineConfig"):
        yield "A rehearsal does not translate the pipeline's PipelineConfig (workspace, TTL, deadline)."
    for label, config in part(platforms, "kubernetes", "deploymentSpec", "executors").items():
        terms = (*parts(config, "tolerations"), *parts(config, "nodeAffinity"), part(config, "nodeSelector"))
        inside = {field for term in terms for field in term if field.endswith("Json")}
        for field in sorted((config.keys() - PLATFORM_FIELDS) | inside):
            yield f"{label}: a rehearsal does not translate its Kubernetes field {field}."


def _problems(compiled: Compiled, name: str, component: Mapping[str, Any]) -> Iterator[str]:
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


def argument_list(values: Mapping[str, str]) -> list[Object]:
    """Return arguments as Argo lists them."""
    return [{"name": name, "value": value} for name, value in values.items()]


def input_(name: str) -> str:
    """Return the reference to an input of a template."""
    return f"{{{{inputs.parameters.{name}}}}}"


def executor(
    templates: dict[str, Object], metadata: Mapping[str, Mapping[str, str]], *, retried: bool
) -> str:
    """Add the two executor templates of a kind if they are missing; return the outer one's name."""
    prefix = "retry-" if retried else ""
    count = {field: len(pairs) // 2 for field, pairs in metadata.items()}
    if any(count.values()):
        prefix = f"metadata-{count['annotations']}-{count['labels']}-{prefix}"
    outer, inner = f"{prefix}system-container-executor", f"{prefix}system-container-impl"
    extra = [*(name for pairs in metadata.values() for name in pairs), *(_RETRIES if retried else ())]
    passed = {"pod-spec-patch": input_("pod-spec-patch"), **{name: input_(name) for name in extra}}
    templates[outer] = {
        "name": outer,
        "inputs": {
            "parameters": [
                {"name": "pod-spec-patch"},
                {"name": "cached-decision", "default": "false"},
                *({"name": name, "default": "0"} if name in _RETRIES else {"name": name} for name in extra),
            ]
        },
        "dag": {
            "tasks": [
                {
                    "name": "executor",
                    "template": inner,
                    "arguments": {"parameters": argument_list(passed)},
                    "when": f"{input_('cached-decision')} != true",
                }
            ]
        },
    }
    templates[inner] = _implementation(inner, passed, metadata, retried=retried)
    return outer


def _implementation(
    name: str, inputs: Mapping[str, str], metadata: Mapping[str, Mapping[str, str]], *, retried: bool
) -> Object:
    mounts = [{"name": volume, "mountPath": path} for volume, path in _SCRATCH.items()]
    environment = copy.deepcopy(_ENVIRONMENT)
    pod_metadata: Object = {"annotations": dict(LAUNCHED)}
    for field, pairs in metadata.items():
        keys = [key for key in pairs if "-key" in key]
        pod_metadata.setdefault(field, {}).update(
            {input_(key): input_(key.replace("-key", "-val")) for key in keys}
        )
    template: Object = {
        "name": name,
        "inputs": {"parameters": [{"name": input_name} for input_name in inputs]},
        "metadata": pod_metadata,
        "podSpecPatch": input_("pod-spec-patch"),
        "volumes": [{"name": volume, "emptyDir": {}} for volume in _SCRATCH],
        "initContainers": [
            {
                "name": "kfp-launcher",
                "image": f"ghcr.io/kubeflow/kfp-launcher:{_VERSION}",
                "command": ["launcher-v2"],
                "args": ["--copy", LAUNCHER],
                "volumeMounts": mounts[:1],
                "resources": _LAUNCHER_RESOURCES,
            }
        ],
        "container": {
            "image": "gcr.io/ml-pipeline/should-be-overridden-during-runtime",
            "command": ["should-be-overridden-during-runtime"],
            "volumeMounts": mounts,
            "envFrom": [{"configMapRef": {"name": "metadata-grpc-configmap", "optional": True}}],
            "env": environment,
        },
    }
    if retried:
        environment.append({"name": "KFP_RETRY_INDEX", "value": "{{retries}}"})
        template["retryStrategy"] = {
            "limit": input_("retry-max-count"),
            "backoff": {
                "duration": input_("retry-backoff-duration"),
                "factor": input_("retry-backoff-factor"),
                "maxDuration": input_("retry-backoff-max-duration"),
            },
        }
    return template


def drivers(compiled: Compiled) -> Iterator[Object]:
    """Return the two driver templates. Outputs with a default are optional."""
    shared = {
        "run_id": "{{workflow.uid}}",
        "run_name": "{{workflow.name}}",
        "pipeline_job_create_time_utc": "{{workflow.creationTimestamp}}",
        "pipeline_name": compiled.name,
        "dag_execution_id": input_("parent-dag-id"),
        "component": input_("component"),
        "task": input_("task"),
        "task_name": input_("task-name"),
    }
    yield _driver(
        "system-dag-driver",
        {**shared, "type": input_("driver-type"), "runtime_config": input_("runtime-config")},
        {
            "component": None,
            "runtime-config": "",
            "task": "",
            "task-name": "",
            "parent-dag-id": "0",
            "driver-type": "DAG",
        },
        {"execution-id": None, "condition": "true"},
    )
    yield _driver(
        "system-container-driver",
        {
            **shared,
            "type": "CONTAINER",
            "container": input_("container"),
            "kubernetes_config": input_("kubernetes-config"),
        },
        {
            "component": None,
            "task": None,
            "container": None,
            "task-name": None,
            "parent-dag-id": None,
            "kubernetes-config": "",
        },
        {"pod-spec-patch": "", "cached-decision": "false", "condition": "true"},
    )


def _driver(
    name: str,
    options: Mapping[str, str],
    inputs: Mapping[str, str | None],
    outputs: Mapping[str, str | None],
) -> Object:
    written = {
        f"{output.replace('-', '_')}_path": f"{{{{outputs.parameters.{output}.path}}}}" for output in outputs
    }
    arguments = [word for key, value in {**options, **written}.items() for word in (f"--{key}", value)]
    return {
        "name": name,
        "inputs": {"parameters": [{"name": key} | _default(value) for key, value in inputs.items()]},
        "outputs": {
            "parameters": [
                {"name": key, "valueFrom": {"path": f"/tmp/outputs/{key}"} | _default(value)}  # noqa: S108 - of the container
                for key, value in outputs.items()
            ]
        },
        "metadata": {"annotations": {"pipelines.kubeflow.org/runtime-role": "driver"}},
        "container": {
            "image": f"ghcr.io/kubeflow/kfp-driver:{_VERSION}",
            "command": ["driver"],
            "args": arguments,
            "resources": _DRIVER_RESOURCES,
            "env": _ENVIRONMENT,
        },
    }


def _default(value: str | None) -> Object:
    return {} if value is None else {"default": value}


def workflow(
    compiled: Compiled,
    arguments: Mapping[str, Any],
    annotations: Mapping[str, str] | None = None,
    *,
    speed: float = 1,
) -> Object:
    """Return the Workflow of a run.

    Args:
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
