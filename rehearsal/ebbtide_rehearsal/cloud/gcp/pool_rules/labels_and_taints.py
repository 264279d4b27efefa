"""Rules for node labels, taints and metadata, and for billing labels."""

import re
from typing import Final

from ebbtide_rehearsal.cloud.gcp.labels import bad_labels
from ebbtide_rehearsal.cloud.gcp.pool_rules.rule import PoolRequest, pool_rule

_PART: Final = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_DOMAIN: Final = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_DOMAIN_LENGTH: Final = 253
_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
_LET_IN: Final = ("kubelet.kubernetes.io", "node.kubernetes.io", "node-restriction.kubernetes.io")


def is_key(text: str) -> bool:
    """Return whether a text is a label key: a name, optionally with a domain and a slash as prefix."""
    domain, slash, name = text.rpartition("/")
    fits = bool(_DOMAIN.match(domain)) and len(domain) <= _DOMAIN_LENGTH if slash else True
    return fits and bool(_PART.match(name))


def _is_value(text: str) -> bool:
    return not text or bool(_PART.match(text))


def _reserved(key: str) -> bool:
    domain = key.rpartition("/")[0]
    ours = any(domain == reserved or domain.endswith(f".{reserved}") for reserved in _KUBERNETES)
    return ours and not any(domain == exception or domain.endswith(f".{exception}") for exception in _LET_IN)


def _labels(pool: PoolRequest) -> str | None:
    for key, value in pool.fields.labels("nodeConfig.labels").items():
        if not is_key(key):
            return f"Invalid field 'node.labels': \"{key}\" is not a valid label key."
        if not _is_value(value):
            return f'Invalid field \'node.labels\': "{value}" is not a valid value of label "{key}".'
        if _reserved(key):
            return f'Node label "{key}" is not allowed: its prefix is reserved by Kubernetes.'
    return None


def _taints(pool: PoolRequest) -> str | None:
    declared: set[tuple[str, str]] = set()
    for taint in pool.fields.parts("nodeConfig.taints"):
        key, value, effect = taint.text("key"), taint.text("value"), taint.text("effect")
        if not is_key(key) or not _is_value(value):
            return f"Invalid field 'node.taints': \"{key}={value}:{effect}\" is not a valid taint."
        if (key, effect) in declared:
            return f'Duplicate taint "{key}" with effect {effect}.'
        declared.add((key, effect))
    return None


def _billing(pool: PoolRequest) -> str | None:
    given = pool.fields.labels("nodeConfig.resourceLabels")
    return bad_labels({key: value for key, value in given.items() if not key.startswith("goog-gke")})


_LABELS: Final = "kubernetes.io/docs/concepts/overview/working-with-objects/labels (2026)"

RULES: Final = (
    pool_rule(
        "labels of nodes",
        f"{_LABELS}; hashicorp/terraform-provider-google#6003, #19677",
        _labels,
    ),
    pool_rule(
        "taints",
        "kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration (2026); kubernetes/kubernetes "
        "v1.36.2 pkg/apis/core/validation",
        _taints,
    ),
    pool_rule("labels of the bill", "Resource Manager docs, creating-managing-labels (2026)", _billing),
)
