"""The file of the existing resources that a stack adopts: type, logical name and import id of each, and the
fields of Kueue's objects as they were read, which `--undo` restores.

`ebbtide adopt` writes it as `adopt.<stack>.json`. The program imports its resources. `ebbtide adopt
--into-state` imports them and nothing else, and removes the file from the declaration; `--undo` takes its
resources out of the state again.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from ebbtide.declaration.project.yaml_file import Document, Position, YamlFileError, positions_below, read
from ebbtide.errors import EbbtideError
from ebbtide.text import described, did_you_mean
from ebbtide.values.paths import Key, path_text

FIELD: Final = "adopt"
"""Field of the declaration with the file, relative to the directory of `Pulumi.yaml`."""

IMPORT_ONLY: Final = "importOnly"
"""Configuration key of one run of the program, in which adopted resources are imported and not changed."""

_RESOURCES: Final = "resources"
_TEXTS: Final = ("type", "name", "id")
_FOUND: Final = "found"
_TOKEN: Final = re.compile(r"[a-z][a-z0-9-]*:[\w./-]+:[A-Z]\w*")
"""A type token of a provider's resource (Pulumi docs, resource names, 2026-08)."""
_ONLY_IN_STATE: Final = re.compile(r"pulumi:|ebbtide:")
"""Packages of resources that are only in the engine."""
_LOST: Final = "It would not be adopted."


@dataclass(frozen=True, slots=True)
class AdoptedResource:
    """An existing resource that the stack adopts.

    Attributes:
        type: type token, such as `gcp:container/nodePool:NodePool`.
        name: logical name in the program.
        id: import id, as the provider documents it for the type.
        found: the fields of an object of Kueue when it was read, without metadata and status; empty for any
            other resource.
    """

    type: str
    name: str
    id: str
    found: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    @property
    def key(self) -> tuple[str, str]:
        """Type and logical name."""
        return self.type, self.name


class AdoptFileError(EbbtideError):
    """The file is unreadable or invalid, or has a resource that the program does not have.

    The message has every fault, a line each, with file, line and path.
    """

    rule = "adopt"


def default_file(stack: str) -> str:
    """Return the name of the file that `ebbtide adopt` writes for a stack."""
    return f"adopt.{stack}.json"


def read_adopt_file(file: Path) -> tuple[AdoptedResource, ...]:
    """Read the adopted resources.

    Raises:
        AdoptFileError: the file is unreadable, or a resource is invalid.
    """
    try:
        document = read(file)
    except YamlFileError as error:
        raise AdoptFileError(f"{error} No resource is adopted.") from error
    reader = _Reader(file, document)
    resources = tuple(reader.resources())
    if reader.faults:
        raise AdoptFileError("\n".join(reader.faults))
    return resources


def write_adopt_file(file: Path, resources: Iterable[AdoptedResource]) -> None:
    """Write the adopted resources, one a line, at once: a killed process leaves the earlier file."""
    lines = [json.dumps({key: value for key, value in asdict(item).items() if value}) for item in resources]
    text = ",\n".join(f"  {line}" for line in lines)
    whole = f'{{"{_RESOURCES}": [\n{text}\n]}}\n' if lines else f'{{"{_RESOURCES}": []}}\n'
    new = file.with_name(f".{file.name}.new")
    new.write_text(whole, encoding="utf-8")
    new.replace(file)


def unknown_resources(
    file: Path, resources: Iterable[AdoptedResource], known: Iterable[tuple[str, str]]
) -> AdoptFileError | None:
    """Return an error about the resources that the program does not have; None if it has all of them.

    Args:
        known: type and logical name of each resource of the program.
    """
    names: dict[str, list[str]] = {}
    for type_, name in known:
        names.setdefault(type_, []).append(name)
    positions = _positions(file)
    faults: list[str] = []
    for number, item in enumerate(resources):
        if item.name in names.get(item.type, ()):
            continue
        if item.type in names:
            problem = f"The program has no {item.type} named {item.name}"
            hint = did_you_mean(item.name, names[item.type])
        else:
            problem = f"The program has no resource of the type {item.type}"
            hint = did_you_mean(item.type, names)
        fix = "Correct it, or remove it; the objects that a chart installs cannot be adopted."
        faults.append(_fault(file, positions, (_RESOURCES, number), problem + hint, f"{_LOST} {fix}"))
    return AdoptFileError("\n".join(faults)) if faults else None


