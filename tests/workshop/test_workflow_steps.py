"""Effects of the shell of the workflows' steps, and hostile values of their inputs."""

import base64
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.main import get_command

from ebbtide.cli import app
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.project.extends import extended
from tests.repository import ROOT
from tests.workshop.workflow_steps import PROGRAMS, STEPS, calls, install_fakes

PROJECTS: Final = {"repository": ROOT, "gke": ROOT / "template/gke", "aks": ROOT / "template/aks"}
"""The projects with workflows."""

HOSTILE: Final = (
    "z/;s/.*/touch pwned/e;#",
    "x'; touch pwned; '\"; touch pwned; \"$(touch pwned)`touch pwned`",
    "a[$(touch pwned)]",
    "x\nHOSTILE=pwned\ntouch pwned\n",
    '") | input_filename, halt_error #',
    "../../pwned",
    "--out=pwned",
)
_USUAL: Final = {
    "STACK": "dev",
    "COMMAND": "reap",
    "NUMBER": "42",
    "EXPIRED": "[]",
    "CLOUD": "gke",
    "POOL": "cpu",
}
"""Values of inputs that select what a step does; others are a word."""
_BACKEND: Final = {"PULUMI_BACKEND_URL": "gs://acme-ml-pulumi", "SECRETS_PROVIDER": "gcpkms://key"}
_LOGIN: Final = {"GOOGLE_APPLICATION_CREDENTIALS": "dev@acme.example"}


def _project(tmp_path: Path, source: Path = ROOT) -> Path:
    """Return a copy of what the steps read of a project."""
    project = tmp_path / "project"
    shutil.copytree(source / ".github", project / ".github")
    for file in [*source.glob("Pulumi*.yaml"), *source.glob("Makefile")]:
        shutil.copy(file, project)
    return project


def _commands(home: Path) -> list[str]:
    """Return the calls of Ebbtide, each of which the real parser accepts."""
    made = calls(home, "ebbtide")
    group: Any = get_command(app)
    for name, *words in map(shlex.split, made):
        group.commands[name].make_context(name, words)
    return made


def test_scripts_have_no_expressions() -> None:
    """An expression in a script would be replaced before the shell reads it."""
    assert [name for name, step in STEPS.items() if "${{" in step.script] == []


@pytest.mark.parametrize(
    ("name", "variable"), [(name, variable) for name, step in STEPS.items() for variable in step.inputs]
)
def test_an_input_is_no_command(name: str, variable: str, tmp_path: Path) -> None:
    """A step runs no command of an input, and sets no variable of later steps."""
    step = STEPS[name]
    install_fakes(tmp_path / "bin", PROGRAMS)
    for number, hostile in enumerate(HOSTILE):
        home = tmp_path / str(number)
        project = _project(home / "a")
        (home / "bin").symlink_to(tmp_path / "bin")
        inputs = {key: _USUAL.get(key, "word") for key in step.inputs}
        step.run(home, project, **inputs | {variable: hostile})
        assert list(tmp_path.rglob("pwned*")) == [], hostile
        assert all("HOSTILE=pwned" not in file.read_text().splitlines() for file in home.glob("GITHUB_*"))


_PULL_REQUEST: Final = [("pr-42", "pull-requests")]


@pytest.mark.parametrize(
    ("command", "number", "chosen"),
    [
        ("up", "", [("dev", "dev"), ("dev-aks", "dev-aks"), ("prod", "prod")]),
        ("up", "42", _PULL_REQUEST),
        ("destroy", "42", _PULL_REQUEST),
        ("expired", "", [("pr-*", "pull-requests")]),
        ("reap", "", [("dev", "dev"), ("dev-aks", "dev-aks"), *_PULL_REQUEST, ("pr-7", "pull-requests")]),
        ("sleep", "", []),
        ("wake", "", []),
    ],
)
def test_stacks_of_a_command(
    command: str, number: str, chosen: list[tuple[str, str]], tmp_path: Path
) -> None:
    """A command runs on the stacks that it is for, each with the identity of its environment."""
    inputs = {"COMMAND": command, "NUMBER": number, "EXPIRED": '["pr-42", "pr-7", "pr-x", "prod"]'}
    assert STEPS["stack: Choose the stacks"].run(tmp_path, _project(tmp_path), **inputs).returncode == 0
    matrix = json.loads((tmp_path / "GITHUB_OUTPUT").read_text().removeprefix("matrix="))
    assert [(item["stack"], item["environment"]) for item in matrix] == chosen


