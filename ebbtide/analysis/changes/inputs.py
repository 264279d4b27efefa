"""Changed inputs of a resource, and which of them make its provider replace it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ebbtide.analysis.changes import azure, google, kubernetes
from ebbtide.analysis.changes.property_path import differences, plain_path, with_defaults
from ebbtide.analysis.recording.values import UNKNOWN, Plain, Secret, leaves
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.values.paths import is_within

_PROVIDER: Final = "pulumi:providers:"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed input.

    Attributes:
        path: its property path.
        old: the old value; None if absent.
        new: the new value; None if absent, UNKNOWN if only the cloud determines it.
        replaces: true if the change needs a new resource.
    """

    path: str
    old: Plain
    new: Plain
    replaces: bool


def field_changes(
    token: str,
    old: Mapping[str, Plain],
    new: Mapping[str, Plain],
    *,
    settings: Mapping[str, Any] | None = None,
    ignored: Collection[str] = (),
) -> tuple[FieldChange, ...]:
    """Return the changed inputs of a resource.

    Args:
        token: the resource's type.
        old: its current inputs.
        settings: the inputs of its provider.
        ignored: property paths whose changes the program ignores.
    """
    return tuple(_changes(token, dict(old), dict(new), settings or {}, ignored))


def _changes(
    token: str,
    old: dict[str, Plain],
    new: dict[str, Plain],
    settings: Mapping[str, Any],
    ignored: Collection[str],
) -> Iterator[FieldChange]:
    package = token.partition(":")[0]
    for path, before, after in differences(_comparable(token, old), _comparable(token, new)):
        plain = plain_path(path)
        if any(is_within(path, parent) for parent in ignored) or _is_hidden(before, after):
            continue
        if package == "gcp":
            if google.is_same(token, plain, before, after) or google.is_kept(token, plain, after):
                continue
            replaces = google.needs_new(token, plain, before, after)
        elif package == "azure-native":
            if azure.is_same(plain, before, after):
                continue
            replaces = azure.needs_new(token, plain)
        elif package == "kubernetes":
            if kubernetes.is_same(plain, before, after):
                continue
            replaces = kubernetes.needs_new(token, plain, settings)
        else:
            replaces = token == f"{_PROVIDER}kubernetes" and kubernetes.provider_needs_new(plain)
        yield FieldChange(path, before, after, replaces)


def _comparable(token: str, inputs: dict[str, Plain]) -> dict[str, Plain]:
    """Return inputs in the form in which their provider compares them."""
    match token.partition(":")[0]:
        case "gcp":
            return with_defaults(inputs, constraints_of(token).defaults)
        case "kubernetes":
            return kubernetes.normalized(token, inputs)
        case _:
            return inputs


def is_fixed(token: str, change: FieldChange) -> bool:
    """Return whether the cloud refuses a change that the provider sends: of a property that is fixed once the
    resource exists. Its default is the same as an absent value, and a list can have further items."""
    constraints = constraints_of(token)
    if change.old is None and change.path.endswith("]"):
        return _is_listed(change.path, constraints.fixed)
    old, new = (dict(leaves(value, change.path)) for value in (change.old, change.new))

    def effective(values: Mapping[str, Plain], path: str) -> Plain:
        return values.get(path) or constraints.fills.get(plain_path(path)) or None

    return any(
        effective(old, path) != effective(new, path)
        for path in {**old, **new}
        if _is_listed(path, constraints.fixed)
    )


def recreates_nodes(token: str, path: str, old: Plain = None, new: Plain = None) -> bool:
    """Return whether a change at a path recreates nodes, or that of an object contains one that does."""
    paths = (path, *(inside for inside, _ in leaves(new if old is None else old, path)))
    return any(_is_listed(item, constraints_of(token).recreates) for item in paths)


def _is_listed(path: str, listed: Collection[str]) -> bool:
    plain = plain_path(path)
    return any(is_within(plain, item) for item in listed)


def is_deleted_first(token: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether the provider deletes a resource before it creates its replacement."""
    match token.partition(":")[0]:
        case "gcp":
            return google.keeps_name(old, new)
        case "azure-native":
            return old.get(azure.RANDOMLY_NAMED) is not True
        case "kubernetes":
            return kubernetes.keeps_name(old, new)
        case _:
            return False


def _is_hidden(before: Plain, after: Plain) -> bool:
    """Return whether a secret's values cannot be compared: the one in the state is encrypted."""
    secrets = [value for value in (before, after) if isinstance(value, Secret)]
    return any(secret.value is UNKNOWN for secret in secrets) and before is not None and after is not None
