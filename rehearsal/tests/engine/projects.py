"""A project on disk with a backend of its own, for commands that run the user's `pulumi`."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from ebbtide.declaration.model import expiry
from ebbtide.values import clock
from ebbtide_rehearsal.tools.find import ensure
from tests.repository import ROOT


def in_state(stack: str, resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource with a name as it is in a stack's state; the types of its parents precede its own."""
    fields = {key: value for key, value in resource.items() if key != "name"}
    urn = f"urn:pulumi:{stack}::tried::{resource['type']}::{resource['name']}"
    return {"urn": urn, **fields, "type": str(resource["type"]).rpartition("$")[2]}


def time_in(hours: float) -> str:
    """Return the time in a number of hours, as a program writes it."""
    return expiry.text(clock.now() + timedelta(hours=hours))


def lifetime(expires: float) -> list[dict[str, Any]]:
    """Return a lifetime of two days and more as a program leaves it in the state; hours from now."""
    stash = f"{expiry.COMPONENT}$pulumi:index:Stash"
    return [
        {"type": expiry.COMPONENT, "name": "train-lifetime", "outputs": {expiry.OUTPUT: time_in(expires)}},
        {"type": stash, "name": "train-lifetime-first-up", "outputs": {"output": time_in(-48)}},
    ]


@dataclass(frozen=True, slots=True)
class Project:
    """A project on disk with a backend of its own.

    Attributes:
        root: its directory.
        state: the directory of the backend.
        environment: in which `pulumi` finds that backend.
    """

    root: Path
    state: Path
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
        """Let a stack be there, with resources in its state."""
        (self.root / f"Pulumi.{stack}.yaml").write_text("config: {}\n")
        self.pulumi("stack", "init", stack, "--no-select")
        state = json.loads(self.pulumi("stack", "export", "--stack", stack))
        state["deployment"]["resources"] = [in_state(stack, resource) for resource in resources]
        self.pulumi("stack", "import", "--stack", stack, stdin=json.dumps(state))

    def destroy(self, *args: str) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of `ebbtide destroy`."""
        return self.ebbtide("destroy", *args)

    def ebbtide(self, *args: str) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of an `ebbtide` command."""
        started = self.start(*args)
        out, errors = started.communicate()
        assert "Traceback" not in errors
        return started.returncode, out, errors

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start an `ebbtide` command."""
        return subprocess.Popen(
            [sys.executable, "-m", "ebbtide", *args, "--cwd", str(self.root)],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )


def project_in(directory: Path) -> Project:
    """Return a project without a stack."""
    engine = ensure(["pulumi"], on_step=lambda _: None).path("pulumi")
    root, state = directory / "project", directory / "state"
    for made in (root, state):
        made.mkdir()
    (root / "Pulumi.yaml").write_text("name: tried\nruntime: {name: python, options: {virtualenv: none}}\n")
    settings = {
        "PATH": f"{engine.parent}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_HOME": str(directory / "home"),
        "PULUMI_BACKEND_URL": state.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "tried",
        "PULUMI_SKIP_CONFIRMATIONS": "true",  # as in a workflow
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    return Project(root, state, os.environ | settings)
