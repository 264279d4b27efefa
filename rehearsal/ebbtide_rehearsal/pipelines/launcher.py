"""A replacement for KFP's launcher in a step's pod: it replaces placeholders, runs the step's command, and
records its outputs (component/launcher_v2.go, 2.17.0).

Artifacts are local files rather than objects of a store. Like KFP's launcher it forwards no signals: a signal
that ends it ends the step.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide_rehearsal.pipelines.runs import Outputs, Run

Object = Mapping[str, Any]

_ROOT: Final = "EBBTIDE_REHEARSAL_ROOT"
_OPTIONS: Final = ("run_id", "dag_execution_id", "task_name", "executor_input", "component_spec")


def main(argv: Sequence[str]) -> int:
    """Run a step with the launcher's arguments, and return the step's exit status."""
    parser = argparse.ArgumentParser(prog="launch")
    for option in _OPTIONS:
        parser.add_argument(f"--{option}", required=True)
    end = argv.index("--")
    options = parser.parse_args(argv[:end])
    executor_input = _placed(json.loads(options.executor_input))
    placeholders = placeholders_of(executor_input)
    command = [replaced(word, executor_input, placeholders) for word in argv[end + 1 :]]
    # Nothing is installed on this machine: a component's pip packages must already be installed.
    done = subprocess.run(command, check=False, env={**os.environ, "PIP_NO_INDEX": "1"})  # noqa: S603 - the pipeline's own
    if done.returncode == 0:
        outputs = collected(executor_input, json.loads(options.component_spec))
        Run.of(options.run_id).publish(options.dag_execution_id, options.task_name, outputs)
    return done.returncode


def _placed(executor_input: dict[str, Any]) -> dict[str, Any]:
    """Return the executor input with its output files below the container's root directory, and create their
    directories.
    """
    root = os.environ.get(_ROOT, "")
    outputs = executor_input["outputs"]
    for parameter in outputs["parameters"].values():
        parameter["outputFile"] = root + parameter["outputFile"]
    files = [parameter["outputFile"] for parameter in outputs["parameters"].values()]
    files += [artifact["artifacts"][0]["uri"] for artifact in outputs["artifacts"].values()]
    for file in (*files, outputs["outputFile"]):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
    return executor_input


def placeholders_of(executor_input: Object) -> dict[str, str]:
    """Return the launcher's placeholders with their values."""
    inputs, outputs = part(executor_input, "inputs"), part(executor_input, "outputs")
    placeholders = {
        f"{{{{$.inputs.parameters['{name}']}}}}": _text(value)
        for name, value in part(inputs, "parameterValues").items()
    }
    for kind, given in (("inputs", inputs), ("outputs", outputs)):
        for name, artifact in part(given, "artifacts").items():
            for field in ("uri", "path"):
                placeholders[f"{{{{$.{kind}.artifacts['{name}'].{field}}}}}"] = artifact["artifacts"][0][
                    "uri"
                ]
    for name, parameter in part(outputs, "parameters").items():
        placeholders[f"{{{{$.outputs.parameters['{name}'].output_file}}}}"] = parameter["outputFile"]
    return placeholders


def replaced(word: str, executor_input: Object, placeholders: Mapping[str, str]) -> str:
    """Replace the executor input's own placeholder first, then the placeholders in it."""
    word = word.replace("{{$}}", json.dumps(executor_input))
    for placeholder, value in placeholders.items():
        word = word.replace(placeholder, value)
    return word


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value}" if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value)


def collected(executor_input: Object, component: Object) -> Outputs:
    """Return a step's outputs: from the file that kfp's executor writes, and from each parameter's file.

    Raises:
        ValueError: the value in a parameter's file does not have its type.
    """
    outputs = part(executor_input, "outputs")
    written = Path(outputs["outputFile"])
    declared: Object = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
    parameters = dict(part(declared, "parameterValues"))
    definitions = part(component, "outputDefinitions", "parameters")
    for name, parameter in part(outputs, "parameters").items():
        file = Path(parameter["outputFile"])
        if name not in parameters and file.exists():
            content = file.read_text(encoding="utf-8")
            is_text = text(definitions, name, "parameterType") == "STRING"
            parameters[name] = content if is_text else json.loads(content)
    artifacts = {
        name: {"artifacts": [{**artifact["artifacts"][0], **_written(declared, name)}]}
        for name, artifact in part(outputs, "artifacts").items()
    }
    return Outputs(parameters, artifacts)


def _written(artifact: Object, name: str) -> Object:
    """Return name, location and metadata of an artifact that the step wrote, without its type."""
    return next(iter(parts(artifact, "artifacts", name, "artifacts")), dict[str, Any]())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
