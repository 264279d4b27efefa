"""Reading YAML as the `pulumi` command reads it, and saying where a file is broken."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml


class YamlFileError(Exception):
    """A file that cannot be read, or is no YAML; the message names the file, the line and the column."""


Yaml: TypeAlias = "bool | int | float | str | list[Yaml] | dict[str, Yaml] | None"
"""What a file may hold: keys are text, whatever they were written as, which is how `pulumi` takes them."""

if TYPE_CHECKING:
    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's where it is there: ten times as fast


class _Loader(_Base):
    """Resolves plain scalars as Go's yaml.v3 does, which is what `pulumi` reads with, and refuses repeated
    keys.

    PyYAML follows YAML 1.1, to which `on`, `no` and `yes` are booleans, 1:30 is a number and 2026-01-31 a
    date; a label written so would be another in the preview than in the cloud.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        """A mapping with text for keys.

        Raises:
            yaml.constructor.ConstructorError: when a key is written twice.
        """
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if isinstance(key, str) and key != "<<" and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key `{key}` is written twice", key_node.start_mark
                )
            seen.add(str(key))
        return {str(key): value for key, value in super().construct_mapping(node, deep).items()}


_NULL: Final = re.compile(r"^(?:~|null|Null|NULL|)$")
_BOOL: Final = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_INT: Final = re.compile(r"^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)

# In the order in which they are tried.
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


def load(path: Path) -> Yaml:
    """The content of a YAML file; None of an empty one.

    Raises:
        YamlFileError: when it cannot be read or parsed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise YamlFileError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise YamlFileError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}.") from error
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader's subclass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise YamlFileError(f"{path}{where}: this is not valid YAML ({said}).") from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlFileError(f"{path}: this is not valid YAML ({error}).") from error
