"""The declaration among the stack's configuration, and the settings that complete it: what an update reads of
a project. Files are read for `extends` and for the positions of errors alone."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from ebbtide.errors import EXTENDS, ExtendsError
from ebbtide.values.user_files import parse_json

NAMESPACE: Final = "ebbtide"
"""Configuration namespace, independent of the project's name."""
REPLACEMENTS: Final = "replacements"
"""Configuration key of a run that replaces pools: each with `name`, `nodes` and `inputs`."""
SUFFIX: Final = ".next"
"""Suffix of the replacement's resource name. No pool's name contains a dot."""

Setting = Callable[[str], str | None]
"""A setting of the stack by its name in the namespace; None without one."""

_ACCOUNTS: Final = {"project": "gke", "subscription": "aks"}
"""Settings with a cloud's account, and the cloud."""


def parsed(text: str) -> object:
    """Parse a declaration's configuration value: JSON, or else plain text."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def merged(value: object, directory: Path) -> tuple[object, tuple[str, ...]]:
    """Return a declaration merged with the files that it extends, and these, the nearest first.

    Args:
        value: the declaration as parsed from YAML or JSON.
        directory: the directory of `Pulumi.yaml`.

    Raises:
        ExtendsError: a file cannot be used.
    """
    if not (isinstance(value, Mapping) and EXTENDS in value):
        return cast("object", value), ()
    from ebbtide.declaration.project.extends import extended  # noqa: PLC0415 - for those that extend alone

    declaration = extended(cast("object", value), directory)
    return declaration.value, declaration.bases


def project_directory(directory: Path) -> Path:
    """Return the directory of `Pulumi.yaml`, in or above a directory; the directory itself without one."""
    above = (directory, *directory.parents)
    return next((parent for parent in above if (parent / "Pulumi.yaml").is_file()), directory)


def stack_file(root: Path, settings: Mapping[str, Any], stack: str) -> Path:
    """Return the path of a stack's file, which may not exist.

    Args:
        root: the directory of `Pulumi.yaml`.
        settings: the content of `Pulumi.yaml`, whose `stackConfigDir` moves the stacks' files.
        stack: the stack's name.
    """
    directory = root / str(settings.get("stackConfigDir") or "")
    files = [directory / f"Pulumi.{stack}.{suffix}" for suffix in ("yaml", "yml")]
    return next((file for file in files if file.is_file()), files[0])


def answer(name: str, setting: Setting, bases: tuple[str, ...], directory: Path) -> str | None:
    """Return a setting of the stack, its own or that of a file that its declaration extends.

    Args:
        bases: the files that it extends, the nearest first.
        directory: the directory of `Pulumi.yaml`.
    """
    own = setting(name)
    if own or not bases:
        return own
    from ebbtide.declaration.project.extends import inherited  # noqa: PLC0415 - for those that extend alone

    base = inherited(f"{NAMESPACE}:{name}", None, bases, directory)
    return str(base.value) if base else own


def completed(value: object, bases: tuple[str, ...], setting: Setting, directory: Path) -> Any:
    """Return a declaration with owner, account and location as the stack's settings have them, where it does
    not declare them itself.

    Args:
        value: the declaration, merged with its bases.
        bases: the files that it extends, the nearest first.
        directory: the directory of `Pulumi.yaml`.

    Raises:
        ExtendsError: the stack has accounts of two clouds, or a base cannot be used.
    """
    names = ("owner", *_ACCOUNTS, "location")
    answers = {name: answer(name, setting, bases, directory) for name in names}
    found = {name: value for name, value in answers.items() if value}
    match value:
        case {"cloud": {"kind": str(kind)}}:
            accounts = [name for name, cloud in _ACCOUNTS.items() if name in found and kind == cloud]
        case _:
            accounts = [name for name in _ACCOUNTS if name in found]
    if len(accounts) > 1:
        raise ExtendsError(
            "The stack has ebbtide:project, which is of GKE, and ebbtide:subscription, which is of AKS. "
            "Remove one of them, or declare cloud.kind."
        )
    defaults: dict[str, Any] = {"owner": found["owner"]} if "owner" in found else {}
    for account in accounts:
        own = {name: found[name] for name in (account, "location") if name in found}
        defaults["cloud"] = {"kind": _ACCOUNTS[account], **own}
    return with_defaults(value, defaults)


def with_defaults(written: object, defaults: Mapping[str, Any]) -> object:
    """Complete a declaration with defaults, for an object with those of its fields; anything but a mapping is
    returned unchanged, for validation to report."""
    if not isinstance(written, Mapping):
        return written
    fields = dict(cast("Mapping[str, Any]", written))
    for key, default in defaults.items():
        if key not in fields:
            fields[key] = default
        elif isinstance(default, Mapping) and isinstance(fields[key], Mapping):
            fields[key] = {**default, **fields[key]}
    return fields
