"""Durations, paths, quantities, requests of pods, and files of users."""

import contextlib
import copy
import json
import tempfile
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes.utils import quantity as untyped  # pyright: ignore[reportMissingTypeStubs] - it has none

from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.analysis.reading.state import recording_of
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.project.yaml_file import YamlFileError, read
from ebbtide.errors import EbbtideError
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.values import durations, quantities
from ebbtide.values.paths import Key, is_within, path_keys, path_text, position
from ebbtide.values.pod_requests import node_share, pod_requests
from ebbtide.values.selectors import selects
from ebbtide.values.user_files import LARGEST, UserFileError, parse_json, read_text
from tests.declarations import GKE

_LENGTHS = {
    "0s": timedelta(),
    "45s": timedelta(seconds=45),
    "90m": timedelta(minutes=90),
    "12h": timedelta(hours=12),
    "7d": timedelta(days=7),
    "-5m": timedelta(minutes=-5),
}


@pytest.mark.parametrize(("text", "length"), _LENGTHS.items())
def test_there_and_back(text: str, length: timedelta) -> None:
    """A duration is written as it was read."""
    assert durations.parse(text) == length
    assert durations.in_one_unit(length) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h30m", 5400), ("0.5h", 1800), ("1d1s", 86401), ("86400s", 86400), ("1.1h", 3960)]
)
def test_other_forms_are_read(text: str, seconds: int) -> None:
    """Several units, from the largest on, and fractions that are whole seconds."""
    assert durations.parse(text) == timedelta(seconds=seconds)


_NO_DURATIONS = ["-", "5", "soon", "30m1h", "1500ms", "0.5s", "99999999999d"]


@pytest.mark.parametrize("written", [*_NO_DURATIONS, "", "1h, 5m", 604800, None, timedelta(0, 0, 1)])
def test_no_durations(written: object) -> None:
    """A number without a unit, unknown units, parts of a second, and what a timedelta cannot hold."""
    with pytest.raises(ValueError, match="written with its unit, in whole seconds"):
        durations.parse(written)


@pytest.mark.parametrize(
    ("seconds", "in_seconds", "in_words", "rounded", "elapsed", "clock"),
    [
        (0, "0s", "0 s", "less than a minute", "0 s", "0:00:00"),
        (45, "45s", "45 s", "less than a minute", "45 s", "0:00:45"),
        (59.6, "60s", "1 minute", "1 minute", "1 min 0 s", "0:01:00"),
        (750, "750s", "750 s", "12 minutes", "12 min 30 s", "0:12:30"),
        (5400, "5400s", "90 minutes", "1 hour", "1 h 30 min", "1:30:00"),
        (86340, "86340s", "1,439 minutes", "23 hours", "23 h 59 min", "23:59:00"),
        (604800, "604800s", "7 days", "7 days", "168 h 0 min", "168:00:00"),
    ],
)
def test_formats(
    seconds: float, in_seconds: str, in_words: str, rounded: str, elapsed: str, clock: str
) -> None:
    """Seconds and a timedelta read the same."""
    for duration in (seconds, timedelta(seconds=seconds)):
        assert durations.in_seconds(duration) == in_seconds
        assert durations.in_words(duration) == in_words
        assert durations.rounded(duration) == rounded
        assert durations.elapsed(duration) == elapsed
        assert durations.on_a_clock(duration) == clock


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ((), ""),
        (("pools", 2, "taints", 0, "effect"), "pools[2].taints[0].effect"),
        (("labels", "acme.example/team"), 'labels["acme.example/team"]'),
        (("7",), '["7"]'),
    ],
)
def test_a_path_there_and_back(keys: tuple[Key, ...], path: str) -> None:
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
def test_paths_within(path: str, place: str, *, within: bool) -> None:
    """A path is within a place when it is that place or below it, and not when only its text begins so."""
    assert is_within(path, place) is within


def test_positions_follow_what_was_written() -> None:
    """Paths sort as their positions in the text, and omitted fields after written ones."""
    written: dict[str, Any] = {"pools": [{"nodes": {}, "name": "a"}, {}], "name": "x"}
    paths = ["pools[0].nodes", "pools[0].name", "pools[0].role", "pools[1]", "name", "owner"]
    assert sorted(set(paths), key=lambda path: position(path, written)) == paths


_official: Any = untyped


@pytest.mark.parametrize(
    "written",
    ["0", "2", "0.5", ".5", "500m", "100n", "7u", "1k", "48G", "1e3", "12E", "1Ki", "1.5Gi", "3Ei", 2],
)
def test_quantities_are_read_as_the_official_client_reads_them(written: str | int) -> None:
    """Quantities are parsed as by the official client, which creating a Job does not need."""
    assert quantities.parse(written) == _official.parse_quantity(written)


@pytest.mark.parametrize("written", ["", "much", "4 Gi", "1ki", "1K", "5mm", "1e3Gi", "--1", "."])
def test_malformed_quantities(written: str) -> None:
    """The API server refuses them too."""
    with pytest.raises(ValueError, match="is not a quantity"):
        quantities.parse(written)


