"""What new inputs change of an object.

The object as it was last seen, cut down to the shape of what was asked for then, is held against what is
asked for now: what the server and others add is no difference, and what a refresh found changed is one.
Source: pulumi-kubernetes 4.32, provider/pkg/provider/provider.go, `Diff`.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

from ebbtide.kubernetes_api.quantities import parse_quantity
from ebbtide.recording.values import UNKNOWN
from ebbtide_rehearsal.cloud.kubernetes.objects import MISSING, Object, Path, words

_QUANTITIES: Final = frozenset(
    words(
        """
        requests limits hard capacity max min default defaultRequest maxLimitRequestRatio sizeLimit divisor
        averageValue podFixed
        """
    )
)
"""Fields that hold quantities, or objects of them, which the server writes in its own way: `1000m` as `1`."""


def pruned(live: Any, shape: Any) -> Any:
    """What is in an object of that which is in another: values of keys that both have, and no more items of a
    list than the other has. What is empty, zero or false there and not here is taken over: the server leaves
    out what says nothing.
    """
    match live, shape:
        case dict(), dict():
            lives, shapes = cast("Object", live), cast("Object", shape)
            return {
                key: pruned(lives[key], value) if key in lives else value
                for key, value in shapes.items()
                if key in lives or not value
            }
        case list(), list():
            items = cast("list[Any]", live)
            return [pruned(item, of) for item, of in zip(items, cast("list[Any]", shape), strict=False)]
        case _:
            return live


def differences(old: Any, new: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Where two objects differ, and what stands there in the new one; `MISSING` for nothing.

    Quantities that the server writes in a form of its own are no difference, nor is something empty.
    """
    match old, new:
        case dict(), dict():
            olds, news = cast("Object", old), cast("Object", new)
            for key in sorted({*olds, *news}):
                yield from differences(olds.get(key, MISSING), news.get(key, MISSING), (*path, key))
        case list(), list():
            olds, news = cast("list[Any]", old), cast("list[Any]", new)
            if len(olds) == len(news):
                for index, (before, after) in enumerate(zip(olds, news, strict=True)):
                    yield from differences(before, after, (*path, index))
            else:
                yield path, news
        case _ if _alike(old, new, path):
            return
        case _:
            yield path, new


def _alike(old: Any, new: Any, path: Path) -> bool:
    if new is UNKNOWN:
        return False
    if old is MISSING or new is MISSING:
        return _is_nothing(old) and _is_nothing(new)
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    return old == new or (not _QUANTITIES.isdisjoint(map(str, path)) and _same_quantity(old, new))


def _is_nothing(value: Any) -> bool:
    return value is MISSING or value is None or value in ({}, [], "")


def _same_quantity(old: Any, new: Any) -> bool:
    try:
        return parse_quantity(old) == parse_quantity(new)
    except (ArithmeticError, TypeError, ValueError):
        return False
