"""An upgrade from the last release: its stacks, previewed with today's program, keep every resource.

`make released` creates the stacks on the real engine and the fake clouds, and writes their states with their
declarations to `released/`.
"""

import json
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from pulumi import automation

from ebbtide import __version__
from ebbtide.analysis.reading.state import recording_of
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.review.difference import Change, compare
from ebbtide_rehearsal.cloud.existing import introduce, seed_aks
from rehearsal.tests.engine.running import Stack, running_on
from tests.repository import ROOT, declaration

pytestmark = pytest.mark.engine

_STACKS: Final = ("dev", "dev-aks")
_RELEASED: Final = Path(__file__).parent / "released"
_LOST: Final = {"delete", "replace", "create-replacement", "delete-replaced"}
_OF_THE_MACHINE: Final = {"created", "modified", "sourcePosition", "stackTrace"}


@contextmanager
def _stack(directory: Path, declared: Mapping[str, Any], *, deployed: bool = False) -> Generator[Stack]:
    cloud = declared["cloud"]
    with running_on(cloud["kind"], directory) as (stack, store, planes):
        introduce(declared, store)
        if deployed and cloud["kind"] == "aks":  # a preview asks for its credentials
            names = {"resource_group": declared["name"], "name": declared["name"]}
            where = {"subscription": cloud["subscription"], "location": cloud["location"]}
            seed_aks(store, planes, **names, **where)
        stack.declare(dict(declared))
        yield stack


def _release(name: str) -> dict[str, Any]:
    return json.loads((_RELEASED / f"{name}.json").read_text(encoding="utf-8"))


def _preview(directory: Path, release: Mapping[str, Any]) -> dict[str, list[str]]:
    """The engine's steps for the release's state and declaration with today's program."""
    with _stack(directory, release["declaration"], deployed=True) as stack:
        stack.automation.import_stack(automation.Deployment(**release["state"]))
        return stack.preview().changed


def _review(release: Mapping[str, Any]) -> tuple[Change, ...]:
    """The changes that `ebbtide review` finds; it knows which fields of Kubernetes objects are immutable."""
    state = recording_of(json.dumps(release["state"]), project="ebbtide", stack="test", file="released.json")
    config = {"ebbtide:cluster": json.dumps(release["declaration"])}
    return compare(state, record(ROOT, project="ebbtide", stack="test", config=config), deployed=True)


@pytest.mark.parametrize("name", _STACKS)
def test_an_upgrade_keeps_every_resource(tmp_path: Path, name: str) -> None:
    """Neither the engine nor the review finds a deletion or a replacement."""
    release = _release(name)
    steps = _preview(tmp_path, release)
    assert {step: names for step, names in steps.items() if step in _LOST} == {}
    assert [change for change in _review(release) if change.action in _LOST] == []


def test_a_renamed_resource_is_found(tmp_path: Path) -> None:
    """In a state with a pool of another name, that pool would be deleted."""
    release = _release("dev")
    text = json.dumps(release["state"]).replace("train-dev-cpu-spot", "train-dev-cpus")
    changed = release | {"state": json.loads(text)}
    assert "train-dev-cpus" in _preview(tmp_path, changed)["delete"]
    assert "train-dev-cpus" in {
        change.resource.name for change in _review(changed) if change.action == "delete"
    }


def _write(release: str) -> None:
    _RELEASED.mkdir(exist_ok=True)
    for name in _STACKS:
        declared = declaration(ROOT / f"Pulumi.{name}.yaml")
        with tempfile.TemporaryDirectory() as root, _stack(Path(root), declared) as stack:
            stack.up()
            exported = stack.automation.export_stack()
        deployment = dict(exported.deployment or {})
        deployment["resources"] = [
            {key: value for key, value in resource.items() if key not in _OF_THE_MACHINE}
            for resource in deployment["resources"]
        ]
        state = {"version": exported.version, "deployment": deployment}
        text = json.dumps({"release": release, "declaration": declared, "state": state}, indent=1)
        text = text.replace(sys.executable, "/ebbtide/.venv/bin/python").replace(str(ROOT), "/ebbtide")
        (_RELEASED / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    _write(f"v{__version__}")
