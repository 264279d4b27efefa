"""The workflows of the repository and of the templates: valid, with pinned actions, least rights and commands
that Ebbtide has."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from ebbtide.declaration.catalog.versions import PINS
from tests.repository import ROOT, declaration, makefile_targets, ran, relative
from tests.workshop.scripts import check_script, check_with

PROJECTS = {"repository": ROOT, "gke": ROOT / "template/gke", "aks": ROOT / "template/aks"}
"""The projects with workflows."""
_DIRECTORY = ROOT / ".github"
_WORKFLOWS = sorted((_DIRECTORY / "workflows").glob("*.yml"))
_INSTALLS = [path / ".github/actions/install/action.yml" for path in PROJECTS.values()]
_ACTIONS = [_DIRECTORY / "actions/tools/action.yml", *_INSTALLS]
_CALLERS = {"up.yml", "destroy.yml", "reap.yml", "sleep.yml"}
_WRITES = {
    **{name: {"id-token"} for name in (*_CALLERS, "stack.yml")},
    "drift.yml": {"id-token", "issues"},
    "prices.yml": {"contents", "pull-requests"},
    "release.yml": {"attestations", "id-token"},
    "site.yml": {"id-token", "pages"},
}
"""What workflows may write that have an identity."""
_OF_THE_PACKAGE = ("ci.yml", "prices.yml", "rehearsals.yml", "release.yml", "site.yml")
"""The workflows that no project from a template has."""


def _read(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _jobs(path: Path) -> dict[str, dict[str, Any]]:
    return _read(path).get("jobs", {})


def _steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in [*_jobs(path).values(), _read(path).get("runs", {})]:
        yield from cast("list[dict[str, Any]]", job.get("steps", []))


@pytest.mark.parametrize("path", [*_WORKFLOWS, *_ACTIONS], ids=relative)
def test_actions_are_pinned(path: Path) -> None:
    """By the commit, with the version in a comment, which Renovate keeps in step."""
    for action, comment in re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8")):
        if action.startswith("./"):
            assert (ROOT / action).is_file() or (ROOT / action / "action.yml").is_file()
        else:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)


def test_an_action_has_one_version() -> None:
    """In all files."""
    text = "".join(path.read_text(encoding="utf-8") for path in [*_WORKFLOWS, *_ACTIONS])
    pins = set(re.findall(r"uses: ([^@\s]+)@(\S+)", text))
    assert len({name for name, _ in pins}) == len(pins)


@pytest.mark.parametrize("path", _WORKFLOWS, ids=relative)
def test_rights_are_least(path: Path) -> None:
    """None by default; only what deploys has an identity, and a job that runs a change's code only reads."""
    assert _read(path)["permissions"] == {}
    for job in _jobs(path).values():
        rights = job["permissions"]
        writes = {name for name, right in rights.items() if right == "write"}
        steps = job.get("steps", [])
        checks_out = any(step.get("uses", "").startswith("actions/checkout@") for step in steps)
        assert writes <= _WRITES.get(path.name, {"pull-requests"})
        assert not (checks_out and writes & {"issues", "pull-requests"})
        assert ("uses" in job) == (path.name in _CALLERS)
        assert "uses" in job or 0 < job["timeout-minutes"] <= 180
        assert "environment" in job or "uses" in job or "id-token" not in writes
        assert not {"id-token", "issues"} <= writes


@pytest.mark.parametrize("path", _WORKFLOWS, ids=relative)
def test_checkouts_leave_no_token(path: Path) -> None:
    """A later step could read it."""
    for step in _steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_runs_on_a_stack_wait_for_each_other() -> None:
    """An update or a destruction is never cancelled, neither midway nor while it waits."""
    (group,) = [
        job["concurrency"] for job in _jobs(_DIRECTORY / "workflows/stack.yml").values() if "env" in job
    ]
    assert group == {"group": "stack-${{ matrix.stack }}", "cancel-in-progress": False, "queue": "max"}


@pytest.mark.parametrize(("name", "jobs"), [("up.yml", ["requested"]), ("destroy.yml", ["destroy"])])
def test_forks_have_no_stacks(name: str, jobs: list[str]) -> None:
    """A pull request of a fork neither creates nor destroys a stack, and has no comment."""
    for path, chosen in ((name, jobs), ("preview.yml", ["comment"])):
        for job in chosen:
            condition = _jobs(_DIRECTORY / "workflows" / path)[job]["if"]
            assert "&& github.event.pull_request.head.repo.full_name == github.repository" in (
                " ".join(condition.replace("${{ ", "&& ").split())
            )


def test_nothing_is_deployed_without_consent() -> None:
    """Without the variable EBBTIDE_DEPLOY no stack is updated, destroyed or reaped."""
    jobs = _jobs(_DIRECTORY / "workflows/stack.yml")
    assert jobs["stacks"]["if"] == "${{ vars.EBBTIDE_DEPLOY == 'true' }}"
    assert jobs["run"]["needs"] == "stacks"


