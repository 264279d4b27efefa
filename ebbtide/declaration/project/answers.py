"""Answers to `ebbtide init` and `pulumi new`: settings of a stack that complete its declaration."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from ebbtide.declaration.project.extends import Declaration, ExtendsError, inherited
from ebbtide.declaration.project.source import NAMESPACE

Setting = Callable[[str], str | None]
"""A setting of the stack by its name in the namespace; None without one."""

_ACCOUNTS: Final = {"project": "gke", "subscription": "aks"}
"""Settings with a cloud's account, and the cloud."""


def answer(name: str, setting: Setting, bases: tuple[str, ...], directory: Path) -> str | None:
    """Return a setting of the stack, its own or that of a file that its declaration extends.

    Args:
        bases: the files that it extends, the nearest first.
        directory: the directory of `Pulumi.yaml`.
    """
    own = setting(name)
    base = None if own else inherited(f"{NAMESPACE}:{name}", None, bases, directory)
    return str(base.value) if base else own


def completed(declaration: Declaration, setting: Setting, directory: Path) -> Any:
    """Return a declaration with owner, account and location as the stack's settings have them, where it does
    not declare them itself.

    Args:
        directory: the directory of `Pulumi.yaml`.

    Raises:
        ExtendsError: the stack has accounts of two clouds, or a base cannot be used.
    """
    names = ("owner", *_ACCOUNTS, "location")
    answers = {name: answer(name, setting, declaration.bases, directory) for name in names}
    found = {name: value for name, value in answers.items() if value}
    match declaration.value:
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
    return with_defaults(declaration.value, defaults)


def with_defaults(written: object, defaults: Mapping[str, Any]) -> object:
    """Complete a declaration with defaults, for an object with those of its fields; anything but a mapping is
    returned unchanged, for validation to report."""
    if not isinstance(written, Mapping):
        return written
    fields = cast("Mapping[str, Any]", written)
    return {**defaults, **{key: _merged(defaults.get(key), value) for key, value in fields.items()}}


def _merged(default: Any, value: Any) -> Any:
    if isinstance(default, Mapping) and isinstance(value, Mapping):
        return {**cast("Mapping[str, Any]", default), **cast("Mapping[str, Any]", value)}
    return value
