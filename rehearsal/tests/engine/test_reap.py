"""`ebbtide reap` and `ebbtide extend` on the real engine, with stacks whose resources need no provider."""

import json
import re
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide.declaration.model import expiry
from ebbtide.operations.engine.stack import Stack
from rehearsal.tests.engine.projects import Project, in_state, lifetime, time_in
from rehearsal.tests.engine.sites import Site, site_on

pytestmark = pytest.mark.engine

_BROKEN = {"type": "acme:index:Thing", "name": "thing", "custom": True, "id": "1"}
"""A resource whose provider is not installed."""


def _stacks(project: Project, contents: dict[str, list[dict[str, Any]]]) -> None:
    """Write stacks to the backend: copies of one that the engine has made."""
    project.holds("made")
    (directory,) = project.state.glob(".pulumi/stacks/*")
    made = (directory / "made.json").read_text(encoding="utf-8")
    for name, resources in contents.items():
        document = json.loads(made.replace("/made", f"/{name}"))
        document["checkpoint"]["latest"]["resources"] = [in_state(name, item) for item in resources]
        (directory / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")


def test_the_expired_ones_go(project: Project) -> None:
    """Eleven stacks, five expired, of which one is broken and one protected: three go, two are reported,
    and six stay."""
    site = {"type": "acme:web:Site", "name": "site"}
    contents = {
        **{f"old-{number}": [*lifetime(-number), site] for number in (1, 2, 3)},
        "broken": [*lifetime(-24), _BROKEN],
        "guarded": [*lifetime(-30), {**site, "protect": True}],
        **{f"new-{number}": [*lifetime(number), site] for number in (1, 2, 3, 4)},
        "permanent": [site],
    }
    _stacks(project, contents)
    status, out, errors = project.ebbtide("reap")
    assert (status, errors) == (1, "")
    names = [line.split()[0] for line in out.splitlines()[1:6]]
    assert names == ["guarded", "broken", "old-3", "old-2", "old-1"]
    assert "no state names a project or subscription. Name one with --google-project" in out
    assert "reap --yes" in out.splitlines()[-1]
    status, out, _ = project.ebbtide("reap", "old-*", "broken")
    assert [line.split()[0] for line in out.splitlines()[1:5]] == ["broken", "old-3", "old-2", "old-1"]
    assert "reap 'old-*' broken --yes" in out.splitlines()[-1]
    status, out, _ = project.ebbtide("reap", "pr-*")
    assert (status, out.splitlines()[0]) == (0, "No stack has expired.")

    status, out, errors = project.ebbtide("reap", "--yes", "--format", "json")
    outcomes = {item["stack"]: item["outcome"] for item in json.loads(out)["stacks"]}
    assert (status, outcomes) == (
        1,
        {
            "guarded": "refused",
            "broken": "refused",
            "old-3": "destroyed",
            "old-2": "destroyed",
            "old-1": "destroyed",
        },
    )
    errors = {item["stack"]: item["error"] for item in json.loads(out)["stacks"]}
    assert "acme" in errors["broken"]
    assert "site of stack guarded is protected" in errors["guarded"]
    listed = json.loads(project.pulumi("stack", "ls", "--json"))
    left = {stack["name"] for stack in listed if stack["resourceCount"]}
    assert left == {"broken", "guarded", "new-1", "new-2", "new-3", "new-4", "permanent"}
    assert not any(stack["current"] for stack in listed)


@pytest.mark.parametrize("step", ["exported", "refusals", "last_start", "destroy"])
def test_a_stack_that_is_extended_meanwhile_stays(
    project: Project, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expiry is read again while the engine holds the lock, whenever the stack is extended before."""
    site = {"type": "acme:web:Site", "name": "site"}
    _stacks(project, {"slow": [*lifetime(-2), site], "dev": [*lifetime(-1), site]})
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)
    done, pending = getattr(Stack, step), ["dev"]

    def extended(stack: Stack, *args: Any, **options: Any) -> Any:
        if stack.name in pending:
            pending.remove(stack.name)
            text = project.pulumi("stack", "export", "--stack", "dev")
            later = re.sub(r'("expires": )"[^"]+"', rf'\1"{time_in(8)}"', text)
            project.pulumi("stack", "import", "--stack", "dev", stdin=later)
        return done(stack, *args, **options)

    monkeypatch.setattr(Stack, step, extended)
    ended = CliRunner().invoke(app, ["reap", "--yes", "--format", "json", "--cwd", str(project.root)])
    outcomes = {item["stack"]: item["outcome"] for item in json.loads(ended.stdout)["stacks"]}
    assert (ended.exit_code, outcomes) == (0, {"slow": "destroyed", "dev": "extended"})
    resources = json.loads(project.pulumi("stack", "export", "--stack", "dev"))["deployment"]["resources"]
    assert [item["type"] for item in resources if item["type"] == "acme:web:Site"]
    assert ended.stderr.count("Nothing was changed: stack dev was extended until ") == 1


def test_a_stack_that_is_updated_meanwhile_stays(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update of which the reaper knows nothing but that there was one is not undone."""
    site = {"type": "acme:web:Site", "name": "site"}
    _stacks(project, {"dev": [*lifetime(-1), site]})
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)
    starts = iter(["2026-11-22T20:00:00.000Z", "2026-11-22T20:00:01.000Z"])

    def last_start(_stack: Stack) -> str:
        return next(starts)

    monkeypatch.setattr(Stack, "last_start", last_start)
    ended = CliRunner().invoke(app, ["reap", "--yes", "--cwd", str(project.root)])
    assert ended.exit_code == 2
    assert "Nothing was destroyed: stack dev was updated at the same time." in ended.stdout
    assert project.ebbtide("reap")[0] == 1


_DECLARED = """\
config:
  ebbtide:cluster: # ours
    owner: vision
    lifetime: {hours: 49} # two days
"""


def test_a_lifetime_is_extended(project: Project) -> None:
    """The stack's file has more hours, counted from the expiry, unless the policy forbids it; the rest of it
    stays."""
    _stacks(project, {"dev": lifetime(1)})
    (project.root / "Pulumi.dev.yaml").write_text(_DECLARED, encoding="utf-8")
    out = project.ebbtide("extend", "dev", "--hours", "4")[1]
    assert "lifetime is 53 hours in Pulumi.dev.yaml." in out
    file = (project.root / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    assert file == _DECLARED.replace("49", "53")

    limited = f"{_DECLARED}  ebbtide:policy: {{limits: {{lifetimeHours: 50}}}}\n"
    (project.root / "Pulumi.dev.yaml").write_text(limited, encoding="utf-8")
    status, _, errors = project.ebbtide("extend", "dev", "--hours", "2")
    assert (status, "limits the lifetime to 50 hours" in errors) == (2, True)
    assert (project.root / "Pulumi.dev.yaml").read_text(encoding="utf-8") == limited


def test_an_extension_is_an_update(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """One command moves the expiry in the file, in the state and in the labels."""
    with contextmanager(site_on)("gke", tmp_path, request) as site:
        assert site.up()[0] == 0
        expires = _expiries(site)
        status, out = site.run("extend", "--hours", "4")
        assert (status, "Once it is updated, stack dev expires at " in out) == (0, True)
        assert _expiries(site) == {time + timedelta(hours=4) for time in expires}
        assert site.run("extend", "--hours", "1", confirmed=False)[0] == 1


def _expiries(site: Site) -> set[datetime]:
    """Return the times of expiry in a stack's state: of the stack, and of the labels."""
    text = json.dumps(site.state())
    found = re.findall(r'"(?:expires|ebbtide-expires)": "([^"]+)"', text)
    return {moment for label in found if (moment := expiry.of_label(label))}


def test_an_expiry_is_read_without_the_passphrase(project: Project) -> None:
    """Also of a state with secrets, which stay encrypted."""
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x:y"}
    site = {"type": "acme:web:Site", "name": "site", "outputs": {"kubeconfig": secret}}
    _stacks(project, {"old": [*lifetime(-1), site]})
    without = {name: value for name, value in project.environment.items() if "PASSPHRASE" not in name}
    status, out, errors = Project(project.root, project.state, without).ebbtide("reap")
    assert (status, errors) == (1, "")
    assert [line.split()[0] for line in out.splitlines() if line.endswith(" expired")] == ["old"]
