"""Effects of the workflows for an event, run by a fake of GitHub Actions."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from ebbtide.cli import app
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.project.extends import extended
from tests.repository import ROOT
from tests.workshop.github_runner import Runner

PROJECTS = {"repository": ROOT, "gke": ROOT / "template/gke", "aks": ROOT / "template/aks"}
"""The projects with workflows."""

_IDENTITY = {
    "GOOGLE_PROVIDER": "projects/1/providers/github",
    "AZURE_TENANT_ID": "t",
    "AZURE_SUBSCRIPTION_ID": "11111111-2222-3333-4444-555555555555",
}
_VARIABLES: dict[str, Any] = {
    "EBBTIDE_DEPLOY": "true",
    "PULUMI_BACKEND_URL": "gs://acme-ml-pulumi",
    "PULUMI_SECRETS_PROVIDER": "gcpkms://key",
    **{
        name: {**_IDENTITY, "GOOGLE_ACCOUNT": f"{name}@acme.example", "AZURE_CLIENT_ID": f"{name}-client"}
        for name in ("dev", "dev-aks", "prod", "pull-requests")
    },
}
"""Variables of the repository and of each environment."""

Start = Callable[..., Runner]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start a runner in a copy of a project."""

    def started(project: Path = ROOT, variables: dict[str, Any] = _VARIABLES, **github: Any) -> Runner:
        root, home = tmp_path / "project", tmp_path / "home"
        home.mkdir()
        for name in (".github", "Makefile", "requirements.txt"):
            source = project / name
            if source.is_dir():
                shutil.copytree(source, root / name)
            elif source.exists():
                shutil.copy(source, root)
        for file in project.glob("Pulumi*.yaml"):
            shutil.copy(file, root)
        return Runner(root, home, {"repository": "acme/ml", "token": "t", **github}, variables)

    return started


def _pull_request(action: str, *labels: str, label: str = "", fork: bool = False) -> dict[str, Any]:
    """Return the context of a pull request's event."""
    pull_request = {
        "number": 42,
        "labels": [{"name": name} for name in labels],
        "head": {"repo": {"full_name": "someone/ml" if fork else "acme/ml"}},
        "base": {"ref": "main"},
    }
    event = {"action": action, "pull_request": pull_request, "label": {"name": label}}
    return {"event_name": "pull_request", "event": event, "base_ref": "main"}


_MERGED = {
    "repository": {
        "up dev --yes --drain-timeout 1h": "dev@acme.example",
        "up dev-aks --yes --drain-timeout 1h": "dev-aks-client",
        "up prod --yes --drain-timeout 1h": "prod@acme.example",
    },
    "gke": {"up dev --yes --drain-timeout 1h": "dev@acme.example"},
    "aks": {"up dev --yes --drain-timeout 1h": "dev-client"},
}


def _logins(runner: Runner) -> dict[str, str]:
    calls = (call for call in runner.calls if call["argv"][0] == "ebbtide" and call["argv"][1] != "review")
    return {" ".join(call["argv"][1:]): call["login"] for call in calls}


@pytest.mark.parametrize("project", PROJECTS)
def test_a_merge_updates_every_stack(start: Start, project: str) -> None:
    """Each stack is updated with the identity of its environment and cloud."""
    runner = start(PROJECTS[project], event_name="push", event={})
    assert runner.run("up.yml") == {"merged": "success", "requested": "skipped"}
    assert _logins(runner) == _MERGED[project]
    assert runner.groups == [f"stack-{command.split()[1]}" for command in _MERGED[project]]


def test_the_plan_of_an_update_is_in_its_summary(start: Start) -> None:
    """With a review against the deployed state, once there is one, and also if the update fails."""
    runner = start(PROJECTS["gke"], event_name="push", event={})
    summary = runner.home / "summary"
    plan = "```text\nStack dev: 1 to create.\n```\n"
    runner.run("up.yml")
    assert summary.read_text() == plan
    stack = runner.root / ".github/workflows/stack.yml"
    job = "    env:\n      COMMAND: "
    stack.write_text(stack.read_text().replace(job, job.replace("COMMAND", 'FAKE_UP: "1"\n      COMMAND')))
    assert runner.run("up.yml")["merged"] == "failure"
    assert summary.read_text() == f"{plan}Review of dev\n{plan}"
    (review,) = [command for command in runner.commands("ebbtide") if command.startswith("review")]
    assert re.fullmatch(r"review dev --against \S+/state.json --format markdown --out \S+/review.md", review)


_OF_PULL_REQUEST = "up pr-42 --yes --drain-timeout 1h"


