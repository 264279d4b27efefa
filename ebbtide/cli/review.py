"""The `review` command. Its dependencies are imported on execution."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.consoles import screen, write
from ebbtide.cli.exit_status import ExitStatus
from ebbtide.cli.options import ConfigFile, Cwd, Out, Stack, stack_files, stack_name

if TYPE_CHECKING:
    from ebbtide.project.diagnostics import Report
    from ebbtide.review.report import FailedReview, Review


class ReviewFormat(StrEnum):
    """Output formats of a review."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    HTML = "html"


def review(
    stack: Stack = None,
    *,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="REF|FILE",
            help="Earlier version: a git ref, an exported state (.json), or another stack file (.yaml).",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[
        ReviewFormat, typer.Option("--format", help="For a terminal, a pull request, programs, or a browser.")
    ] = ReviewFormat.TEXT,
    out: Out = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Review a stack's changes, cost and quotas, without a cloud.

    It records the work tree's program, and with --against also the earlier version, and predicts the engine's
    plan: updates, replacements and deletions, and what ends with them. Exit status 1: the update would fail,
    or breaks a mandatory rule of the policy. Exit status 2: there are errors, which are the review.
    """
    from ebbtide.preview.record_stack import record_stack  # noqa: PLC0415 - loads Pulumi
    from ebbtide.recording import lazy_packages  # noqa: PLC0415
    from ebbtide.review.baseline import baseline  # noqa: PLC0415
    from ebbtide.review.build_report import review_of  # noqa: PLC0415

    lazy_packages.install()
    files = stack_files(stack, config_file, cwd)
    policy = files.policy().in_ci(os.environ)
    declaration = files.source.declaration if files.source else None
    with files.prices():
        before = baseline(files, against) if against else None
        after = record_stack(files, before.updates, deployed=before.state) if before else record_stack(files)
        document = review_of(after, before, warnings=files.warnings, policy=policy, declaration=declaration)
    _write(document, format_, out)
    if document.verdict == "fail":
        raise typer.Exit(ExitStatus.FOUND)


def write_failure(report: "Report", options: Mapping[str, Any]) -> None:
    """Write the errors of the command as a review, so that an earlier one does not stay in its place.

    Args:
        report: the errors, which are also on standard error.
        options: the options of the command.
    """
    from ebbtide.review.report import FailedReview  # noqa: PLC0415

    format_, out = options["format_"], options["out"]
    if out is not None or format_ is not ReviewFormat.TEXT:
        name = stack_name(options["stack"], options["config_file"])
        _write(FailedReview(stack=name, errors=report.errors), format_, out)


def _write(document: "Review | FailedReview", format_: ReviewFormat, out: Path | None) -> None:
    """Write the review: text is coloured on a terminal, plain in a pipe or a file."""
    if format_ is ReviewFormat.TEXT:
        from ebbtide.review.render import render  # noqa: PLC0415

        with screen(out) as output:
            render(document, output)
        return
    write(_rendered(document, format_), out)


def _rendered(document: "Review | FailedReview", format_: ReviewFormat) -> str:
    from ebbtide.review import markdown, page  # noqa: PLC0415

    match format_:
        case ReviewFormat.MARKDOWN:
            return markdown.render(document)
        case ReviewFormat.HTML:
            return page.render(document)
        case _:
            return document.model_dump_json(indent=2) + "\n"
