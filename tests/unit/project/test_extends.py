"""Declarations that extend a base file."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.stack_files import StackFileError, read_stack
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.project.extends import extended
from ebbtide.errors import ExtendsError
from tests.repository import ROOT
from tests.synth import synth_stack

_BASE = """\
config:
  ebbtide:cluster:
    owner: vision
    lifetime: {hours: 8}
    cloud: {kind: gke, project: acme-ml, location: us-central1-a}
    pools:
      - {name: system, role: system, machine: e2-small}
      - name: t4
        machine: n1-standard-4
        nodes: {max: 4}
    addons: {kueue: {frameworks: [a, b]}}
"""


def _project(directory: Path, own: str, base: str = _BASE) -> Path:
    (directory / "Pulumi.yaml").write_text("{name: shop, runtime: python}")
    (directory / "Pulumi.base.yaml").write_text(base)
    (directory / "Pulumi.dev.yaml").write_text(f"config:\n  ebbtide:cluster:\n    {own}")
    return directory


def test_fields_lists_and_names_are_merged(tmp_path: Path) -> None:
    """The base's value, unless the stack's own file changes it; its order is the base's."""
    own = """extends: Pulumi.base.yaml
    lifetime: null
    cloud: {location: us-central1-b}
    pools:
      - {name: t4, nodes: {max: 1}, machine: n1-standard-4}
      - {name: a100, machine: a2-highgpu-1g}
    addons: {kueue: {frameworks: [c]}}
"""
    files = read_stack(_project(tmp_path, own), "dev")
    assert files.declaration() == {
        "owner": "vision",
        "cloud": {"kind": "gke", "project": "acme-ml", "location": "us-central1-b"},
        "pools": [
            {"name": "system", "role": "system", "machine": "e2-small"},
            {"name": "t4", "machine": "n1-standard-4", "nodes": {"max": 1}},
            {"name": "a100", "machine": "a2-highgpu-1g"},
        ],
        "addons": {"kueue": {"frameworks": ["c"]}},
    }
    assert files.source is not None
    assert set(files.source.declaration.changes) == {
        "lifetime",
        "cloud.location",
        "pools[t4].nodes.max",
        "pools[a100]",
        "addons.kueue.frameworks",
    }


def test_positions_are_of_the_file_that_has_the_value(tmp_path: Path) -> None:
    """For errors: a pool of the base, and a field of it that the stack's own file sets."""
    own = "extends: Pulumi.base.yaml\n    pools:\n      - {name: t4, nodes: {max: 1}}"
    files = read_stack(_project(tmp_path, own), "dev")
    assert files.source is not None
    declared = files.declaration()
    for path, position in {
        "owner": "Pulumi.base.yaml:3:5",
        "pools[1].machine": "Pulumi.base.yaml:9:9",
        "pools[1].nodes.max": "Pulumi.dev.yaml:5:28",
    }.items():
        assert str(files.source.position(path, declared)).endswith(position)


def test_a_base_may_have_a_base(tmp_path: Path) -> None:
    """A file with the fields of a declaration alone is one as well."""
    (tmp_path / "common.yaml").write_text("owner: vision\nlifetime: {hours: 2}")
    base = "config: {'ebbtide:cluster': {extends: common.yaml, lifetime: {hours: 3}}}"
    files = read_stack(_project(tmp_path, "extends: Pulumi.base.yaml", base), "dev")
    assert files.declaration() == {"owner": "vision", "lifetime": {"hours": 3}}
    assert files.source is not None
    assert files.source.declaration.bases == ("Pulumi.base.yaml", "common.yaml")


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("extends: Pulumi.bse.yaml", "extends Pulumi.bse.yaml, which is invalid."),
        ("extends: 3", "extends is not a file."),
        ("extends: Pulumi.dev.yaml", "extends Pulumi.dev.yaml: a file cannot extend itself."),
        ("extends: Pulumi.yaml", "extends Pulumi.yaml, which"),
        (
            "extends: Pulumi.base.yaml\n    pools: [{name: t9, $patch: delete}]",
            "pools[t9] is removed, but does not exist in the base.",
        ),
    ],
)
def test_a_base_that_cannot_be_used(tmp_path: Path, own: str, message: str) -> None:
    """Reported with the position of `extends`."""
    directory = _project(tmp_path, own)
    if own.endswith("Pulumi.yaml"):
        (directory / "Pulumi.yaml").write_text("{name: shop, runtime: python, config: {}}")
    with pytest.raises(StackFileError) as raised:
        read_stack(directory, "dev")
    assert message in str(raised.value)
    assert "Pulumi.dev.yaml:" in str(raised.value)


_PRINTED = st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])  # keys have no other


def _no_number(text: str) -> bool:
    # PyYAML writes `0E0` without quotes, which is a number in YAML 1.2.
    return not text.startswith(tuple("-+.0123456789"))


_KEYS = st.text(_PRINTED, max_size=3).filter(_no_number)
_JSON = st.recursive(
    st.integers() | st.text(max_size=3).filter(_no_number),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(_KEYS, children, max_size=3),
    max_leaves=8,
)


@given(base=st.dictionaries(st.sampled_from(["owner", "cloud", "pools", "x"]), _JSON, max_size=4))
def test_an_empty_change_is_the_base(
    base: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And so is the base itself as the change; neither counts as one."""
    directory = tmp_path_factory.mktemp("project")
    (directory / "base.yaml").write_text(yaml.safe_dump(base))
    for change in ({}, {key: value for key, value in base.items() if key != "pools"}):
        result = extended({"extends": "base.yaml", **change}, directory)
        assert (result.value, result.changes) == (base, ())


def test_without_a_base_nothing_changes() -> None:
    """Values that are not a declaration are left to the validation."""
    for value in ({"owner": "vision"}, "text", None, [1]):
        assert extended(value, Path()).value == value
    with pytest.raises(ExtendsError):
        extended({"extends": "nothing.yaml"}, Path("/nonexistent"))


def test_prod_is_dev_for_good() -> None:
    """The stack prod is permanent and regional, and its T4 queue falls back to on-demand machines."""
    files = read_stack(ROOT, "prod")
    cluster, dev = declare(files.declaration()), declare(read_stack(ROOT, "dev").declaration())
    assert not cluster.is_ephemeral
    assert {pool.name for pool in cluster.pools} == {pool.name for pool in dev.pools} | {"t4"}
    assert files.source is not None
    preview = preview_of(synth_stack(ROOT / "Pulumi.prod.yaml"), declaration=files.source.declaration)
    assert preview.extends == ("Pulumi.dev.yaml",)
    assert preview.counts.protected


def test_null_removes_a_field_of_the_base_alone(tmp_path: Path) -> None:
    """Null for a field that the base does not have stays, and is refused as it is without a base."""
    own = "extends: Pulumi.base.yaml\n    addons: {kueue: null, pipelines: }\n"
    declaration = read_stack(_project(tmp_path, own), "dev").declaration()
    assert declaration["addons"] == {"pipelines": None}
