"""The documented way to submit a compiled pipeline, against a server of the API."""

import json
import re
import sys
from pathlib import Path

import pytest
from kfp import compiler

from components.addons.pipeline_retries import spec_patch
from tests.examples.workloads import module
from tests.pipelines_api import PipelinesApi, serving
from tests.repository import ROOT, ran

PAGE = (ROOT / "docs" / "kubeflow-pipelines.md").read_text(encoding="utf-8")
HOST = "http://localhost:8080"


def block(kind: str, word: str) -> str:
    """The block of the page with a word in it."""
    blocks = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (text,) = [text for text in blocks if word in text]
    return text


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A directory with the example's compiled pipeline."""
    pipeline = module("preemptible-pipelines", "pipeline").coin_flip
    compiler.Compiler().compile(pipeline, str(tmp_path / "coin-flip.yaml"))
    return tmp_path


def test_the_script_submits(package: Path) -> None:
    """The script creates the experiment and the run with the service account and without caching, and prints
    its id."""
    api = PipelinesApi()
    with serving(api) as host:
        done = ran(sys.executable, "-c", block("python", "Client").replace(HOST, host), cwd=package)
    (run,) = api.runs
    assert run["service_account"] == "pipeline-runner"
    assert run["runtime_config"]["parameters"] == {"seed": 7}
    assert api.experiments[run["experiment_id"]]["display_name"] == "preemptible"
    assert "run-1" in done.stdout
    tasks = run["pipeline_spec"]["pipeline_spec"]["root"]["dag"]["tasks"].values()
    assert not any(task.get("cachingOptions", {}).get("enableCache") for task in tasks)


@pytest.mark.parametrize(
    "change", [('"seed"', '"sed"'), ("service_account=", 'namespace="team", service_account=')]
)
def test_a_wrong_script_is_refused(package: Path, change: tuple[str, str]) -> None:
    """A parameter that the pipeline does not have, and a namespace, which only a multi-user Kubeflow
    takes."""
    api = PipelinesApi()
    with serving(api) as host:
        script = block("python", "Client").replace(HOST, host).replace(*change)
        done = ran(sys.executable, "-c", script, cwd=package, status=1)
    assert "400" in done.stderr
    assert api.runs == []


def test_the_command_submits(package: Path) -> None:
    """Kfp's own command has these options, and creates the same run."""
    api = PipelinesApi()
    (line,) = block("sh", "kfp --endpoint").splitlines()
    with serving(api) as host:
        words = line.replace(HOST, host).split()[1:]
        ran(Path(sys.executable).with_name("kfp"), *words, cwd=package)
    assert [run["display_name"] for run in api.runs] == ["coin-flip-1"]
    assert api.runs[0]["runtime_config"]["parameters"] == {"seed": 7}


def test_the_file_for_an_owner_is_ours() -> None:
    """The file for a cluster's owner has the add-on's setting."""
    assert json.loads(block("json", "retryStrategy")) == json.loads(spec_patch("disruptions"))