@pytest.mark.parametrize("project", PROJECTS)
def test_every_stack_that_expires_is_reaped(project: str, tmp_path: Path) -> None:
    """A stack with a lifetime has a reaper; the others have none."""
    root = PROJECTS[project]
    inputs = {"COMMAND": "reap", "NUMBER": "", "EXPIRED": "[]"}
    STEPS["stack: Choose the stacks"].run(tmp_path, _project(tmp_path, root), **inputs)
    matrix = json.loads((tmp_path / "GITHUB_OUTPUT").read_text().removeprefix("matrix="))
    expiring = {
        file.stem.removeprefix("Pulumi.")
        for file in root.glob("Pulumi.*.yaml")
        if file.stem != "Pulumi.pr" and "lifetime: {" in file.read_text(encoding="utf-8")
    }
    assert {item["stack"] for item in matrix} == expiring


def test_an_update_is_summarized(tmp_path: Path) -> None:
    """The summary has the plan, with a review against the deployed state once there is one, also of an
    update that fails."""
    project, summary = _project(tmp_path), tmp_path / "GITHUB_STEP_SUMMARY"
    variables = {"STACK": "dev", **_BACKEND, **_LOGIN}
    plan = "```text\nStack dev: 1 to create.\n```\n"
    assert STEPS["stack: Update"].run(tmp_path, project, **variables).returncode == 0
    assert summary.read_text() == plan
    assert STEPS["stack: Update"].run(tmp_path, project, **variables, FAKE_UP="1").returncode == 1
    assert summary.read_text() == f"{plan}Review of dev\n{plan}"
    first, review, second = _commands(tmp_path)
    assert first == second == "up dev --yes --drain-timeout 1h"
    assert re.fullmatch(r"review dev --against \S+/state.json --format markdown --out \S+/review.md", review)


def test_a_stack_is_destroyed_once(tmp_path: Path) -> None:
    """The stack is destroyed and removed; without one, nothing happens."""
    (tmp_path / "stacks").write_text("dev pr-42 pr-4")
    project = _project(tmp_path)
    STEPS["stack: Declare the stack of the pull request"].run(tmp_path, project, STACK="pr-42")
    for _ in range(2):
        done = STEPS["stack: Destroy"].run(tmp_path, project, STACK="pr-42", **_BACKEND, **_LOGIN)
        assert _commands(tmp_path) == ["destroy pr-42 --yes"], done.stderr
    assert (tmp_path / "stacks").read_text() == "dev pr-4"


def test_expired_stacks_are_listed(tmp_path: Path) -> None:
    """Stacks of pull requests that have expired are listed for the jobs that reap them."""
    (tmp_path / "stacks").write_text("dev pr-42 pr-7")
    step = STEPS["stack: List expired stacks, and destroy resources without a stack"]
    assert step.run(tmp_path, _project(tmp_path), STACK="pr-*", **_LOGIN).returncode == 0
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == 'expired=["pr-42","pr-7"]\n'
    STEPS["stack: Reap"].run(tmp_path, tmp_path / "project", STACK="pr-7", **_LOGIN)
    assert _commands(tmp_path) == ["reap pr-* --only-resources --yes --format json", "reap pr-7 --yes"]


@pytest.mark.parametrize(
    ("now", "minutes"),
    [
        ("1 19 23", 660),
        ("2 0 10", 373),
        ("5 0 10", 373),
        ("5 19 23", 3540),
        ("6 0 23", 3240),
        ("7 12 0", 1103),
    ],
    ids=["Monday", "Monday, late", "Thursday, late", "Friday", "Friday, late", "Sunday"],
)
def test_a_late_sleep_ends_on_the_next_working_day(now: str, minutes: int, tmp_path: Path) -> None:
    """Stacks wake at 06:23 of the next working day, also if the evening's run began after midnight."""
    install_fakes(tmp_path / "bin", PROGRAMS)
    (tmp_path / "bin/date").write_text(f"#!/bin/sh\necho {now}\n")
    (tmp_path / "bin/date").chmod(0o755)
    project = _project(tmp_path)
    STEPS["stack: Sleep until the next working day"].run(tmp_path, project, STACK="prod", **_LOGIN)
    STEPS["stack: Wake"].run(tmp_path, project, STACK="prod", **_LOGIN)
    assert _commands(tmp_path) == [f"sleep prod --wait --for {minutes}m", "wake prod"]


def test_a_review_is_one_comment(tmp_path: Path) -> None:
    """Each stack has one comment, which a later review replaces, also one that failed."""
    project = _project(tmp_path)
    inputs = {"GH_TOKEN": "t", "GH_REPO": "acme/ml", "NUMBER": "42", "GITHUB_RUN_ID": "1"}
    for stack, failed in (("dev", {}), ("dev", {"FAKE_REVIEW": "FAIL"}), ("prod", {})):
        variables = {"STACK": stack, "BASE": "main", **inputs, **failed}
        assert STEPS["preview: Review"].run(tmp_path, project, **variables).returncode == bool(failed)
        STEPS["preview: Summary"].run(tmp_path, project)
        (project / "review.md").rename(tmp_path / f"artifact-review-{stack}")
        for name in ("Fetch the review", "Update the comment, or write it"):
            assert STEPS[f"preview: {name}"].run(tmp_path, project, **variables).returncode == 0
    bodies = [item["body"] for item in json.loads((tmp_path / "comments.json").read_text())]
    assert bodies == [
        "<!-- ebbtide review of dev -->\nFAIL",
        "<!-- ebbtide review of prod -->\nReview of prod\n",
    ]
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == "Review of dev\nFAILReview of prod\n"
    _commands(tmp_path)


