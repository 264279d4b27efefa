"""The stories' workloads: loaded as their files stand, with the profile of their own declaration."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any
from unittest.mock import patch

import yaml
from kfp import compiler
from kfp.dsl.base_component import BaseComponent

from ebbtide.placement import Profile
from tests.repository import ROOT
from tests.unit.work.clusters import PROFILES

EXAMPLES = ROOT / "examples"


def profile_of(story: str) -> Profile:
    """Return the profile of a story, derived from its declaration."""
    return PROFILES[f"examples/{story}/Pulumi.{story}.yaml"]


@contextmanager
def _as_its_author(story: str) -> Generator[None]:
    """In a story's directory, with its profile in the environment."""
    folder = str(EXAMPLES / story)
    with patch.dict(os.environ, {"EBBTIDE_PROFILE": profile_of(story).json()}):
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)


@cache
def module(story: str, name: str) -> ModuleType:
    """A file of a story, run as a module."""
    spec = importlib.util.spec_from_file_location(
        f"{story.replace('-', '_')}_{name}", EXAMPLES / story / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    with _as_its_author(story):
        spec.loader.exec_module(loaded)
    return loaded


def compiled(pipeline: BaseComponent) -> tuple[dict[str, Any], dict[str, Any]]:
    """A pipeline as kfp writes it: the pipeline's document and its executors' Kubernetes settings by name."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(pipeline, str(file))
        documents: list[dict[str, Any]] = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    if len(documents) == 1:
        return documents[0], {}
    return documents[0], documents[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]


_LOCALLY = """
import importlib, json, sys
from kfp import local

folder, name, pipeline, results, runs = sys.argv[1:]
sys.path.insert(0, folder)
local.init(local.SubprocessRunner(use_venv=False), pipeline_root=results)
loaded = getattr(importlib.import_module(name), pipeline)
ended = [loaded(**arguments) for arguments in json.loads(runs)]
print("\\n" + json.dumps([dict(run.outputs) for run in ended], default=str))
"""


def start_locally(
    story: str, name: str, pipeline: str, results: Path, *runs: dict[str, Any]
) -> "subprocess.Popen[str]":
    """Run a pipeline with kfp's own local runner, once for each of several arguments, in a process of its
    own: the runner is a setting of the process. Steps find Ebbtide where it lies, and kfp where the tests
    have it."""
    environment = {
        "PYTHONPATH": str(ROOT),
        "EBBTIDE_PROFILE": profile_of(story).json(),
        # What a step installs is there already: nothing is asked of an index.
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            _LOCALLY,
            str(EXAMPLES / story),
            name,
            pipeline,
            str(results),
            json.dumps(runs),
        ],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def outputs(run: "subprocess.Popen[str]") -> tuple[list[dict[str, Any]], str]:
    """Return the outputs of successful runs, and everything that they printed."""
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 0, output
    return json.loads(output.rstrip().splitlines()[-1]), output
