"""A replacement for KFP's launcher in a step's pod, and for the metadata store that it writes to.

The launcher replaces placeholders, runs the step's command, and records its outputs
(component/launcher_v2.go, 2.17.0). Artifacts are local files rather than objects of a store. Like KFP's
launcher it forwards no signals: a signal that ends it ends the step. A run is a directory, with a JSON
file per graph and task, replaced atomically: a repeated step writes the same file again.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import part, parts, text

RUNS: Final = "EBBTIDE_REHEARSAL_RUNS"
"""Environment variable with the directory of all runs."""
Object = Mapping[str, Any]
_ROOT: Final = "EBBTIDE_REHEARSAL_ROOT"
_OPTIONS: Final = ("run_id", "dag_execution_id", "task_name", "executor_input", "component_spec")


class NotPublishedError(Exception):
    """A task did not write a requested output."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a task, or the inputs of a graph.

    Attributes:
        parameters: values by name.
        artifacts: lists of runtime artifacts (`pipeline_spec.proto`) by name.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    artifacts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Run:
    """A run's record."""

    directory: Path

    @classmethod
    def of(cls, run_id: str) -> "Run":
        """Return the record of a run, below the directory that the environment names."""
        return cls(Path(os.environ[RUNS]) / run_id)

    def open_graph(self, given: Outputs) -> str:
        """Record a graph with its inputs, and return its execution id."""
        graph = uuid.uuid4().hex
        self._write(f"graphs/{graph}.json", asdict(given))
        return graph

    def graph(self, graph: str) -> Outputs:
        """Return a graph's inputs."""
        return Outputs(**self._read(f"graphs/{graph}.json"))

    def publish(self, graph: str, task: str, outputs: Outputs) -> None:
        """Record a task's outputs."""
        self._write(f"tasks/{graph}/{task}.json", asdict(outputs))

    def publish_graph(self, graph: str, task: str, of: str, selectors: Mapping[str, Any]) -> None:
        """Record that a task of a graph is another graph.

        Args:
            graph: the execution id of the graph that has the task.
            of: its execution id as a graph.
            selectors: that graph's outputs (`DagOutputsSpec`): which of its tasks each comes from.
        """
        self._write(f"tasks/{graph}/{task}.json", {"graph": of, "selectors": selectors})

    def artifacts(self, task: str) -> Path:
        """Create a directory for a task's artifacts, replacing the object store."""
        return self.directory / "artifacts" / task / uuid.uuid4().hex

    def output(self, kind: str, graph: str, task: str, name: str) -> Any:
        """Return an output of a task, or of a task of its subgraph.

        Args:
            kind: `parameters`, of which it is the value, or `artifacts`, of which it is the list.

        Raises:
            NotPublishedError: the task has no such output, or has not run.
        """
        try:
            entry = self._read(f"tasks/{graph}/{task}.json")
        except FileNotFoundError:
            raise NotPublishedError(f"Task {task} has not run.") from None
        outputs = part(entry.get("selectors", entry), kind)
        if name not in outputs:
            raise NotPublishedError(f"Task {task} gave no {name}.")
        if "graph" not in entry:
            return outputs[name]
        key = "outputParameterKey" if kind == "parameters" else "outputArtifactKey"
        for choice in _selectors(outputs[name]):
            with contextlib.suppress(NotPublishedError):
                return self.output(kind, entry["graph"], choice["producerSubtask"], choice[key])
        raise NotPublishedError(f"Task {task} gave no {name}: none of the tasks that it comes from has run.")

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        file = self.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{uuid.uuid4().hex}")
        new.write_text(json.dumps(content), encoding="utf-8")
        new.replace(file)

    def _read(self, name: str) -> dict[str, Any]:
        return json.loads((self.directory / name).read_text(encoding="utf-8"))


def _selectors(output: Object) -> Sequence[Object]:
    """Return from which tasks of a graph its output comes (`DagOutputsSpec`)."""
    several = output.get("artifactSelectors") or part(output, "valueFromOneof").get("parameterSelectors")
    return several or [output["valueFromParameter"]]


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
            for key in ("uri", "path"):
                placeholders[f"{{{{$.{kind}.artifacts['{name}'].{key}}}}}"] = artifact["artifacts"][0]["uri"]
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
