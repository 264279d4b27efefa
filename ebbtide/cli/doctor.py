"""The `doctor` command. Its dependencies are imported on execution."""

import json
import sys
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ebbtide.cli.consoles import ExitStatus, console, write
from ebbtide.cli.options import BackendStack, ConfigFile, Cwd, Format, PreviewFormat, stack_files, stack_name
from ebbtide.cli.quota import quota_checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ebbtide.analysis.quotas import QuotaCheck
    from ebbtide.operations.doctor import Finding

_MARKS: Final = {"ok": "ok", "problem": "PROBLEM", "skipped": "not made"}


def doctor(
    stack: BackendStack = None,
    *,
    offline: Annotated[
        bool, typer.Option("--offline", help="Make only the checks that need no network.")
    ] = False,
    drift: Annotated[
        bool,
        typer.Option(
            "--drift", help="Check the rights of `ebbtide drift`, which only reads, and name the roles."
        ),
    ] = False,
    format_: Format = PreviewFormat.TEXT,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Check what an update needs: tools, logins, rights, quotas.

    Nothing is changed. Which APIs and permissions a stack needs follows from its resources. A problem is
    printed with the command that fixes it, and a check that was not made with the reason. Exit status 1:
    there is a problem.
    """
    from ebbtide.analysis.preview.stack_files import record_stack  # loads Pulumi
    from ebbtide.operations.doctor import examine

    name = stack_name(stack, config_file)
    files = stack_files(name.rpartition("/")[2], config_file, cwd)
    recording = record_stack(files)

    def quotas() -> "list[QuotaCheck]":
        return [check for own in quota_checks(files, recording).values() for check in own]

    findings = list(examine(files, recording, name, quotas, offline=offline, reading=drift))
    if format_ is PreviewFormat.JSON:
        write(json.dumps([asdict(finding) for finding in findings], indent=2) + "\n", None)
    else:
        _show(findings)
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(ExitStatus.FOUND)


def _show(findings: "Sequence[Finding]") -> None:
    """Print a line for each finding, and below a problem its fix; one for checks that were not made for the
    same reason."""
    output = console(sys.stdout)
    for (status, message, fix), own in groupby(findings, key=lambda it: (it.status, it.message, it.fix)):
        checks = ", ".join(finding.check for finding in own)
        output.print(f"{_MARKS[status]:9} {checks}: {message}", markup=False, soft_wrap=True)
        if fix:
            output.print(f"{'':9} {fix}", markup=False, soft_wrap=True)
