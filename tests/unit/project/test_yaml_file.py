"""YAML files: positions, and syntax errors in plain sentences."""

from datetime import date
from pathlib import Path

import pytest

from ebbtide.declaration.project.yaml_file import YamlFileError, load_all, read


def _error(directory: Path, text: str) -> YamlFileError:
    file = directory / "a.yaml"
    file.write_text(text)
    with pytest.raises(YamlFileError) as caught:
        read(file)
    return caught.value


def test_positions(tmp_path: Path) -> None:
    """Every key and every list item has the line and the column at which it begins."""
    file = tmp_path / "a.yaml"
    file.write_text("# comment\npools:\n  - name: a\n    nodes: {min: 0, max: 4}\n  - x\n")
    document = read(file)
    assert document.value == {"pools": [{"name": "a", "nodes": {"min": 0, "max": 4}}, "x"]}
    assert document.positions == {
        ("pools",): (2, 1),
        ("pools", 0): (3, 5),
        ("pools", 0, "name"): (3, 5),
        ("pools", 0, "nodes"): (4, 5),
        ("pools", 0, "nodes", "min"): (4, 13),
        ("pools", 0, "nodes", "max"): (4, 21),
        ("pools", 1): (5, 5),
    }


def test_what_an_anchor_brings_has_the_anchors_position(tmp_path: Path) -> None:
    """A merged key is where it is written, and may be overridden where it is merged."""
    file = tmp_path / "a.yaml"
    file.write_text("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n")
    document = read(file)
    assert document.value == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}}
    assert document.positions["b", "x"] == (1, 8)
    assert document.positions["b", "y"] == (4, 3)


@pytest.mark.parametrize(
    ("text", "line", "column", "problem", "fix"),
    [
        ("a:\n\tb: 1\n", 2, 1, "indented with a tab", "spaces"),
        ("a: 1\n\tb: 1\n", 2, 1, "indented with a tab", "spaces"),
        ("a:\n  b: 1\n c: 2\n", 3, 2, "does not match any key above", "keys that it belongs to"),
        ("a: 1\n    b: 2\n", 2, 6, "indented further than the line above", "first key above"),
        ("a:1\nb: 2\n", 2, 2, "Line 1 has no space after its colon", "Write `a: 1` there."),
        ("a: {b: 1\nc: 2\n", 2, 2, "closing `}` of a mapping is missing", "line 1, column 4"),
        ("a: [1, 2\nc: 2\n", 2, 2, "closing `]` of a list is missing", "line 1, column 4"),
        ("a: {b: 1 c: 2}\n", 1, 11, "A comma", "line 1, column 4"),
        ("a:\n  - b: 1\n  c: 2\n", 3, 3, "only list items are allowed", "dash"),
        ("a:\n  b: 1\n  - c\n", 3, 3, "list item among the keys", "dash"),
        ("a: 'b\n", 2, 1, "quote that opens in line 1", "Close it"),
        ("a: b: c\n", 1, 5, "a colon followed by a space", "quotes"),
        ("a: @b\n", 1, 4, "cannot begin with `@`", "quotes"),
        ("a: *b\n", 1, 4, "An alias refers to", "quotes"),
        ("a: 'x' y\n", 1, 8, "text after the end of the value", "quotes"),
        ("a: {b:}\n", 1, 6, "no space and no value", "`key: {}`"),
        ("a: 1\n---\nb: 2\n", 2, 1, "second document", "`---`"),
        ("a: 1\nb: 2\na: 3\n", 3, 1, "The key `a` is written twice, first in line 1", "Remove one"),
        ("a: &x [*x]\n", 1, 4, "inside its own anchor", "Write the value out"),
        ("? [a]\n: b\n", 1, 3, "A key is a list or a mapping", "text"),
    ],
)
def test_a_syntax_error_is_explained(
    tmp_path: Path, text: str, line: int, column: int, problem: str, fix: str
) -> None:
    """Position, what is wrong in the file's terms, and what to write instead."""
    error = _error(tmp_path, text)
    assert (error.line, error.column) == (line, column)
    assert problem in error.problem
    assert fix in error.fix
    assert str(error) == f"{tmp_path}/a.yaml:{line}:{column}: {error.problem} {error.fix}"
    assert "while" not in str(error)


def test_any_other_syntax_error_has_the_parsers_words(tmp_path: Path) -> None:
    """An unexplained error is at least quoted, with its position."""
    error = _error(tmp_path, "a: !unknown b\n")
    assert str(error).startswith(f"{tmp_path}/a.yaml:1:4: The file is not valid YAML: could not determine")


@pytest.mark.parametrize("text", ["0x_", "0b_", "-0b", "0o_", "+0x"])
def test_a_number_without_digits_is_text(tmp_path: Path, text: str) -> None:
    """A number without digits is text for `pulumi` and for `kubectl`, and `0_` is a number."""
    file = tmp_path / "a.yaml"
    file.write_text(f"a: {text}\nb: 0_\nc: 0x_F\n")
    assert read(file).value == {"a": text, "b": 0, "c": 15}
    file.write_text(f"a: {text}\nb: 2026-13-45\nc: 2026-12-24\n")
    assert load_all(file) == [{"a": text, "b": "2026-13-45", "c": date(2026, 12, 24)}]
