"""Selectors of labels and nodes, and tolerations, as Kubernetes evaluates them.

Sources: Kubernetes docs, labels and selectors, assign-pod-node, and taint-and-toleration (2026).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar, cast

from ebbtide.values.paths import Manifest

_SOFT: Final = "PreferNoSchedule"
_NEGATIVE: Final = ("NotIn", "DoesNotExist")


class Tainted(Protocol):
    """A taint of a node."""

    @property
    def key(self) -> str:
        """Key."""
        ...

    @property
    def value(self) -> str:
        """Value; empty for none."""
        ...

    @property
    def effect(self) -> object:
        """Effect, such as `NoSchedule`, which is equal to a string."""
        ...


_Taint = TypeVar("_Taint", bound=Tainted)


def _part(raw: Manifest, key: str) -> Manifest:
    return cast("Manifest", raw.get(key) or {})


def _none_unknown(_key: str) -> bool:
    return False


def selects(
    selector: Manifest, labels: Mapping[str, str], is_unknown: Callable[[str], bool] = _none_unknown
) -> bool | None:
    """Return whether a selector with `matchLabels` and `matchExpressions` selects labels.

    Args:
        selector: the selector; an empty one selects everything.
        labels: the labels that are known.
        is_unknown: returns whether a label that is not among them may exist all the same.

    Returns:
        None if that depends on labels that are not known. A label that must not exist, or not with a value,
        is assumed not to exist.
    """
    equal = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in _part(selector, "matchLabels").items()
    ]
    listed: Iterable[Manifest] = selector.get("matchExpressions") or ()
    results = {_fulfils(item, labels, is_unknown) for item in (*equal, *listed)}
    if selector.get("matchFields"):
        results.add(None)
    return False if False in results else None if None in results else True


def _fulfils(item: Manifest, labels: Mapping[str, str], is_unknown: Callable[[str], bool]) -> bool | None:
    key, operator = str(item["key"]), str(item["operator"])
    values: Sequence[str] = item.get("values") or ()
    value = labels.get(key)
    if value is None:
        return operator in _NEGATIVE or (None if is_unknown(key) else False)
    match operator:
        case "In" | "NotIn":
            return (value in values) is (operator == "In")
        case "Gt" | "Lt":
            limit = values[0] if values else ""
            smaller, larger = (limit, value) if operator == "Gt" else (value, limit)
            return _is_number(larger) and _is_number(smaller) and int(larger) > int(smaller)
        case _:
            return operator == "Exists"


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def selects_node(
    pod: Manifest, labels: Mapping[str, str], is_unknown: Callable[[str], bool] = _none_unknown
) -> bool | None:
    """Return whether the node selector and the required node affinity of a pod select a node.

    Args:
        pod: spec of the pod.
        labels: known labels of the node.
        is_unknown: as for `selects`, which describes the result, too.
    """
    affinity = _part(_part(pod, "affinity"), "nodeAffinity")
    required = _part(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    terms: Iterable[Manifest] = required.get("nodeSelectorTerms") or ({},)
    own = selects({"matchLabels": pod.get("nodeSelector")}, labels, is_unknown)
    by_terms = {selects(term, labels, is_unknown) for term in terms}
    one = True if True in by_terms else None if None in by_terms else False
    return False if False in (own, one) else None if None in (own, one) else True


def untolerated(pod: Manifest, taints: Iterable[_Taint]) -> Iterator[_Taint]:
    """Yield the taints that keep a pod off a node.

    Args:
        pod: spec of the pod.
        taints: taints of the node.
    """
    tolerations: Iterable[Manifest] = pod.get("tolerations") or ()
    for taint in taints:
        if taint.effect != _SOFT and not any(_tolerates(item, taint) for item in tolerations):
            yield taint


def _tolerates(toleration: Manifest, taint: Tainted) -> bool:
    return (
        (toleration.get("key") or "") in ("", taint.key)
        and (toleration.get("effect") or "") in ("", taint.effect)
        and (toleration.get("operator") == "Exists" or (toleration.get("value") or "") == taint.value)
    )
