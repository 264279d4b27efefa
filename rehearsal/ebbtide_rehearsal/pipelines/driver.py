"""A replacement for KFP's driver: it resolves a task's inputs, evaluates its condition, and writes the patch
for its pod (driver/driver.go, container.go, dag.go, root_dag.go, resolve.go; 2.17.0).

There is no cache: every step runs. Options are those of KFP's driver.
"""

import argparse
import ast
import json
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import part, text
from ebbtide_rehearsal.pipelines.compiled import UnsupportedPipelineError
from ebbtide_rehearsal.pipelines.launcher import Object, Outputs, Run
from ebbtide_rehearsal.pipelines.pod_spec import pod_spec_patch

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
            artifacts[name] = run.artifact(
                options.dag_execution_id, output["producerTask"], output["outputArtifactKey"]
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
        return run.parameter(graph, output["producerTask"], output["outputParameterKey"])
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


if __name__ == "__main__":
    main(sys.argv[1:])