@pytest.mark.parametrize("project", PROJECTS)
@pytest.mark.parametrize(
    ("event", "is_run"),
    [
        (_pull_request("labeled", "cluster", label="cluster"), True),
        (_pull_request("synchronize", "cluster", "bug"), True),
        (_pull_request("labeled", "cluster", "bug", label="bug"), False),
        (_pull_request("synchronize", "bug"), False),
        (_pull_request("labeled", "cluster", label="cluster", fork=True), False),
    ],
    ids=["labeled", "pushed", "another label", "without", "fork"],
)
def test_a_label_creates_the_stack_of_a_pull_request(
    start: Start, project: str, event: dict[str, Any], *, is_run: bool
) -> None:
    """The label `cluster` creates and updates it, of branches of the repository only."""
    runner = start(PROJECTS[project], **event)
    runner.run("up.yml")
    assert list(_logins(runner)) == ([_OF_PULL_REQUEST] if is_run else [])


def test_the_stack_of_a_pull_request_on_request(start: Start) -> None:
    """A number that a user enters creates it."""
    runner = start(event_name="workflow_dispatch", event={})
    runner.run("up.yml", {"pull-request": 42})
    assert _logins(runner) == {_OF_PULL_REQUEST: "pull-requests@acme.example"}


@pytest.mark.parametrize(
    ("event", "destroyed"),
    [
        (_pull_request("closed", "cluster"), True),
        (_pull_request("unlabeled", label="cluster"), True),
        (_pull_request("unlabeled", "cluster", label="bug"), False),
        (_pull_request("closed", fork=True), False),
    ],
    ids=["closed", "unlabeled", "another label", "fork"],
)
def test_a_closed_pull_request_destroys_its_stack(
    start: Start, event: dict[str, Any], *, destroyed: bool
) -> None:
    """The stack is destroyed and removed once; without one, nothing happens."""
    runner = start(**event)
    (runner.home / "stacks").write_text("dev pr-42 pr-4")
    runner.run("destroy.yml")
    assert runner.commands("ebbtide") == (["destroy pr-42 --yes"] if destroyed else [])
    assert (runner.home / "stacks").read_text() == ("dev pr-4" if destroyed else "dev pr-42 pr-4")
    assert runner.run("destroy.yml")["destroy"] in ("success", "skipped")
    assert len(runner.commands("ebbtide")) == destroyed


@pytest.mark.parametrize("project", PROJECTS)
def test_every_ephemeral_stack_is_reaped(start: Start, project: str) -> None:
    """Each stack that up.yml creates and that expires has a reaper with the identity that created it."""
    root = PROJECTS[project]
    runner = start(root, event_name="schedule", event={})
    (runner.home / "stacks").write_text("dev prod pr-42 pr-7 pr-x")
    runner.run("reap.yml")
    reapers = {command.split()[1]: login for command, login in _logins(runner).items()}
    creators = {command.split()[1]: login for command, login in _MERGED[project].items()}
    cloud = "pull-requests-client" if project == "aks" else "pull-requests@acme.example"
    expiring = {stack for stack in creators if _has_lifetime(root / f"Pulumi.{stack}.yaml")}
    of_pull_requests = dict.fromkeys(("pr-*", "pr-42", "pr-7"), cloud)
    assert reapers == {stack: creators[stack] for stack in expiring} | of_pull_requests
    assert "reap pr-* --only-resources --yes --format json" in runner.commands("ebbtide")
    assert runner.groups == [f"stack-{command.split()[1]}" for command in runner.commands("ebbtide")]


def _has_lifetime(file: Path) -> bool:
    return "lifetime: {" in file.read_text(encoding="utf-8")


def test_an_identity_names_no_other_project(start: Start) -> None:
    """The account's project, which the login action exports by default, would stop every destroy."""
    runner = start(event_name="schedule", event={})
    action = runner.root / ".github/actions/tools/action.yml"
    text = action.read_text(encoding="utf-8")
    action.write_text(text.replace("export_environment_variables: false", ""), encoding="utf-8")
    assert runner.run("reap.yml") == {"expired": "failure", "reap": "failure"}
    assert "GOOGLE_CLOUD_PROJECT names project acme" in (runner.home / "output").read_text()