def test_drift_is_one_issue_of_its_shape(tmp_path: Path) -> None:
    """An issue is opened once, updated only when the shape changes, and closed when the drift is gone."""
    project = _project(tmp_path)
    texts: list[str] = []
    shape = {"FAKE_DRIFT": "shape 0123456789abcdef"}
    for stack, drifted in (
        ("dev", {}),
        ("dev", shape | {"FAKE_TEXT": "first"}),
        ("dev", shape | {"FAKE_TEXT": "churn"}),
        ("prod", shape | {"FAKE_TEXT": "other"}),
        ("dev", {"FAKE_DRIFT": "shape fedcba9876543210", "FAKE_TEXT": "worse"}),
        ("dev", {}),
        ("dev", shape | {"FAKE_TEXT": "again"}),
    ):
        variables = {"STACK": stack, "GH_TOKEN": "t", "GH_REPO": "acme/ml", "GITHUB_RUN_ID": "1", **drifted}
        read = STEPS["drift: Read"].run(tmp_path, project, **variables, **_LOGIN)
        assert read.returncode == 0, read.stderr
        (project / "drift.md").rename(tmp_path / f"artifact-drift-{stack}")
        for name in ("Fetch the drift", "Open, update or close the issue"):
            done = STEPS[f"drift: {name}"].run(tmp_path, project, **variables)
            assert done.returncode == 0, done.stderr
        file = tmp_path / "issues.json"
        issues: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
        texts.append(
            " ".join(
                f"{item['title']}: {item['body'].split()[-1]} {item.get('state', 'open')}." for item in issues
            )
        )
    assert texts == [
        "",
        "Drift of dev: first open.",
        "Drift of dev: first open.",
        "Drift of dev: first open. Drift of prod: other open.",
        "Drift of dev: worse open. Drift of prod: other open.",
        "Drift of dev: worse closed. Drift of prod: other open.",
        "Drift of dev: worse closed. Drift of prod: other open. Drift of dev: again open.",
    ]
    _commands(tmp_path)


def test_changed_prices_are_one_pull_request(tmp_path: Path) -> None:
    """Opened once with every changed file, updated afterwards; none while nothing changed."""
    project, artifact = _project(tmp_path), tmp_path / "artifact-prices"
    for words in (["init", "--quiet"], ["add", "Makefile"]):
        subprocess.run(["git", *words], cwd=project, check=True)  # noqa: S607
    variables = {"GH_TOKEN": "t", "GH_REPO": "acme/ml", "BASE": "0a1b", "GITHUB_RUN_ID": "1"}
    for content in ("", "first", "second"):
        with (project / "Makefile").open("a", encoding="utf-8") as file:
            file.write(content)
        (project / "dist").mkdir()
        (project / "dist/prices.md").write_text(f"{content} changed.")
        listed = STEPS["prices: List the files"].run(tmp_path, project)
        assert listed.returncode == 0, listed.stderr
        shutil.rmtree(artifact, ignore_errors=True)
        (project / "dist").rename(artifact)
        for name in ("gh run download", "Open or update the pull request"):
            (step,) = [
                step for key, step in STEPS.items() if key.startswith("prices") and name in key + step.script
            ]
            done = step.run(tmp_path, project, **variables)
            assert done.returncode == 0, done.stderr
        if not content:
            assert not (tmp_path / "branch.json").exists()
            continue
        commit = json.loads((tmp_path / "branch.json").read_text())
        (addition,) = commit["fileChanges"]["additions"]
        assert (commit["expectedHeadOid"], addition["path"]) == ("0a1b", "Makefile")
        assert base64.b64decode(addition["contents"]).decode() == (project / "Makefile").read_text()
        assert (tmp_path / "pull.md").read_text() == f"{content} changed."


