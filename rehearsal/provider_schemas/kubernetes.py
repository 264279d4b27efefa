"""Immutable fields of Kubernetes objects, from the source of pulumi-kubernetes, and limits of custom
resources, from their definitions.

The provider has a table of the fields whose change replaces an object, `forceNew` in
provider/pkg/provider/diff.go, and two kinds that a provider input can make mutable.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rehearsal.provider_schemas import Row
from rehearsal.provider_schemas.go_literals import Call, Literal, Source

FILE: Final = "provider/pkg/provider/diff.go"
ANY: Final = "kubernetes:*"
"""Type of the rows that apply to every kind."""

_FUNCTION: Final = re.compile(r"^func (\w+)\(prefix(.*?)^\}", re.DOTALL | re.MULTILINE)
_SUFFIX: Final = re.compile(r'prefix \+ "([^"]+)"')
_MUTABLE: Final = re.compile(r"clients\.Is(\w+)\(obj\).*?k\.(\w+Mutable).*?properties\{(.*?)\}", re.DOTALL)
_LIMITS: Final = {
    "maxItems": "most",
    "maxProperties": "most",
    "maxLength": "longest",
    "minLength": "shortest",
    "maximum": "maximum",
    "minimum": "minimum",
    "pattern": "pattern",
    "enum": "enum",
}


def replacements(checkout: Path, revision: str) -> Iterator[Row]:
    """Yield the fields whose change makes pulumi-kubernetes replace an object.

    Args:
        checkout: a checkout of pulumi/pulumi-kubernetes.
        revision: its commit or release, for the rows' source.
    """
    text = (checkout / FILE).read_text()
    source = f"pulumi-kubernetes {revision}, {FILE}"
    reader = _Reader(text)
    for path in reader.metadata:
        yield Row(ANY, path, "replace", "within", source)
    for kind, setting, listed in _MUTABLE.findall(text):
        for path in re.findall(r'"\.([^"]+)"', listed):
            yield Row(f"kubernetes:core/v1:{kind}", path, "replace", f"unless {setting}", source)
    for group, versions in reader.groups():
        for version, kinds in reader.keyed(versions).items():
            for kind, listed in reader.keyed(kinds).items():
                for path in reader.paths(listed):
                    yield Row(f"kubernetes:{group}/{version}:{kind}", path, "replace", "within", source)


def custom_limits(definitions: Iterable[Mapping[str, Any]], version: str, source: str) -> Iterator[Row]:
    """Yield the limits of the specs of custom resources.

    Args:
        definitions: CustomResourceDefinitions.
    """
    for definition in definitions:
        spec = definition["spec"]
        for served in spec["versions"]:
            if served["name"] == version:
                schema = served["schema"]["openAPIV3Schema"]["properties"].get("spec", {})
                token = f"kubernetes:{spec['group']}/{version}:{spec['names']['kind']}"
                for path, name, value in _limits(schema, "spec"):
                    yield Row(token, path, name, value, source)


def _limits(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    for keyword, name in _LIMITS.items():
        if keyword in schema:
            value = schema[keyword]
            yield path, name, "|".join(value) if keyword == "enum" else str(value)
    for key, inner in schema.get("properties", {}).items():
        yield from _limits(inner, f"{path}.{key}")
    if "items" in schema:
        yield from _limits(schema["items"], path)


class _Reader:
    def __init__(self, text: str) -> None:
        self._variables = Source(text).variables()
        self._functions = {name: _SUFFIX.findall(body) for name, body in _FUNCTION.findall(text)}

    @property
    def metadata(self) -> list[str]:
        """Fields of every kind."""
        return [f"metadata{suffix}" for suffix in self._functions["metadataForceNewProperties"]]

    def groups(self) -> Iterator[tuple[str, Any]]:
        """Yield each API group of the table, by its canonical name."""
        for group, versions in self._variables["forceNew"].keyed.items():
            if group:
                yield group, versions

    def keyed(self, value: Any) -> Mapping[str, Any]:
        """Return the entries of a literal, or of the variable that names it."""
        return (self._variables[value.name] if isinstance(value, Call) else value).keyed

    def paths(self, value: Any) -> Iterator[str]:
        """Yield the paths in a list, from a variable or a function's append, without `[*]`."""
        match value:
            case Literal(items=items):
                yield from (item.removeprefix(".").replace("[*]", "") for item in items)
            case Call(name="append", arguments=(*lists,)):
                for item in lists:
                    yield from self.paths(item)
            case Call(name=name, arguments=None):
                yield from self.paths(self._variables[name])
            case Call(name=name, arguments=(*prefixes,)):
                suffixes = self._functions[name]
                yield from self.paths(
                    Literal(items=tuple(prefix + suffix for prefix in prefixes for suffix in suffixes))
                )
            case _:
                raise LookupError(f"{FILE} has a form that is not known: {value}.")
