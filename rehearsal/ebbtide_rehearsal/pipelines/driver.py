"""A replacement for KFP's driver: it resolves a task's inputs, evaluates its condition, and writes the patch
for its pod (driver/driver.go, container.go, dag.go, root_dag.go, resolve.go; 2.17.0), field by field
(initPodSpecPatch; driver/k8s.go, extendPodSpecPatch).

There is no cache: every step runs. Options are those of KFP's driver.
"""

import argparse
import ast
import json
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import part, parts, text, words
from ebbtide_rehearsal.pipelines.launcher import Object, Outputs, Run

LAUNCHER: Final = "/kfp-launcher/launch"
Source = Callable[[Object], Any]
"""Returns the value of an input parameter's specification."""
_INPUT: Final = re.compile(r"\{\{\$\.inputs\.parameters\['(.+?)'\]\}\}")
_OPTIONS: Final = (
    "type",
    "run_id",
    "run_name",
    "pipeline_name",
    "pipeline_job_create_time_utc",
    "dag_execution_id",
    "component",
    "task",
    "task_name",
    "container",
    "kubernetes_config",
    "runtime_config",
    "execution_id_path",
    "condition_path",
    "cached_decision_path",
    "pod_spec_patch_path",
)
_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|&&|\|\||!(?!=)|\btrue\b|\bfalse\b")
_PYTHON: Final = {"&&": " and ", "||": " or ", "!": " not ", "true": "True", "false": "False"}
_COMPARE: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CONVERT: Final[Mapping[str, Callable[[Any], Any]]] = {
    "int": int,
    "double": float,
    "string": str,
    "bool": bool,
}


class UnsupportedPipelineError(Exception):
    """A pipeline uses a feature that a rehearsal does not support."""


def main(argv: Sequence[str]) -> None:
    """Run the driver with its arguments."""
    parser = argparse.ArgumentParser(prog="driver")
    for option in _OPTIONS:
        parser.add_argument(f"--{option}", default="")
    options = parser.parse_args(argv)
    run = Run.of(options.run_id)
    component: Object = json.loads(options.component)
    if options.type == "ROOT_DAG":
        given = part(json.loads(options.runtime_config), "parameterValues")
        _write(options.execution_id_path, run.open_graph(Outputs(_plain(given, component))))
        return
    task: Object = json.loads(options.task)
    inputs = resolve(run, options, component, task)
    condition = text(task, "triggerPolicy", "condition")
    triggered = not condition or holds(condition, inputs.parameters)
    _write(options.condition_path, json.dumps(triggered))
    if options.type == "DAG":
        graph = run.open_graph(inputs)
        _write(options.execution_id_path, graph)
        if triggered:
            outputs = part(component, "dag", "outputs")
            run.publish_graph(options.dag_execution_id, options.task_name, graph, outputs)
    elif triggered:
        _write(options.pod_spec_patch_path, json.dumps(_patch(run, options, component, inputs)))


def resolve(run: Run, options: argparse.Namespace, component: Object, task: Object) -> Outputs:
    """Return a task's inputs: constants, inputs of its graph, outputs of its siblings, and defaults."""
    parameters = {
        name: value_of(run, options, source) for name, source in part(task, "inputs", "parameters").items()
    }
    parent = run.graph(options.dag_execution_id)
    artifacts: dict[str, Any] = {}
    for name, source in part(task, "inputs", "artifacts").items():
        if output := part(source, "taskOutputArtifact"):
            artifacts[name] = run.output(
                "artifacts", options.dag_execution_id, output["producerTask"], output["outputArtifactKey"]
            )
        else:
            artifacts[name] = parent.artifacts[source["componentInputArtifact"]]
    return Outputs(_plain(parameters, component), artifacts)


def value_of(run: Run, options: argparse.Namespace, source: Object) -> Any:
    """Return the value of an input parameter's specification.

    A constant is replaced only if it is exactly a placeholder of the run; KFP's driver and launcher keep
    placeholders within longer texts.
    """
    graph = options.dag_execution_id
    if output := part(source, "taskOutputParameter"):
        return run.output("parameters", graph, output["producerTask"], output["outputParameterKey"])
    if "componentInputParameter" in source:
        return run.graph(graph).parameters[source["componentInputParameter"]]
    value = source["runtimeValue"]["constant"]
    constants = {
        "{{$.pipeline_job_name}}": options.run_name,
        "{{$.pipeline_job_resource_name}}": options.run_name,
        "{{$.pipeline_job_uuid}}": options.run_id,
        "{{$.pipeline_task_name}}": options.task_name,
        "{{$.pipeline_task_uuid}}": graph,
        "{{$.pipeline_job_create_time_utc}}": options.pipeline_job_create_time_utc,
    }
    return constants.get(value, value) if isinstance(value, str) else value


def _plain(given: Object, component: Object) -> dict[str, Any]:
    """Return values with the component's defaults; integers without a fraction, as in protobuf's JSON."""
    definitions = part(component, "inputDefinitions", "parameters")
    defaults = {
        name: definition["defaultValue"]
        for name, definition in definitions.items()
        if "defaultValue" in definition
    }
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in {**defaults, **given}.items()
    }


