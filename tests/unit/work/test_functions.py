"""Runs of Python functions: the folder of the code, the command, and what is refused."""

import base64
import gzip
import importlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide.work import functions
from ebbtide.work.errors import ClusterError, WorkloadError
from ebbtide.work.runs.archives import extract
from tests.declarations import GKE, changed
from tests.unit.api_objects import ObjectsApi
from tests.unit.work.clusters import DEV, derived

_PROGRAM = """
def train(lr, layers):
    print("trained", lr, layers)

class Model:
    def train(self):
        pass

outer = lambda: None
"""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> ObjectsApi:
    """The API server of the kubeconfig."""
    objects = ObjectsApi()
    monkeypatch.setattr(Api, "of_user", lambda _context="": objects)
    return objects


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of a package in a folder."""
    package = tmp_path / "folder" / "acme_models"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "resnet.py").write_text(_PROGRAM)
    monkeypatch.setattr(sys, "path", [str(package.parent), *sys.path])
    yield importlib.import_module("acme_models.resnet")
    for name in ("acme_models", "acme_models.resnet"):
        del sys.modules[name]


def test_a_function_of_a_package(api: ObjectsApi, module: Any, tmp_path: Path) -> None:
    """The Job has the folder of the package, and its command calls the function with the arguments there."""
    created = functions.run(module.train, 0.1, [64, 64], profile=DEV, pool="cpu-spot", image="python")
    config_map, job = api.objects.values()
    assert (created.name, created.namespace) == (job["metadata"]["name"], "lab")
    archive = gzip.decompress(base64.b64decode(config_map["binaryData"]["code.tar.gz"]))
    extract(io.BytesIO(archive), tmp_path / "code")
    command = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert command[0] == "python"
    done = subprocess.run(
        [sys.executable, *command[1:]], cwd=tmp_path / "code", capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("trained 0.1 [64, 64]\n", 0), done.stderr
    assert json.loads(command[-1]) == [0.1, [64, 64]]


def test_a_run_is_its_job_and_not_another_of_the_name(api: ObjectsApi, module: Any) -> None:
    """A run whose Job was replaced has no result, and its cancellation leaves the new Job."""
    fields: Any = {"profile": DEV, "pool": "cpu-spot", "image": "python", "name": "train"}
    first = functions.run(module.train, 0.1, [], **fields)
    second = functions.run(module.train, 0.2, [], replace=True, **fields)
    for use in (first.wait, first.cancel):
        with pytest.raises(ClusterError, match="Job train was replaced by ada"):
            use()
    assert api.names("jobs") == ["train"]
    second.cancel()
    assert api.names("jobs") == []


def test_functions_that_are_refused(api: ObjectsApi, module: Any) -> None:
    """A method, a lambda, a function of no file and an argument that is no JSON each are an error."""
    cases: list[tuple[Any, list[Any], str]] = [
        (module.Model.train, [], "Model.train is not a function at the top level of a module"),
        (module.outer, [], "<lambda> is not a function at the top level"),
        (eval("lambda: None", {}), [], "is in no file"),  # noqa: S307 - as an interactive session does
        (module.train, [object(), []], "are passed to the pod as JSON"),
    ]
    for function, arguments, words in cases:
        with pytest.raises(WorkloadError, match=words):
            functions.run(function, *arguments, profile=DEV, pool="cpu-spot", image="python")
    with pytest.raises(WorkloadError, match="write one of image, config-map, bucket"):
        functions.run(module.train, profile=DEV, pool="cpu-spot", image="python", code_in="disk")
    assert api.objects == {}


def test_code_in_the_bucket_of_the_team(
    api: ObjectsApi, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `code_in`, the archive is in the team's bucket and the Job mounts it, without a ConfigMap."""
    written: dict[str, bytes] = {}

    def write(path: str, content: bytes) -> bool:
        written[path] = content
        return True

    monkeypatch.setattr("ebbtide.work.runs.code.write_once", write)
    profile = derived(changed(GKE, teams=[{"name": "vision", "requireQueue": False, "volume": {}}]))
    fields: Any = {"pool": "cpu", "namespace": "vision", "image": "python", "code_in": "bucket"}
    functions.run(module.train, 0.1, [], profile=profile, **fields)
    (job,) = api.objects.values()
    ((path, content),) = written.items()
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert path == f"{profile.teams[0].bucket}/{container['volumeMounts'][0]['subPath']}/code.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert "acme_models/resnet.py" in archive.getnames()


def test_a_module_that_calls_run_when_it_is_imported(
    api: ObjectsApi, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pod's import creates no further Job."""
    functions.run(module.train, 0.1, [], profile=DEV, pool="cpu-spot", image="python")
    container = next(reversed(api.objects.values()))["spec"]["template"]["spec"]["containers"][0]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], variable.get("value", ""))
    with pytest.raises(WorkloadError, match="would create a Job for each Job"):
        functions.run(module.train, 0.1, [], profile=DEV, pool="cpu-spot", image="python")
    assert len(api.objects) == 2
