"""JSON Schemas, as `ebbtide schema` prints them."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from ebbtide.analysis.preview.stack_files import stack_schema
from ebbtide.cli.entry_point import app
from ebbtide.cli.profile import SchemaOf
from tests.repository import ROOT, STACK_FILES, relative

_MODELINE = "# yaml-language-server: $schema="
_TEMPLATES = sorted(ROOT.glob("template/*/Pulumi.dev.yaml"))


@cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(stack_schema())


def _errors(file: dict[str, Any]) -> list[str]:
    return [error.json_path for error in _validator().iter_errors(file)]  # pyright: ignore[reportUnknownMemberType]


def test_every_document_has_a_schema(tmp_path: Path) -> None:
    """Schemas are printed, or written into a file."""
    out, printed, document = tmp_path / "schema.json", "", ""
    for document in SchemaOf:
        printed = CliRunner().invoke(app, ["schema", document]).stdout
        jsonschema.Draft202012Validator.check_schema(json.loads(printed))
    CliRunner().invoke(app, ["schema", document, "--out", str(out)])
    assert out.read_text(encoding="utf-8") == printed


@pytest.mark.parametrize("stack_file", [*STACK_FILES, *_TEMPLATES], ids=relative)
def test_editors_accept_every_stack_file(stack_file: Path) -> None:
    """And find the schema by its first line, but for those of templates, whose user writes the schema."""
    text = stack_file.read_text(encoding="utf-8")
    assert _errors(yaml.safe_load(text)) == []
    first, _, _ = text.partition("\n")
    assert first.startswith(_MODELINE) == (stack_file not in _TEMPLATES)
    if stack_file not in _TEMPLATES:
        schema = stack_file.parent / first.removeprefix(_MODELINE)
        assert schema.resolve() == ROOT / "docs" / "stack.schema.json"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("pools", 1, "machine"), "n2-standard-9"),
        (("pools", 2, "accelerator", "type"), "nvidia-tesla-t5"),
        (("pools", 1, "machin"), "n2-standard-8"),
        (("lifetime", "hours"), "8"),
        (("cloud", "location"), "us-centrl1-a"),
    ],
)
def test_editors_mark_what_is_wrong(path: tuple[str | int, ...], value: object) -> None:
    """Names of machines, accelerators, regions and zones are enumerated."""
    file = copy.deepcopy(yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8")))
    part = file["config"]["ebbtide:cluster"]
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    (error,) = _errors(file)
    assert error.startswith("$.config['ebbtide:cluster'].")
