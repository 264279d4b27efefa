"""The record of pipeline runs, replacing the metadata store: the graphs of a run, and the outputs of its
tasks.

A directory per run, and a JSON file per graph and task, replaced atomically: a repeated step writes the same
file again.
"""

import contextlib
import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import part

RUNS: Final = "EBBTIDE_REHEARSAL_RUNS"
"""Environment variable with the directory of all runs."""


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
    """A run's record.

    Attributes:
        directory: its directory.
    """

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
            task: its name.
            of: its execution id as a graph.
            selectors: that graph's outputs (`DagOutputsSpec`): which of its tasks each comes from.
        """
        self._write(f"tasks/{graph}/{task}.json", {"graph": of, "selectors": selectors})

    def parameter(self, graph: str, task: str, name: str) -> Any:
        """Return an output parameter of a task, or of a task of its subgraph.

        Raises:
            NotPublishedError: the task has no such output, or has not run.
        """
        entry = self._task(graph, task)
        if "graph" not in entry:
            return self._named(entry["parameters"], name, task)
        selector = self._named(entry["selectors"].get("parameters") or {}, name, task)
        choices = part(selector, "valueFromOneof").get("parameterSelectors") or [
            selector.get("valueFromParameter")
        ]
        for choice in choices:
            with contextlib.suppress(NotPublishedError):
                return self.parameter(entry["graph"], choice["producerSubtask"], choice["outputParameterKey"])
        raise NotPublishedError(f"Task {task} gave no {name}: none of the tasks that it comes from has run.")

    def artifact(self, graph: str, task: str, name: str) -> Any:
        """Return an output artifact's list of a task, or of a task of its subgraph.

        Raises:
            NotPublishedError: the task has no such output, or has not run.
        """
        entry = self._task(graph, task)
        if "graph" not in entry:
            return self._named(entry["artifacts"], name, task)
        selector = self._named(entry["selectors"].get("artifacts") or {}, name, task)
        for choice in selector["artifactSelectors"]:
            with contextlib.suppress(NotPublishedError):
                return self.artifact(entry["graph"], choice["producerSubtask"], choice["outputArtifactKey"])
        raise NotPublishedError(f"Task {task} gave no {name}: none of the tasks that it comes from has run.")

    def artifacts(self, task: str) -> Path:
        """Create a directory for a task's artifacts, replacing the object store."""
        return self.directory / "artifacts" / task / uuid.uuid4().hex

    def _task(self, graph: str, task: str) -> dict[str, Any]:
        try:
            return self._read(f"tasks/{graph}/{task}.json")
        except FileNotFoundError:
            raise NotPublishedError(f"Task {task} has not run.") from None

    @staticmethod
    def _named(given: Mapping[str, Any], name: str, task: str) -> Any:
        if name not in given:
            raise NotPublishedError(f"Task {task} gave no {name}.")
        return given[name]

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        file = self.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{uuid.uuid4().hex}")
        new.write_text(json.dumps(content), encoding="utf-8")
        new.replace(file)

    def _read(self, name: str) -> dict[str, Any]:
        return json.loads((self.directory / name).read_text(encoding="utf-8"))
