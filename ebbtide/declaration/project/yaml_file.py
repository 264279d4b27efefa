"""YAML as the `pulumi` command parses it, with the position of every value; its syntax errors in plain
sentences, without the terms of the parser's grammar."""

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

from ebbtide.errors import EbbtideError
from ebbtide.text import printable
from ebbtide.values.paths import Key
from ebbtide.values.user_files import DEEPEST, UserFileError, read_text

Yaml: TypeAlias = "bool | int | float | str | list[Yaml] | dict[str, Yaml] | None"
"""Content of a file. All keys are strings, as in `pulumi`."""
_NULL: Final = re.compile(r"^(?:~|null|Null|NULL|)$")
_BOOL: Final = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
# Without a digit after its prefix, as in `0x_`, it is text.
_INT: Final = re.compile(
    r"^[-+]?(?:0b_*[01][01_]*|0o_*[0-7][0-7_]*|0[0-7_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*|[1-9][0-9_]*)$"
)
_FLOAT: Final = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_MOST_REPEATED: Final = 10_000
"""Maximum number of values that aliases stand for."""
_LONGEST_NUMBER: Final = 70
"""Maximum number of characters of an integer, enough for 64 bits in base 2."""
_NO_SPACE: Final = re.compile(r"^\s*(?:- )?[\w.\"'-]+:[^\s:/]")
"""A key whose colon is directly followed by its value."""
Sentences = tuple[str, str]
"""Problem and fix; the fix is empty if unknown."""


class YamlFileError(EbbtideError):
    """The file is unreadable or not valid YAML. The message has the file, the line and the column.

    Attributes:
        line: the line, from 1; 0 if unknown.
        column: the column, from 1; 0 if unknown.
        problem: the problem, without the position.
        fix: the suggested fix; empty if unknown.
    """

    rule = "yaml-syntax"

    def __init__(self, file: Path, problem: str, mark: yaml.Mark | None = None, fix: str = "") -> None:
        self.file = file
        self.line = mark.line + 1 if mark else 0
        self.column = mark.column + 1 if mark else 0
        self.problem = problem
        self.fix = fix
        position = f":{self.line}:{self.column}" if mark else ""
        super().__init__(" ".join(part for part in (f"{file}{position}: {problem}", fix) if part))


@dataclass(frozen=True, slots=True)
class Document:
    """Content of a file.

    Attributes:
        value: the content; None for an empty file.
        positions: line and column, from 1, of every key and list item by path. Values of an alias or a merge
            key have the position of its anchor.
    """

    value: Yaml
    positions: Mapping[tuple[Key, ...], tuple[int, int]] = field(
        default_factory=dict[tuple[Key, ...], tuple[int, int]]
    )


if TYPE_CHECKING:
    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times as fast


class _Loader(_Base):
    """Resolve plain scalars as Go's yaml.v3 does, the parser of `pulumi`.

    PyYAML follows YAML 1.1, in which `on`, `no` and `yes` are booleans, 1:30 is a number and 2026-01-31 a
    date; such a label would differ between preview and cloud.
    """


# In order of precedence.
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", _NULL, ["~", "n", "N", ""]),
    ("bool", _BOOL, list("tTfF")),
    ("int", _INT, list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
    ("merge", re.compile(r"^<<$"), ["<"]),
):
    _Loader.add_implicit_resolver(  # pyright: ignore[reportUnknownMemberType]
        f"tag:yaml.org,2002:{_tag}", _pattern, _first
    )


class _NodeError(Exception):
    """An error in a node, raised to the parser."""

    def __init__(self, problem: str, mark: yaml.Mark, fix: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.mark = mark
        self.fix = fix


def _int(_loader: Any, node: yaml.ScalarNode) -> int:
    text = node.value.replace("_", "")
    octal = re.match(r"^([-+]?)0([0-7]+)$", text)
    if len(text) > _LONGEST_NUMBER:
        raise _NodeError("The number is too large.", node.start_mark, "If it is text, put it in quotes.")
    return int(f"{octal[1]}0o{octal[2]}" if octal else text, 0)


_Loader.add_constructor("tag:yaml.org,2002:int", _int)


class _KubectlLoader(_Base):
    """Resolve plain scalars as `kubectl` does: YAML 1.1, and text for what only looks like a number or a
    date."""


def _value_or_text(loader: Any, node: yaml.ScalarNode) -> Any:
    try:
        return yaml.SafeLoader.yaml_constructors[node.tag](loader, node)
    except ValueError:
        return node.value


for _tag in ("int", "timestamp"):
    _KubectlLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _value_or_text)


