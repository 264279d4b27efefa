"""The pipeline of docs/gitlab.md follows GitLab's schema, and its scripts run with fakes of the programs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from ebbtide.declaration.catalog.versions import PINS
from tests.repository import ROOT
from tests.workshop.test_workflow_steps import HOSTILE
from tests.workshop.workflow_steps import PROGRAMS, calls, install_fakes

_PAGE = (ROOT / "docs/gitlab.md").read_text(encoding="utf-8")
_FAKES = (*(name for name in PROGRAMS if name != "gh"), "apk", "apt-get", "curl", "git", "python3")
_VARIABLES = {
    "CI_API_V4_URL": "https://gitlab.example/api/v4",
    "CI_COMMIT_SHA": "0123456789abcdef",
    "CI_PROJECT_ID": "1",
    "CI_PROJECT_PATH": "acme/ml",
    "CI_MERGE_REQUEST_IID": "42",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
    "PULUMI_BACKEND_URL": "gs://acme-ml-pulumi",
    "PULUMI_SECRETS_PROVIDER": "gcpkms://key",
    "GOOGLE_PROVIDER": "projects/1/locations/global/workloadIdentityPools/p/providers/gitlab",
    "GOOGLE_ACCOUNT": "dev@acme.example",
    "AZURE_CLIENT_ID": "client",
    "COMMENT_TOKEN": "token",
}


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


def _run(home: Path, pipeline: dict[str, Any], name: str, *, status: int = 0, **variables: str) -> None:
    """Run a job in a new copy of a template."""
    job = _job(pipeline, name)
    if not home.exists():
        home.mkdir()
        install_fakes(home / "bin", _FAKES)
    root = home / "project"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(ROOT / "template/gke", root)
    for artifact in home.glob("review-*.md"):
        shutil.copy(artifact, root)
    environment = {
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        **dict.fromkeys(("HOME", "FAKE_HOME", "CI_BUILDS_DIR"), str(home)),
        **_VARIABLES,
        **variables,
        **dict.fromkeys(job.get("id_tokens", {}), "an identity token"),
    }
    for key, value in job.get("variables", {}).items():
        environment[key] = re.sub(r"\$(\w+)", lambda match: environment.get(match[1], ""), str(value))
    script = "\n".join(_lines(pipeline, [*job.get("before_script", []), *job["script"]]))
    command = ["bash", "-eo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    for artifact in job.get("artifacts", {}).get("paths", []):
        shutil.copy(root / artifact.replace("$STACK", environment.get("STACK", "")), home)


def _check_schema(file: Path) -> None:
    """Check a pipeline against GitLab's JSON Schema."""
    program = Path(sys.executable).with_name("check-jsonschema")
    options = ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci")
    done = subprocess.run([program, *options, file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_the_pipeline_follows_the_schema(cloud: str, tmp_path: Path) -> None:
    """The pipeline follows GitLab's JSON Schema, and the jobs and stages that it names exist."""
    file = tmp_path / ".gitlab-ci.yml"
    file.write_text(_text(cloud), encoding="utf-8")
    _check_schema(file)
    pipeline = _pipeline(cloud)
    assert pipeline["up of the merge request"]["environment"]["on_stop"] in pipeline
    jobs = [_job(pipeline, name) for name, job in pipeline.items() if "script" in job]
    assert {job["stage"] for job in jobs} == set(pipeline["stages"])
    text = file.read_text(encoding="utf-8")
    assert f"sh pulumi.sh --version {PINS['pulumi'].version}\n" in text
    pinned: list[tuple[str, str]] = re.findall(r"--(client|kubelogin)-version (\S+)", text)
    for option, version in pinned:
        assert version == PINS["kubernetes" if option == "client" else option].version


@pytest.mark.parametrize(("cloud", "identity"), [("gke", "credentials.json"), ("aks", "client")])
def test_jobs_run(cloud: str, identity: str, tmp_path: Path) -> None:
    """Each job calls Ebbtide with the identity of its cloud."""
    home, pipeline = tmp_path / "home", _pipeline(cloud)
    for name in ("up", "up of the merge request", "reap", "expired"):
        _run(home, pipeline, name)
    child = pipeline | _child(home)
    for name in ("reap pr-42", "destroy of the merge request"):
        _run(home, child, name)
    calls = [json.loads(line) for line in (home / "calls").read_text().splitlines()]
    logins = {
        " ".join(call["argv"][1:]): Path(call["login"]).name for call in calls if call["argv"][0] == "ebbtide"
    }
    assert logins == dict.fromkeys(
        (
            "up dev --yes --drain-timeout 1h",
            "up pr-42 --yes --drain-timeout 1h",
            "reap dev --yes",
            "reap pr-* --only-resources --yes --format json",
            "reap pr-42 --yes",
            "destroy pr-42 --yes",
        ),
        identity,
    )


def test_an_update_keeps_its_review_and_plan(tmp_path: Path) -> None:
    """The artifact has the plan, with a review against the deployed state once there is one, also of an
    update that fails."""
    home, pipeline = tmp_path / "home", _pipeline("gke")
    plan = "~~~text\nStack dev: 1 to create.\n~~~\n"
    _run(home, pipeline, "up")
    assert (home / "update.md").read_text() == plan
    _run(home, pipeline, "up", status=1, FAKE_UP="1")
    assert (home / "update.md").read_text() == f"Review of dev\n{plan}"
    first, review, second = calls(home, "ebbtide")
    assert first == second == "up dev --yes --drain-timeout 1h"
    assert re.fullmatch(r"review dev --against \S+/state.json --format markdown --out update.md", review)


def _child(home: Path) -> dict[str, Any]:
    """Return the jobs of the child pipeline that the job `expired` has written."""
    _check_schema(home / "reap.yml")
    child = json.loads((home / "reap.yml").read_text())
    assert child.pop("include") == [
        {"project": "acme/ml", "ref": "0123456789abcdef", "file": ".gitlab-ci.yml"}
    ]
    return child


def test_jobs_on_a_stack_wait_for_each_other(tmp_path: Path) -> None:
    """Updates, destructions and the reaper of a stack are in its resource group, and in its environment."""
    home, pipeline = tmp_path / "home", _pipeline("gke")
    _run(home, pipeline, "expired")
    assert list(_child(home)) == ["nothing expired"]
    _run(home, pipeline, "up of the merge request")
    _run(home, pipeline, "expired")
    every = pipeline | _child(home)
    jobs = {name: _job(every, name) for name in every if name not in ("stages", "variables")}
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
        ("stack-pr-42", "pull-requests/42"): [
            "up of the merge request",
            "destroy of the merge request",
            "reap pr-42",
        ],
    }


def test_a_review_is_one_note(tmp_path: Path) -> None:
    """The review of a merge request is one note, which a later review replaces."""
    home, pipeline = tmp_path / "home", _pipeline("gke")
    for _ in range(2):
        _run(home, pipeline, "review", STACK="dev")
        _run(home, pipeline, "comment")
    (note,) = json.loads((home / "comments.json").read_text())
    assert note["body"] == "<!-- ebbtide review-dev.md -->\nReview of dev\n"


_INPUTS = ("CI_MERGE_REQUEST_IID", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "STACK")
"""Variables that others than owners may choose: a pipeline's own precede all others (GitLab docs,
ci/variables, precedence, 2026-11)."""


def _scripts() -> dict[str, str]:
    """Return the scripts of the jobs, by name."""
    pipeline = _pipeline("gke")
    return {
        name: "\n".join(_lines(pipeline, job["script"]))
        for name, job in pipeline.items()
        if name not in ("stages", "variables") and "script" in job
    }


@pytest.mark.parametrize(
    ("name", "variable"),
    [(name, item) for name, script in _scripts().items() for item in _INPUTS if f"${item}" in script],
)
def test_an_input_is_no_command(name: str, variable: str, tmp_path: Path) -> None:
    """Whatever a variable has, a job runs no command of it."""
    install_fakes(tmp_path / "bin", _FAKES)
    for number, hostile in enumerate(HOSTILE):
        home = tmp_path / str(number)
        root = home / "a" / "project"
        shutil.copytree(ROOT / "template/gke", root)
        environment = {
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            **dict.fromkeys(("HOME", "FAKE_HOME", "CI_BUILDS_DIR"), str(home)),
            **_VARIABLES,
            "STACK": "dev",
            variable: hostile,
        }
        command = ["bash", "-eo", "pipefail", "-c", _scripts()[name]]
        subprocess.run(command, cwd=root, env=environment, capture_output=True, check=False)
        assert list(tmp_path.rglob("pwned*")) == [], hostile
