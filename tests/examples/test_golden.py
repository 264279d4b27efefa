"""Golden files of every stack: inputs and options of its resources, its profile, a Job for each pool.

They show what a change of the code would change in users' stacks. `python -m tests.examples.test_golden`
writes them.
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ebbtide.analysis.recording.recording import Resource
from ebbtide.analysis.recording.values import UNKNOWN, Secret
from ebbtide.placement import Profile
from ebbtide.work.jobs import job
from tests.repository import ROOT, STACK_FILES, relative
from tests.synth import synth_stack
from tests.unit.work.clusters import PROFILES, ways

_GOLDEN = Path(__file__).parent / "golden"
_DERIVED = {"urn", "outputs", "assumed", "id", "version"}
"""Fields of a recording besides inputs and options; the version is that of the installed SDK."""
_WRITE = "If the change is meant: write the files as above, and say in CHANGELOG.md what changes for users."


def _file(stack_file: Path) -> Path:
    return _GOLDEN / f"{stack_file.name.split('.')[1]}.yaml"


def _json(value: Any) -> Any:
    """Encode recorded values that JSON lacks; the secrets of these stacks are examples."""
    if value is UNKNOWN:
        return {"unknown": True}
    return {"secret": value.value} if isinstance(value, Secret) else dict(value)


def _declared(resource: Resource) -> dict[str, Any]:
    """Return a resource's inputs, and its options that are not the default."""
    values = {field.name: getattr(resource, field.name) for field in dataclasses.fields(resource)}
    return {name: value for name, value in values.items() if value and name not in _DERIVED}


def _jobs(profile: Profile) -> list[dict[str, Any]]:
    placed = (way for pool in profile.pools for way in ways(profile, pool))
    tasks: list[dict[str, Any]] = [{**way, "cpu": "250m", "command": ["true"]} for way in placed]
    return [job(profile, **task) for task in tasks]


def _golden(stack_file: Path) -> str:
    profile = PROFILES[relative(stack_file)]
    document: dict[str, Any] = {
        "resources": {resource.urn: _declared(resource) for resource in synth_stack(stack_file)},
        "profile": json.loads(profile.json()),
        "jobs": _jobs(profile),
    }
    text = json.dumps(document, default=_json)
    text = text.replace(sys.executable, "PYTHON").replace(str(ROOT), "CHECKOUT")
    return yaml.dump(json.loads(text), Dumper=yaml.CSafeDumper, width=110)


@pytest.mark.parametrize("stack_file", STACK_FILES, ids=relative)
def test_stack_is_unchanged(stack_file: Path) -> None:
    """A stack's resources, profile and Jobs are those of its golden file."""
    assert _golden(stack_file) == _file(stack_file).read_text(encoding="utf-8"), _WRITE


def test_every_golden_file_is_of_a_stack() -> None:
    """No golden file is left of a stack that is gone."""
    assert sorted(_GOLDEN.iterdir()) == sorted(map(_file, STACK_FILES))


if __name__ == "__main__":
    _GOLDEN.mkdir(exist_ok=True)
    for written in STACK_FILES:
        _file(written).write_text(_golden(written), encoding="utf-8")