class _Reader:
    """Build values and positions from the nodes of a file."""

    def __init__(self, loader: _Loader) -> None:
        self.positions: dict[tuple[Key, ...], tuple[int, int]] = {}
        self._loader = loader
        self._above: list[yaml.Node] = []

    def read(self, node: yaml.Node, path: tuple[Key, ...] = ()) -> Yaml:
        """Return a node's value, and record the positions below it."""
        if node in self._above:
            raise _NodeError("An alias is inside its own anchor.", node.start_mark, "Write the value out.")
        self._above.append(node)
        try:
            match node:
                case yaml.MappingNode():
                    return self._mapping(node, path)
                case yaml.SequenceNode():
                    return [self._at(item, item.start_mark, (*path, i)) for i, item in enumerate(node.value)]
                case _:
                    return self._scalar(node)
        finally:
            self._above.pop()

    def _scalar(self, node: yaml.Node) -> Any:
        return self._loader.construct_object(node)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def _at(self, node: yaml.Node, mark: yaml.Mark, path: tuple[Key, ...]) -> Yaml:
        self.positions[path] = (mark.line + 1, mark.column + 1)
        return self.read(node, path)

    def _mapping(self, node: yaml.MappingNode, path: tuple[Key, ...]) -> dict[str, Yaml]:
        first: dict[str, yaml.Mark] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _NodeError("A key is a list or a mapping.", key.start_mark, "Write text instead.")
            if key.value != printable(key.value, one_line=True):
                raise _NodeError("A key has a control character.", key.start_mark, "Remove it.")
            if key.value in first and key.value != "<<":
                raise _NodeError(
                    f"The key `{key.value}` is written twice, first in line {first[key.value].line + 1}.",
                    key.start_mark,
                    "Remove one of the two.",
                )
            first[key.value] = key.start_mark
        self._loader.flatten_mapping(node)
        values: dict[str, Yaml] = {}
        for key, value in node.value:
            name = str(self._scalar(key))
            values[name] = self._at(value, key.start_mark, (*path, name))
        return values


def _check_limits(text: str) -> None:
    """Check depth and aliases before any value is built: the parser builds nested values recursively, and a
    few lines of aliases may be millions of values.

    Raises:
        _NodeError: a limit is exceeded.
    """
    loader: Any = _Loader(text)
    anchors: dict[str, tuple[int, int]] = {}  # values and levels below each anchor
    open_nodes: list[tuple[str | None, int, int]] = [(None, 0, 0)]  # anchor, values and levels so far
    repeated = 0
    try:
        for event in iter(loader.get_event, None):
            mark: yaml.Mark = event.start_mark
            values, levels, anchor = 1, 0, getattr(event, "anchor", None)
            match event:
                case yaml.CollectionStartEvent():
                    open_nodes.append((anchor, 1, 0))
                case yaml.AliasEvent():
                    values, levels = anchors.get(anchor or "", (1, 0))
                    repeated += values
                case yaml.ScalarEvent():
                    anchors[anchor or ""] = (1, 0)
                case yaml.CollectionEndEvent():
                    anchor, values, levels = open_nodes.pop()
                    anchors[anchor or ""] = (values, levels)
                case _:
                    continue
            if len(open_nodes) - 1 + levels > DEEPEST:
                problem = f"The value is nested more than {DEEPEST} levels deep."
                raise _NodeError(problem, mark, "Write it with fewer levels.")
            if repeated > _MOST_REPEATED:
                problem = f"The aliases of the file repeat more than {_MOST_REPEATED} values."
                raise _NodeError(problem, mark, "Write the values out.")
            if not isinstance(event, yaml.CollectionStartEvent):
                name, siblings, deepest = open_nodes[-1]
                open_nodes[-1] = (name, siblings + values, max(deepest, levels + 1))
    finally:
        loader.dispose()


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except UserFileError as error:
        raise YamlFileError(path, str(error)) from error


@contextmanager
def _explained(path: Path, text: str) -> Generator[None]:
    """Turn the parser's errors into those of the file."""
    try:
        yield
    except _NodeError as fault:
        raise YamlFileError(path, fault.problem, fault.mark, fault.fix) from None
    except yaml.MarkedYAMLError as error:
        problem, fix = explain_syntax(error, text)
        raise YamlFileError(path, problem, error.problem_mark or error.context_mark, fix) from error
    except yaml.reader.ReaderError as error:
        before = text[: text.find(chr(error.character))].split("\n")
        mark = yaml.Mark(str(path), 0, len(before) - 1, len(before[-1]), None, 0)
        problem = f"The file has the control character U+{error.character:04X}."
        raise YamlFileError(path, problem, mark, "Remove it.") from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlFileError(path, f"The file is not valid YAML: {error}.") from error


