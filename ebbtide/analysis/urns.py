"""URNs of Pulumi: `urn:pulumi:STACK::PROJECT::TYPES::NAME` (Pulumi docs, resource names, 2026-08)."""

from typing import Final

STACK_TYPE: Final = "pulumi:pulumi:Stack"
_PREFIX: Final = "urn:pulumi:"


def urn_of(stack: str, project: str, parent: str | None, type_: str, name: str) -> str:
    """Build a resource's URN as the engine does: with the types of all parents except the stack.

    Args:
        stack: the stack's name.
        project: the project's name.
        parent: the parent's URN; None or empty if there is none.
        type_: the resource's type.
        name: its logical name.
    """
    types = parent.split("::")[2] if parent else STACK_TYPE
    qualified = type_ if types == STACK_TYPE else f"{types}${type_}"
    return f"{_PREFIX}{stack}::{project}::{qualified}::{name}"


def urn_name(urn: str) -> str:
    """Return the logical name in a URN; it may contain `::`."""
    return urn.split("::", 3)[-1]


def stack_and_project(urn: str) -> tuple[str, str]:
    """Return the stack and the project of a URN; the project is empty if the URN is malformed."""
    stack, project = f"{urn.removeprefix(_PREFIX)}::".split("::")[:2]
    return stack, project
