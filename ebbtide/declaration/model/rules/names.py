"""Names, ids, labels and taints: syntax, uniqueness, and reserved words and prefixes."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final, cast

from pydantic import BaseModel

from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.model.capacity import Queued, Spot
from ebbtide.declaration.model.cloud import Aks
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.physical_names import (
    AZURE_RESERVED,
    LONGEST_NODE_RESOURCE_GROUP,
    NODE_RESOURCE_GROUP,
)
from ebbtide.declaration.model.pool import TaintEffect
from ebbtide.declaration.model.rules.rule import (
    NO_CLUSTER,
    ClusterRule,
    PoolIn,
    PoolRule,
    Severity,
    cluster_rule,
    pool_rule,
)
from ebbtide.declaration.model.tenancy import Team
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.paths import Key, child_path, path_keys

Texts = Iterable[tuple[str, str | None]]
"""Paths with the written strings; None if nothing is written."""

_KEYS: Final = "keys()"
"""Part of a path that is each key of a mapping itself, not its value."""
_OF_POOL: Final = "pools[*]."
_CLOUDS: Final = {
    **dict.fromkeys(("GKE", "Google Cloud", "Compute Engine"), CloudKind.GKE),
    **dict.fromkeys(("AKS", "Azure"), CloudKind.AKS),
}
_RESERVED = (("kubernetes.io", "Kubernetes"), ("k8s.io", "Kubernetes"), ("ebbtide.dev", "Ebbtide"))
_RESERVED_ON = by_cloud(gke=("cloud.google.com", "GKE"), aks=("kubernetes.azure.com", "AKS"))


@cache
def _attributes(kind: type[BaseModel]) -> dict[str, str]:
    return {field.alias or name: name for name, field in kind.model_fields.items()}


def written(value: object, path: str, at: str = "") -> Texts:
    """Yield the paths and the strings at a path below a part of the declaration, such as
    `teams[*].members[*]`: `*` is every index or key, and a field that the cloud lacks yields nothing.

    Args:
        at: path of the part itself.
    """
    return cast("Texts", _walk(value, path_keys(path), at))


def _walk(value: Any, keys: tuple[Key, ...], at: str) -> Iterator[tuple[str, Any]]:
    if not keys:
        yield at, value
        return
    key, rest = keys[0], keys[1:]
    match value:
        case BaseModel() if key in (names := _attributes(type(value))):
            yield from _walk(getattr(value, names[str(key)]), rest, child_path(at, key))
        case tuple():
            for index, item in enumerate(cast("tuple[object, ...]", value)):
                yield from _walk(item, rest, child_path(at, index))
        case Mapping():
            for name, item in cast("Mapping[str, object]", value).items():
                yield from _walk(name if key == _KEYS else item, rest, child_path(at, name))
        case _:
            pass


@dataclass(frozen=True, slots=True)
class Syntax:
    """Syntax of a string.

    Attributes:
        whose: system that requires it, such as `GKE`.
        what: name of the string, such as `cluster name`.
        paths: paths of such strings, separated by spaces; those of a pool begin with `pools[*].`.
        pattern: regular expression for the whole string; `<project id>` is the pattern of another row.
        words: the pattern in words.
        example: a valid string.
        consequence: consequence of an invalid string.
    """

    whose: str
    what: str
    paths: str
    pattern: str
    words: str
    example: str
    consequence: str
    source: str

    def rule(self) -> ClusterRule | PoolRule:
        """Return the rule for these strings."""
        name, cloud = f"syntax: {self.whose} {self.what}", _CLOUDS.get(self.whose)
        if not self.paths.startswith(_OF_POOL):
            return ClusterRule(name, self.source, lambda cluster: self._faults(cluster, ""), cloud)
        return PoolRule(name, self.source, lambda pool: self._faults(pool.pool, pool.path), cloud)

    def _faults(self, part: BaseModel, at: str) -> Iterator[Fault]:
        for pattern in self.paths.split():
            for path, text in written(part, pattern.removeprefix(_OF_POOL), at):
                if text is None or re.fullmatch(self.pattern, text):
                    continue
                wrong = f"{_quoted(text)} is not a valid {self.whose} {self.what}."
                problem = wrong if text else f"The {self.what} is empty."
                yield Fault(path, problem, self.consequence, f"Write {self.words}, such as {self.example}.")


def _quoted(text: str) -> str:
    """Format a string for messages: as it is, or in quotes if it would be ambiguous."""
    return text if re.fullmatch(r"[-\w@:/.]*[-\w]", text) else json.dumps(text, ensure_ascii=False)


def _unique(
    noun: str, consequence: str, names: Callable[[Cluster], Texts], cluster: Cluster
) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for path, name in names(cluster):
        if name in first:
            problem = f"The {noun} {name} is already in use, at {first[name]}."
            yield Fault(path, problem, consequence, f"Write a {noun} of its own.")
        elif name is not None:
            first[name] = path


def _unique_rule(noun: str, consequence: str, names: str | Callable[[Cluster], Texts]) -> ClusterRule:
    texts = partial(written, path=names) if isinstance(names, str) else names
    return ClusterRule(
        f"unique {noun}s",
        "kubernetes.io/docs/concepts/overview/working-with-objects/names (2026)",
        partial(_unique, noun, consequence, texts),
    )


def _storage_names(cluster: Cluster) -> Texts:
    """Yield the names in the names of teams' storage, if a team declares one."""
    if any(team.storage_name for team in cluster.teams):
        for index, team in enumerate(cluster.teams):
            yield f"teams[{index}].{'storageName' if team.storage_name else 'name'}", team.stored_as