def _fault(file: Path, positions: Any, path: tuple[Key, ...], problem: str, rest: str) -> str:
    at: Position | None = next(
        (positions[path[:end]] for end in range(len(path), 0, -1) if path[:end] in positions), None
    )
    return f"{at or file}: {path_text(path)}: {problem} {rest}" if path else f"{file}: {problem} {rest}"


def _positions(file: Path) -> dict[tuple[Key, ...], Position]:
    return positions_below(file, read(file).positions, ())


class _Reader:
    """Check a file's content, and collect its faults."""

    def __init__(self, file: Path, document: Document) -> None:
        self.faults: list[str] = []
        self._file = file
        self._value = document.value
        self._positions = positions_below(file, document.positions, ())
        self._names: dict[tuple[str, str], int] = {}
        self._ids: dict[tuple[str, str], int] = {}

    def resources(self) -> Iterator[AdoptedResource]:
        """Yield the valid resources."""
        form = 'Write {"resources": [{"type": TYPE, "name": NAME, "id": ID}]}.'
        match self._value:
            case {"resources": list(items), **others}:
                for key in others:
                    self._add((key,), f"There is no {key} here.", "The key would have no effect. Remove it.")
                for number, item in enumerate(items):
                    yield from self._resource(number, item)
            case _:
                self._add((), f"The file has no list `{_RESOURCES}`.", f"Nothing would be adopted. {form}")

    def _add(self, path: tuple[Key, ...], problem: str, rest: str) -> None:
        self.faults.append(_fault(self._file, self._positions, path, problem, rest))

    def _resource(self, number: int, item: object) -> Iterator[AdoptedResource]:
        at = (_RESOURCES, number)
        if not isinstance(item, dict):
            self._add(at, f"The resource is {described(item)}.", f"{_LOST} Write its type, name and id.")
            return
        fields = cast("dict[str, object]", item)
        before = len(self.faults)
        for key in fields:
            if key not in (*_TEXTS, _FOUND):
                hint = did_you_mean(key, _TEXTS)
                self._add(
                    (*at, key), f"There is no {key} here{hint}", "The key would have no effect. Remove it."
                )
        for key in _TEXTS:
            if problem := _text_problem(key, fields):
                self._add((*at, key), problem[0], f"{_LOST} {problem[1]}")
        found = fields.get(_FOUND, {})
        if not isinstance(found, dict):
            problem = f"The field found is {described(found)}."
            self._add((*at, _FOUND), problem, "It could not be restored. Write an object, or remove it.")
        if len(self.faults) > before:
            return
        type_, name, id_ = (str(fields[key]) for key in _TEXTS)
        for seen, key, word in ((self._names, (type_, name), "name"), (self._ids, (type_, id_), "id")):
            if (first := seen.setdefault(key, number)) != number:
                other = path_text((_RESOURCES, first))
                problem = f"{type_} has the {word} {key[1]} twice, first in {other}."
                self._add((*at, word), problem, "One of the two would not be adopted. Remove it.")
        yield AdoptedResource(type_, name, id_, cast("dict[str, Any]", found))


def _text_problem(key: str, fields: Mapping[str, object]) -> tuple[str, str] | None:
    """Return the problem of a text and its fix; None for a valid one."""
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        problem = f"The {key} is {described(value)}." if key in fields else f"There is no {key}."
        return problem, f"Write the {key} as text."
    if key == "type" and _ONLY_IN_STATE.match(value):
        return f"{value} exists in Pulumi's state alone.", "Remove the resource."
    if key == "type" and not _TOKEN.fullmatch(value):
        example = "such as gcp:container/nodePool:NodePool"
        return f"{value} is not a type.", f"Write a type token, {example}."
    return None
