"""Kubernetes' rules for labels and taints, and the reserved prefixes."""

from collections import Counter
from collections.abc import Iterator

from ebbtide.declaration.catalog import CLOUD_SPECS, CloudKind
from ebbtide.declaration.model.capacity import Queued, Spot
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import TaintEffect
from ebbtide.declaration.model.rules.rule import PoolIn, Severity, pool_rule
from ebbtide.declaration.model.rules.syntax import Syntax, Texts, pool_rules
from ebbtide.values.paths import path_text

DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""A DNS-1123 label."""

DNS_LABEL_WORDS = (
    "at most 63 lower-case letters, digits and hyphens, starting and ending with a letter or a digit"
)

NAMES_SOURCE = "kubernetes.io/docs/concepts/overview/working-with-objects/names (2026)"

_PART = r"[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?"
_KEY = rf"((?=[^/]{{1,253}}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?{_PART}"
_VALUE = rf"({_PART})?"
_KEY_WORDS = "at most 63 letters, digits, -, _ and ., optionally after a domain and a slash"
_VALUE_WORDS = "at most 63 letters, digits, -, _ and ., starting and ending with a letter or a digit"
_LABELS_SOURCE = "kubernetes.io/docs/concepts/overview/working-with-objects/labels (2026)"
_NO_POOL = "The node pool could not be created."


def _label_keys(pool: PoolIn) -> Texts:
    for key in pool.pool.labels:
        yield _label_path(pool, key), key


def _label_values(pool: PoolIn) -> Texts:
    for key, value in pool.pool.labels.items():
        yield _label_path(pool, key), value


def _label_path(pool: PoolIn, key: str) -> str:
    written = path_text([key])
    return pool.at("labels") + (written if written.startswith("[") else f".{written}")


def _taint_keys(pool: PoolIn) -> Texts:
    for index, taint in enumerate(pool.pool.taints or ()):
        yield pool.at(f"taints[{index}].key"), taint.key


def _taint_values(pool: PoolIn) -> Texts:
    for index, taint in enumerate(pool.pool.taints or ()):
        yield pool.at(f"taints[{index}].value"), taint.value


_RESERVED = (
    ("kubernetes.io", "Kubernetes"),
    ("k8s.io", "Kubernetes"),
    ("ebbtide.dev", "Ebbtide"),
)
_RESERVED_ON = {
    CloudKind.GKE: ("cloud.google.com", "GKE"),
    CloudKind.AKS: ("kubernetes.azure.com", "AKS"),
}


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
    for path, key in _label_keys(pool):
        cloud = pool.site.cloud
        if key and (owner := _owner(key, cloud)) and key not in CLOUD_SPECS[cloud].allowed_labels:
            yield _reserved("label", path, key, owner)


@pool_rule("no reserved taint prefix", "kubernetes.io/docs/reference/labels-annotations-taints (2026)")
def _reserved_taints(pool: PoolIn) -> Iterator[Fault]:
    for path, key in _taint_keys(pool):
        cloud = pool.site.cloud
        if key and (owner := _owner(key, cloud)) and key not in CLOUD_SPECS[cloud].allowed_taints:
            yield _reserved("taint", path, key, owner)


def _reserved(noun: str, path: str, key: str, owner: str) -> Fault:
    prefix, _, name = key.rpartition("/")
    return Fault(
        path,
        f"The prefix {prefix}/ of the {noun} {key} is reserved by {owner}.",
        "The value would be wrong, or the cloud would refuse the node pool.",
        f"Remove it, or use a domain of your own, such as acme.example/{name}.",
    )


@pool_rule(
    "unique taints", "kubernetes/kubernetes v1.33.0 pkg/apis/core/validation: unique by key and effect"
)
def _same_taint_twice(pool: PoolIn) -> Iterator[Fault]:
    taints = pool.pool.taints or ()
    times = Counter((taint.key, taint.effect) for taint in taints)
    reported: set[tuple[str, TaintEffect]] = set()
    for index, taint in enumerate(taints):
        key = (taint.key, taint.effect)
        if times[key] > 1 and key in reported:
            yield Fault(
                pool.at(f"taints[{index}]"),
                f"The taint {taint.key} with effect {taint.effect} is written twice.",
                "Kubernetes holds one value for a key and effect, and refuses the node.",
                "Remove one of the two, or give it another effect.",
            )
        reported.add(key)


def _tainted_by_cloud(pool: PoolIn) -> bool:
    """Return whether the cloud itself taints the pool's nodes (GKE docs, gpus and provisioningrequest;
    azure-aks-docs, spot-node-pool; 2026)."""
    match pool.site.cloud:
        case CloudKind.GKE:
            return isinstance(pool.pool.capacity, Queued) or pool.resolved.accelerator is not None
        case CloudKind.AKS:
            return isinstance(pool.pool.capacity, Spot)


@pool_rule(
    "work pool is tainted", "kubernetes/autoscaler#2377, Azure/AKS#1874: GPU pools that never reach zero"
)
def _untainted(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.taints == () and not pool.pool.is_system and not _tainted_by_cloud(pool):
        yield Fault(
            pool.at("taints"),
            "A work pool without taints accepts any pod.",
            "System pods would run on its nodes, and it could not scale to zero.",
            "Omit taints for the derived taint, or write at least one.",
        )


@pool_rule(
    "work pool taint effect",
    "kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration (2026); kubernetes/autoscaler#2377",
    severity=Severity.WARNED,
)
def _only_soft_taints(pool: PoolIn) -> Iterator[Fault]:
    taints = pool.pool.taints or ()
    soft = [taint for taint in taints if taint.effect is TaintEffect.PREFER_NO_SCHEDULE]
    if taints and len(soft) == len(taints) and not pool.pool.is_system and not _tainted_by_cloud(pool):
        yield Fault(
            pool.at("taints"),
            "The pool's taints all have the effect PreferNoSchedule.",
            "System pods may run on its nodes when the system pool is full, and it could not scale to zero.",
            "Write the effect NoSchedule for one of them.",
        )


RULES = (
    *pool_rules(
        Syntax(
            what="label key",
            whose="Kubernetes",
            pattern=_KEY,
            wants=_KEY_WORDS,
            example="acme.example/team",
            consequence=_NO_POOL,
            source=_LABELS_SOURCE,
            texts=_label_keys,
        ),
        Syntax(
            what="label value",
            whose="Kubernetes",
            pattern=_VALUE,
            wants=_VALUE_WORDS,
            example="vision",
            consequence=_NO_POOL,
            source=_LABELS_SOURCE,
            texts=_label_values,
        ),
        Syntax(
            what="taint key",
            whose="Kubernetes",
            pattern=_KEY,
            wants=_KEY_WORDS,
            example="acme.example/team",
            consequence=_NO_POOL,
            source="kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration (2026)",
            texts=_taint_keys,
        ),
        Syntax(
            what="taint value",
            whose="Kubernetes",
            pattern=_VALUE,
            wants=_VALUE_WORDS,
            example="vision",
            consequence=_NO_POOL,
            source="kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration (2026)",
            texts=_taint_values,
        ),
    ),
)
