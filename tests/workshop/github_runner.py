"""A fake of GitHub Actions, which evaluates expressions, jobs and steps, and runs their shell with fakes.

Sources: docs.github.com, workflow syntax, expressions, and reusing workflows (2026-11).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, cast

import yaml

from tests.workshop import fake_programs

_TOKEN: Final = re.compile(r"\s*('(?:[^']|'')*'|&&|\|\||==|!=|[!(),]|[\w.*-]+)")
_WHOLE: Final = re.compile(r"\s*\$\{\{((?:(?!\}\}).)*)\}\}\s*", re.DOTALL)
_PART: Final = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_STATUS: Final = ("success", "failure", "cancelled", "always")
PROGRAMS: Final = ("az", "ebbtide", "gcloud", "gh", "go", "jq", "make", "pulumi", "python")


class Expression:
    """An expression of GitHub Actions.

    Attributes:
        has_status: True if it asks for the status of earlier steps or jobs.
    """

    def __init__(self, text: str, contexts: Mapping[str, Any], *, succeeds: bool = True) -> None:
        self._tokens = _TOKEN.findall(text)
        assert "".join(self._tokens) == re.sub(r"\s(?=(?:[^']*'[^']*')*[^']*$)", "", text), text
        self._contexts, self._succeeds = contexts, succeeds
        self.has_status = any(name in self._tokens for name in _STATUS)

    def value(self) -> Any:
        """Evaluate it."""
        value = self._or()
        assert not self._tokens, self._tokens
        return value

    def _take(self, *signs: str) -> str | None:
        return self._tokens.pop(0) if self._tokens and self._tokens[0] in signs else None

    def _or(self) -> Any:
        value = self._and()
        while self._take("||"):
            other = self._and()
            value = value or other
        return value

    def _and(self) -> Any:
        value = self._equality()
        while self._take("&&"):
            other = self._equality()
            value = value and other
        return value

    def _equality(self) -> Any:
        value = self._unary()
        while sign := self._take("==", "!="):
            value = (value == self._unary()) is (sign == "==")
        return value

    def _unary(self) -> Any:
        if self._take("!"):
            return not self._unary()
        if self._take("("):
            value = self._or()
            assert self._take(")")
            return value
        token = self._tokens.pop(0)
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        return self._call(token) if self._take("(") else self._at(token)

    def _call(self, name: str) -> Any:
        arguments: list[Any] = []
        while not self._take(")"):
            arguments.append(self._or())
            self._take(",")
        succeeds = self._succeeds
        statuses = {"always": True, "cancelled": False, "failure": not succeeds, "success": succeeds}
        match name, arguments:
            case _, [] if name in statuses:
                return statuses[name]
            case "contains", [items, item]:
                return item in (items or ())
            case "format", [text, *values]:
                return str(text).format(*values)
            case "fromJSON", [text]:
                return json.loads(text)
            case _:
                raise AssertionError(f"{name} is no function with {len(arguments)} arguments")

    def _at(self, path: str) -> Any:
        value: Any = self._contexts
        keys = path.split(".")
        assert keys[0] in self._contexts, f"{path} is no context here"
        for number, key in enumerate(keys):
            if key == "*":
                return [item[keys[number + 1]] for item in cast("list[Any]", value)]
            value = cast("dict[str, Any]", value).get(key, "") if isinstance(value, Mapping) else ""
        return value


def evaluated(value: Any, contexts: Mapping[str, Any]) -> Any:
    """Return a value of a workflow with its expressions evaluated; a single expression keeps its type."""
    if isinstance(value, dict):
        return {key: evaluated(item, contexts) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType] - YAML
    if isinstance(value, list):
        return [evaluated(item, contexts) for item in value]  # pyright: ignore[reportUnknownVariableType] - YAML
    if not isinstance(value, str):
        return value
    if whole := _WHOLE.fullmatch(value):
        return Expression(whole[1], contexts).value()
    return _PART.sub(lambda match: str(Expression(match[1], contexts).value()), value)


def install_fakes(directory: Path, programs: Iterable[str]) -> None:
    """Write fakes of programs into a new directory for PATH."""
    directory.mkdir()
    text = Path(fake_programs.__file__).read_text(encoding="utf-8")
    for name in programs:
        (directory / name).write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
        (directory / name).chmod(0o755)


@dataclass
class _Job:
    """A running job.

    Attributes:
        contexts: what its expressions read.
        environment: variables of its steps.
        rights: its permissions.
        workspace: its copy of the project.
        succeeds: False once a step has failed.
    """

    contexts: dict[str, Any]
    environment: dict[str, str]
    rights: Mapping[str, str]
    workspace: Path
    succeeds: bool = True


@dataclass
class Runner:
    """Runs the workflows of a project.

    Attributes:
        root: the project, with `.github`.
        home: a directory for everything else, which exists.
        github: the context `github`.
        variables: variables of the repository, and of an environment under its name.
        artifacts: uploaded files, by name.
        groups: concurrency groups of the jobs that ran.
    """

    root: Path
    home: Path
    github: Mapping[str, Any]
    variables: Mapping[str, Any]
    artifacts: dict[str, str] = field(default_factory=dict[str, str])
    groups: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        install_fakes(self.home / "bin", PROGRAMS)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls of programs: `argv`, and `login` for the cloud of the job."""
        log = self.home / "calls"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def commands(self, name: str) -> list[str]:
        """Return the calls of a program, as written."""
        return [" ".join(call["argv"][1:]) for call in self.calls if call["argv"][0] == name]

    def run(self, name: str, inputs: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Run a workflow; return the results of its jobs."""
        workflow = yaml.safe_load((self.root / ".github/workflows" / name).read_text(encoding="utf-8"))
        needs = self._run(workflow, dict(inputs or {}), {"contents": "write", "id-token": "write"})
        return {name: need["result"] for name, need in needs.items()}

    def _run(
        self, workflow: Mapping[Any, Any], inputs: dict[str, Any], rights: Mapping[str, str]
    ) -> dict[str, Any]:
        assert workflow["permissions"] == {}
        needs: dict[str, Any] = {}
        repository = {key: value for key, value in self.variables.items() if isinstance(value, str)}
        for name, job in workflow["jobs"].items():
            required = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            contexts: dict[str, Any] = {
                "github": {"workspace": str(self.home), **self.github},
                "vars": repository,
                "inputs": inputs,
                "needs": {item: needs[item] for item in required},
            }
            succeeds = all(needs[item]["result"] == "success" for item in required)
            needs[name] = {"result": "skipped", "outputs": {}}
            if not self._is_run(job, contexts, succeeds=succeeds):
                continue
            asked = job.get("permissions", {})
            assert all(rights.get(key) in (right, "write") for key, right in asked.items() if key in rights)
            if "uses" in job:
                called = yaml.safe_load((self.root / job["uses"]).read_text(encoding="utf-8"))
                given, declared = evaluated(job.get("with", {}), contexts), called[True]["workflow_call"]
                jobs = self._run(called, self._inputs(declared, given), asked)
                failed = any(item["result"] == "failure" for item in jobs.values())
                outputs = {key: item["value"] for key, item in declared.get("outputs", {}).items()}
                needs[name] = {
                    "result": "failure" if failed else "success",
                    "outputs": evaluated(outputs, {"jobs": jobs}),
                }
                continue
            matrix = evaluated(job.get("strategy", {}).get("matrix", {"include": [{}]}), contexts)
            for item in self._items(matrix):
                done, outputs = self._job(job, {**contexts, "matrix": item})
                needs[name]["outputs"] |= outputs
                if needs[name]["result"] != "failure":
                    needs[name]["result"] = "success" if done else "failure"
        return needs

    @staticmethod
    def _inputs(declared: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        known = declared.get("inputs", {})
        assert given.keys() <= known.keys()
        assert all(name in given for name, item in known.items() if item.get("required"))
        assert all(isinstance(value, str) for value in given.values()), given
        return {name: item.get("default", "") for name, item in known.items()} | dict(given)

    @staticmethod
    def _items(matrix: Mapping[str, Any]) -> list[dict[str, Any]]:
        if "include" in matrix:
            items = matrix["include"]
        else:
            ((name, values),) = matrix.items()
            items = [{name: value} for value in values]
        assert items, "GitHub rejects an empty matrix"
        return items

    @staticmethod
    def _is_run(item: Mapping[str, Any], contexts: Mapping[str, Any], *, succeeds: bool) -> bool:
        text = re.sub(r"^\s*\$\{\{|\}\}\s*$", "", str(item.get("if", "success()")))
        expression = Expression(text, contexts, succeeds=succeeds)
        return bool((succeeds or expression.has_status) and expression.value())

    def _job(self, job: Mapping[str, Any], contexts: dict[str, Any]) -> tuple[bool, dict[str, str]]:
        if "environment" in job:
            own = self.variables[evaluated(job["environment"], contexts)]
            contexts = {**contexts, "vars": {**contexts["vars"], **own}}
        if "concurrency" in job:
            self.groups.append(evaluated(job["concurrency"]["group"], contexts))
        environment = {
            "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "RUNNER_TEMP": str(self.home),
            "GITHUB_RUN_ID": "1",
            "CI": "true",
            "FAKE_HOME": str(self.home),
        }
        workspace = Path(mkdtemp(dir=self.home), "project")
        shutil.copytree(self.root, workspace)
        running = _Job({**contexts, "steps": {}}, environment, job["permissions"], workspace)
        running.environment |= _texts(evaluated(job.get("env", {}), running.contexts))
        running.environment["FAKE_RIGHTS"] = json.dumps(dict(running.rights))
        self._steps(job["steps"], running)
        return running.succeeds, _texts(evaluated(job.get("outputs", {}), running.contexts))

    def _steps(self, steps: list[dict[str, Any]], job: _Job) -> None:
        for step in steps:
            if not self._is_run(step, job.contexts, succeeds=job.succeeds):
                continue
            done, outputs = self._step(step, job)
            if "id" in step:
                outcome = "success" if done else "failure"
                job.contexts["steps"][step["id"]] = {"outputs": outputs, "outcome": outcome}
            job.succeeds = job.succeeds and (done or bool(step.get("continue-on-error")))

    def _step(self, step: Mapping[str, Any], job: _Job) -> tuple[bool, dict[str, str]]:
        given = evaluated(step.get("with", {}), job.contexts)
        if "run" in step:
            return self._shell(step, job)
        action = step["uses"].partition("@")[0]
        if action.startswith("./"):
            described = yaml.safe_load((self.root / action / "action.yml").read_text(encoding="utf-8"))
            inputs = self._inputs(described, given)
            inner = replace(job, contexts={**job.contexts, "inputs": inputs, "steps": {}})
            self._steps(described["runs"]["steps"], inner)
            return inner.succeeds, {}
        return self._published(action, given, job)

    def _published(self, action: str, given: Mapping[str, Any], job: _Job) -> tuple[bool, dict[str, str]]:
        """Do what a published action does to later steps."""
        match action:
            case "google-github-actions/auth":
                assert job.rights["id-token"] == "write"
                account = given["service_account"]
                assert given["workload_identity_provider"]
                if given.get("export_environment_variables") is not False:
                    project = account.partition("@")[2].partition(".")[0]
                    job.environment |= {
                        "GOOGLE_CLOUD_PROJECT": project,
                        "GOOGLE_APPLICATION_CREDENTIALS": account,
                    }
                return True, {"credentials_file_path": account}
            case "Azure/login":
                assert job.rights["id-token"] == "write"
                assert all(given[name] for name in ("client-id", "tenant-id", "subscription-id"))
                job.environment["FAKE_AZURE"] = given["client-id"]
            case "actions/upload-artifact":
                paths = [job.workspace / path for path in given["path"].split()]
                files = [
                    file
                    for path in paths
                    for file in (sorted(path.iterdir()) if path.is_dir() else [path])
                    if file.exists()
                ]
                assert files or given["if-no-files-found"] != "error", f"no file {paths}"
                text = "".join(file.read_text(encoding="utf-8") for file in files)
                self.artifacts[given["name"]] = text
                (self.home / f"artifact-{given['name']}").write_text(text)
            case _:
                assert action in _WITHOUT_EFFECT, action
        return True, {}

    def _shell(self, step: Mapping[str, Any], job: _Job) -> tuple[bool, dict[str, str]]:
        script = evaluated(step["run"], job.contexts)
        options = ["--noprofile", "--norc", "-eo", "pipefail"] if step.get("shell") == "bash" else ["-e"]
        files = {name: self.home / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH")}
        files["GITHUB_STEP_SUMMARY"] = self.home / "summary"
        for path in files.values():
            path.write_text("") if path.name != "summary" else path.touch()
        environment = {
            **job.environment,
            **_texts(evaluated(step.get("env", {}), job.contexts)),
            **{name: str(path) for name, path in files.items()},
        }
        command = ["bash", *options, "-c", script]
        done = subprocess.run(
            command, cwd=job.workspace, env=environment, capture_output=True, text=True, check=False
        )
        with (self.home / "output").open("a", encoding="utf-8") as output:
            output.write(done.stdout + done.stderr)
        job.environment |= dict(_assignments(files["GITHUB_ENV"]))
        for line in files["GITHUB_PATH"].read_text().splitlines():
            job.environment["PATH"] = f"{line}:{job.environment['PATH']}"
        return done.returncode == 0, dict(_assignments(files["GITHUB_OUTPUT"]))


_WITHOUT_EFFECT: Final = frozenset(
    {
        "actions/checkout",
        "actions/setup-python",
        "google-github-actions/setup-gcloud",
        "pulumi/actions",
    }
)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def _assignments(file: Path) -> Iterator[tuple[str, str]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        name, sign, value = line.partition("=")
        assert sign, line
        yield name, value
