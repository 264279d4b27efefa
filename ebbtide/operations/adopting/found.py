"""Resources of an existing cluster, as inputs of the types that Ebbtide's components create, and a proved
adoption of them.

A module for each cloud (`google`, `azure`) converts the cloud's own documents, and has two functions:

- `read(document, file)` returns the `Found` of a parsed JSON document, and None if it is not one of that
  cloud's kinds, which are recognised by their content. It raises `AdoptionError` for one that is, and cannot
  be read.
- `cloud_fields(found)` returns the declaration's `cloud` for the whole cluster, in the declaration's names.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import Plain, masked
from ebbtide.errors import EbbtideError
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.documents import CONFIG

CLUSTERS: Final = by_cloud(gke=gke.CLUSTER, aks=aks.CLUSTER)
POOLS: Final = by_cloud(gke=gke.NODE_POOL, aks=aks.AGENT_POOL)
Status: TypeAlias = Literal["declared", "overridden", "changed", "left"]
DECLARED: Final = "declared"
OVERRIDDEN: Final = "overridden"
CHANGED: Final = "changed"
LEFT: Final = "left"
STATUSES: Final[tuple[Status, ...]] = get_args(Status)
_TOTAL: Final = "total"


class AdoptionError(EbbtideError):
    """A cluster cannot be adopted, or a document about it cannot be read."""

    rule = "adopt"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundResource:
    """An existing resource of a type that Ebbtide's components create.

    Attributes:
        type: type token, such as `gcp:container/nodePool:NodePool`.
        id: the id by which Pulumi imports it.
        name: its name in the cloud.
        inputs: the provider's inputs, in its names (camel case), as the cloud has them. Absent values are
            omitted, and so are inputs that the cloud has under another path already.
        output_only: paths in the document that are not inputs of the type: status, addresses, links.
        withheld: paths of inputs that hold a secret, and are therefore not among the inputs.
        inline: true for a pool that is part of its cluster's resource in Ebbtide's program (AKS's system
            pool), with the inputs that it would have as a resource of its own.
    """

    type: str
    id: str
    name: str
    inputs: Mapping[str, Plain]
    output_only: tuple[str, ...] = ()
    inline: bool = False
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A part of a cluster that is not adopted."""

    __pydantic_config__: ClassVar = CONFIG

    name: str
    """Kind and name, such as `pool windows`."""
    reason: str
    """Why, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An existing cluster, from one document or several.

    Attributes:
        cloud: its cloud; None for a document that does not tell, such as Kueue's objects.
        account: its project, or subscription; empty if unknown.
        resources: the cluster and its pools, in the order of the documents.
        objects: Kueue's objects in it, as `kubectl get --output json` prints them.
        daemon_sets: DaemonSets in it, in the same form.
        left_out: parts that are not adopted.
    """

    cloud: CloudKind | None = None
    account: str = ""
    resources: tuple[FoundResource, ...] = ()
    objects: tuple[Mapping[str, Any], ...] = ()
    daemon_sets: tuple[Mapping[str, Any], ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def clusters(self) -> tuple[FoundResource, ...]:
        """The clusters."""
        return self._of(CLUSTERS)

    @property
    def pools(self) -> tuple[FoundResource, ...]:
        """The node pools."""
        return self._of(POOLS)

    def _of(self, tokens: Mapping[CloudKind, str]) -> tuple[FoundResource, ...]:
        token = tokens[self.cloud] if self.cloud else None
        return tuple(resource for resource in self.resources if resource.type == token)


def merged(documents: Iterable[Found]) -> Found:
    """Return all documents as one. Of a resource that several have, the last one is kept.

    Raises:
        AdoptionError: they are of several clouds or accounts.
    """
    whole = Found()
    for found in documents:
        for field, text in (("cloud", "clouds"), ("account", "accounts")):
            one, other = getattr(whole, field), getattr(found, field)
            if one and other and one != other:
                raise AdoptionError(
                    f"The files are of two {text}, {one} and {other}. A stack declares one cluster: name the "
                    "files of one."
                )
        resources = {(item.type, item.id): item for item in (*whole.resources, *found.resources)}
        whole = replace(
            whole,
            cloud=whole.cloud or found.cloud,
            account=whole.account or found.account,
            resources=tuple(resources.values()),
            objects=(*whole.objects, *found.objects),
            daemon_sets=(*whole.daemon_sets, *found.daemon_sets),
            left_out=(*whole.left_out, *found.left_out),
        )
    return whole


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """A field of the cluster or a pool."""

    __pydantic_config__: ClassVar = CONFIG

    resource: str
    """Name of its cluster, pool or maintenance schedule."""
    path: str
    """Path in the provider's inputs, such as `nodeConfig.machineType`."""
    value: Any
    """The found value; `[secret]` for a secret."""
    status: Status
    """`declared`, `overridden`, `changed` by the first update, or `left` without a word in the
    declaration."""
    reason: str = ""
    """Why it is changed or left, as a sentence; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRow:
    """An input that the first update changes."""

    __pydantic_config__: ClassVar = CONFIG

    resource: str
    """Name of its cluster or pool."""
    path: str
    """Path in the provider's inputs."""
    old: Any
    """The found value; null if there is none."""
    new: Any
    """The declared value; null if there is none."""
    recreates: bool = False
    """True if the change recreates nodes, and evicts their pods."""
    reason: str = ""
    """Why the found value does not stay; empty if Ebbtide always sets its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A proved adoption.

    Attributes:
        declaration: the object under `ebbtide:cluster`.
        fields: every field that was read.
        updates: inputs that the first update changes in place.
        created: resources that the first update creates, as type and name.
        left_out: parts that are not adopted.
        resources: type, logical name and import id of each adopted resource.
        output_only: number of attributes that are not inputs, by resource.
        before: the found resources that are adopted, as a recording.
        recording: the program's recording with the declaration.
    """

    declaration: dict[str, Any]
    fields: tuple[FieldRow, ...]
    updates: tuple[UpdateRow, ...]
    created: tuple[tuple[str, str], ...]
    left_out: tuple[LeftOut, ...]
    resources: tuple[Mapping[str, str], ...]
    output_only: Mapping[str, int]
    before: Recording
    recording: Recording

    def counts(self) -> dict[str, tuple[int, ...]]:
        """Return the number of fields that were read, and of each status, by resource, and their sums under
        `total`."""
        rows: dict[str, list[Status]] = {}
        for row in self.fields:
            rows.setdefault(row.resource, []).append(row.status)
        rows[_TOTAL] = [row.status for row in self.fields]
        return {name: (len(own), *map(own.count, STATUSES)) for name, own in rows.items()}


def shown(value: Plain) -> str:
    """Return a value for display, in one line."""
    return "nothing" if value is None else json.dumps(masked(value), ensure_ascii=False, default=str)
