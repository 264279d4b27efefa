"""Paths into a declaration."""

from typing import Any

import pytest

from ebbtide.values.paths import Key, is_within, path_keys, path_text, position


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ((), ""),
        (("pools", 2, "taints", 0, "effect"), "pools[2].taints[0].effect"),
        (("labels", "acme.example/team"), 'labels["acme.example/team"]'),
        (("7",), '["7"]'),
    ],
)
def test_there_and_back(keys: tuple[Key, ...], path: str) -> None:
    """A path's keys make the path again."""
    assert path_text(keys) == path
    assert path_keys(path) == keys


@pytest.mark.parametrize(
    ("path", "place", "within"),
    [
        ("pools[1].nodes", "pools[1]", True),
        ("pools[1]", "pools", True),
        ("pools[1]", "pools[1]", True),
        ("pools[10]", "pools[1]", False),
        ("poolside", "pools", False),
        ("name", "", True),
    ],
)
def test_within(path: str, place: str, *, within: bool) -> None:
    """A path is within a place when it is that place or below it, and not when only its text begins so."""
    assert is_within(path, place) is within


def test_positions_follow_what_was_written() -> None:
    """Paths sort as their positions in the text, and omitted fields after written ones."""
    written: dict[str, Any] = {"pools": [{"nodes": {}, "name": "a"}, {}], "name": "x"}
    paths = ["pools[0].nodes", "pools[0].name", "pools[0].role", "pools[1]", "name", "owner"]
    assert sorted(set(paths), key=lambda path: position(path, written)) == paths
