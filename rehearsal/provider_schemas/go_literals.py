"""Parser of composite literals in Go source, for the subset of the language in Terraform's schemas."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

_TOKEN: Final = re.compile(
    r'(?P<owner>^(?:var|func)[ ]+\w+)|\s+|//[^\n]*|/\*.*?\*/|(?P<text>"(?:\\.|[^"\\])*")'
    r"|(?P<raw>`[^`]*`)|(?P<number>\d[\d_.]*)|(?P<name>[A-Za-z_]\w*)|(?P<sign>:=|[^\s\w])",
    re.DOTALL | re.MULTILINE,
)
_MAP: Final = ("map", "[", "string", "]", "*", "schema", ".", "Schema", "{")
_ONE: Final = ("&", "schema", ".", "Schema", "{")
_CLOSING: Final = {"{": "}", "(": ")", "[": "]"}


@dataclass(frozen=True, slots=True)
class Call:
    """A name with or without call arguments: `validation.IntAtLeast(10)`, `schema.TypeInt`."""

    name: str
    arguments: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        name = self.name.rpartition(".")[2]
        return name if self.arguments is None else f"{name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Literal:
    """A composite literal, with its keyed values or its items."""

    keyed: dict[str, Any] = field(default_factory=dict[str, Any])
    items: tuple[Any, ...] = ()


class Source:
    """Tokenized Go source."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def schemas(self) -> dict[str, dict[str, Any]]:
        """Return the resource schemas by name: those in each top-level function or variable, merged.

        A function that returns the schema of one property has it under an empty name.
        """
        result: dict[str, dict[str, Any]] = {}
        owner = ""
        while self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if kind == "owner":
                owner = text.split()[1]
            length = self._schema_length()
            if not length:
                self._at += 1
                continue
            self._at += length
            literal = self._braces()
            schemas = literal.keyed if length == len(_MAP) else {"": literal}
            if not any(map(_is_of_identity, schemas.values())):
                result[owner] = {**schemas, **result.get(owner, {})}
        return result

    def variables(self) -> dict[str, Any]:
        """Return the values of top-level variables, by name."""
        result: dict[str, Any] = {}
        while self._at < len(self._tokens):
            kind, text = self._next()
            if kind == "owner" and text.startswith("var") and self._peek() == "=":
                self._next()
                result[text.split()[1]] = self._value()
        return result

    def _schema_length(self) -> int:
        """Return the length of the type before a schema's braces; 0 if none begins here."""
        if self._at and self._tokens[self._at - 1][1] == ")":  # the result type of a function
            return 0
        for start in (_MAP, _ONE):
            if tuple(text for _, text in self._tokens[self._at : self._at + len(start)]) == start:
                return len(start)
        return 0

    def _next(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _value(self) -> Any:  # noqa: PLR0911 - a case each
        kind, text = self._next()
        if kind == "text":
            return self._operated(ast.literal_eval(text))
        if kind == "raw":
            return self._operated(text[1:-1])
        if kind == "number":
            return self._operated(float(text) if "." in text else int(text))
        if text == "{":
            return self._braces()
        if text == "&":
            return self._value()
        if text == "-":
            return -self._value()
        if text in ("[", "map"):
            return self._composite()
        if text == "func":
            self._skip_until("{")
            self._skip_group()
            return Call("func")
        return self._named(text)

    def _operated(self, value: Any) -> Any:
        while self._peek() in ("+", "*", "/", "-"):
            operator, other = self._next()[1], self._value()
            is_sum = operator == "+" and type(value) is type(other) and not isinstance(value, Call | Literal)
            value = value + other if is_sum else Call("expression")
        return value

    def _composite(self) -> Any:
        while self._peek() not in ("{", ",", ")", "}"):
            self._next()
        if self._peek() != "{":
            return Call("type")
        self._next()
        return self._braces()

    def _named(self, name: str) -> Any:
        while self._peek() == ".":
            self._next()
            name += f".{self._next()[1]}"
        if self._peek() == "(":
            self._next()
            return Call(name, tuple(self._listed(")")))
        if self._peek() == "{":
            self._next()
            return self._braces()
        if name in ("true", "false"):
            return name == "true"
        return self._operated(Call(name))

    def _listed(self, closing: str) -> Iterator[Any]:
        while self._peek() != closing:
            value = self._value()
            self._skip_until(",", closing)
            yield value
            if self._peek() == ",":
                self._next()
        self._next()

    def _braces(self) -> Literal:
        keyed: dict[str, Any] = {}
        items: list[Any] = []
        while self._peek() != "}":
            value = self._value()
            if self._peek() == ":":
                self._next()
                key = value.name if isinstance(value, Call) else str(value)
                keyed[key] = self._value()
            else:
                items.append(value)
            self._skip_until(",", "}")
            if self._peek() == ",":
                self._next()
        self._next()
        return Literal(keyed, tuple(items))

    def _skip_until(self, *ends: str) -> None:
        """Skip an expression that is not part of a literal."""
        while self._peek() not in ends:
            if self._peek() in _CLOSING:
                self._skip_group()
            else:
                self._next()

    def _skip_group(self) -> None:
        self._skip_until(_CLOSING[self._next()[1]])
        self._next()


def _is_of_identity(schema: Any) -> bool:
    return isinstance(schema, Literal) and bool(
        schema.keyed.keys() & {"RequiredForImport", "OptionalForImport"}
    )


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup:
            yield match.lastgroup, match[0]