def test_an_identity_names_no_other_project() -> None:
    """The account's project, which the login action exports by default, would stop every destroy."""
    (login,) = [step for step in _steps(_ACTIONS[0]) if "google-github-actions/auth" in step.get("uses", "")]
    assert login["with"]["export_environment_variables"] is False


@pytest.mark.parametrize(
    ("heading", "accepted"),
    [
        ("## [1.2.3] - 2026-12-01", True),
        ("## [1.2.3] - not released yet", False),
        ("## [1.2.4] - 2026-12-01", False),
    ],
)
def test_a_release_has_a_dated_changelog(tmp_path: Path, heading: str, accepted: bool) -> None:  # noqa: FBT001
    """The release workflow stops at a version that the changelog does not have, or without its date."""
    (step,) = (
        step["run"]
        for step in _steps(_DIRECTORY / "workflows/release.yml")
        if "CHANGELOG" in step.get("run", "")
    )
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n", encoding="utf-8")
    environment = {"PATH": "/usr/bin:/bin", "GITHUB_REF_NAME": "v1.2.3"}
    done = ran("/bin/bash", "-e", "-c", step, cwd=tmp_path, env=environment, status=None)
    assert (done.returncode == 0) is accepted


def test_targets_exist() -> None:
    """Every target that a step makes is one of the Makefile."""
    lines = (step.get("run", "") for path in [*_WORKFLOWS, *_ACTIONS] for step in _steps(path))
    made = {target for line in lines if line.startswith("make ") for target in line.split()[1:]}
    assert made <= set(makefile_targets())


def test_stacks_are_the_repositorys() -> None:
    """Every stack has a file, and exactly those without a lifetime are permanent."""
    stacks = json.loads((_DIRECTORY / "stacks.json").read_text(encoding="utf-8"))
    files = {item["stack"]: ROOT / f"Pulumi.{item['stack'].removesuffix('-*')}.yaml" for item in stacks}
    assert set(files.values()) == set(ROOT.glob("Pulumi.*.yaml"))
    for item in stacks:
        declared = declaration(files[item["stack"]])
        assert item["cloud"] == declared["cloud"]["kind"]
        assert item.get("permanent", False) == ("lifetime" not in declared)


def test_pulumi_is_the_catalogs() -> None:
    """The workflows install the version that the tests run with."""
    versions = [
        step["with"]["pulumi-version"] for step in _steps(_ACTIONS[0]) if "pulumi/" in step.get("uses", "")
    ]
    assert versions == [PINS["pulumi"].version]


def test_kubelogin_is_the_catalogs() -> None:
    """The workflows build the pinned version from its Go module; no step installs the latest of a tool."""
    runs = [step["run"] for path in _ACTIONS for step in _steps(path) if "run" in step]
    (built,) = [run for run in runs if "go install" in run]
    assert built.endswith(f" github.com/Azure/kubelogin@v{PINS['kubelogin'].version}")
    assert [run for run in runs if "install-cli" in run or "latest" in run] == []


@pytest.mark.parametrize("template", ["gke", "aks"])
def test_templates_have_the_workflows_of_stacks(template: str, tmp_path: Path) -> None:
    """A copy of a template has them, but for its list of stacks and the installation of the wheel."""
    copied = (path for path in (*_WORKFLOWS, _ACTIONS[0]) if path.name not in _OF_THE_PACKAGE)
    shared = {path.relative_to(ROOT) for path in copied}
    directory = tmp_path / "project"
    shutil.copytree(PROJECTS[template], directory, symlinks=True)
    files = {path.relative_to(directory) for path in (directory / ".github").rglob("*") if path.is_file()}
    assert files == shared | {Path(".github/stacks.json"), Path(".github/actions/install/action.yml")}
    for path in shared:
        assert (directory / path).read_text(encoding="utf-8") == (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["workflows", "actions"])
def test_files_follow_their_schema(kind: str) -> None:
    """Workflows and actions follow the JSON Schemas of SchemaStore."""
    files = _WORKFLOWS if kind == "workflows" else _ACTIONS
    check_with("check-jsonschema", "--builtin-schema", f"vendor.github-{kind}", *files)


@pytest.mark.parametrize("path", [*_WORKFLOWS, *_ACTIONS], ids=relative)
def test_scripts_are_clean(path: Path) -> None:
    """ShellCheck finds nothing in a script, such as an unquoted input, no expression is in one, and the
    commands of Ebbtide exist."""
    for step in _steps(path):
        if "run" in step:
            assert "${{" not in step["run"]
            check_script(step["run"])


@pytest.mark.parametrize("project", PROJECTS)
def test_zizmor_has_no_finding(project: str) -> None:
    """The auditor zizmor finds no vulnerability in the workflows."""
    settings = ("--config", _DIRECTORY / "zizmor.yml")
    check_with("zizmor", "--offline", "--no-progress", "--quiet", *settings, PROJECTS[project] / ".github")
