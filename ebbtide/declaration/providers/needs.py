"""Needs of the creation of a resource, and of a refresh of it, by its type: the API or resource provider that
must be enabled, and the user's permissions, with a predefined role that has them, from `schemas/needs.csv`.

Each row has the source of the creation's permissions. Those of a refresh are the requests of the provider's
read function (terraform-provider-google-beta 7.45.0; azure-native: GET of the resource), and of
`ebbtide drift`, which lists the roles of service accounts; their roles are Google's as exported in
darkbitio/gcp-iam-role-permissions@8ab2a6ff (2026-08), and Azure's Reader, which has `*/read`. Permissions are
of the project or subscription: those on a single resource that exists are not known before it is created.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Need:
    """A row of the table.

    Attributes:
        api: API of Google Cloud, or namespace of a resource provider of Azure; empty for one that is always
            enabled.
        permissions: permissions of Google Cloud, or actions of Azure; empty for none.
        role: predefined role that has them; empty without permissions.
        reads: permissions of a refresh; empty for none.
        reader: predefined role that has them, and changes nothing; empty without permissions.
        source: where they are documented.
    """

    api: str
    permissions: tuple[str, ...]
    role: str
    reads: tuple[str, ...]
    reader: str
    source: str


def needs_of(tokens: Iterable[str]) -> list[Need]:
    """Return the needs of resource types, without duplicates; none for types that are not in the table."""
    known = rows()
    return list(dict.fromkeys(need for token in tokens for need in known.get(token, ())))


def roles_of(needs: Iterable[Need], *, reading: bool = False) -> dict[str, str]:
    """Return the role of each permission of creations, or of refreshes."""
    if reading:
        return {permission: need.reader for need in needs for permission in need.reads}
    return {permission: need.role for need in needs for permission in need.permissions}


def unknown(tokens: Iterable[str]) -> list[str]:
    """Return the resource types that are not in the table, such as those of a user's own program."""
    return sorted(set(tokens) - rows().keys())


@cache
def rows() -> Mapping[str, list[Need]]:
    """Return the rows of the table by resource type."""
    result: dict[str, list[Need]] = {}
    text = (resources.files("ebbtide.declaration.providers") / "schemas" / "needs.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        need = Need(
            api=row["api"],
            permissions=tuple(row["permissions"].split()),
            role=row["role"],
            reads=tuple(row["reads"].split()),
            reader=row["reader"],
            source=row["source"],
        )
        result.setdefault(row["type"], []).append(need)
    return result