@pytest.mark.parametrize(("day", "chosen"), [("5", ["dev", "dev-aks"]), ("6", ["dev-aks"])])
def test_stacks_that_sleep_are_not_read_on_weekends(day: str, chosen: list[str], tmp_path: Path) -> None:
    """Drift is read of the stacks of no pull request, and of one that sleeps on working days alone."""
    install_fakes(tmp_path / "bin", PROGRAMS)
    (tmp_path / "bin/date").write_text(f"#!/bin/sh\necho {day}\n")
    (tmp_path / "bin/date").chmod(0o755)
    project = _project(tmp_path)
    stacks = [{"stack": "dev", "sleeps": True}, {"stack": "dev-aks"}, {"stack": "pr-*"}]
    (project / ".github/stacks.json").write_text(json.dumps(stacks))
    assert STEPS["drift: Choose the stacks"].run(tmp_path, project).returncode == 0
    matrix = json.loads((tmp_path / "GITHUB_OUTPUT").read_text().removeprefix("matrix="))
    assert [item["stack"] for item in matrix] == chosen


def test_a_drift_that_cannot_be_read_fails(tmp_path: Path) -> None:
    """Without an identity the run fails, and no issue is closed."""
    done = STEPS["drift: Read"].run(tmp_path, _project(tmp_path), STACK="dev")
    assert done.returncode == 1


def _real_cloud(home: Path, project: Path, stack: str, steps: tuple[str, ...]) -> None:
    """Run steps of the recording of a real cloud."""
    variables = {
        "STACK": stack,
        "CLOUD": "aks" if stack == "dev-aks" else "gke",
        "POOL": "cpuspot" if stack == "dev-aks" else "cpu-spot",
        "KUBECONFIG": str(home / "kubeconfig.json"),
        "EBBTIDE_PROFILE": str(home / "profile.json"),
        "GOOGLE_PROJECT_ID": "owners-ml",
        "ARM_SUBSCRIPTION_ID": "11111111-2222-3333-4444-555555555555",
        **_BACKEND,
        **_LOGIN,
    }
    for name in steps:
        done = STEPS[f"real-cloud: {name}"].run(home, project, **variables)
        assert done.returncode == name.startswith("Compare"), done.stderr


def test_a_real_cloud_is_recorded(tmp_path: Path) -> None:
    """Each stack is created, used, changed, destroyed and compared, on the owner's account; the declarations
    are valid, and the change replaces the pool."""
    for stack, pool in (("dev", "cpu-spot"), ("dev-aks", "cpuspot")):
        home = tmp_path / stack
        project = _project(home)
        _real_cloud(home, project, stack, ("Leave an existing stack alone", *_RECORDED))
        assert _commands(home) == [
            f"up {stack} --yes --record recording",
            "job on-system --pool system --namespace default --submit -- echo hello",
            f"job on-spot --pool {pool} --namespace default --submit -- echo hello",
            f"up {stack} --yes --drain-timeout 5m --record recording",
            f"destroy {stack} --yes --delete-orphans --record recording",
            "rehearse --compare recording --out comparison.txt",
        ]
        assert (home / "stacks").read_text() == ""
        first, second, _ = [
            json.loads(file.read_text()) for file in sorted((project / "recording").iterdir())
        ]
        capacities: list[list[str]] = []
        for files in (first, second):
            item = _declared(files, stack, tmp_path)
            declare(item, default_name="train")
            text = json.dumps(item)
            assert all(word not in text for word in ("acme-ml", "00000000000", "members", "access"))
            capacities.append([one.get("capacity") for one in item["pools"] if one["name"] == pool])
        assert capacities == [["spot"], ["on-demand"]]


_RECORDED: Final = (
    "Declare the stack for this account",
    "Up",
    "Run a Job on the system pool",
    "Run a Job on a spot pool",
    "Replace the spot pool",
    "Destroy, and check for orphans",
    "Compare with the fake clouds",
)


def _declared(files: dict[str, str], stack: str, directory: Path) -> dict[str, Any]:
    """Return the declaration of a stack in a project's files."""
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    return extended(
        yaml.safe_load(files[f"Pulumi.{stack}.yaml"])["config"]["ebbtide:cluster"], directory
    ).value


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("stack: Choose the stacks", {"COMMAND": "up", "NUMBER": "4/../2", "EXPIRED": "[]"}),
        ("stack: Choose the stacks", {"COMMAND": "destroy-all", "NUMBER": "", "EXPIRED": "[]"}),
        ("real-cloud: Check what was entered", {"GOOGLE_PROJECT_ID": "owners-ml", "BUDGET": "none](js:)"}),
        ("real-cloud: Check what was entered", {"GOOGLE_PROJECT_ID": HOSTILE[0], "BUDGET": "experiments"}),
        ("real-cloud: Leave an existing stack alone", {"STACK": "dev", **_BACKEND}),
    ],
)
def test_a_wrong_input_ends_the_run(name: str, variables: dict[str, str], tmp_path: Path) -> None:
    """Anything else than what an input is for, and a stack that others use, ends the run with an error."""
    (tmp_path / "stacks").write_text("dev dev-aks")
    done = STEPS[name].run(tmp_path, _project(tmp_path), **variables)
    assert done.returncode == 1
    assert "::error::" in done.stdout