def _patch(run: Run, options: argparse.Namespace, component: Object, inputs: Outputs) -> Object:
    root = run.artifacts(options.task_name)
    definitions = part(component, "outputDefinitions")
    executor_input = {
        "inputs": {"parameterValues": inputs.parameters, "artifacts": inputs.artifacts},
        "outputs": {
            "parameters": {
                name: {"outputFile": f"/tmp/kfp/outputs/{name}"}  # noqa: S108 - of the container
                for name in part(definitions, "parameters")
            },
            "artifacts": {
                name: {
                    "artifacts": [
                        {
                            "name": name,
                            "uri": str(root / name),
                            "type": part(artifact, "artifactType"),
                            "metadata": part(artifact, "metadata"),
                        }
                    ]
                }
                for name, artifact in part(definitions, "artifacts").items()
            },
            "outputFile": str(root / "output_metadata.json"),
        },
    }
    values = {
        "run_id": options.run_id,
        "dag_execution_id": options.dag_execution_id,
        "task_name": options.task_name,
        "executor_input": json.dumps(executor_input),
        "component_spec": options.component,
    }
    config: Object = json.loads(options.kubernetes_config or "{}")
    arguments = [word for name, value in values.items() for word in (f"--{name}", value)]
    return pod_spec_patch(
        json.loads(options.container),
        config,
        inputs.parameters,
        arguments,
        lambda source: value_of(run, options, source),
    )


def _write(path: str, content: str) -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")


def holds(condition: str, parameters: Mapping[str, Any]) -> bool:
    """Evaluate a task's condition, in the subset of CEL that kfp's compiler writes.

    kfp writes comparisons of an input parameter with a literal or with another parameter, `!(…)`, `&&`, and
    the conversions `int()`, `double()`, `string()` and `bool()` (kfp 2.17.0,
    compiler/pipeline_spec_builder.py).

    Args:
        condition: CEL, as in `triggerPolicy.condition`; its strings are parsed as Python's.
        parameters: the values of the task's input parameters.

    Raises:
        UnsupportedPipelineError: it is outside the subset that kfp's compiler writes.
    """
    python = _TOKEN.sub(lambda match: _PYTHON.get(match[0], match[0]), condition)
    try:
        return bool(_value(ast.parse(python.strip(), mode="eval").body, parameters))
    except SyntaxError:
        raise UnsupportedPipelineError(f"A rehearsal cannot evaluate the condition {condition}") from None


def _value(node: ast.expr, parameters: Mapping[str, Any]) -> Any:  # noqa: PLR0911 - a case each
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, parameters)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, parameters)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(value, parameters) for value in values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_value(value, parameters) for value in values)
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if type(comparison) in _COMPARE:
            return _COMPARE[type(comparison)](_value(left, parameters), _value(right, parameters))
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _CONVERT:
            return _CONVERT[name](_value(argument, parameters))
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id="inputs"), attr="parameter_values"),
            slice=ast.Constant(value=str(name)),
        ):
            return parameters[name]
        case _:
            raise UnsupportedPipelineError(
                f"A rehearsal cannot evaluate the condition part {ast.unparse(node)}"
            )


def _resolved(value: str, parameters: Mapping[str, Any]) -> str:
    """Replace the placeholders of input parameters in a text."""
    return _INPUT.sub(lambda match: str(parameters[match[1]]), value)


def pod_spec_patch(
    container: Object,
    config: Object,
    parameters: Mapping[str, Any],
    launcher_arguments: list[str],
    source: Source,
) -> dict[str, Any]:
    """Return the strategic merge patch for a step's pod.

    Args:
        container: the executor's container.
        config: the executor's Kubernetes configuration.
        parameters: the step's input parameters.
        launcher_arguments: the launcher's arguments before the step's own command.
        source: the value of an input parameter's specification, by which the configuration names objects.
    """
    main: dict[str, Any] = {
        "name": "main",
        "image": _resolved(text(container, "image"), parameters),
        "command": [LAUNCHER, *launcher_arguments, "--"],
        "args": [
            _resolved(word, parameters) for word in (*words(container, "command"), *words(container, "args"))
        ],
        "env": [
            {"name": variable["name"], "value": str(variable.get("value", ""))}
            for variable in parts(container, "env")
        ],
        "resources": _resources(part(container, "resources"), parameters),
    }
    spec: dict[str, Any] = {"containers": [main]}
    volumes = list(_volumes(config, source))
    if volumes:
        spec["volumes"] = [volume for volume, _ in volumes]
        main["volumeMounts"] = [mount for _, mount in volumes]
    main["env"] += _environment(config, source)
    if policy := text(config, "imagePullPolicy"):
        main["imagePullPolicy"] = policy
    if labels := part(config, "nodeSelector", "labels"):
        spec["nodeSelector"] = dict(labels)
    if tolerations := [_toleration(toleration) for toleration in parts(config, "tolerations")]:
        spec["tolerations"] = tolerations
    if secrets := [_named(secret, "secretName", source) for secret in parts(config, "imagePullSecret")]:
        spec["imagePullSecrets"] = [{"name": name} for name in secrets]
    if affinity := _affinity(config):
        spec["affinity"] = {"nodeAffinity": affinity}
    if deadline := int(config.get("activeDeadlineSeconds") or 0):
        spec["activeDeadlineSeconds"] = deadline
    return spec


