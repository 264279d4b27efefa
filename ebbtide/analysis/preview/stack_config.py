"""A stack's configuration as the engine passes it to a program: full keys, values as strings, objects as
JSON.

Encrypted values are not decrypted and need no passphrase: a placeholder replaces them, and their keys are
secret.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ebbtide.declaration.project.yaml_file import Yaml
from ebbtide.errors import EbbtideError
from ebbtide.text import and_list

PLACEHOLDER: Final = "encrypted-in-the-stack-file"
"""Placeholder for an encrypted value, in a form that is valid in resource names."""

_DECLARATION_KEYS: Final = {"type", "description", "items", "default", "value", "secret"}


class StackFileError(EbbtideError):
    """A project's or stack's file is missing, malformed or has the wrong structure."""

    rule = "stack-file"


class MergedConfig(NamedTuple):
    """A stack's merged configuration.

    Attributes:
        values: the values by full key.
        secret_keys: the keys whose values are secret.
        origins: the file of each value, and its key path in that file.
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
    """Merge a stack's configuration with the defaults of its project.

    Args:
        project: the project's name, the default namespace of keys.
        declared: `config` of `Pulumi.yaml`: values, or declarations with a `value` or `default`.
        written: `config` of the stack's file.
        project_file: the file of `declared`, for messages.
        config_file: the file of `written`, for messages.

    Raises:
        StackFileError: a key is malformed, or a required key has no value.
    """
    config: dict[str, str] = {}
    secret_keys: set[str] = set()
    origins: dict[str, tuple[Path, tuple[str, ...]]] = {}

    def take(key: str, value: Yaml, file: Path, *path: str) -> None:
        config[key], is_secret = _serialized(value)
        origins[key] = (file, ("config", *path))
        if is_secret:
            secret_keys.add(key)

    for key, value in written.items():
        take(_full_key(key, project, config_file), value, config_file, key)
    missing: list[str] = []
    for key, entry in declared.items():
        full = _full_key(key, project, project_file)
        declaration = _declaration(entry)
        if declaration.get("secret"):
            secret_keys.add(full)
        if full in config:
            continue
        value = declaration.get("value", declaration.get("default"))
        if value is None:
            missing.append(f"`{full}`")
            continue
        is_declared = declaration is entry
        field = "value" if "value" in declaration else "default"
        take(full, value, project_file, key, *([field] if is_declared else []))
    if missing:
        them = "them" if len(missing) > 1 else "it"
        raise StackFileError(
            f"{config_file} has no value for {and_list(missing)}, which {project_file} requires of every "
            f"stack. Write {them} under `config:`, or give {them} a `default` in {project_file.name}."
        )
    return MergedConfig(config, frozenset(secret_keys), origins)


def _full_key(key: str, project: str, file: Path) -> str:
    """Return a key with its namespace, by default the project's; `a:config:b` is an old form of `a:b`."""
    match key.split(":"):
        case [name] if name:
            return f"{project}:{name}"
        case [namespace, name] | [namespace, "config", name] if namespace and name:
            return f"{namespace}:{name}"
        case _:
            raise StackFileError(f"{file} has the key `{key}`; a key is `name` or `namespace:name`.")


def _serialized(value: Yaml) -> tuple[str, bool]:
    """Return a value as the engine passes it to a program, and whether any of it was encrypted."""
    plain, is_secret = _without_ciphertext(value)
    if isinstance(plain, str):
        return plain, is_secret
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False), is_secret


def _without_ciphertext(value: Yaml) -> tuple[Yaml, bool]:
    """Replace each `secure:` in a value with the placeholder, and return whether there was any."""
    match value:
        case {"secure": str()} if len(value) == 1:
            return PLACEHOLDER, True
        case dict():
            items = {key: _without_ciphertext(item) for key, item in value.items()}
            return {key: plain for key, (plain, _) in items.items()}, any(
                is_encrypted for _, is_encrypted in items.values()
            )
        case list():
            listed = [_without_ciphertext(item) for item in value]
            return [plain for plain, _ in listed], any(is_encrypted for _, is_encrypted in listed)
        case float() if value.is_integer():  # pyrefly: ignore[missing-attribute] # no int, which lacks it in 3.11
            return int(value), False
        case _:
            return value, False


def _declaration(entry: Yaml) -> dict[str, Yaml]:
    """Return a key's declaration in `Pulumi.yaml`, `{type: string, default: …}`; a bare value is `{value:
    …}`.
    """
    if isinstance(entry, dict) and entry and set(entry) <= _DECLARATION_KEYS:
        return entry
    return {"value": entry}
