"""The `schema` command. Its dependencies are imported on execution."""

import importlib
import json
from enum import StrEnum
from types import FunctionType
from typing import Annotated, Final

import typer

from ebbtide.cli.consoles import write
from ebbtide.cli.options import Out


class SchemaOf(StrEnum):
    """Documents that have a JSON Schema."""

    DECLARATION = "declaration"
    STACK = "stack"
    POLICY = "policy"
    PREVIEW = "preview"
    REVIEW = "review"
    STATUS = "status"
    DRIFT = "drift"
    ADOPT = "adopt"
    REAP = "reap"
    ERRORS = "errors"


_SCHEMAS: Final = {
    SchemaOf.DECLARATION: ("ebbtide.declaration.model.declare", "declaration_schema"),
    SchemaOf.STACK: ("ebbtide.analysis.preview.stack_files", "stack_schema"),
    SchemaOf.POLICY: ("ebbtide.analysis.policy.check", "policy_schema"),
    SchemaOf.PREVIEW: ("ebbtide.analysis.preview.report", "Preview"),
    SchemaOf.REVIEW: ("ebbtide.analysis.review.report", "AnyReview"),
    SchemaOf.STATUS: ("ebbtide.operations.status_report", "Status"),
    SchemaOf.DRIFT: ("ebbtide.analysis.drift.report", "Drift"),
    SchemaOf.ADOPT: ("ebbtide.operations.adopting.report", "AdoptionReport"),
    SchemaOf.REAP: ("ebbtide.operations.ending.expiry", "Reaping"),
    SchemaOf.ERRORS: ("ebbtide.declaration.project.diagnostics", "Report"),
}
"""Module of each schema, and its function or the type of the document."""


def schema(
    document: Annotated[
        SchemaOf, typer.Argument(help="Name of the document that the schema describes.", metavar="NAME")
    ] = SchemaOf.DECLARATION,
    *,
    out: Out = None,
) -> None:
    """Print a JSON Schema, for editors and programs.

    NAME is `stack` for a stack's file, `declaration` or `policy` for the values of `ebbtide:cluster` and
    `ebbtide:policy` in it, and `preview`, `review`, `status`, `drift`, `adopt`, `reap` or `errors` for
    documents of `--format json`.
    """
    from ebbtide.values.documents import json_schema

    module, name = _SCHEMAS[document]
    member = getattr(importlib.import_module(module), name)
    written = member() if isinstance(member, FunctionType) else json_schema(member)
    write(json.dumps(written, indent=2) + "\n", out)
