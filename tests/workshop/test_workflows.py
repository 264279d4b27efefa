"""The workflows: pinned actions, least rights, and commands that exist."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from typer.main import get_command

from ebbtide.catalog import PINS
from ebbtide.cli import app
from tests.repository import ROOT, makefile_targets, relative

_DIRECTORY = ROOT / ".github"
_WORKFLOWS = sorted((_DIRECTORY / "workflows").glob("*.yml"))
_ACTIONS = sorted((_DIRECTORY / "actions").glob("*/action.yml"))
_DEPLOY = {"up.yml", "destroy.yml", "reap.yml", "sleep.yml"}
"""The workflows that may ask for an identity."""


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
    uses = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
    assert uses
    for action, comment in uses:
        if action.startswith("./"):
            assert (ROOT / action / "action.yml").is_file()
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
        checks_out = any(step.get("uses", "").startswith("actions/checkout@") for step in job["steps"])
        assert writes <= ({"id-token"} if path.name in _DEPLOY else {"pull-requests"})
        assert not (checks_out and "pull-requests" in writes)
        assert 0 < job["timeout-minutes"] <= 90
        assert job.get("environment") or path.name not in _DEPLOY


@pytest.mark.parametrize("path", _WORKFLOWS, ids=relative)
def test_checkouts_leave_no_token(path: Path) -> None:
    """A later step could read it."""
    for step in _steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", _WORKFLOWS, ids=relative)
def test_nothing_is_run_twice_at_once(path: Path) -> None:
    """An update or a destruction is never cancelled midway."""
    groups = [part["concurrency"] for part in (_read(path), *_jobs(path).values()) if "concurrency" in part]
    assert groups
    if path.name in _DEPLOY:
        assert all(group["cancel-in-progress"] is False for group in groups)


def test_commands_exist() -> None:
    """Of the Makefile and of Ebbtide, with their options."""
    lines = [line for path in [*_WORKFLOWS, *_ACTIONS] for step in _steps(path) for line in _lines(step)]
    makes = [shlex.split(line)[1:] for line in lines if line.startswith("make ")]
    assert {target for targets in makes for target in targets} <= set(makefile_targets())
    ours = [shlex.split(line) for line in lines if re.match(r"(\S*/)?ebbtide ", line)]
    assert {words[1] for words in ours} == {"destroy", "reap", "review", "sleep", "wake"}
    for _, name, *words in ours:
        command = get_command(app).commands[name]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
        options = {option for parameter in command.params for option in parameter.opts}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        assert {word for word in words if word.startswith("--")} <= options


def _lines(step: dict[str, Any]) -> list[str]:
    return [line.strip() for line in step.get("run", "").splitlines()]


def test_stacks_and_versions_are_the_repositorys() -> None:
    """Every stack has a file; Pulumi is the version of the catalog."""
    stacks = {*_jobs(_DIRECTORY / "workflows" / "preview.yml")["review"]["strategy"]["matrix"]["stack"]}
    merged = _jobs(_DIRECTORY / "workflows" / "up.yml")["merged"]["strategy"]["matrix"]["include"]
    assert stacks == {item["stack"] for item in merged}
    assert all((ROOT / f"Pulumi.{stack}.yaml").is_file() for stack in stacks)
    versions = [
        step["with"]["pulumi-version"]
        for path in _ACTIONS
        for step in _steps(path)
        if step.get("uses", "").startswith("pulumi/actions@")
    ]
    assert versions == [PINS["pulumi"].version]


def test_zizmor_has_no_finding() -> None:
    """It audits workflows for what an attacker could use."""
    zizmor = Path(sys.executable).with_name("zizmor")
    command = [zizmor, "--offline", "--no-progress", "--quiet", _DIRECTORY]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
