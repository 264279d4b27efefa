"""The pipeline of docs/gitlab.md follows GitLab's schema, and ShellCheck finds nothing in its scripts."""

import re
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from ebbtide.declaration.catalog.versions import PINS
from tests.repository import ROOT
from tests.workshop.scripts import check_script, check_with

_PAGE = (ROOT / "docs/gitlab.md").read_text(encoding="utf-8")
_VARIABLES = {"CI_MERGE_REQUEST_IID": "42"}


class _Reference(list[str]):
    """The tag `!reference`: the path of a value of another job."""


class _Loader(yaml.SafeLoader):
    """The YAML of GitLab's pipelines."""


def _reference(loader: yaml.SafeLoader, node: yaml.SequenceNode) -> _Reference:
    return _Reference(loader.construct_sequence(node))


_Loader.add_constructor("!reference", _reference)


def _text(cloud: str) -> str:
    """Return the pipeline for a cloud."""
    texts = [
        match[1]
        for name in ("gitlab", "gitlab aks")
        if (match := re.search(rf"<!-- {name} -->\n```yaml\n(.*?)```", _PAGE, flags=re.DOTALL))
    ]
    begin, end = texts[0].index(".install:"), texts[0].index("review:\n  extends")
    return texts[0] if cloud == "gke" else f"{texts[0][:begin]}{texts[1]}\n{texts[0][end:]}"


def _pipeline(cloud: str) -> dict[str, Any]:
    return yaml.load(_text(cloud), _Loader)  # noqa: S506 - a subclass of SafeLoader


def _job(pipeline: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a job with what it extends: mappings are merged (GitLab docs, ci/yaml, extends, 2026-11)."""
    job: dict[str, Any] = pipeline[name]
    base = _job(pipeline, job["extends"]) if "extends" in job else {}
    merged = {key: base[key] | job[key] for key in base if isinstance(base[key], dict) and key in job}
    return {**base, **job, **merged}


def _lines(pipeline: dict[str, Any], items: list[Any]) -> list[str]:
    return [
        line
        for item in items
        for line in (_lines(pipeline, pipeline[item[0]][item[1]]) if isinstance(item, _Reference) else [item])
    ]


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_the_pipeline_follows_the_schema(cloud: str, tmp_path: Path) -> None:
    """The pipeline follows GitLab's JSON Schema, and the jobs and stages that it names exist."""
    file = tmp_path / ".gitlab-ci.yml"
    file.write_text(_text(cloud), encoding="utf-8")
    options = ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci")
    check_with("check-jsonschema", *options, file)
    pipeline = _pipeline(cloud)
    assert pipeline["up of the merge request"]["environment"]["on_stop"] in pipeline
    jobs = [_job(pipeline, name) for name, job in pipeline.items() if "script" in job]
    assert {job["stage"] for job in jobs} == set(pipeline["stages"])
    text = file.read_text(encoding="utf-8")
    assert f"sh pulumi.sh --version {PINS['pulumi'].version}\n" in text
    pinned: list[tuple[str, str]] = re.findall(r"--(client|kubelogin)-version (\S+)", text)
    for option, version in pinned:
        assert version == PINS["kubernetes" if option == "client" else option].version


def _scripts(cloud: str) -> dict[str, str]:
    """Return the scripts of the jobs, by name."""
    pipeline = _pipeline(cloud)
    return {
        name: "\n".join(_lines(pipeline, [*_job(pipeline, name).get("before_script", []), *job["script"]]))
        for name, job in pipeline.items()
        if name not in ("stages", "variables") and name[0] != "." and "script" in job
    }


@pytest.mark.parametrize(
    ("cloud", "name"), [(cloud, name) for cloud in ("gke", "aks") for name in _scripts(cloud)]
)
def test_scripts_are_clean(cloud: str, name: str) -> None:
    """ShellCheck finds nothing in a job's script, such as an unquoted variable; its commands exist."""
    check_script(_scripts(cloud)[name])


def test_jobs_on_a_stack_wait_for_each_other() -> None:
    """Updates, destructions and the reaper of a stack are in its resource group, and in its environment."""
    pipeline = _pipeline("gke")
    jobs = {name: _job(pipeline, name) for name in pipeline if name not in ("stages", "variables")}
    places: dict[tuple[str, str], list[str]] = {}
    for name, job in jobs.items():
        if "resource_group" in job:
            variables = _VARIABLES | job.get("variables", {})
            texts: tuple[Any, Any] = (job["resource_group"], job["environment"])
            names = [text if isinstance(text, str) else text["name"] for text in texts]
            group, environment = (Template(text).substitute(variables) for text in names)
            places.setdefault((group, environment), []).append(name)
    assert places == {
        ("stack-dev", "dev"): ["up", "reap"],
        ("stack-pr-42", "pull-requests/42"): ["up of the merge request", "destroy of the merge request"],
    }
