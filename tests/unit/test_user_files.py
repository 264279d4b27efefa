"""Files from users: whatever bytes they have, the error is a sentence."""

import contextlib
import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.analysis.reading.state import recording_of
from ebbtide.declaration.model import declare
from ebbtide.declaration.project.yaml_file import YamlFileError, read
from ebbtide.errors import EbbtideError
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.values.user_files import LARGEST, UserFileError, parse_json, read_text
from tests.declarations import GKE

_POLICY = {"limits": {"idleUsdPerHour": 1}, "levels": {"spot-system": "disabled"}}
_STACK = {"config": {"ebbtide:cluster": GKE, "ebbtide:policy": _POLICY, "ebbtide:prices": "prices.csv"}}
_PRICES = "cloud,region,item,usd_per_hour_on_demand,as_of\ngke,global,n2-standard-8,0.3,2026-11\n"
_URN = "urn:pulumi:dev::shop::gcp:storage/bucket:Bucket::data"
_RESOURCE = {"urn": _URN, "type": "gcp:storage/bucket:Bucket", "custom": True, "inputs": {"name": "data"}}
_STATE = {"version": 3, "deployment": {"resources": [_RESOURCE | {"dependencies": [_URN]}]}}

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just("a\x00\x1b[31m"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


def _damaged(draw: st.DrawFn, value: Any) -> Any:
    """Replace a part of a value with any other, or add one."""
    if type(value) not in (dict, list) or not value or not draw(st.integers(0, 4)):
        return draw(_values)
    changed = copy.copy(value)
    is_mapping = hasattr(changed, "keys")
    key: Any = draw(st.sampled_from(list(changed) if is_mapping else range(len(changed))))
    changed[key] = _damaged(draw, changed[key])
    if is_mapping and draw(st.booleans()):
        changed[draw(st.sampled_from(["extends", "name", "secure", "kind"]))] = draw(_values)
    return changed


damaged = st.composite(_damaged)
content = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text(alphabet="[]{}:,-&*<!|>\"'\n \t#%@`a1\\~?", max_size=200).map(str.encode),
    damaged(_STACK).map(lambda value: yaml.safe_dump(value).encode()),
    damaged(_STATE).map(lambda value: json.dumps(value).encode()),
    damaged(profile(declare(GKE)).data()).map(lambda value: json.dumps(value).encode()),
    st.lists(st.sampled_from(_PRICES) | st.characters(), max_size=80).map(
        lambda more: (_PRICES + "".join(more)).encode("utf-8", "surrogatepass")
    ),
)


@settings(max_examples=150, deadline=None)
@given(content)
def test_any_bytes_are_read_or_refused(given_bytes: bytes) -> None:
    """The stack's file, prices, an exported state and a profile raise errors for users, and no others."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
        (root / "Pulumi.dev.yaml").write_bytes(given_bytes)
        (root / "Pulumi.own.yaml").write_text(yaml.safe_dump(_STACK))
        (root / "prices.csv").write_bytes(given_bytes)

        def stack() -> None:
            files = read_stack(root, "dev")
            declared = files.declaration()
            files.policy()
            declare(declared)

        def prices() -> None:
            with read_stack(root, "own").prices():
                pass

        def state() -> None:
            text = read_text(root / "Pulumi.dev.yaml")
            recording_of(text, project="shop", stack="dev", file="state.json")

        for reader in (stack, prices, state, lambda: Profile.load(root / "Pulumi.dev.yaml")):
            with contextlib.suppress(EbbtideError):
                reader()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 100_000, "nested more than 100 levels deep"),
        ("{a: " * 3_000, "nested more than 100 levels deep"),
        ("- " * 3_000, "nested more than 100 levels deep"),
        ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200)), "levels deep"),
        (
            "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 12)),
            "aliases of the file repeat more than 10000 values",
        ),
        (
            "a0: &a0 {x: 1, y: 2}\n"
            + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}, b: *a{n - 1}, c: *a{n - 1}}}\n" for n in range(1, 20)),
            "aliases of the file repeat more than 10000 values",
        ),
        ("a: " + "1" * 5_000, "number is too large"),
        ("a: 0x" + "f" * 5_000, "number is too large"),
        ("a: b\nc: \x00\n", "2:4: The file has the control character U+0000."),
        ("a" * (LARGEST + 1), "too large: over 1 MiB"),
    ],
)
def test_limits_of_yaml(tmp_path: Path, text: str, problem: str) -> None:
    """Depth, aliases, numbers and size have one clear error each."""
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(YamlFileError) as refused:
        read(tmp_path / "a.yaml")
    assert problem in str(refused.value)


@pytest.mark.parametrize("text", ["[" * 100 + "]" * 100, "a: &a [1, 2]\nb: *a\nc: [*a, *a]\n"])
def test_what_is_within_the_limits(tmp_path: Path, text: str) -> None:
    """A hundred levels, and aliases of small values, are read."""
    (tmp_path / "a.yaml").write_text(text)
    assert read(tmp_path / "a.yaml").value == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("/dev/zero", "It is not a file."),
        (".", "It is a directory."),
        ("none", "No such file"),
        ("a\0b", "NUL character"),
        ("binary", "not UTF-8 text"),
        ("large", "too large"),
    ],
)
def test_what_is_no_text_file(tmp_path: Path, name: str, problem: str) -> None:
    """A device is not read to its end, and a name with a NUL character is no bug."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_bytes(b" " * (LARGEST + 1))
    with pytest.raises(UserFileError) as refused:
        read_text(tmp_path / name)
    assert problem in str(refused.value)


def test_depth_of_json() -> None:
    """Brackets count outside of text."""
    for text in ("[" * 100 + "]" * 100, json.dumps('[{"\\' * 200)):
        assert parse_json(text) == json.loads(text)
    for text in ("[" * 101 + "]" * 101, '{"a": ' * 100_000, '"[" ' + "[" * 101):
        with pytest.raises(ValueError, match="100 levels deep"):
            parse_json(text)