@pytest.mark.parametrize(
    ("millicores", "mebibytes", "cpu", "memory"),
    [
        (0, 0, "0", "0"),
        (500, 512, "500m", "512Mi"),
        (4000, 49152, "4", "48Gi"),
        (1500, 1536, "1500m", "1536Mi"),
    ],
)
def test_quantities_are_written_in_canonical_form(
    millicores: int, mebibytes: int, cpu: str, memory: str
) -> None:
    """The API server rewrites any other form, which a plan would show as a change."""
    assert quantities.cpu(millicores) == cpu
    assert quantities.memory(mebibytes) == memory
    assert quantities.parse(cpu) == Decimal(millicores) / 1000


@pytest.mark.parametrize(("number", "written"), [(20, "20"), (1500, "1500"), (2000, "2k"), (5_000_000, "5M")])
def test_quantities_of_objects(number: int, written: str) -> None:
    """The API server answers in this form, and another would be an update each time."""
    assert quantities.count(number) == written


_GPU = "nvidia.com/gpu"


def _container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


def _pod(*before: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A pod of one container that requests a CPU, with containers before it."""
    return {"containers": [_container("1")], **({"initContainers": [*before]} if before else {}), **more}


_SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [_container("1"), _container("500m")]}, "1.5"),
        (_pod(_container("500m")), "1"),
        (_pod(_container("3"), _container("2")), "3"),
        (_pod(_container("2", **_SIDECAR)), "3"),
        (_pod(_container("2", **_SIDECAR), _container("3")), "5"),
        (_pod(_container("3"), _container("1500m", **_SIDECAR)), "3"),
        (_pod(overhead={"cpu": "250m"}), "1.25"),
        ({"containers": [_container("10m")], "resources": {"requests": {"cpu": "7"}}}, "7"),
        (_pod(_container("9"), resources={"requests": {"cpu": "7"}}, overhead={"cpu": "1"}), "8"),
        ({"containers": [{"name": "c"}], "resources": {"limits": {"cpu": "7"}}}, "7"),
        (_pod(resources={"limits": {"cpu": "7"}}), "1"),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}, "2"),
    ],
)
def test_requests_are_counted_as_the_scheduler_does(spec: dict[str, Any], cpu: str) -> None:
    """Containers with sidecars, or the largest step before them, unless the pod has its own; and overhead."""
    assert pod_requests(spec) == {"cpu": Decimal(cpu)}


def test_requests_of_a_pod_leave_other_resources_to_its_containers() -> None:
    """Accelerators stand at containers, while the pod's own CPU and memory replace theirs."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {_GPU: 2}}}
    spec = {"containers": [container], "resources": {"requests": {"memory": "4Gi"}}}
    assert pod_requests(spec) == {"cpu": 1, _GPU: 2, "memory": 4 << 30}


_NODE = {"cpu": Decimal(8), "memory": Decimal(32), _GPU: Decimal(4)}


@pytest.mark.parametrize(
    ("requests", "accelerator", "share"),
    [
        ({"cpu": Decimal(4), "memory": Decimal(8)}, "", 0.375),
        ({"cpu": Decimal(8)}, "", 0.5),
        ({"cpu": Decimal(80), "memory": Decimal(320)}, "", 1),
        ({"cpu": Decimal(8), _GPU: Decimal(1)}, _GPU, 0.25),
        ({"cpu": Decimal(8)}, _GPU, 0),
        ({_GPU: Decimal(1)}, "google.com/tpu", None),
    ],
)
def test_the_share_of_a_node(requests: dict[str, Decimal], accelerator: str, share: float | None) -> None:
    """A pod has its share of the accelerators, or the mean of its shares of CPU and memory."""
    assert node_share(requests, _NODE, accelerator) == share


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
    """A device is not read to its end, and a name with a NUL character is not a bug."""
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


@pytest.mark.parametrize(
    ("operator", "bound", "selected"),
    [("Gt", "15", True), ("Gt", "16", False), ("Lt", "17", True), ("Lt", "-1", False), ("Gt", "many", False)],
)
def test_numbers_of_labels_are_compared(operator: str, bound: str, *, selected: bool) -> None:
    """A label that is a number is compared with the bound of Gt and Lt, and any other is not selected."""
    term = {"matchExpressions": [{"key": "cores", "operator": operator, "values": [bound]}]}
    assert selects(term, {"cores": "16"}) is selected
    assert selects(term, {"cores": "all"}) is False


@pytest.mark.parametrize("labels", [{"cores": "16"}, {}])
def test_labels_that_must_not_exist(labels: dict[str, str]) -> None:
    """A selector for nodes without a label selects none that has it."""
    assert selects({"matchExpressions": [{"key": "cores", "operator": "DoesNotExist"}]}, labels) is (
        not labels
    )
