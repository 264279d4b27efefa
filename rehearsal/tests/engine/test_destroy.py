"""`ebbtide destroy` on the real engine, with stacks whose resources need no provider."""

import json
import os

import pytest

from ebbtide.operations.engine.backend import Backend
from ebbtide.operations.engine.failures import OperationError
from ebbtide.text import command_line
from rehearsal.tests.engine.projects import Project

pytestmark = pytest.mark.engine


def test_what_is_guarded_stays(project: Project) -> None:
    """The engine refuses before any change, and the message names what a permanent cluster needs."""
    project.holds("prod", {"type": "acme:gke:Cluster", "name": "train", "protect": True})
    status, _, errors = project.destroy("prod", "--yes")
    assert status == 2
    assert errors.startswith("Nothing was changed: train of stack prod is protected")
    assert "write a `lifetime` in Pulumi.prod.yaml" in errors
    assert f"run `pulumi up --stack prod --cwd {project.root}`, then destroy it.\n" in errors
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
    assert sorted(line for line in out.splitlines() if line.startswith("deleted")) == [
        "deleted: acme:web:Site a",
        "deleted: acme:web:Site b",
    ]
    removal = f"pulumi stack rm old --preserve-config --cwd {project.root}"
    assert f"Stack old is destroyed. `{removal}` removes its state" in out
    assert project.destroy("old")[:2] == (0, "Stack old has no resources to destroy.\n")
    selected = [
        stack["name"] for stack in json.loads(project.pulumi("stack", "ls", "--json")) if stack["current"]
    ]
    assert selected == ["mine"]


def test_the_selected_stack_is_the_default(project: Project) -> None:
    """Without a name, the stack that `pulumi` has selected is destroyed, not dev, and the question names it;
    --stack names one, too."""
    project.holds("dev", {"type": "acme:web:Site", "name": "a"})
    project.holds("mine", {"type": "acme:web:Site", "name": "b"})
    project.pulumi("stack", "select", "mine")
    assert "Destroy 1 resource of stack mine?" in project.destroy()[1]
    assert "Destroy 1 resource of stack dev?" in project.destroy("--stack", "dev")[1]
    project.pulumi("stack", "unselect")
    status, _, errors = project.destroy()
    assert status == 2
    again = command_line("destroy", "STACK", "--cwd", str(project.root))
    assert errors == f"No stack is named, and Pulumi has none selected. Write: {again}\n"


def test_stacks_that_are_not_there(project: Project) -> None:
    """A file without a stack in the backend, and neither."""
    (project.root / "Pulumi.dev.yaml").write_text("config: {}\n")
    status, _, errors = project.destroy("dev")
    assert status == 2
    assert errors.startswith(
        "There is no stack dev in the backend that `pulumi` is logged in to: `pulumi stack ls"
    )
    assert "There is no stack prod: no file " in project.destroy("prod")[2]
    without = Project(project.root, project.state, project.environment | {"PATH": os.defpath})
    assert without.destroy("dev")[2].startswith("`pulumi` is not installed: install it")


def test_a_state_of_an_earlier_export_is_not_written(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of the engine between an export and its import would be lost, so the import is refused."""
    project.holds("dev", {"type": "acme:web:Site", "name": "site"})
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)
    stack = Backend(project.root).opened("dev")
    before = stack.exported()
    stack.replace_state(before)
    project.pulumi("refresh", "--stack", "dev", "--yes")
    with pytest.raises(OperationError, match=r"^The state of stack dev was not changed: another command "):
        stack.replace_state(before)
    stack.replace_state(stack.exported())
