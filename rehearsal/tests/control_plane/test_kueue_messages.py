"""The messages of Kueue that `why` parses, in the source of the pinned version."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.work import queue_causes
from tests.repository import ROOT

pytestmark = pytest.mark.rehearsal

_PATTERNS: dict[str, re.Pattern[str]] = {
    name: it for name, it in vars(queue_causes).items() if isinstance(it, re.Pattern)
}
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_JOINED = re.compile(r'"\s*\+\s*"')
_VERB = re.compile(r"%[#+]?[dqsv]")
_VALUES = ("1", "{1 1 1 <nil>}", "/1")
"""Printed values: a number or a name, a taint, a path."""


@pytest.fixture(scope="module")
def messages() -> list[str]:
    """Every string of Kueue's source, with values for its verbs."""
    (module,) = ROOT.glob("rehearsal/**/modules/kueue/go.mod")
    command = ["go", "mod", "download", "-json", f"sigs.k8s.io/kueue@v{PINS['kueue'].version}"]
    done = subprocess.run(command, cwd=module.parent, capture_output=True, text=True, check=True)
    source = Path(json.loads(done.stdout)["Dir"], "pkg")
    texts = (path.read_text() for path in source.rglob("*.go") if not path.name.endswith("_test.go"))
    literals = {item for text in texts for item in _LITERAL.findall(_JOINED.sub("", text))}
    return [_VERB.sub(value, item) for item in literals for value in _VALUES]


@pytest.mark.parametrize("name", _PATTERNS)
def test_kueue_writes_what_is_parsed(name: str, messages: list[str]) -> None:
    """A message of Kueue matches each pattern: else a new version writes it differently."""
    assert any(map(_PATTERNS[name].search, messages))