def _resources(given: Object, parameters: Mapping[str, Any]) -> Object:
    """Return limits and requests: the fields with placeholders, or else the older numbers."""

    def amount(field: str, older: str, unit: str) -> str:
        if quantity := text(given, field):
            return _resolved(quantity, parameters)
        return f"{given[older]:g}{unit}" if given.get(older) else ""

    accelerator = part(given, "accelerator")
    kind = _resolved(text(accelerator, "resourceType") or text(accelerator, "type"), parameters)
    count = _resolved(text(accelerator, "resourceCount") or text(accelerator, "count"), parameters)
    limits = {
        "memory": amount("resourceMemoryLimit", "memoryLimit", "G"),
        "cpu": amount("resourceCpuLimit", "cpuLimit", ""),
    } | ({kind: count} if kind else {})
    requests = {
        "memory": amount("resourceMemoryRequest", "memoryRequest", "G"),
        "cpu": amount("resourceCpuRequest", "cpuRequest", ""),
    }
    return {
        kind: {name: value for name, value in amounts.items() if value}
        for kind, amounts in (("limits", limits), ("requests", requests))
    }


def _volumes(config: Object, source: Source) -> Iterator[tuple[Object, Object]]:
    """Yield volumes with their mounts: claims, Secrets, ObjectMaps, empty directories."""
    for claim in parts(config, "pvcMount"):
        name = _named(claim, "pvcName", source)
        mount = {"name": name, "mountPath": claim["mountPath"]}
        if path := text(claim, "subPath"):
            mount["subPath"] = path
        yield {"name": name, "persistentVolumeClaim": {"claimName": name}}, mount
    for field, kind, key in (
        ("secretAsVolume", "secret", "secretName"),
        ("configMapAsVolume", "configMap", "configMapName"),
    ):
        for item in parts(config, field):
            name = _named(item, key, source)
            volume = {
                "secretName" if kind == "secret" else "name": name,
                "optional": bool(item.get("optional")),
            }
            yield {"name": name, kind: volume}, {"name": name, "mountPath": item["mountPath"]}
    for directory in parts(config, "emptyDirMounts"):
        volume = {key: directory[key] for key in ("medium", "sizeLimit") if directory.get(key)}
        name = text(directory, "volumeName")
        yield {"name": name, "emptyDir": volume}, {"name": name, "mountPath": directory["mountPath"]}


def _environment(config: Object, source: Source) -> Iterator[Object]:
    for field, reference, key, of in (
        ("secretAsEnv", "secretKeyRef", "secretKey", "secretName"),
        ("configMapAsEnv", "configMapKeyRef", "configMapKey", "configMapName"),
    ):
        for item in parts(config, field):
            optional = {"optional": item["optional"]} if "optional" in item else {}
            for pair in parts(item, "keyToEnv"):
                selector = {"name": _named(item, of, source), "key": pair[key], **optional}
                yield {"name": pair["envVar"], "valueFrom": {reference: selector}}
    for field_path in parts(config, "fieldPathAsEnv"):
        yield {"name": field_path["name"], "valueFrom": {"fieldRef": {"fieldPath": field_path["fieldPath"]}}}


def _named(specification: Object, field: str, source: Source) -> str:
    """Return a name from an input parameter's specification, or from the older fields."""
    if given := part(specification, f"{field}Parameter"):
        return str(source(given))
    if "taskOutputParameter" in specification or "componentInputParameter" in specification:
        return str(source(specification))
    return text(specification, field) or text(specification, "constant")


def _toleration(toleration: Object) -> Object:
    copied: dict[str, Any] = {
        key: toleration[key]
        for key in ("key", "operator", "value", "effect")
        if toleration.get(key) not in (None, "")
    }
    if "tolerationSeconds" in toleration:
        copied["tolerationSeconds"] = int(toleration["tolerationSeconds"])
    return copied


def _affinity(config: Object) -> Object:
    """Return required terms, of which one must match, and preferred terms with weights."""
    required: list[Object] = []
    preferred: list[Object] = []
    for term in parts(config, "nodeAffinity"):
        terms = {
            key: [dict(expression) for expression in parts(term, key)]
            for key in ("matchExpressions", "matchFields")
            if parts(term, key)
        }
        if not terms:
            continue
        if "weight" in term:
            preferred.append({"weight": int(term["weight"]), "preference": terms})
        else:
            required.append(terms)
    affinity: dict[str, Any] = {}
    if required:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": required}
    if preferred:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return affinity


if __name__ == "__main__":
    main(sys.argv[1:])
