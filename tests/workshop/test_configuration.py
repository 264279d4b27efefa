"""Sources of settings: a stack's configuration has one reader, and the environment has none."""

import ast
from collections.abc import Iterable
from pathlib import Path

from tests.repository import ROOT, relative, sources, syntax

_READER = ROOT / "components/program.py"
_PROGRAM = [ROOT / "__main__.py", *sources("stacks", "components")]
_FOR_WORKLOADS = ROOT / "ebbtide/placement/profile_sources.py"
_MODEL = [
    path
    for path in sources(
        "ebbtide/declaration/catalog",
        "ebbtide/declaration/model",
        "ebbtide/placement",
        "ebbtide/analysis/reading",
    )
    if path != _FOR_WORKLOADS
]


def _attributes(path: Path) -> set[str]:
    return {node.attr for node in ast.walk(syntax(path)) if isinstance(node, ast.Attribute)}


def _readers(paths: Iterable[Path], *names: str) -> list[str]:
    """The files that use an attribute of one of these names."""
    return [relative(path) for path in paths if _attributes(path) & {*names}]


def test_configuration_has_one_reader() -> None:
    """Only `components/program.py` reads `pulumi.Config`; what commands add for a run is read in
    `components/adoption.py` and `components/replacement.py`."""
    of_commands = ["components/adoption.py", "components/replacement.py"]
    assert _readers(_PROGRAM, "Config", "get_all_config") == sorted([*of_commands, relative(_READER)])


def test_environment_has_no_reader() -> None:
    """The declaration alone decides what is created, never the user's environment: one variable names the
    file into which a preview of `ebbtide up` writes the kubeconfig."""
    assert _readers([*_PROGRAM, *_MODEL], "environ", "getenv") == ["components/topology.py"]


def test_keys_have_no_schema_in_the_project() -> None:
    """`Pulumi.yaml` types no `ebbtide:` key: under another project's name it would not load."""
    text = (ROOT / "Pulumi.yaml").read_text(encoding="utf-8")
    assert "\nconfig:" not in text
