"""The `profile` and `schema` commands. Their dependencies are imported on execution."""

import importlib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from ebbtide.cli.consoles import write, write_json
from ebbtide.cli.error_output import is_installed
from ebbtide.cli.options import ConfigFile, Cwd, Out, PreviewFormat, Stack, stack_files

if TYPE_CHECKING:
    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.placement.profile import Profile

_REPOSITORY: Final = Path(__file__).resolve().parents[2]


def profile(
    stack: Stack = None,
    *,
    format_: Annotated[
        PreviewFormat, typer.Option("--format", help="Format of errors; the profile is always JSON.")
    ] = PreviewFormat.TEXT,
    out: Out = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Write the placement profile of a stack, for workloads.

    It is the stack's output `placementProfile`, as JSON. The program runs in this process, without a cloud.
    Where Pulumi is not installed, the profile follows from the declaration in the stack's file.
    """
    del format_  # read by the command line, which reports the errors
    files = stack_files(stack, config_file, cwd)
    # The program of this repository deploys the stack file's declaration only.
    is_own = files.program.resolve() == _REPOSITORY
    write((_derived(files) if is_own else _exported(files)).json() + "\n", out)


def _derived(files: "StackFiles") -> "Profile":
    """Derive the profile from the declaration in the stack's file, without Pulumi."""
    from ebbtide.declaration.model.declare import declare
    from ebbtide.placement.derive import profile as derived

    return derived(declare(files.declaration(), default_name=files.cluster_name))


def _exported(files: "StackFiles") -> "Profile":
    """Return the profile that the program exports; without Pulumi, derive it from the declaration.

    Raises:
        ModuleNotFoundError: Pulumi is not installed, and the stack's file has no complete declaration.
    """
    from ebbtide.analysis.preview.stack_files import StackFileError
    from ebbtide.declaration.model.faults import DeclarationError

    try:
        return _recorded(files)
    except ModuleNotFoundError as error:
        if is_installed("pulumi"):
            raise
        try:
            return _derived(files)
        except (DeclarationError, StackFileError):
            raise error from None


def _recorded(files: "StackFiles") -> "Profile":
    """Run the program, and return the exported profile.

    Raises:
        ProgramError: the program fails.
        ProfileError: it exports no profile, or one that depends on a cloud's answer.
    """
    from ebbtide.analysis.preview.stack_files import record_stack  # loads Pulumi
    from ebbtide.analysis.recording.values import UNKNOWN, Secret, leaves
    from ebbtide.placement.profile import Profile
    from ebbtide.placement.profile_sources import OUTPUT, ProfileError, is_profile_text

    outputs = record_stack(files).outputs
    if OUTPUT not in outputs:
        raise ProfileError(
            f"The program of {files.project}/{files.stack} does not export `{OUTPUT}`, so no workload can be "
            f'placed on its pools. Add to it: pulumi.export("{OUTPUT}", profile(cluster).output()), with '
            "`profile` from ebbtide.placement.derive, and the cluster that `declare` returned."
        )
    exported = outputs[OUTPUT]
    readable = is_profile_text(exported) if isinstance(exported, str) else isinstance(exported, dict)
    if not readable or any(isinstance(leaf, Secret) or leaf is UNKNOWN for _, leaf in leaves(exported)):
        raise ProfileError(
            f"The program of {files.project}/{files.stack} exports a `{OUTPUT}` that is not a profile, or "
            "has secret or unknown values. Export profile(cluster).output(), which depends only on the "
            "declaration."
        )
    return Profile.load(cast("str | Mapping[str, Any]", exported))


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
    SchemaOf.PREVIEW: ("ebbtide.analysis.preview.preview_document", "Preview"),
    SchemaOf.REVIEW: ("ebbtide.analysis.review.review_document", "AnyReview"),
    SchemaOf.STATUS: ("ebbtide.operations.status_report", "Status"),
    SchemaOf.DRIFT: ("ebbtide.analysis.drift.drift_document", "Drift"),
    SchemaOf.ADOPT: ("ebbtide.operations.adopting.steps", "AdoptionReport"),
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
    write_json(written, out)