@pytest.mark.parametrize(
    ("schedule", "command"), [("23 19 * * 1-5", "sleep"), ("23 6 * * 1-5", "wake"), ("", "wake")]
)
def test_stacks_that_sleep(start: Start, schedule: str, command: str) -> None:
    """The stacks that are marked so sleep at night, on a schedule or on request; by default none."""
    runner = start(event={"schedule": schedule})
    inputs = {} if schedule else {"command": command}
    runner.run("sleep.yml", inputs)
    assert runner.commands("ebbtide") == []
    stacks = runner.root / ".github/stacks.json"
    text = stacks.read_text().replace('"permanent": true', '"permanent": true, "sleeps": true')
    stacks.write_text(text)
    runner.run("sleep.yml", inputs)
    (done,) = runner.commands("ebbtide")
    assert re.fullmatch(r"wake prod" if command == "wake" else r"sleep prod --wait --for \d+m", done)


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
def test_a_late_sleep_ends_on_the_next_working_day(start: Start, now: str, minutes: int) -> None:
    """Stacks wake at 06:23 of the next working day, also if the evening's run began after midnight."""
    runner = start(event={"schedule": "23 19 * * 1-5"})
    stacks = runner.root / ".github/stacks.json"
    stacks.write_text(stacks.read_text().replace('"permanent": true', '"permanent": true, "sleeps": true'))
    (runner.home / "bin/date").write_text(f"#!/bin/sh\necho {now}\n")
    (runner.home / "bin/date").chmod(0o755)
    runner.run("sleep.yml")
    assert runner.commands("ebbtide") == [f"sleep prod --wait --for {minutes}m"]


def test_nothing_is_deployed_without_consent(start: Start) -> None:
    """Without the variable EBBTIDE_DEPLOY no stack is updated, destroyed or reaped."""
    runner = start(variables={}, **_pull_request("closed"))
    for name in ("up.yml", "destroy.yml", "reap.yml", "sleep.yml"):
        runner.run(name)
    assert runner.calls == []


@pytest.mark.parametrize("project", PROJECTS)
def test_a_review_is_one_comment(start: Start, project: str) -> None:
    """Each stack has one comment, which a later review replaces."""
    runner = start(PROJECTS[project], **_pull_request("synchronize"))
    assert runner.run("preview.yml") == {"stacks": "success", "review": "success", "comment": "success"}
    posted = (runner.home / "comments.json").read_text()
    runner.run("preview.yml")
    assert (runner.home / "comments.json").read_text() == posted
    stacks = ["dev", "dev-aks", "prod"] if project == "repository" else ["dev"]
    assert re.findall(r"Review of ([\w-]+)", posted) == stacks
    assert re.findall(r"Review of ([\w-]+)", (runner.home / "summary").read_text()) == 2 * stacks


def test_stacks_of_pull_requests_alone(start: Start) -> None:
    """A list of stacks that has those of pull requests alone gives jobs no empty matrix."""
    runner = start(PROJECTS["gke"], **_pull_request("synchronize"))
    stacks = runner.root / ".github/stacks.json"
    stacks.write_text(
        json.dumps([item for item in json.loads(stacks.read_text()) if item["stack"] == "pr-*"])
    )
    assert runner.run("preview.yml") == {"stacks": "success", "review": "skipped", "comment": "skipped"}
    runner.github = {"repository": "acme/ml", "event_name": "push", "event": {"schedule": "23 6 * * 1-5"}}
    for name in ("up.yml", "sleep.yml"):
        assert "failure" not in runner.run(name).values()
    assert runner.commands("ebbtide") == []


def test_a_failed_review_is_posted(start: Start) -> None:
    """A review that fails replaces the comment of the last one that passed."""
    runner = start(PROJECTS["gke"], **_pull_request("synchronize"))
    runner.run("preview.yml")
    preview = runner.root / ".github/workflows/preview.yml"
    failing = preview.read_text().replace(
        "          STACK: $", "          FAKE_REVIEW: FAIL\n          STACK: $", 1
    )
    preview.write_text(failing)
    assert runner.run("preview.yml") == {"stacks": "success", "review": "failure", "comment": "success"}
    posted = (runner.home / "comments.json").read_text()
    assert "FAIL" in posted
    assert "Review of dev" not in posted


def test_a_fork_gets_a_summary(start: Start) -> None:
    """The review of a fork's pull request is the summary of its job, and no comment."""
    runner = start(PROJECTS["gke"], **_pull_request("synchronize", fork=True))
    assert runner.run("preview.yml")["comment"] == "skipped"
    assert "Review of dev" in (runner.home / "summary").read_text()


_REAL = {"budget": "experiments", "google-project": "owners-ml"}
_RECORDED = {
    "dev": (
        "up dev --yes --record recording",
        "job on-system --pool system --namespace default --submit -- echo hello",
        "job on-spot --pool cpu-spot --namespace default --submit -- echo hello",
        "up dev --yes --drain-timeout 5m --record recording",
        "destroy dev --yes --delete-orphans --record recording",
        "rehearse --compare recording --out comparison.txt",
    ),
    "dev-aks": (
        "up dev-aks --yes --record recording",
        "job on-system --pool system --namespace default --submit -- echo hello",
        "job on-spot --pool cpuspot --namespace default --submit -- echo hello",
        "up dev-aks --yes --drain-timeout 5m --record recording",
        "destroy dev-aks --yes --delete-orphans --record recording",
        "rehearse --compare recording --out comparison.txt",
    ),
}