def namespace_path(index: int, team: Team) -> str:
    """Return the path of the name of a team's namespace."""
    return f"teams[{index}].namespace.name" if team.namespace else f"teams[{index}].name"


def _namespaces(cluster: Cluster) -> Texts:
    return [(namespace_path(index, team), team.namespace_name) for index, team in enumerate(cluster.teams)]


def syntaxes() -> Iterator[Syntax]:
    """Yield the rows of the table, each pattern with those of the rows that it names."""
    table = [Syntax(**row) for row in rows("syntax")]
    parts = {row.what: f"({row.pattern})" for row in table}
    for row in table:
        yield replace(row, pattern=re.sub(r"<([a-z ]+)>", lambda name: parts[name[1]], row.pattern))


RULES: Final = (
    *(row.rule() for row in syntaxes()),
    _unique_rule("pool name", "One of the two pools could not be created.", "pools[*].name"),
    _unique_rule("queue name", "One of the two queues could not be created.", "queues[*].name"),
    _unique_rule("team name", "The teams would share their permissions.", "teams[*].name"),
    _unique_rule("storage name", "Two teams would have one bucket, share and registry.", _storage_names),
    _unique_rule(
        "namespace", "Two teams would share it, with each other's permissions and queues.", _namespaces
    ),
)


@cluster_rule(
    "cluster name without reserved word",
    "Azure docs, error-reserved-resource-name (learn.microsoft.com/azure/azure-resource-manager/"
    "troubleshooting, 2023-04-05)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _reserved_word(cluster: Cluster) -> Iterator[Fault]:
    word = re.search(AZURE_RESERVED, cluster.name)
    if word is not None and cluster.cloud.existing is None:
        yield Fault(
            "name",
            f"{word[0]} is a reserved word of Azure.",
            "Azure refuses such words in names of resources with a host name, and may refuse the cluster.",
            "Write another name.",
        )


@cluster_rule(
    "length of node resource group",
    "Microsoft's support articles, aks-common-issues-faq: naming restrictions (2023-11)",
    CloudKind.AKS,
)
def _node_resource_group(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.cloud
    if not isinstance(cloud, Aks) or cloud.existing or cloud.overrides.get("nodeResourceGroup"):
        return
    group = cloud.resource_group or cluster.name
    name = NODE_RESOURCE_GROUP.format(resourceGroupName=group, name=cluster.name, location=cloud.location)
    if len(name) > LONGEST_NODE_RESOURCE_GROUP:
        yield Fault(
            "name",
            f"The node resource group {name} has {len(name)} characters; AKS allows "
            f"{LONGEST_NODE_RESOURCE_GROUP}.",
            NO_CLUSTER,
            "Write a shorter name or cloud.resourceGroup, or cloud.overrides: {nodeResourceGroup: NAME}.",
        )


def _owner(key: str, cloud: CloudKind) -> str:
    """Return the owner of a key by its prefix; empty for none, and for one of the other cloud."""
    domain = key.rpartition("/")[0]
    reserved = (*_RESERVED, _RESERVED_ON[cloud])
    return next((owner for name, owner in reserved if f".{domain}".endswith(f".{name}")), "")


@pool_rule(
    "no reserved label prefix",
    "hashicorp/terraform-provider-google#6003 (2020-03), #19677 (2024-09); "
    "azure-aks-docs use-labels.md (2024-06-10): reserved prefixes",
)
def _reserved_labels(pool: PoolIn) -> Iterator[Fault]:
    return _reserved(pool, "label", f"labels.{_KEYS}", CLOUD_SPECS[pool.site.cloud].allowed_labels)


@pool_rule("no reserved taint prefix", "kubernetes.io/docs/reference/labels-annotations-taints (2026)")
def _reserved_taints(pool: PoolIn) -> Iterator[Fault]:
    return _reserved(pool, "taint", "taints[*].key", CLOUD_SPECS[pool.site.cloud].allowed_taints)


def _reserved(pool: PoolIn, noun: str, keys: str, allowed: frozenset[str]) -> Iterator[Fault]:
    for path, key in written(pool.pool, keys, pool.path):
        if key and (owner := _owner(key, pool.site.cloud)) and key not in allowed:
            prefix, _, name = key.rpartition("/")
            yield Fault(
                path,
                f"The prefix {prefix}/ of the {noun} {key} is reserved by {owner}.",
                "The value would be wrong, or the cloud would refuse the node pool.",
                f"Remove it, or use a domain of your own, such as acme.example/{name}.",
            )


@pool_rule(
    "unique taints", "kubernetes/kubernetes v1.33.0 pkg/apis/core/validation: unique by key and effect"
)
def _same_taint_twice(pool: PoolIn) -> Iterator[Fault]:
    seen: set[tuple[str, TaintEffect]] = set()
    for index, taint in enumerate(pool.pool.taints or ()):
        key = (taint.key, taint.effect)
        if key in seen:
            yield Fault(
                pool.at(f"taints[{index}]"),
                f"The taint {taint.key} with effect {taint.effect} is written twice.",
                "Kubernetes holds one value for a key and effect, and refuses the node.",
                "Remove one of the two, or give it another effect.",
            )
        seen.add(key)


def _tainted_by_cloud(pool: PoolIn) -> bool:
    """Return whether the cloud itself taints the pool's nodes (GKE docs, gpus and provisioningrequest;
    azure-aks-docs, spot-node-pool; 2026)."""
    match pool.site.cloud:
        case CloudKind.GKE:
            return isinstance(pool.pool.capacity, Queued) or pool.resolved.accelerator is not None
        case CloudKind.AKS:
            return isinstance(pool.pool.capacity, Spot)


@pool_rule(
    "work pool is tainted",
    "kubernetes/autoscaler#2377, Azure/AKS#1874: GPU pools that never reach zero",
    severity=Severity.WARNED,
)
def _untainted(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.taints == () and not pool.pool.is_system and not _tainted_by_cloud(pool):
        yield Fault(
            pool.at("taints"),
            "A work pool without taints accepts any pod.",
            "System pods, and pods of teams that name no queue, may run on its nodes, and it could not scale "
            "to zero.",
            "Omit taints for the derived taint, or write at least one.",
        )


@pool_rule(
    "work pool taint effect",
    "kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration (2026); kubernetes/autoscaler#2377",
    severity=Severity.WARNED,
)
def _only_soft_taints(pool: PoolIn) -> Iterator[Fault]:
    effects = {taint.effect for taint in pool.pool.taints or ()}
    is_soft = effects == {TaintEffect.PREFER_NO_SCHEDULE}
    if is_soft and not pool.pool.is_system and not _tainted_by_cloud(pool):
        yield Fault(
            pool.at("taints"),
            "The pool's taints all have the effect PreferNoSchedule.",
            "System pods may run on its nodes when the system pool is full, and it could not scale to zero.",
            "Write the effect NoSchedule for one of them.",
        )
