"""Effects of each change of a field in `test_every_field` on resources and outputs, in `changes.txt`.

`python -m tests.contract.test_what_changes` writes the file; with names of fields, such as `Pool.image`, only
the sections of these and of new ones. An added or removed resource is one row with a
checksum of its inputs and options; a long value is shortened, with a checksum.
"""

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from ebbtide.analysis.changes.property_path import differences
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import UNKNOWN, revealed
from tests.contract.cluster_flips import ADDONS, AKS_CLOUD, CLUSTER, GKE_CLOUD, TENANCY, VARIANTS
from tests.contract.flips import Flip
from tests.contract.pool_flips import AKS_POOL, GKE_POOL
from tests.repository import ROOT
from tests.synth import synth

FLIPS: Final = [*CLUSTER, *GKE_CLOUD, *AKS_CLOUD, *GKE_POOL, *AKS_POOL, *TENANCY, *ADDONS, *VARIANTS]
_FILE: Final = Path(__file__).parent / "changes.txt"
_DERIVED: Final = {"urn", "type", "name", "outputs", "assumed", "id", "version"}
"""Fields of a recorded resource besides inputs and options."""
_PROFILE: Final = "placementProfile"
"""An output that repeats the declaration, compressed: its bytes depend on the machine."""
_LONGEST: Final = 100
_WRITE: Final = (
    "If the change is meant: write the file as above, and say in CHANGELOG.md what changes for users."
)


def _named(flips: list[Flip]) -> dict[str, Flip]:
    """Return the changes by their fields, with a number where a field has several."""
    seen: Counter[str] = Counter()
    result: dict[str, Flip] = {}
    for flip in flips:
        seen[flip.field] += 1
        result[flip.field if seen[flip.field] == 1 else f"{flip.field} {seen[flip.field]}"] = flip
    return result


CASES: Final = _named(FLIPS)


def _declared(resource: Resource) -> dict[str, Any]:
    """Return a resource's inputs by path, and its options."""
    return {
        field.name: _plain(getattr(resource, field.name))
        for field in dataclasses.fields(resource)
        if field.name not in _DERIVED
    }


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=_json))


def _json(value: Any) -> Any:
    if value is UNKNOWN:
        return "UNKNOWN"
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] # recorded inputs
    shown = revealed(value)
    return shown if shown is not value else str(value)


def _text(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text.replace(sys.executable, "PYTHON").replace(str(ROOT), "CHECKOUT")


def _short(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… {_checksum(text)}"


def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def _rows(before: Recording, after: Recording) -> Iterator[str]:
    """Yield what differs: `+` and `-` for resources, `~` for a property or an option with both values."""
    old = {item.urn: (f"{item.type} {item.name}", _declared(item)) for item in before}
    new = {item.urn: (f"{item.type} {item.name}", _declared(item)) for item in after}
    for urn in sorted({*old, *new}):
        if urn not in new or urn not in old:
            name, declared = old.get(urn) or new[urn]
            text = _text({key: value for key, value in declared.items() if value})
            yield f"{'-' if urn in old else '+'} {name} {_checksum(text)}"
            continue
        name, declared = new[urn]
        for path, was, now in differences(old[urn][1], declared):
            yield f"~ {name} {path}: {_short(was)} -> {_short(now)}"
    for path, was, now in differences(_outputs(before), _outputs(after)):
        yield f"~ outputs {path}: {_short(was)} -> {_short(now)}"


def _outputs(recording: Recording) -> dict[str, Any]:
    return {key: _plain(value) for key, value in recording.outputs.items() if key != _PROFILE}


def _changes(case: Flip) -> str:
    return "\n".join(_rows(synth(case.before), synth(case.after)))


def _golden() -> dict[str, str]:
    """Return the rows of the file by case."""
    sections = _FILE.read_text(encoding="utf-8").split("\n# ")
    parts = (section.removeprefix("# ").partition("\n") for section in sections)
    return {name: rows.rstrip("\n") for name, _, rows in parts}


@pytest.fixture(scope="module")
def golden() -> dict[str, str]:
    """The rows of the file by case."""
    return _golden()


@pytest.mark.parametrize("name", CASES)
def test_a_changed_field_changes_what_it_did(golden: dict[str, str], name: str) -> None:
    """No field is accepted and then ignored, and its effect is that of the file."""
    rows = _changes(CASES[name])
    assert rows
    assert rows == golden[name], _WRITE


def test_every_section_is_of_a_case(golden: dict[str, str]) -> None:
    """No section is left of a case that is gone."""
    assert list(golden) == list(CASES)


if __name__ == "__main__":
    kept = _golden() if sys.argv[1:] else {}
    _FILE.write_text(
        "".join(
            f"# {name}\n{_changes(case) if case.field in sys.argv else kept.get(name) or _changes(case)}\n"
            for name, case in CASES.items()
        ),
        encoding="utf-8",
    )
