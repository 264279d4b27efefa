"""Fields that may be an output of another resource before that resource exists.

A declaration is plain data: pools, names, quotas and cost follow from it. A value that is known only after
another resource has been created is possible where it is passed on to a provider and nothing follows from it.
In a preview, a valid value with a token stands in its place; every input that contains the token is unknown.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, cast

from ebbtide.declaration.catalog import CloudKind
from ebbtide.values.paths import value_at


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingField:
    """A field whose value may be unknown in a preview.

    Attributes:
        field: its type and name in the package schema.
        path: its path in a declaration; `*` is any index.
        form: a valid value, with `{}` for the token.
        cloud: the cloud that has it; None for both.
        alone: whether only a node pool for an existing cluster may wait for it.
        impossible: tells why it cannot wait with some declarations; empty if it can.
    """

    field: str
    path: str
    form: str = "{}"
    cloud: CloudKind | None = None
    alone: bool = False
    impossible: Callable[[object], str] = lambda _: ""


def _team(declaration: object, field: str, value: str | None = None) -> str:
    """Return the name of the first team with a field, or with a value of it; empty for none."""
    teams: Any = value_at(declaration, "teams")
    for team in cast("list[object]", teams) if isinstance(teams, list) else ():
        found = value_at(team, field)
        if found is not None and value in (None, found):
            return str(value_at(team, "name"))
    return ""


def _registry(declaration: object) -> str:
    team = _team(declaration, "registry")
    return f"A grant on the registry of team {team} is named after it." if team else ""


def _file_share(declaration: object) -> str:
    team = _team(declaration, "volume.kind", "filestore")
    return f"The range of the subnet is read for the file share of team {team}." if team else ""


WAITING: Final = (
    WaitingField(
        field="Pool.serviceAccount",
        path="pools[*].serviceAccount",
        form="{}@unknown.iam.gserviceaccount.com",
        cloud=CloudKind.GKE,
        impossible=_registry,
    ),
    WaitingField(field="GkeNetwork.vpc", path="cloud.network.vpc", cloud=CloudKind.GKE),
    WaitingField(
        field="GkeNetwork.subnet", path="cloud.network.subnet", cloud=CloudKind.GKE, impossible=_file_share
    ),
    WaitingField(field="GkeNetwork.podsRange", path="cloud.network.podsRange", cloud=CloudKind.GKE),
    WaitingField(field="GkeNetwork.servicesRange", path="cloud.network.servicesRange", cloud=CloudKind.GKE),
    WaitingField(
        field="AksNetwork.subnet",
        path="cloud.network.subnet",
        form="/subscriptions/{0}/resourceGroups/{0}/providers/Microsoft.Network/virtualNetworks/{0}/subnets/{0}",
        cloud=CloudKind.AKS,
    ),
    WaitingField(field="Existing.name", path="cloud.existing.name", alone=True),
    WaitingField(field="Aks.resourceGroup", path="cloud.resourceGroup", cloud=CloudKind.AKS, alone=True),
)
"""All of them. A name in the cloud can wait only where no cluster has to be looked up by it."""


def waiting_field(path: str, declaration: object, *, alone: bool) -> WaitingField | None:
    """Return the field at a path if its value may be unknown.

    Args:
        path: path in the declaration.
        declaration: the declaration, for its cloud.
        alone: whether it is that of a node pool for an existing cluster.
    """
    return next((row for row in _fields(declaration, alone=alone) if _matches(path, row.path)), None)


def waiting_paths(declaration: object, *, alone: bool) -> list[str]:
    """Return the paths whose values may be unknown; arguments as for `waiting_field`."""
    return [row.path for row in _fields(declaration, alone=alone)]


def _fields(declaration: object, *, alone: bool) -> Iterator[WaitingField]:
    kind = value_at(declaration, "cloud.kind")
    for row in WAITING:
        if row.cloud in (None, kind) and (alone or not row.alone):
            yield row


def _matches(path: str, pattern: str) -> bool:
    return fnmatchcase(path.replace("[", "("), pattern.replace("[", "("))
