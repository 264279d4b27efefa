"""The `schema` command. Its dependencies are imported on execution."""

import importlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer


class SchemaOf(StrEnum):
    """Documents that have a JSON Schema."""

    DECLARATION = "declaration"
    STACK = "stack"
    POLICY = "policy"
    PREVIEW = "preview"
    REVIEW = "review"
    ERRORS = "errors"


_SCHEMAS: Final = {
    SchemaOf.DECLARATION: ("ebbtide.model", "declaration_schema"),
    SchemaOf.STACK: ("ebbtide.review.stack_schema", "stack_schema"),
    SchemaOf.POLICY: ("ebbtide.review.policy", "policy_schema"),
    SchemaOf.PREVIEW: ("ebbtide.preview.report", "preview_schema"),
    SchemaOf.REVIEW: ("ebbtide.review.report", "review_schema"),
    SchemaOf.ERRORS: ("ebbtide.project.diagnostics", "report_schema"),
}
"""Module and function of each."""


def schema(
    document: Annotated[
        SchemaOf, typer.Argument(help="What the schema is of.", metavar="DOCUMENT")
    ] = SchemaOf.DECLARATION,
    *,
    out: Annotated[
        Path | None, typer.Option(help="File to write to instead of standard output.", show_default=False)
    ] = None,
) -> None:
    """Print a JSON Schema, for editors and programs.

    DOCUMENT is `stack` for a stack's file, `declaration` or `policy` for the values of `ebbtide:cluster` and
    `ebbtide:policy` in it, and `preview`, `review` or `errors` for documents of `--format json`.
    """
    import json  # noqa: PLC0415

    module, function = _SCHEMAS[document]
    text = json.dumps(getattr(importlib.import_module(module), function)(), indent=2) + "\n"
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
