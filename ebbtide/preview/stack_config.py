"""A stack's configuration as the engine hands it to a program: full keys, values as strings, objects as JSON.

An encrypted value is never decrypted and nobody is asked for a passphrase: a placeholder stands for it, and
its key is secret.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ebbtide.project.yaml_file import Yaml

PLACEHOLDER: Final = "encrypted-in-the-stack-file"
"""Stands for an encrypted value. A program that puts one into a name must not fail over its form."""

_DECLARATION_KEYS: Final = {"type", "description", "items", "default", "value", "secret"}


class StackFileError(Exception):
    """A project's or stack's file is missing, broken or of the wrong shape; the message says what to do."""


class MergedConfig(NamedTuple):
    """A stack's configuration.

    Attributes:
        values: the values by full key.
        secret_keys: the keys whose values are secret.
        origins: the file of each value, and the keys that lead to it there.
    """

    values: dict[str, str]
    secret_keys: frozenset[str]
    origins: dict[str, tuple[Path, tuple[str, ...]]]


def merged_config(
    project: str,
    declared: Mapping[str, Yaml],
    written: Mapping[str, Yaml],
    project_file: Path,
    config_file: Path,
) -> MergedConfig:
    """What a stack's file says, and for keys that it lacks what the project's file says.

    Args:
        project: the project's name, the namespace of keys that have none.
        declared: `config` of `Pulumi.yaml`: values, or declarations with a `value` or `default`.
        written: `config` of the stack's file.
        project_file: where `declared` stands, for messages.
        config_file: where `written` stands, for messages.

    Raises:
        StackFileError: when a key is none, or one that the project asks for has no value.
    """
    config: dict[str, str] = {}
    secret_keys: set[str] = set()
    origins: dict[str, tuple[Path, tuple[str, ...]]] = {}

    def take(key: str, value: Yaml, file: Path, *path: str) -> None:
        config[key], is_secret = _handed_over(value)
        origins[key] = (file, ("config", *path))
        if is_secret:
            secret_keys.add(key)

    for key, value in written.items():
        take(_full_key(key, project, config_file), value, config_file, key)
    for key, entry in declared.items():
        full = _full_key(key, project, project_file)
        declaration = _declaration(entry)
        if declaration.get("secret"):
            secret_keys.add(full)
        if full in config:
            continue
        value = declaration.get("value", declaration.get("default"))
        if value is None:
            raise StackFileError(
                f"{config_file} has no value for `{full}`, which {project_file} asks of every stack. Write "
                f"it under `config:`, or give it a `default` in {project_file.name}."
            )
        is_declared = declaration is entry
        field = "value" if "value" in declaration else "default"
        take(full, value, project_file, key, *([field] if is_declared else []))
    return MergedConfig(config, frozenset(secret_keys), origins)


def _full_key(key: str, project: str, file: Path) -> str:
    """A key with its namespace, the project's unless written; `a:config:b` is an old form of `a:b`."""
    match key.split(":"):
        case [name] if name:
            return f"{project}:{name}"
        case [namespace, name] | [namespace, "config", name] if namespace and name:
            return f"{namespace}:{name}"
        case _:
            raise StackFileError(f"{file} has the key `{key}`; a key is `name` or `namespace:name`.")


def _handed_over(value: Yaml) -> tuple[str, bool]:
    """A value as the engine hands it to a program, and whether any of it was encrypted."""
    plain, is_secret = _without_ciphertext(value)
    if isinstance(plain, str):
        return plain, is_secret
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False), is_secret


def _without_ciphertext(value: Yaml) -> tuple[Yaml, bool]:
    """A value with the placeholder for each `secure:` in it, and whether there was one."""
    match value:
        case {"secure": str()} if len(value) == 1:
            return PLACEHOLDER, True
        case dict():
            items = {key: _without_ciphertext(item) for key, item in value.items()}
            return {key: plain for key, (plain, _) in items.items()}, any(hit for _, hit in items.values())
        case list():
            listed = [_without_ciphertext(item) for item in value]
            return [plain for plain, _ in listed], any(hit for _, hit in listed)
        case float() if value.is_integer():
            return int(value), False
        case _:
            return value, False


def _declaration(entry: Yaml) -> dict[str, Yaml]:
    """A key's declaration in `Pulumi.yaml`, `{type: string, default: …}`; a value alone is its own."""
    if isinstance(entry, dict) and entry and set(entry) <= _DECLARATION_KEYS:
        return entry
    return {"value": entry}
