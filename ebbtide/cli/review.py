"""The `preview` and `review` commands. Their dependencies are imported on execution."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.consoles import ExitStatus, console, screen, write
from ebbtide.cli.error_output import advice, extension_errors, require
from ebbtide.cli.options import ConfigFile, Cwd, Format, Out, PreviewFormat, Stack, stack_files, stack_name
from ebbtide.errors import EbbtideError
from ebbtide.text import and_list, several
from ebbtide.values import durations

if TYPE_CHECKING:
    from ebbtide.analysis.recording.recording import Recording
    from ebbtide.analysis.review.baseline import Baseline
    from ebbtide.analysis.review.review_document import FailedReview, ReplayColumn, ReplaySummary, Review
    from ebbtide.declaration.project.diagnostics import Report
    from kueue_replay.replays import Result
    from kueue_replay.report import ColumnReport, ReplayReport

_REPLAY_SECONDS = 60.0
"""Time limit of a review's replays."""


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
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",  # Typer before 0.28 takes a metavar that differs in case alone for the name.
            metavar="TRACE",
            help="Trace of jobs, replayed on both versions for up to a minute (see ebbtide replay).",
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
    from ebbtide.analysis.preview.stack_files import record_stack  # loads Pulumi
    from ebbtide.analysis.review.baseline import baseline
    from ebbtide.analysis.review.build_review import review_of

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
    from ebbtide.analysis.review.review_document import ReplaySummary

    try:
        require("replay")
    except ModuleNotFoundError as error:
        return ReplaySummary.failed(str(path), advice(error, "replay") or str(error))
    from ebbtide.operations.traces.clusters import recorded_cluster
    from kueue_replay import Replay, program
    from kueue_replay.replays import TimeLimitError
    from kueue_replay.trace import read_trace

    read_trace(path)
    progress = console(sys.stderr)
    try:
        earlier = before.recording if before and not before.deployed else None
        with before.prices() if before else nullcontext():
            clusters = [recorded_cluster(before.name, earlier)] if before and earlier else []
        clusters.append(recorded_cluster(stack, after))
        planned = Replay({"clusters": clusters, "trace": str(path), "seeds": 3, "seconds": _REPLAY_SECONDS})
        kueue = program(progress)
        with progress.status(f"Replaying {path}"):
            return replay_summary(planned.run(kueue))
    except TimeLimitError as error:
        return ReplaySummary.failed(str(path), str(error))
    except EbbtideError as error:
        first, _, others = str(error).partition("\n")
        more = f" ({several(others.count(chr(10)) + 1, 'more line')})" if others else ""
        return ReplaySummary.failed(str(path), f"{path} was not replayed. {first}{more}")


def replay_summary(result: "Result") -> "ReplaySummary":
    """Return the summary of a result within a review's time limit."""
    from ebbtide.analysis.review.review_document import ReplaySummary

    report = result.report()
    return ReplaySummary(
        trace=report.trace,
        jobs=result.jobs,
        replayed=report.jobs,
        seeds=report.seeds,
        verdict=report.verdict[0],
        columns=tuple(map(_replay_column, report.columns)),
        notes=tuple(_replay_notes(result, report)),
        problem="",
    )


def _replay_notes(result: "Result", report: "ReplayReport") -> Iterator[str]:
    if report.jobs < result.jobs:
        part, whole = (durations.rounded(span) for span in (report.seconds, result.submitted))
        yield (
            f"The first {report.jobs:,} of {result.jobs:,} jobs ({part} of {whole}) were replayed: all "
            f"of them take more than {_REPLAY_SECONDS:.0f} s. `ebbtide replay` has no limit."
        )
    versions: dict[tuple[str, int, tuple[int, ...]], list[str]] = {}
    for column in report.columns:
        for never in column.never:
            versions.setdefault((never.why, never.jobs, never.lines), []).append(column.name)
    for (why, jobs, lines), names in versions.items():
        where = f"line {', '.join(map(str, lines))}"
        yield f"{and_list(names)}: {several(jobs, 'job')} never ended: {why} ({where})."


def _replay_column(column: "ColumnReport") -> "ReplayColumn":
    from ebbtide.analysis.review.review_document import ReplayColumn

    every = column.waits[0]
    return ReplayColumn(
        name=column.name,
        usd=column.usd.median,
        half_waited=every.half.median if every.half else None,
        most_waited=every.most.median if every.most else None,
        node_hours=sum(pool.node_hours.median for pool in column.pools),
        idle_hours=sum(pool.idle_hours.median for pool in column.pools),
        ended=column.ended.median,
        preemptions=column.preemptions.median,
        interruptions=sum(spread.median for spread in column.interruptions.values()),
        deadlines=column.deadlines,
        missed=column.missed.median,
    )


def write_failure(report: "Report", options: Mapping[str, Any]) -> None:
    """Write the errors of the command as a review, so that an earlier one does not stay in its place.

    Args:
        report: the errors, which are also on standard error.
    """
    from ebbtide.analysis.review.review_document import FailedReview

    format_, out = options["format_"], options["out"]
    if out is not None or format_ is not ReviewFormat.TEXT:
        name = stack_name(options["stack"], options["config_file"])
        _write(FailedReview(stack=name, errors=report.errors), format_, out)


def _write(document: "Review | FailedReview", format_: ReviewFormat, out: Path | None) -> None:
    """Write the review: text is coloured on a terminal, plain in a pipe or a file."""
    from ebbtide.analysis.review import markdown, render_review

    match format_:
        case ReviewFormat.TEXT:
            with screen(out) as output:
                render_review.render(document, output)
        case ReviewFormat.MARKDOWN:
            write(markdown.render(document), out)
        case ReviewFormat.HTML:
            from ebbtide.analysis.review import page  # loads Jinja

            write(page.render(document), out)
        case ReviewFormat.JSON:
            write(document.model_dump_json(indent=2) + "\n", out)


def preview(
    stack: Stack = None,
    *,
    format_: Format = PreviewFormat.TEXT,
    tree: Annotated[bool, typer.Option("--tree", help="Show all resources.")] = False,
    values: Annotated[
        bool, typer.Option("--values", help="Show all resources with their inputs, and taints of pools.")
    ] = False,
    out: Out = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Show a stack's pools, cost and quotas, without a cloud.

    The project's own program runs in this process, without credentials and without the `pulumi` command.
    Values that only a cloud knows are assumed, and marked as such. Exit status 1: the program logged an
    error, the stack breaks a mandatory rule of its policy, or a stack that extends its file is invalid.
    """
    from ebbtide.analysis.preview.build_preview import preview_of
    from ebbtide.analysis.preview.stack_files import record_stack  # loads Pulumi

    files = stack_files(stack, config_file, cwd)
    policy = files.policy()
    declaration = files.source.declaration if files.source else None
    with files.prices():
        recording, errors = record_stack(files), extension_errors(files)
        document = preview_of(recording, files.warnings, policy, declaration=declaration, errors=errors)
    if format_ is PreviewFormat.JSON:
        write(document.model_dump_json(indent=2) + "\n", out)
    else:
        from ebbtide.analysis.preview.render_preview import render

        with screen(out) as output:
            render(document, output, tree=tree, values=values)
    is_refused = any(finding.is_refused for finding in document.findings)
    if is_refused or any(message.severity == "error" for message in document.warnings):
        raise typer.Exit(ExitStatus.FOUND)
