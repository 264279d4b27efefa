"""A server of the Kubeflow Pipelines API that refuses what the real one refuses of a run.

Source: kubeflow/pipelines 2.17.0, backend/src/apiserver/server (experiment_server.go, run_server.go) and
template/v2_template.go, in single-user mode (2026-07).
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlsplit

from google.protobuf import json_format

from tests.loopback import Handler, listening

API = "/apis/v2beta1"

_SPECS: Any = import_module("kfp.pipeline_spec.pipeline_spec_pb2")


class RefusedRequestError(Exception):
    """A request that the API refuses, with an HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass(slots=True)
class PipelinesApi:
    """Experiments and runs.

    Attributes:
        experiments: by id.
        runs: in the order in which they were created.
    """

    experiments: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    runs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> dict[str, Any]:
        """The answer to a request.

        Raises:
            RefusedRequestError: the request is refused.
        """
        match method, path.removeprefix(API):
            case "GET", "/healthz":
                return {"multi_user": False}
            case "GET", "/experiments":
                return self._experiments(query)
            case "POST", "/experiments":
                return self._created_experiment(body)
            case "POST", "/runs":
                return self._created_run(body)
            case "GET", run if run.startswith("/runs/"):
                return next(item for item in self.runs if run == f"/runs/{item['run_id']}")
            case _:
                raise RefusedRequestError(404, f"Not Found: {method} {path}")

    def _experiments(self, query: dict[str, list[str]]) -> dict[str, Any]:
        if query.get("namespace", [""])[0]:
            raise RefusedRequestError(400, "In single-user mode, the namespace must be empty.")
        wanted = json.loads(query.get("filter", ["{}"])[0]).get("predicates", [])
        names = [predicate["stringValue"] for predicate in wanted]
        matching = [item for item in self.experiments.values() if not names or item["display_name"] in names]
        return {"experiments": matching, "total_size": len(matching)}

    def _created_experiment(self, body: Any) -> dict[str, Any]:
        name = body.get("display_name")
        if not name:
            raise RefusedRequestError(
                400, "Experiment name is empty. Please specify a valid experiment name."
            )
        if body.get("namespace"):
            raise RefusedRequestError(
                400, "In single-user mode, CreateExperimentRequest shouldn't contain namespace."
            )
        if any(item["display_name"] == name for item in self.experiments.values()):
            raise RefusedRequestError(409, f"The name {name} already exists. Please specify a new name.")
        made = {"experiment_id": f"experiment-{len(self.experiments) + 1}", "display_name": name}
        self.experiments[made["experiment_id"]] = made
        return made

    def _created_run(self, body: Any) -> dict[str, Any]:
        if not body.get("display_name"):
            raise RefusedRequestError(400, "The run name is empty. Please specify a valid name.")
        if body.get("experiment_id") not in self.experiments:
            raise RefusedRequestError(404, "The experiment of the run is not found.")
        document = body.get("pipeline_spec")
        if not document:
            raise RefusedRequestError(400, "Neither a pipeline spec nor a pipeline version is given.")
        try:
            spec: Any = json_format.ParseDict(document.get("pipeline_spec", document), _SPECS.PipelineSpec())
        except json_format.ParseError as error:
            raise RefusedRequestError(400, f"Failed to parse the pipeline spec: {error}") from error
        self._check_parameters(spec, body.get("runtime_config", {}).get("parameters") or {})
        made = {
            **body,
            "run_id": f"run-{len(self.runs) + 1}",
            "state": "PENDING",
            "created_at": "2026-11-22T12:00:00Z",
        }
        self.runs.append(made)
        return made

    @staticmethod
    def _check_parameters(spec: Any, given: dict[str, Any]) -> None:
        known = spec.root.input_definitions.parameters
        unknown = sorted(set(given) - set(known))
        needed = {
            name for name, item in known.items() if not (item.is_optional or item.HasField("default_value"))
        }
        missing = sorted(needed - set(given))
        if unknown or missing:
            raise RefusedRequestError(400, f"Unknown parameters {unknown}; missing parameters {missing}.")


@contextmanager
def serving(api: PipelinesApi, port: int = 0) -> Generator[str]:
    """Serve the API on a port of this machine, by default a free one; its address."""

    class Answers(Handler):
        def do_GET(self) -> None:  # noqa: N802 - named by http.server
            self._answer("GET")

        def do_POST(self) -> None:  # noqa: N802 - named by http.server
            self._answer("POST")

        def _answer(self, method: str) -> None:
            address = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or "null")
            try:
                status, answer = 200, api.answer(method, address.path, parse_qs(address.query), body)
            except RefusedRequestError as error:
                status, answer = error.status, {"error": str(error), "message": str(error)}
            self.send(status, answer)

    with listening(Answers, port=port) as at:
        yield f"http://127.0.0.1:{at}"
