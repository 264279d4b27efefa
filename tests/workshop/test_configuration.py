"""Where settings come from: a stack's configuration has one reader, and the environment has none."""

import ast
from pathlib import Path

import pytest

from tests.repository import ROOT, relative, sources, syntax

_READER = ROOT / "stacks" / "settings.py"
_PROGRAM = [ROOT / "__main__.py", *sources("stacks", "components")]
_FOR_WORKLOADS = ROOT / "ebbtide/placement/profile_sources.py"
_MODEL = [
    path
    for path in sources("ebbtide/catalog", "ebbtide/model", "ebbtide/placement", "ebbtide/reading")
    if path != _FOR_WORKLOADS
]


def _attributes(path: Path) -> set[str]:
    return {node.attr for node in ast.walk(syntax(path)) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("path", [path for path in _PROGRAM if path != _READER], ids=relative)
def test_configuration_has_one_reader(path: Path) -> None:
    """Nothing in the program but `stacks/settings.py` reads `pulumi.Config`."""
    assert not {"Config", "get_all_config"} & _attributes(path)


@pytest.mark.parametrize("path", [*_PROGRAM, *_MODEL], ids=relative)
def test_environment_has_no_reader(path: Path) -> None:
    """What is created depends on the declaration alone, never on the environment of whoever runs it."""
    assert not {"environ", "getenv"} & _attributes(path)


def test_keys_have_no_schema_in_the_project() -> None:
    """`Pulumi.yaml` types no `ebbtide:` key: under another project's name it would not load."""
    text = (ROOT / "Pulumi.yaml").read_text(encoding="utf-8")
    assert "\nconfig:" not in text
