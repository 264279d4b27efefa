"""Pinned versions: one file has them all."""

import re

from ebbtide.declaration.catalog import PINS
from tests.repository import ROOT, code_strings, relative, sources, syntax

_VERSIONS = ROOT / "ebbtide" / "declaration" / "catalog" / "versions.py"
_OWN = [ROOT / "ebbtide" / "__init__.py", ROOT / "rehearsal" / "ebbtide_rehearsal" / "__init__.py"]
_BENCHMARKS = [
    ROOT / "ebbtide/analysis/policy/benchmarks.py",
    ROOT / "ebbtide/analysis/policy/rules/benchmarks.py",
]
"""The numbers of a benchmark's items look like versions."""

_PYTHON = [
    path
    for path in sources("ebbtide", "rehearsal/ebbtide_rehearsal", "components", "stacks")
    if path not in (_VERSIONS, *_BENCHMARKS, *_OWN)
]
_VERSION = re.compile(r"(?:^|[=:/@])v?(\d+\.\d+\.\d+(?:-gke\.\d+)?)(?![\w.])")
"""A version as something is asked for by it; in a sentence a version says where a fact was read."""


def test_no_version_is_asked_for_elsewhere() -> None:
    """No code but `catalog/versions.py` has a version that something is installed or compared by."""
    assert [
        f"{relative(path)}:{line}: {text}"
        for path in _PYTHON
        for line, text in code_strings(syntax(path))
        if _VERSION.search(text)
    ] == []


def test_every_pin_is_dated() -> None:
    """Each pin says when it was read, and where."""
    dated = re.compile(r"20\d{2}(-\d{2}){0,2}")
    assert [name for name, pin in PINS.items() if not (dated.fullmatch(pin.as_of) and pin.source)] == []
