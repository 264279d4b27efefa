"""YAML as the `pulumi` command parses it, with the position of every value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

from ebbtide.errors import EbbtideError
from ebbtide.paths import Key
from ebbtide.project.yaml_syntax import explain_syntax


class YamlFileError(EbbtideError):
    """The file is unreadable or not valid YAML. The message has the file, the line and the column.

    Attributes:
        file: the file.
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


Yaml: TypeAlias = "bool | int | float | str | list[Yaml] | dict[str, Yaml] | None"
"""Content of a file. All keys are strings, as in `pulumi`."""


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


_NULL: Final = re.compile(r"^(?:~|null|Null|NULL|)$")
_BOOL: Final = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_INT: Final = re.compile(r"^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)

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


def _int(_loader: Any, node: yaml.ScalarNode) -> int:
    text = node.value.replace("_", "")
    octal = re.match(r"^([-+]?)0([0-7]+)$", text)
    return int(f"{octal[1]}0o{octal[2]}" if octal else text, 0)


_Loader.add_constructor("tag:yaml.org,2002:int", _int)


class _NodeError(Exception):
    """An error in a node, raised to the parser."""

    def __init__(self, problem: str, mark: yaml.Mark, fix: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.mark = mark
        self.fix = fix


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


def read(path: Path) -> Document:
    """Read a YAML file.

    Raises:
        YamlFileError: the file is unreadable or malformed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise YamlFileError(path, f"The file cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        problem = f"The file is not UTF-8 text: {error.reason} at byte {error.start}."
        raise YamlFileError(path, problem) from error
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        reader = _Reader(loader)
        return Document(reader.read(node) if node else None, reader.positions)
    except _NodeError as fault:
        raise YamlFileError(path, fault.problem, fault.mark, fault.fix) from None
    except yaml.MarkedYAMLError as error:
        problem, fix = explain_syntax(error, text)
        raise YamlFileError(path, problem, error.problem_mark or error.context_mark, fix) from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlFileError(path, f"The file is not valid YAML: {error}.") from error
    finally:
        loader.dispose()  # pyright: ignore[reportUnknownMemberType]


def load(path: Path) -> Yaml:
    """Return the content of a YAML file; None for an empty file.

    Raises:
        YamlFileError: the file is unreadable or malformed.
    """
    return read(path).value
