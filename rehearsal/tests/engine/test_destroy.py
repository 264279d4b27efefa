"""`ebbtide destroy` on the real engine, with stacks whose resources need no provider."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ebbtide.invocation import command_line
from ebbtide_rehearsal.tools import ensure
from tests.repository import ROOT

pytestmark = pytest.mark.engine


@dataclass(frozen=True, slots=True)
class Project:
    """A project on disk with a backend of its own.

    Attributes:
        root: its directory.
        environment: in which `pulumi` finds that backend.
    """

    root: Path
    environment: dict[str, str]

    def pulumi(self, *args: str, stdin: str = "") -> str:
        """Return the output of a `pulumi` command."""
        done = subprocess.run(
            ["pulumi", "--non-interactive", *args],  # noqa: S607 - the one that is first on PATH
            cwd=self.root,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def holds(self, stack: str, *resources: dict[str, Any]) -> None:
        """Create a stack, with resources in its state."""
        (self.root / f"Pulumi.{stack}.yaml").write_text("config: {}\n")
        self.pulumi("stack", "init", stack, "--no-select")
        state = json.loads(self.pulumi("stack", "export", "--stack", stack))
        state["deployment"]["resources"] = [
            {"urn": f"urn:pulumi:{stack}::tried::{resource['type']}::{resource.pop('name')}", **resource}
            for resource in resources
        ]
        self.pulumi("stack", "import", "--stack", stack, stdin=json.dumps(state))

    def destroy(self, *args: str) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of the command."""
        done = subprocess.run(
            [sys.executable, "-m", "ebbtide", "destroy", *args, "--cwd", str(self.root)],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """One without a stack."""
    engine = ensure(["pulumi"], say=lambda _: None).path("pulumi")
    root, state = tmp_path / "project", tmp_path / "state"
    for made in (root, state):
        made.mkdir()
    (root / "Pulumi.yaml").write_text("name: tried\nruntime: {name: python, options: {virtualenv: none}}\n")
    settings = {
        "PATH": f"{engine.parent}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_BACKEND_URL": state.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "tried",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    return Project(root, os.environ | settings)


def test_what_is_guarded_stays(project: Project) -> None:
    """The engine refuses before any change, and the message names what a permanent cluster needs."""
    project.holds("prod", {"type": "acme:gke:Cluster", "name": "train", "protect": True})
    status, _, errors = project.destroy("prod", "--yes")
    assert status == 2
    assert errors.startswith("Nothing was changed: train of stack prod is protected")
    assert "Write a `lifetime` in Pulumi.prod.yaml" in errors
    assert errors.endswith("run `pulumi up --stack prod`, then destroy it.\n")
    assert "acme:gke:Cluster" in project.pulumi("stack", "export", "--stack", "prod")


def test_a_stack_goes_and_the_other_stays_selected(project: Project) -> None:
    """Nothing changes without confirmation; with --yes the stack is destroyed without running the program,
    and the selected stack stays the same."""
    project.holds("old", {"type": "acme:web:Site", "name": "a"}, {"type": "acme:web:Site", "name": "b"})
    project.holds("mine")
    project.pulumi("stack", "select", "mine")
    status, out, errors = project.destroy("old")
    assert (status, errors) == (1, "")
    unknown, question = out.splitlines()
    assert unknown == "The stack has no output `kubeconfig`: running work is unknown."
    assert question.startswith("Destroy 2 resources of stack old? There is no terminal to confirm")
    again = command_line("destroy", "old", "--yes", "--cwd", str(project.root))
    assert question.endswith(f"Continue with: {again}")
    status, out, errors = project.destroy("old", "--yes")
    assert (status, errors) == (0, "")
    assert sorted(line for line in out.splitlines() if line.startswith("gone")) == [
        "gone: acme:web:Site a",
        "gone: acme:web:Site b",
    ]
    assert "Stack old is destroyed. `pulumi stack rm old --preserve-config` removes its state" in out
    assert project.destroy("old")[:2] == (0, "Stack old has nothing to destroy.\n")
    selected = [
        stack["name"] for stack in json.loads(project.pulumi("stack", "ls", "--json")) if stack["current"]
    ]
    assert selected == ["mine"]


def test_stacks_that_are_not_there(project: Project) -> None:
    """A file without a stack in the backend, and neither."""
    (project.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    status, _, errors = project.destroy("dev")
    assert status == 2
    assert errors.startswith(
        "There is no stack dev in the backend that `pulumi` is logged in to: `pulumi stack ls"
    )
    assert "There is no stack prod: no file " in project.destroy("prod")[2]
    without = Project(project.root, project.environment | {"PATH": os.defpath})
    assert without.destroy("dev")[2].startswith(
        "`pulumi` is not installed, and it destroys the stack: install"
    )