def read(path: Path) -> Document:
    """Read a YAML file.

    Raises:
        YamlFileError: the file is unreadable or malformed, or exceeds a limit.
    """
    text = _text(path)
    with _explained(path, text):
        _check_limits(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            reader = _Reader(loader)
            return Document(reader.read(node) if node else None, reader.positions)
        finally:
            loader.dispose()  # pyright: ignore[reportUnknownMemberType]


def load_all(path: Path) -> list[Any]:
    """Return the documents of a file of Kubernetes objects, parsed as YAML 1.1 like `kubectl`.

    Raises:
        YamlFileError: the file is unreadable or malformed, or exceeds a limit.
    """
    text = _text(path)
    with _explained(path, text):
        _check_limits(text)
        return list(yaml.load_all(text, _KubectlLoader))


@dataclass(frozen=True, slots=True)
class _Error:
    """A syntax error reported by the parser.

    Attributes:
        words: context and problem.
        lines: lines of the file.
        mark: position of the problem.
        start: start of the malformed construct.
    """

    words: str
    lines: list[str]
    mark: yaml.Mark
    start: yaml.Mark

    @property
    def line(self) -> str:
        """Line of the problem; empty at the end of the file."""
        return self.lines[self.mark.line] if self.mark.line < len(self.lines) else ""


def _bad_first_character(error: _Error) -> Sentences:
    return f"A value cannot begin with `{error.line[error.mark.column]}`.", "Put the value in quotes."


def _unexpected_colon(error: _Error) -> Sentences:
    if ": " in error.line[: error.mark.column].lstrip(" -"):
        return "The value has a colon followed by a space.", "Put the value in quotes."
    above = next((n for n in range(error.mark.line - 1, -1, -1) if error.lines[n].strip()), None)
    if above is not None and _NO_SPACE.match(error.lines[above]):
        return (
            f"Line {above + 1} has no space after its colon, so it is not a key.",
            f"Write `{error.lines[above].strip().replace(':', ': ', 1)}` there.",
        )
    return (
        "The line is indented further than the line above, which already has a value.",
        "Indent it like the first key above it.",
    )


def _no_key(error: _Error) -> Sentences:
    if error.line[: error.mark.column].strip():
        return "There is text after the end of the value.", "Remove it, or put the whole value in quotes."
    if error.line[error.mark.column :].startswith("- "):
        return (
            "There is a list item among the keys of a mapping.",
            "Start every entry with a dash, or write this one as `key: value`.",
        )
    return (
        "The indentation of this line does not match any key above it.",
        "Indent it like the keys that it belongs to.",
    )


def _not_closed(error: _Error) -> Sentences:
    kind, bracket = ("list", "]") if "sequence" in error.words else ("mapping", "}")
    return (
        f"A comma or the closing `{bracket}` of a {kind} is missing before this.",
        f"Write it; the {kind} begins in line {error.start.line + 1}, column {error.start.column + 1}.",
    )


def _quote_not_closed(error: _Error) -> Sentences:
    return f"The quote that opens in line {error.start.line + 1} is not closed.", "Close it in the same line."


_EXPLAINED: Final[tuple[tuple[str, Callable[[_Error], Sentences] | Sentences], ...]] = (
    ("cannot start any token", _bad_first_character),
    ("mapping values are not allowed", _unexpected_colon),
    (
        "block (collection|sequence), .*('-' indicator|block end)",
        (
            "There is a key where only list items are allowed.",
            "Begin a new item with a dash, or indent the key like the first key of the item above it.",
        ),
    ),
    ("block mapping", _no_key),
    ("',' or", _not_closed),
    (
        "flow node",
        ("A value is missing here, or the file is truncated.", "Write the rest of the list or mapping."),
    ),
    ("quoted scalar", _quote_not_closed),
    (
        "unexpected ':'",
        ("A colon has no space and no value after it.", "Write `key: value`, or `key: {}` for its defaults."),
    ),
    (
        "undefined alias",
        (
            "An alias refers to an anchor that the file does not have.",
            "If the asterisk is part of the value, put the value in quotes.",
        ),
    ),
    ("single document", ("A second document begins here.", "Remove the `---` and what follows it.")),
)
"""Patterns of the parser's messages with their explanations, in order of precedence."""


def explain_syntax(error: yaml.MarkedYAMLError, text: str) -> Sentences:
    """Explain a syntax error.

    Args:
        error: the parser's error.
        text: the file.
    """
    words = ", ".join(part for part in (error.context, error.problem) if part)
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return f"The file is not valid YAML: {words}.", ""
    fault = _Error(words, text.splitlines(), mark, error.context_mark or mark)
    indent = fault.line[: len(fault.line) - len(fault.line.lstrip())]
    if "\t" in indent or fault.line[mark.column : mark.column + 1] == "\t":
        return "The line is indented with a tab, which YAML does not allow.", "Indent with spaces."
    for pattern, explain in _EXPLAINED:
        if re.search(pattern, words):
            return explain(fault) if callable(explain) else explain
    return f"The file is not valid YAML: {words}.", ""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a file; line and column count from 1, and are 0 if unknown."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


Positions: TypeAlias = Mapping[tuple[Key, ...], Position]
"""Positions of the parts of a value, by path; `()` is the value itself."""


def positions_below(
    file: Path, positions: Mapping[tuple[Key, ...], tuple[int, int]], prefix: tuple[Key, ...]
) -> dict[tuple[Key, ...], Position]:
    """Return the positions of a value in a file, by path in the value.

    Args:
        positions: line and column by path in the file.
        prefix: the value's path in the file.
    """
    depth = len(prefix)
    return {
        path[depth:]: Position(str(file), *position)
        for path, position in positions.items()
        if path[:depth] == prefix
    }
