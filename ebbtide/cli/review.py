"""The `review` command. Its dependencies are imported on execution."""

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.consoles import ExitStatus, console, screen, write
from ebbtide.cli.options import ConfigFile, Cwd, Out, Stack, stack_files, stack_name
from ebbtide.text import several

if TYPE_CHECKING:
    from ebbtide.analysis.recording.recording import Recording
    from ebbtide.analysis.review.baseline import Baseline
    from ebbtide.analysis.review.report import FailedReview, ReplaySummary, Review
    from ebbtide.declaration.project.diagnostics import Report


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
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",  # Typer before 0.28 takes a metavar that differs in case alone for the name.
            metavar="TRACE",
            help="Trace of jobs, replayed on both versions for up to a minute (see ebbtide replay).",
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
    plan: updates, replacements and deletions, and what ends with them. --trace adds how long jobs would wait
    and what they would cost on both versions. Exit status 1: the update would fail,
    breaks a mandatory rule of the policy, or makes a stack that extends this one's file invalid. Exit status
    2: there are errors, which are the review.
    """
    from ebbtide.analysis.preview.stack_files import record_stack  # noqa: PLC0415 - loads Pulumi
    from ebbtide.analysis.review.baseline import baseline  # noqa: PLC0415
    from ebbtide.analysis.review.build_report import review_of  # noqa: PLC0415
    from ebbtide.cli.error_output import extension_errors  # noqa: PLC0415

    files = stack_files(stack, config_file, cwd)
    policy = files.policy().in_ci(os.environ)
    declaration = files.source.declaration if files.source else None
    with files.prices():
        before = baseline(files, against) if against else None
        after = record_stack(files, before.updates, deployed=before.state) if before else record_stack(files)
        document = review_of(
            after,
            before,
            warnings=files.warnings,
            errors=extension_errors(files),
            policy=policy,
            declaration=declaration,
            replay=_replayed(trace, files.stack, after, before) if trace else None,
        )
    _write(document, format_, out)
    if document.verdict == "fail":
        raise typer.Exit(ExitStatus.FOUND)


def _replayed(path: Path, stack: str, after: "Recording", before: "Baseline | None") -> "ReplaySummary":
    """Replay a trace on both versions. What prevents it is in the summary: the review stands without it.

    Raises:
        TraceError: the trace itself is invalid.
    """
    from ebbtide.analysis.review.report import ReplaySummary  # noqa: PLC0415
    from ebbtide.cli.error_output import advice, require  # noqa: PLC0415
    from ebbtide.errors import EbbtideError  # noqa: PLC0415

    try:
        require("replay")
    except ModuleNotFoundError as error:
        return ReplaySummary.failed(str(path), advice(error, "replay") or str(error))
    from ebbtide.operations import replays  # noqa: PLC0415

    replays.check_trace(path)
    progress = console(sys.stderr)
    try:
        earlier = before.recording if before and not before.deployed else None
        with before.prices() if before else nullcontext():
            clusters = [replays.recorded_cluster(before.name, earlier)] if before and earlier else []
        clusters.append(replays.recorded_cluster(stack, after))
        planned = replays.plan(replays.review_request(path, clusters))
        program = replays.kueue(progress)
        with progress.status(f"Replaying {path}"):
            return replays.summary(str(path), planned, program)
    except EbbtideError as error:
        first, _, others = str(error).partition("\n")
        more = f" ({several(others.count(chr(10)) + 1, 'more line')})" if others else ""
        return ReplaySummary.failed(str(path), f"{path} was not replayed. {first}{more}")


def write_failure(report: "Report", options: Mapping[str, Any]) -> None:
    """Write the errors of the command as a review, so that an earlier one does not stay in its place.

    Args:
        report: the errors, which are also on standard error.
    """
    from ebbtide.analysis.review.report import FailedReview  # noqa: PLC0415

    format_, out = options["format_"], options["out"]
    if out is not None or format_ is not ReviewFormat.TEXT:
        name = stack_name(options["stack"], options["config_file"])
        _write(FailedReview(stack=name, errors=report.errors), format_, out)


def _write(document: "Review | FailedReview", format_: ReviewFormat, out: Path | None) -> None:
    """Write the review: text is coloured on a terminal, plain in a pipe or a file."""
    if format_ is ReviewFormat.TEXT:
        from ebbtide.analysis.review.render import render  # noqa: PLC0415

        with screen(out) as output:
            render(document, output)
        return
    write(_rendered(document, format_), out)


def _rendered(document: "Review | FailedReview", format_: ReviewFormat) -> str:
    from ebbtide.analysis.review import markdown, page  # noqa: PLC0415

    match format_:
        case ReviewFormat.MARKDOWN:
            return markdown.render(document)
        case ReviewFormat.HTML:
            return page.render(document)
        case _:
            return document.model_dump_json(indent=2) + "\n"
