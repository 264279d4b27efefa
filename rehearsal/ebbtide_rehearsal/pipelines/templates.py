"""Templates of the Argo Workflow that run pods: drivers and executors (argocompiler/container.go, dag.go;
2.17.0)."""

import copy
from collections.abc import Iterator, Mapping
from typing import Final

from ebbtide.clients.kubernetes import Object
from ebbtide.declaration.catalog import PINS
from ebbtide_rehearsal.pipelines.compiled import Compiled
from ebbtide_rehearsal.pipelines.pod_spec import LAUNCHER

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