def test_the_real_clouds_are_recorded(start: Start, tmp_path: Path) -> None:
    """Both stacks are created, used, changed, destroyed and compared, on the owner's account; the
    declarations are valid, and the change replaces the pool."""
    runner = start(event_name="workflow_dispatch", event={})
    assert runner.run("real-cloud.yml", _REAL) == {"record": "success"}
    assert runner.commands("ebbtide") == [*_RECORDED["dev"], *_RECORDED["dev-aks"]]
    assert (runner.home / "stacks").read_text() == ""
    assert "budget experiments" in (runner.home / "summary").read_text()
    for stack, pool in (("dev", "cpu-spot"), ("dev-aks", "cpuspot")):
        first, second, _, comparison = runner.artifacts[f"recording-{stack}"].splitlines()
        assert comparison == "3 recordings compared"
        declared = [_declared(json.loads(files), stack, tmp_path) for files in (first, second)]
        for item in declared:
            declare(item, default_name="train")
            text = json.dumps(item)
            assert all(word not in text for word in ("acme-ml", "00000000000", "members", "access"))
        capacities = [
            [item.get("capacity") for item in one["pools"] if item["name"] == pool] for one in declared
        ]
        assert capacities == [["spot"], ["on-demand"]]


def _declared(files: dict[str, str], stack: str, directory: Path) -> dict[str, Any]:
    """Return the declaration of a stack in a project's files."""
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    return extended(
        yaml.safe_load(files[f"Pulumi.{stack}.yaml"])["config"]["ebbtide:cluster"], directory
    ).value


def test_a_failed_recording_is_destroyed_and_uploaded(start: Start) -> None:
    """A Job that fails ends the run, but not before the stack is destroyed."""
    runner = start(event_name="workflow_dispatch", event={})
    workflow = runner.root / ".github/workflows/real-cloud.yml"
    workflow.write_text(workflow.read_text().replace("    env:\n", "    env:\n      FAKE_JOB: '1'\n", 1))
    assert runner.run("real-cloud.yml", _REAL) == {"record": "failure"}
    done = [line for line in _RECORDED["dev"] if "on-spot" not in line and "--drain-timeout" not in line]
    assert runner.commands("ebbtide")[: len(done)] == done
    assert set(runner.artifacts) == {"recording-dev", "recording-dev-aks"}


def test_an_existing_stack_is_not_recorded(start: Start) -> None:
    """A stack that others use is neither updated nor destroyed."""
    runner = start(event_name="workflow_dispatch", event={})
    (runner.home / "stacks").write_text("dev dev-aks")
    assert runner.run("real-cloud.yml", _REAL) == {"record": "failure"}
    assert runner.commands("ebbtide") == []
    assert "Stack dev exists" in (runner.home / "output").read_text()


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("up.yml", {"pull-request": "4/../2"}),
        ("sleep.yml", {"command": "destroy-all"}),
        ("real-cloud.yml", {**_REAL, "google-project": "z/;s/.*/touch pwned/e;#"}),
        ("real-cloud.yml", {**_REAL, "budget": "none](javascript:)"}),
    ],
)
def test_what_is_entered_is_checked(start: Start, name: str, inputs: dict[str, str]) -> None:
    """Anything else than what an input is for ends the run before it has an identity."""
    runner = start(event_name="workflow_dispatch", event={"schedule": ""})
    assert set(runner.run(name, inputs).values()) <= {"failure", "skipped"}
    assert runner.commands("pulumi") == runner.commands("ebbtide") == []


def test_options_exist(start: Start) -> None:
    """Every call of Ebbtide in the workflows is one that its parser takes."""
    runner = start(event_name="push", event={"schedule": "23 19 * * 1-5"})
    (runner.home / "stacks").write_text("pr-42")
    stacks = runner.root / ".github/stacks.json"
    stacks.write_text(stacks.read_text().replace('"permanent": true', '"sleeps": true'))
    runner.run("up.yml")
    runner.run("reap.yml")
    for command in ("sleep", "wake"):
        runner.run("sleep.yml", {"command": command})
    runner.github = {"repository": "acme/ml", **_pull_request("closed")}
    runner.run("destroy.yml")
    (runner.home / "stacks").write_text("")
    runner.run("real-cloud.yml", _REAL)
    calls = [shlex.split(call) for call in runner.commands("ebbtide")]
    assert {words[0] for words in calls} == {"up", "reap", "sleep", "wake", "destroy", "job", "rehearse"}
    group: Any = get_command(app)
    for name, *words in calls:
        group.commands[name].make_context(name, words)
