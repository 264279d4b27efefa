"""The tests themselves: that each one says what it tests, and that none is dead."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.repository import ROOT, relative, sources, syntax

_TESTS = sources("tests", "rehearsal/tests", "kueue-replay/tests")
_MOCKED = ROOT / "tests" / "unit" / "mocks"
"""The tests in the form of Pulumi's own documentation."""
_DEPENDENT_STARTS = re.compile(r"(It|Its|As|Of|What|Whether|Where|So|They|Their|Those|Which)\b")
"""First words of a docstring that is only understood after the test's name."""
_SENTENCE_ENDS = re.compile(r"[.!?](?=\s+[A-Z`]|$)")


@cache
def _functions(path: Path) -> dict[str, str]:
    """The tests of a file by name, with their docstrings."""
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_every_test_says_what_it_tests() -> None:
    """Each test has a docstring of one sentence."""
    assert [
        f"{relative(path)}::{name}"
        for path in _TESTS
        for name, docstring in _functions(path).items()
        if len(_SENTENCE_ENDS.findall(" ".join(docstring.split()))) != 1
    ] == []


def test_docstrings_of_tests_begin_with_their_subject() -> None:
    """A test's docstring is understood without the test's name."""
    assert [
        f"{relative(path)}::{name}"
        for path in _TESTS
        for name, docstring in _functions(path).items()
        if _DEPENDENT_STARTS.match(docstring)
    ] == []


def test_programs_get_a_home_that_exists() -> None:
    """Tests on a control plane give programs no home that root would create, such as for kubectl's cache."""
    assert [
        relative(path)
        for path in sources("rehearsal/tests/control_plane", "rehearsal/tests/engine")
        if "/nonexistent" in path.read_text(encoding="utf-8")
    ] == []


def test_every_test_is_collected() -> None:
    """A file with tests is named as pytest looks for it, and a file so named has tests."""
    assert [
        relative(path) for path in _TESTS if path.name.startswith("test_") != bool(_functions(path))
    ] == []


def test_no_test_skips_itself() -> None:
    """Tests are skipped only where the platform lacks a program or a file system."""
    assert {
        relative(path)
        for path in _TESTS
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Attribute) and node.attr in {"skip", "skipif", "importorskip"}
    } == {
        "rehearsal/tests/engine/test_policy_pack.py",
        "tests/examples/test_local_runs.py",
        "tests/packaging/test_wheel.py",
        "tests/unit/cli/test_help.py",
    }


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(module=module, names=names):
                yield from (f"{module}.{item.name}" for item in names)
                yield from (item.name for item in names)
            case ast.Import(names=names):
                yield from (item.name for item in names)
            case _:
                pass


def test_the_program_is_run_in_one_way() -> None:
    """Only the preview and the components' unit tests use the SDK's mocks: all else records the program."""
    assert [
        (relative(path), name)
        for path in sources("tests", "rehearsal/tests", "kueue-replay/tests", "benchmarks", "docs")
        if not path.is_relative_to(_MOCKED)
        for name in _names(syntax(path))
        if name == "set_mocks" or name.startswith("pulumi.runtime.mocks")
    ] == []
