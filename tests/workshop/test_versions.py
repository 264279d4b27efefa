"""Pinned versions: one file has them all."""

import re
from pathlib import Path

import pytest

from ebbtide.catalog import PINS
from tests.repository import ROOT, code_strings, relative, sources, syntax

_VERSIONS = ROOT / "ebbtide" / "catalog" / "versions.py"
_OWN = ROOT / "ebbtide" / "__init__.py"
_PYTHON = [path for path in sources("ebbtide", "components", "stacks") if path not in (_VERSIONS, _OWN)]
_VERSION = re.compile(r"(?:^|[=:/@])v?(\d+\.\d+\.\d+(?:-gke\.\d+)?)(?![\w.])")
"""A version as something is asked for by it; in a sentence a version says where a fact was read."""


@pytest.mark.parametrize("path", _PYTHON, ids=relative)
def test_no_version_is_asked_for_elsewhere(path: Path) -> None:
    """No code but `catalog/versions.py` has a version that something is installed or compared by."""
    assert [(line, text) for line, text in code_strings(syntax(path)) if _VERSION.search(text)] == []


@pytest.mark.parametrize("name", PINS)
def test_every_pin_is_dated(name: str) -> None:
    """Each pin says when it was read, and where."""
    pin = PINS[name]
    assert re.fullmatch(r"20\d{2}(-\d{2}){0,2}", pin.as_of)
    assert pin.source
