"""Positions of errors in the file that declares a cluster, and keys that nothing reads."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.preview.stack_files import StackFileError, StackFiles, read_stack
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.project.diagnostics import declaration_text
from ebbtide.declaration.project.source import find_source

_CLUSTER = """\
    owner: vision-team
    cloud: {kind: gke, project: acme-ml, location: us-central1-a}
    pools:
      - {name: system, role: system, machine: e2-standard-4, nodes: {max: 3}}
      - name: cpu
        machine: n2-standard-8
        nodes: {max: 4}
"""
_DEV = f"config:\n  ebbtide:cluster:\n{_CLUSTER}"


def _files(directory: Path, dev: str, project: str = "shop", more: str = "") -> StackFiles:
    (directory / "Pulumi.yaml").write_text(f"name: {project}\nruntime: python\n{more}")
    (directory / "Pulumi.dev.yaml").write_text(dev)
    return read_stack(directory, "dev")


def _position(files: StackFiles, path: str, declared: Any = None) -> str | None:
    assert files.source is not None
    position = files.source.position(path, declared or files.declaration())
    return str(position).rpartition("/")[2] if position else None


def test_a_value_has_the_position_of_its_key(tmp_path: Path) -> None:
    """An item of a list has its own, and what is missing that of the part that it is missing in."""
    files = _files(tmp_path, _DEV)
    assert _position(files, "pools[1].machine") == "Pulumi.dev.yaml:8:9"
    assert _position(files, "pools[0].nodes.max") == "Pulumi.dev.yaml:6:70"
    assert _position(files, "pools[1]") == "Pulumi.dev.yaml:7:9"
    assert _position(files, "pools[1].capacity") == "Pulumi.dev.yaml:7:9"
    assert _position(files, "lifetime.hours") == "Pulumi.dev.yaml:2:3"
    assert _position(files, "") == "Pulumi.dev.yaml:2:3"


def test_a_value_from_elsewhere_has_no_position(tmp_path: Path) -> None:
    """A program may add to the declaration and change it; what it left alone still has its position."""
    files = _files(tmp_path, _DEV)
    declared = files.declaration()
    declared["queues"] = [{"name": "t4", "pools": ["t4"]}]
    declared["pools"][0]["machine"] = "e2-small"
    assert _position(files, "queues[0].pools[0]", declared) is None
    assert _position(files, "pools[0].machine", declared) is None
    assert _position(files, "pools[1].machine", declared) == "Pulumi.dev.yaml:8:9"


def test_a_setting_that_completes_the_declaration(tmp_path: Path) -> None:
    """A value that the program has taken from beside the declaration has its position there, for the preview
    and for a running program."""
    files = _files(tmp_path, f"{_DEV}  ebbtide:location: mars-1\n")
    declared = files.declaration()
    declared["cloud"]["zone"] = "elsewhere"
    declared["location"] = "mars-1"
    for source in (files.source, find_source(tmp_path, "dev")):
        assert source is not None
        assert str(source.position("location", declared)).endswith("Pulumi.dev.yaml:10:3")
        assert source.position("cloud.zone", declared) is None


def test_a_declaration_of_the_whole_project(tmp_path: Path) -> None:
    """A value or a default of Pulumi.yaml has its position there."""
    indented = "".join(f"    {line}\n" for line in _CLUSTER.splitlines())
    files = _files(tmp_path, "", more=f"config:\n  ebbtide:cluster:\n    default:\n{indented}")
    assert _position(files, "pools[1].machine") == "Pulumi.yaml:11:13"


def _error(files: StackFiles) -> str:
    with pytest.raises(DeclarationError) as refused:
        declare(files.declaration(), default_name=files.cluster_name)
    return declaration_text(refused.value, files.source).replace(f"{files.root}/", "")


@pytest.mark.parametrize("project", ["shop", "ebbtide"])
def test_pools_one_indent_too_far_left(tmp_path: Path, project: str) -> None:
    """The missing field is found beside the declaration, in a project of any name."""
    head, pools = _DEV.split("    pools:\n")
    moved = "".join(f"{line[2:]}\n" for line in pools.splitlines())
    assert _error(_files(tmp_path, f"{head}  pools:\n{moved}", project)) == (
        "The declaration has 1 error.\n\n"
        "Pulumi.dev.yaml:5:3: pools\n"
        "  pools is missing. The field is required.\n"
        "  `pools` is beside `ebbtide:cluster`, where it has no effect. "
        "Indent it under `ebbtide:cluster:`, like `owner`."
    )


def test_optional_fields_beside_the_declaration_are_a_warning(tmp_path: Path) -> None:
    """A program may have configuration of that name; the preview says that the declaration does not."""
    files = _files(tmp_path, f"{_DEV}  queues: [{{name: cpu, pools: [cpu]}}]\n  nodes: {{max: 4}}\n")
    queues, nodes = (warning.replace(f"{tmp_path}/", "") for warning in files.warnings)
    assert queues == (
        "Pulumi.dev.yaml:10:3: `queues` is beside `ebbtide:cluster`, where it has no effect. Indent it "
        "under `ebbtide:cluster:`, like `owner`."
    )
    assert nodes == (
        "Pulumi.dev.yaml:11:3: `nodes` is beside `ebbtide:cluster`, where it has no effect. Indent it "
        "under the pool that it belongs to."
    )


def test_other_configuration_is_the_programs(tmp_path: Path) -> None:
    """Keys that a program may well have cause no warning."""
    keys = "  region: us-central1\n  owner: someone\n  gcp:project: acme\n  other:pools: [a]\n  name: x\n"
    assert _files(tmp_path, _DEV + keys).warnings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            _DEV.replace("cluster", "clutser"),
            ":2:3: Unused configuration key `ebbtide:clutser`. Write `ebbtide:cluster:`.",
        ),
        (
            _DEV.replace("cluster", "Cluster"),
            ":2:3: Unused configuration key `ebbtide:Cluster`. Write `ebbtide:cluster:`.",
        ),
        (
            "ebbtide:cluster: {}\n",
            (
                ":1:1: `ebbtide:cluster` is not indented, and Pulumi ignores it there. "
                "Indent it under `config:`."
            ),
        ),
        (
            f"{_DEV}queues: []\n",
            (
                ":10:1: `queues` is not indented, and Pulumi ignores it there. "
                "Indent it under `ebbtide:cluster:`."
            ),
        ),
        (
            f"{_DEV}  ebbtide:clutser: {{}}\n",
            ":10:3: Unused configuration key `ebbtide:clutser`. Remove it: `ebbtide:cluster` is there.",
        ),
        (f"{_DEV}  ebbtide:regoin: us\n", ":10:3: Unused configuration key `ebbtide:regoin`. Remove it."),
        (
            f"{_DEV}  ebbtide:locaton: us\n",
            ":10:3: Unused configuration key `ebbtide:locaton`. Write `ebbtide:location:`.",
        ),
        (
            _DEV.replace("config", "confg"),
            ":1:1: A stack's file has no key `confg`, so it is ignored. Write `config:`.",
        ),
    ],
)
def test_a_key_that_can_mean_nothing_else_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The file is refused with the position of the key and what to write."""
    with pytest.raises(StackFileError) as refused:
        _files(tmp_path, text)
    assert str(refused.value) == f"{tmp_path}/Pulumi.dev.yaml{message}"


def test_a_cluster_without_the_namespace(tmp_path: Path) -> None:
    """In another project `cluster` may be the program's own; a command that needs a declaration reports
    it."""
    files = _files(tmp_path, "config: {cluster: {pools: []}}")
    with pytest.raises(StackFileError) as refused:
        files.declaration()
    assert str(refused.value).endswith(
        "Pulumi.dev.yaml:1:10: Unused configuration key `cluster`. Write `ebbtide:cluster:`."
    )


def test_the_source_is_found_for_a_running_program(tmp_path: Path) -> None:
    """The source is found in the project's directory and below it, and nowhere else."""
    _files(tmp_path, _DEV)
    (tmp_path / "src").mkdir()
    for directory in (tmp_path, tmp_path / "src"):
        source = find_source(directory, "dev")
        assert source is not None
        assert str(source.position("owner", source.declaration.value)).endswith("Pulumi.dev.yaml:3:5")
    assert find_source(tmp_path, "prod") is None
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {a: {")
    assert find_source(tmp_path, "dev") is None
